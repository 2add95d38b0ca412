"""The vocabulary in which the cases are written.

A case is data: what is set up (`given`), what is then sent (`when`) and everything that must come
back, in order (`then`). In `given` a synchronous method waits for its ordinary reply, unless an
expectation follows it or it stands in a list of its own, whose members are sent one after another.

Words in braces stand for names made for that case alone: `{q}` is a queue, `{x}` an exchange, and
`Any("tag")` in an expectation gives `{tag}` the value that came.
"""

from dataclasses import dataclass, field, replace

LAST = "the method sent last"


@dataclass(frozen=True)
class Step:
    """Something to send. `channel` and `conn` say where; connections open when first named."""

    method: str = ""
    fields: dict = field(default_factory=dict)
    properties: dict | None = None
    body: bytes = b""
    # method, raw, pause, hang up or cut everywhere; the last four are told to a reader by `what`.
    kind: str = "method"
    raw: bytes = b""
    what: str = ""
    channel: int = 1
    conn: str = "a"

    def on(self, channel: int = 1, conn: str = "a") -> "Step":
        return replace(self, channel=channel, conn=conn)


def m(method: str, **fields) -> Step:
    """A method; arguments not named are zero, empty or false."""
    return Step(method, fields)


def publish(exchange: str, routing_key: str, body: bytes = b"", mandatory=False, immediate=False,
            **properties) -> Step:
    return Step("basic.publish", dict(exchange=exchange, routing_key=routing_key,
                                      mandatory=mandatory, immediate=immediate), properties, body)


def raw(octets: bytes, what: str) -> Step:
    """Octets as they are; `what` tells a reader what they are."""
    return Step(kind="raw", raw=octets, what=what)


def cut_everywhere(stage: str, octets: bytes, what: str) -> Step:
    """For each n, a connection of its own that sends the first n octets and hangs up."""
    return Step(kind="cut everywhere", raw=octets, fields={"stage": stage},
                what=f"on connections of their own (stage {stage}), every beginning of: {what}; "
                     "then hang up")


def hang_up(conn: str = "a") -> Step:
    """The client closes its socket without a word."""
    return Step(kind="hang up", what="hang up", conn=conn)


def pause(seconds: float) -> Step:
    return Step(kind="pause", what=f"pause {seconds} s", fields={"seconds": seconds})


@dataclass(frozen=True)
class Expect:
    """What must come. `channel` and `conn` default to those of the step sent last."""

    kind: str
    method: str = ""
    fields: dict = field(default_factory=dict)
    properties: dict | None = None
    body: bytes | None = None
    at: str | tuple | None = LAST
    channel: int | None = None
    conn: str | None = None

    def on(self, channel: int | None = None, conn: str | None = None) -> "Expect":
        return replace(self, channel=channel, conn=conn)


@dataclass(frozen=True)
class Any:
    """Matches any value with the prefix; the value is known as {name} from then on."""

    name: str
    prefix: str = ""


@dataclass(frozen=True)
class Has:
    """Matches a table with at least these entries."""

    entries: dict


def reply(method: str, **fields) -> Expect:
    """That method, with these fields; a field not named must be zero, empty or false."""
    return Expect("method", method, fields)


def message(method: str, body: bytes | None = None, properties: dict | None = None,
            **fields) -> Expect:
    """A method with content; body and properties are compared where given."""
    return Expect("method", method, fields, properties, body)


def shortened(reply_text: str) -> str:
    """A reply text over 255 octets ends in three dots."""
    octets = reply_text.encode("utf-8", "surrogateescape")
    return reply_text if len(octets) <= 255 else octets[:252].decode() + "..."


def channel_error(code: int, text: str, at: str | tuple | None = LAST) -> Expect:
    """channel.close; `at` is the method whose ids it carries, or a pair of ids; None for 0, 0."""
    return Expect("channel error", fields={"reply_code": code, "reply_text": text}, at=at)


def connection_error(code: int, text: str, at: str | tuple | None = LAST) -> Expect:
    """connection.close; once it is answered the server closes the socket."""
    return Expect("connection error", fields={"reply_code": code, "reply_text": text}, at=at)


def socket_closed() -> Expect:
    """The server closes the socket and says nothing (more)."""
    return Expect("socket closed")


def nothing() -> Expect:
    """No reply: the answer to a channel.flow sent now is the next thing on this channel."""
    return Expect("nothing")


def silence(seconds: float = 0.15) -> Expect:
    """Nothing comes for that long. For what a queue might send of its own accord."""
    return Expect("silence", fields={"seconds": seconds})


def heartbeat() -> Expect:
    """A heartbeat frame."""
    return Expect("heartbeat")


def octets(expected: bytes) -> Expect:
    """Exactly these octets, outside any frame."""
    return Expect("octets", body=expected)


@dataclass(frozen=True)
class Case:
    id: str
    when: list
    then: list
    given: list = field(default_factory=list)
    # How far the handshake has gone before `given`: socket, started, tuned, opening, open, channel.
    stage: str = "channel"
    protocol: str = "0-9-1"
    tune: dict = field(default_factory=dict)
    client_properties: dict = field(default_factory=dict)
    # What RabbitMQ does instead, where Leveret differs on purpose; None where it does the same.
    rabbitmq: list | None = None
    # What RabbitMQ 3.10 does instead, where 3.13 differs from it.
    rabbitmq_3_10: list | None = None
    note: str = ""
