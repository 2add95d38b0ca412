"""Carries out one case against a broker and fails with what came instead."""

import functools
import os
import re
import time

import wire
from methods import ASYNCHRONOUS, OTHER_REPLIES
from table import LAST, Any, Case, Expect, Has, Step, nothing, shortened

RUN = f"{os.getpid():x}{int(time.time()) % 4096:x}"
STAGES = ("socket", "started", "tuned", "opening", "open", "channel")
PROBE_CHANNEL = 900


def address() -> tuple[str, int]:
    return os.environ.get("AMQP_HOST", "127.0.0.1"), int(os.environ.get("AMQP_PORT", "5672"))


class Mismatch(AssertionError):
    pass


def connect(case: Case, stage: str) -> wire.Connection:
    """A connection that has gone through the handshake as far as `stage`."""
    conn = wire.Connection(address(), case.protocol)
    reached = STAGES.index(stage)
    if reached >= 1:
        conn.send_protocol_header()
    if reached >= 2:
        conn.start_ok(case.client_properties)
        assert (got := conn.read()).name == "connection.tune", got
    if reached >= 3:
        conn.tune_ok(**case.tune)
    if reached >= 4:
        conn.open()
        assert (got := conn.read()).name == "connection.open-ok", got
    return conn


class Run:
    """The state of one case under way."""

    def __init__(self, case: Case):
        self.case = case
        self.names: dict[str, str] = {}
        self.connections: dict[str, wire.Connection] = {}
        self.touched: set[tuple[str, int]] = set()
        self.gone: set[str] = set()
        self.last = Step()

    def execute(self, then: list):
        try:
            for item, following in zip(self.case.given, [*self.case.given[1:], None]):
                self.do(item, await_reply=not isinstance(following, Expect))
            for item in self.case.when:
                self.do(item, await_reply=False)
            for item in then:
                self.expect(item)
            self.check_all_is_quiet()
        finally:
            self.clean_up()

    def do(self, item: Step | Expect | list, await_reply: bool):
        if isinstance(item, list):
            for each in item:
                self.do(each, await_reply=False)
            return
        if isinstance(item, Expect):
            self.expect(item)
            return
        self.last = item
        match item.kind:
            case "pause":
                time.sleep(item.fields["seconds"])
            case "cut everywhere":
                self.cut_everywhere(item)
            case "hang up":
                self.connection(item).close()
                self.gone.add(item.conn)
            case "raw":
                self.connection(item).send(item.raw)
            case "method":
                self.send(item, await_reply)

    def cut_everywhere(self, step: Step):
        for length in range(len(step.raw)):
            conn = connect(self.case, step.fields["stage"])
            conn.send(step.raw[:length])
            conn.close()

    def send(self, step: Step, await_reply: bool):
        conn, fields = self.connection(step), self.fill(step.fields)
        if step.properties is not None:
            conn.send_content(step.channel, step.method, fields, self.fill(step.properties),
                              step.body)
        else:
            conn.send_method(step.channel, step.method, **fields)
        if await_reply and step.method not in ASYNCHRONOUS and not step.fields.get("nowait"):
            got = self.read(conn, f"the reply to {step.method}")
            if got.name not in OTHER_REPLIES.get(step.method, (step.method + "-ok",)):
                raise Mismatch(f"given {step.method}, came {got}")

    def connection(self, item: Step | Expect) -> wire.Connection:
        """The connection a step names, opened on first use, its channel too."""
        name = item.conn
        stage = self.case.stage if name == "a" else "channel"
        if name not in self.connections:
            self.connections[name] = connect(self.case, stage)
        conn = self.connections[name]
        if stage == "channel" and item.channel and (name, item.channel) not in self.touched:
            self.touched.add((name, item.channel))
            if item.method != "channel.open" or item.channel == 1:
                got = conn.call(item.channel, "channel.open")
                assert got.name == "channel.open-ok", got
        return conn

    def name(self, token: str) -> str:
        if token not in self.names:
            self.names[token] = f"{self.case.id}.{token}.{RUN}"
        return self.names[token]

    def fill(self, value):
        match value:
            case str():
                return re.sub(r"\{(\w+)\}", lambda found: self.name(found[1]), value)
            case dict():
                return {self.fill(k): self.fill(v) for k, v in value.items()}
            case list():
                return [self.fill(v) for v in value]
        return value

    def expect(self, item: Expect):
        conn_name = item.conn or self.last.conn
        channel = self.last.channel if item.channel is None else item.channel
        conn = self.connections[conn_name]
        match item.kind:
            case "method":
                self.expect_method(conn, channel, item)
            case "channel error":
                self.expect_error(conn, channel, "channel.close", item)
                conn.send_method(channel, "channel.close-ok")
            case "connection error":
                self.expect_error(conn, 0, "connection.close", item)
                conn.send_method(0, "connection.close-ok")
                self.expect_end(conn, conn_name)
            case "socket closed":
                self.expect_end(conn, conn_name)
            case "nothing":
                got = conn.call(channel, "channel.flow", active=True)
                if (got.channel, got.name) != (channel, "channel.flow-ok"):
                    raise Mismatch(f"nothing was due, came {got}")
            case "silence":
                self.expect_silence(conn, item.fields["seconds"])
            case "heartbeat":
                if (got := conn.read_frame()) != (wire.HEARTBEAT, 0, b""):
                    raise Mismatch(f"a heartbeat was due, came {got}")
            case "octets":
                got = conn.read_exactly(len(item.body))
                if got != item.body:
                    raise Mismatch(f"due {item.body!r}, came {got!r}")

    def expect_method(self, conn: wire.Connection, channel: int, item: Expect):
        got = self.read(conn, item.method)
        spec = conn.methods[item.method]
        due = {name: item.fields.get(name, "" if kind in "sS" else {} if kind == "F" else 0)
               for name, kind in spec.fields}
        if spec.class_name == "connection":
            channel = 0
        if got.name != item.method or got.channel != channel or not self.matches(due, got.fields):
            raise Mismatch(f"due {item.method} {self.fill(due)} on channel {channel}, came {got}")
        if item.body is not None and item.body != got.body:
            raise Mismatch(f"due body {item.body[:80]!r}, came {got.body[:80]!r}")
        if item.properties is not None and not self.matches(item.properties, got.properties):
            raise Mismatch(f"due {self.fill(item.properties)}, came {got.properties}")

    def expect_error(self, conn: wire.Connection, channel: int, name: str, item: Expect):
        at = self.last.method if item.at == LAST else item.at
        numbers = at if isinstance(at, tuple) else (0, 0)
        if isinstance(at, str):
            numbers = (conn.methods[at].class_id, conn.methods[at].method_id)
        due = self.fill(item.fields) | {"class_id": numbers[0], "method_id": numbers[1]}
        due["reply_text"] = shortened(due["reply_text"])
        got = self.read(conn, f"{name} {due}")
        if got.name != name or got.channel != channel or got.fields != due:
            raise Mismatch(f"due {name} {due} on channel {channel}, came {got}")

    def read(self, conn: wire.Connection, due: str) -> wire.Received:
        try:
            return conn.read()
        except wire.Closed as closed:
            raise Mismatch(f"due {due}; the socket was closed {closed}") from closed
        except TimeoutError as timeout:
            raise Mismatch(f"due {due}; nothing came") from timeout

    def matches(self, due, got) -> bool:
        match due:
            case Any(name=name, prefix=prefix):
                self.names[name] = got
                return str(got).startswith(prefix)
            case Has(entries=entries) if isinstance(got, dict):
                return all(k in got and self.matches(entries[k], got[k]) for k in entries)
            case dict() if isinstance(got, dict):
                return due.keys() == got.keys() and all(self.matches(due[k], got[k]) for k in due)
            case list() if isinstance(got, list):
                return len(due) == len(got) and all(map(self.matches, due, got))
        return self.fill(due) == got

    def expect_end(self, conn: wire.Connection, conn_name: str):
        self.gone.add(conn_name)
        try:
            got = conn.read_frame()
            while got[0] == wire.HEARTBEAT:
                got = conn.read_frame()
        except wire.Closed:
            return
        except TimeoutError as timeout:
            raise Mismatch("the socket should be closed, and is open") from timeout
        raise Mismatch(f"the socket should be closed, came frame {got}")

    def expect_silence(self, conn: wire.Connection, seconds: float):
        conn.socket.settimeout(seconds)
        try:
            got = conn.read()
        except TimeoutError:
            return
        finally:
            conn.socket.settimeout(5)
        raise Mismatch(f"silence was due, came {got}")

    def check_all_is_quiet(self):
        """Nothing is left over and each connection that should be alive still serves."""
        for name, conn in self.connections.items():
            if name in self.gone or not conn.is_open:
                continue
            for channel in sorted(conn.open_channels):
                self.expect(nothing().on(channel, name))
            got = conn.call(PROBE_CHANNEL, "channel.open")
            if (got.channel, got.name) != (PROBE_CHANNEL, "channel.open-ok"):
                raise Mismatch(f"left over: {got}")

    def clean_up(self):
        for conn in self.connections.values():
            conn.close()
        doomed = [(token, name) for token, name in self.names.items()
                  if re.fullmatch(r"[qx]\d*", token)]
        if not doomed:
            return
        conn = connect(self.case if self.case.protocol == "0-8" else Case("", [], []), "open")
        conn.call(1, "channel.open")
        for token, name in doomed:
            kind = {"q": "queue", "x": "exchange"}[token[0]]
            if conn.call(1, f"{kind}.delete", **{kind: name}).name == "channel.close":
                conn.send_method(1, "channel.close-ok")
                conn.call(1, "channel.open")
        conn.close()


@functools.cache
def reference_version() -> str:
    conn = wire.Connection(address())
    start = conn.send_protocol_header()
    conn.close()
    return start.fields["server_properties"]["version"]
