"""A raw AMQP codec and a socket that will send anything, well formed or not.

Deliberately independent of any client library and of the broker's own codec, so that the two
cannot share a mistake.
"""

import socket
import struct
from dataclasses import dataclass, field

from methods import PROPERTIES, SPECIFICATIONS, WITH_CONTENT, Method

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END = b"\xce"
PROTOCOL_HEADERS = {
    "0-9-1": b"AMQP\x00\x00\x09\x01",
    "0-9": b"AMQP\x01\x01\x00\x09",
    "0-8": b"AMQP\x01\x01\x08\x00",
}


@dataclass(frozen=True)
class Typed:
    """A table value whose AMQP type is not the one its Python type stands for."""

    kind: str
    value: object


# Fixed-size table values: kind -> struct format.
FIXED = {"b": ">b", "B": ">B", "s": ">h", "u": ">H", "I": ">i", "i": ">I", "l": ">q", "L": ">q",
         "T": ">Q", "f": ">f", "d": ">d"}


# Text fields are str; octets that are not UTF-8 are kept in them as surrogates.
def shortstr(value: str | bytes) -> bytes:
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return bytes([len(raw)]) + raw


def longstr(value: str | bytes) -> bytes:
    raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return struct.pack(">L", len(raw)) + raw


def table(entries: dict | bytes) -> bytes:
    """A field table with its length prefix; bytes are sent as they are, length and all."""
    if isinstance(entries, bytes):
        return entries
    return longstr(b"".join(shortstr(k) + table_value(v) for k, v in entries.items()))


def table_value(value) -> bytes:
    match value:
        case Typed("D", (scale, unscaled)):
            return b"D" + struct.pack(">BL", scale, unscaled)
        case Typed("x", raw):
            return b"x" + longstr(raw)
        case Typed("S", raw):
            return b"S" + longstr(raw)
        case Typed(kind, number) if kind in FIXED:
            return kind.encode() + struct.pack(FIXED[kind], number)
        case Typed(kind, raw):
            return kind.encode() + raw
        case None:
            return b"V"
        case bool():
            return b"t" + bytes([value])
        case int() if -(2**31) <= value < 2**31:
            return b"I" + struct.pack(">i", value)
        case int():
            return b"l" + struct.pack(">q", value)
        case float():
            return b"d" + struct.pack(">d", value)
        case str():
            return b"S" + longstr(value)
        case dict():
            return b"F" + table(value)
        case list():
            return b"A" + longstr(b"".join(table_value(v) for v in value))
    raise TypeError(f"no AMQP type for {value!r}")


class Reader:
    """Takes AMQP values off the front of a byte string."""

    def __init__(self, raw: bytes):
        self.raw, self.at = raw, 0

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.raw):
            raise ValueError("value runs past its end")
        self.at += count
        return self.raw[self.at - count:self.at]

    def number(self, fmt: str):
        return struct.unpack(fmt, self.take(struct.calcsize(fmt)))[0]

    def shortstr(self) -> str:
        return self.take(self.number(">B")).decode("utf-8", "surrogateescape")

    def longstr(self) -> bytes:
        return self.take(self.number(">L"))

    def done(self) -> bool:
        return self.at == len(self.raw)

    def table(self) -> dict:
        inner, entries = Reader(self.longstr()), {}
        while not inner.done():
            key = inner.shortstr()
            entries[key] = inner.table_value()
        return entries

    def table_value(self):
        kind = self.take(1).decode("latin-1")
        match kind:
            case "S":
                raw = self.longstr()
                try:
                    return raw.decode()
                except UnicodeDecodeError:
                    return Typed("S", raw)
            case "t":
                return self.number(">B") != 0
            case "V":
                return None
            case "F":
                return self.table()
            case "A":
                inner, items = Reader(self.longstr()), []
                while not inner.done():
                    items.append(inner.table_value())
                return items
            case "x":
                return Typed("x", self.longstr())
            case "D":
                return Typed("D", (self.number(">B"), self.number(">L")))
        number = self.number(FIXED[kind])
        plain = kind in "Id" or (kind == "l" and not -(2**31) <= number < 2**31)
        return number if plain else Typed(kind, number)


def arguments(method: Method, values: dict) -> bytes:
    """The argument bytes of a method; what is not given is zero, empty or false."""
    unknown = values.keys() - {name for name, _ in method.fields}
    if unknown:
        raise TypeError(f"{method.name} has no {unknown}")
    out, bits = [], None
    for name, kind in method.fields:
        value = values.get(name)
        if kind != "b" and bits is not None:
            out.append(_bits(bits))
            bits = None
        if kind == "b":
            bits = (bits or []) + [bool(value)]
        elif kind == "s":
            out.append(shortstr(value or ""))
        elif kind == "S":
            out.append(longstr(value or ""))
        elif kind == "F":
            out.append(table(value or {}))
        else:
            out.append(struct.pack({"O": ">B", "H": ">H", "L": ">L", "Q": ">Q"}[kind], value or 0))
    if bits is not None:
        out.append(_bits(bits))
    return b"".join(out)


def _bits(bits: list[bool]) -> bytes:
    return bytes([sum(1 << i for i, bit in enumerate(bits) if bit)])


def parse_arguments(method: Method, raw: bytes) -> dict:
    reader, values, bit, octet = Reader(raw), {}, 0, 0
    for name, kind in method.fields:
        if kind == "b":
            octet = reader.number(">B") if bit == 0 else octet
            values[name] = bool(octet >> bit & 1)
            bit += 1
            continue
        bit = 0
        if kind == "s":
            values[name] = reader.shortstr()
        elif kind == "S":
            values[name] = reader.longstr().decode("utf-8", "surrogateescape")
        elif kind == "F":
            values[name] = reader.table()
        else:
            values[name] = reader.number({"O": ">B", "H": ">H", "L": ">L", "Q": ">Q"}[kind])
    if not reader.done():
        raise ValueError(f"{method.name}: {len(raw) - reader.at} octets too many")
    return values


def properties(values: dict) -> bytes:
    flags, out = 0, []
    for i, (name, kind) in enumerate(PROPERTIES):
        if name in values:
            flags |= 1 << (15 - i)
            value = values[name]
            out.append(shortstr(value) if kind == "s" else table(value) if kind == "F"
                       else struct.pack(">B" if kind == "O" else ">Q", value))
    return struct.pack(">H", flags) + b"".join(out)


def parse_properties(raw: bytes) -> dict:
    reader = Reader(raw)
    flags, values = reader.number(">H"), {}
    for i, (name, kind) in enumerate(PROPERTIES):
        if flags >> (15 - i) & 1:
            values[name] = (reader.shortstr() if kind == "s" else reader.table() if kind == "F"
                            else reader.number(">B" if kind == "O" else ">Q"))
    if not reader.done():
        raise ValueError("octets left after the properties")
    return values


def frame(kind: int, channel: int, payload: bytes, end: bytes = FRAME_END) -> bytes:
    return struct.pack(">BHL", kind, channel, len(payload)) + payload + end


def content_header(size: int, props: dict | bytes = {}, class_id: int = 60, weight: int = 0):
    """The payload of a content header frame; property bytes are sent as they are."""
    raw = props if isinstance(props, bytes) else properties(props)
    return struct.pack(">HHQ", class_id, weight, size) + raw


@dataclass
class Received:
    """One command off the wire, its content assembled."""

    channel: int
    name: str
    fields: dict
    properties: dict = field(default_factory=dict)
    body: bytes = b""

    def __str__(self):
        content = f" {self.properties} {self.body[:80]!r}" if self.name in WITH_CONTENT else ""
        return f"{self.name} {self.fields}{content} on channel {self.channel}"


class Closed(Exception):
    """The peer closed the socket."""


class Connection:
    """A socket, and what it takes to talk AMQP over it by hand."""

    def __init__(self, address: tuple[str, int], protocol: str = "0-9-1", timeout: float = 5.0):
        self.protocol = protocol
        self.methods = SPECIFICATIONS[protocol]
        self.numbers = {(m.class_id, m.method_id): m for m in self.methods.values()}
        self.socket = socket.create_connection(address, timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.frame_max = 131072
        self.is_open = False
        self.open_channels: set[int] = set()

    def close(self):
        self.socket.close()

    def send(self, raw: bytes):
        try:
            self.socket.sendall(raw)
        except (BrokenPipeError, ConnectionResetError):
            pass  # what the peer had to say before it closed is still there to be read

    def method_payload(self, name: str, values: dict) -> bytes:
        method = self.methods[name]
        return struct.pack(">HH", method.class_id, method.method_id) + arguments(method, values)

    def send_method(self, channel: int, name: str, **values):
        self.send(frame(METHOD, channel, self.method_payload(name, values)))

    def send_content(self, channel: int, name: str, values: dict, props: dict, body: bytes):
        out = [frame(METHOD, channel, self.method_payload(name, values)),
               frame(HEADER, channel, content_header(len(body), props))]
        step = self.frame_max - 8
        out += [frame(BODY, channel, body[i:i + step]) for i in range(0, len(body), step)]
        self.send(b"".join(out))

    def read_exactly(self, count: int) -> bytes:
        out = b""
        while len(out) < count:
            try:
                more = self.socket.recv(count - len(out))
            except ConnectionResetError:
                more = b""
            if not more:
                raise Closed(f"after {out!r}" if out else "")
            out += more
        return out

    def read_frame(self) -> tuple[int, int, bytes]:
        kind, channel, size = struct.unpack(">BHL", self.read_exactly(7))
        assert size + 8 <= self.frame_max, f"frame of {size + 8} octets, {self.frame_max} agreed"
        payload, end = self.read_exactly(size), self.read_exactly(1)
        assert end == FRAME_END, f"frame ends in {end!r}"
        return kind, channel, payload

    def read(self) -> Received:
        """The next command, whatever its channel; heartbeats are passed over."""
        kind, channel, payload = self.read_frame()
        while kind == HEARTBEAT:
            kind, channel, payload = self.read_frame()
        assert kind == METHOD, f"frame of type {kind} where a method was due"
        method = self.numbers[struct.unpack(">HH", payload[:4])]
        got = Received(channel, method.name, parse_arguments(method, payload[4:]))
        self._follow(got)
        if method.name in WITH_CONTENT:
            self._read_content(got)
        return got

    def _follow(self, got: Received):
        """Keeps account of what is open."""
        match got.name:
            case "connection.open-ok":
                self.is_open = True
            case "connection.close" | "connection.close-ok":
                self.is_open = False
            case "channel.open-ok":
                self.open_channels.add(got.channel)
            case "channel.close" | "channel.close-ok":
                self.open_channels.discard(got.channel)

    def _read_content(self, got: Received):
        kind, channel, payload = self.read_frame()
        assert (kind, channel) == (HEADER, got.channel), f"frame {kind} on {channel}, header due"
        class_id, weight, size = struct.unpack(">HHQ", payload[:12])
        assert (class_id, weight) == (60, 0), f"header of class {class_id}, weight {weight}"
        got.properties = parse_properties(payload[12:])
        while len(got.body) < size:
            kind, channel, payload = self.read_frame()
            assert (kind, channel) == (BODY, got.channel), f"frame {kind} on {channel}, body due"
            got.body += payload

    # The handshake, one stage a call.

    def send_protocol_header(self):
        self.send(PROTOCOL_HEADERS[self.protocol])
        return self.read()

    def start_ok(self, properties={}, mechanism="PLAIN", response=b"\0guest\0guest"):
        self.send_method(0, "connection.start-ok", client_properties=properties,
                         mechanism=mechanism, response=response, locale="en_US")

    def tune_ok(self, channel_max=2047, frame_max=131072, heartbeat=0):
        self.frame_max = frame_max or self.frame_max
        self.send_method(0, "connection.tune-ok", channel_max=channel_max, frame_max=frame_max,
                         heartbeat=heartbeat)

    def open(self, virtual_host="/"):
        self.send_method(0, "connection.open", virtual_host=virtual_host)

    def call(self, channel: int, name: str, **values) -> Received:
        self.send_method(channel, name, **values)
        return self.read()
