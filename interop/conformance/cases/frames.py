"""Malformed and misplaced frames, and malformed arguments inside well-formed ones.

RabbitMQ drops the socket or answers 541 INTERNAL_ERROR where its decoder crashes; Leveret answers
501 FRAME_ERROR with the octets that it cannot decode, as RabbitMQ does for most arguments. The
octets are those after the method id, or the properties from their flags on.
"""

import struct

from methods import AMQP_0_9_1
from table import (Any, Case, Step, channel_error, connection_error, cut_everywhere, m, message,
                   publish, raw, reply, shortened, socket_closed)
from wire import PROTOCOL_HEADERS, arguments, content_header, frame, longstr, shortstr


def method(name: str, octets: bytes | None = None, **fields) -> bytes:
    """The payload of a method frame; `octets` stands for its arguments if given."""
    spec = AMQP_0_9_1[name]
    return struct.pack(">HH", spec.class_id, spec.method_id) + (
        arguments(spec, fields) if octets is None else octets)


def header(size: int, **args) -> bytes:
    return frame(2, 1, content_header(size, **args))


def body(octets: bytes) -> bytes:
    return frame(3, 1, octets)


PUBLISH = frame(1, 1, method("basic.publish", routing_key="nowhere"))
FLOW = frame(1, 1, method("channel.flow", active=True))
FLOWING = reply("channel.flow-ok", active=True)
INTERNAL_ERROR = [connection_error(541, "INTERNAL_ERROR", at=None)]
DROPPED = [socket_closed()]
UNIMPLEMENTED = "COMMAND_INVALID - unimplemented method"


def erlang(octets: bytes) -> str:
    """A binary as RabbitMQ shows one."""
    return f"<<{','.join(map(str, octets))}>>"


def frame_error(text: str):
    return [connection_error(501, f"FRAME_ERROR - {text}", at=None)]


def unexpected(text: str, at: str | None = "basic.publish"):
    return [connection_error(505, f"UNEXPECTED_FRAME - {text}", at=at)]


def undecodable(name: str, octets: bytes):
    text = shortened(f"FRAME_ERROR - cannot decode {erlang(octets)}")
    return [connection_error(501, text, at=name)]


FRAMES = [
    Case("frames.bad-end",
         [raw(frame(1, 1, method("channel.flow", active=True), end=b"\xcd"),
              "channel.flow in a frame that ends in 0xcd")],
         frame_error("type 1, all octets = <<0,20,0,20,1>>: {invalid_frame_end_marker,205}")),
    Case("frames.bad-end-of-a-long-printable-frame",
         [raw(frame(3, 1, b"x" * 40, end=b"\0"), "a body frame of 40 octets that ends in 0")],
         frame_error('type 3, first 16 octets = <<"xxxxxxxxxxxxxxxx">>: '
                     "{invalid_frame_end_marker,0}")),
    Case("frames.too-large",
         [raw(struct.pack(">BHL", 1, 1, 131073), "the start of a frame of 131073 octets")],
         frame_error("type 1, all octets = <<>>: {frame_too_large,131073,131064}")),
    Case("frames.too-large-by-far",
         [raw(struct.pack(">BHL", 1, 1, 2**32 - 1), "the start of a frame of 4 GiB")],
         frame_error("type 1, all octets = <<>>: {frame_too_large,4294967295,131064}")),
    Case("frames.largest", tune={"frame_max": 4096},
         when=[raw(PUBLISH + header(4088) + body(b"x" * 4088) + FLOW,
                   "a publish with a body frame of 4096 octets in all")], then=[FLOWING]),
    Case("frames.larger-by-8-is-tolerated", tune={"frame_max": 4096},
         when=[raw(PUBLISH + header(4096) + body(b"x" * 4096) + FLOW,
                   "a publish with a body frame of 4104 octets in all")], then=[FLOWING]),
    Case("frames.larger-by-9", tune={"frame_max": 4096},
         when=[raw(PUBLISH + header(4097) + body(b"x" * 4097),
                   "a publish with a body frame of 4105 octets in all")],
         then=frame_error("type 3, all octets = <<>>: {frame_too_large,4097,4088}")),
    *[Case(f"frames.unknown-type-{kind}",
           [raw(frame(kind, 1, b"abc"), f"a frame of type {kind}")],
           frame_error(f'type {kind}, all octets = <<"abc">>: unknown_frame'))
      for kind in (0, 4, 5, 6, 7, 9, 65, 255)],
    Case("frames.unknown-type-on-channel-0", stage="open",
         when=[raw(frame(9, 0, b"abc"), "a frame of type 9 on channel 0").on(channel=0)],
         then=frame_error('type 9, all octets = <<"abc">>: unknown_frame')),
    Case("frames.unknown-type-of-20-octets",
         [raw(frame(9, 1, bytes(range(20))), "a frame of type 9 with 20 octets")],
         frame_error("type 9, first 16 octets = <<0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15>>: "
                     "unknown_frame")),
    Case("frames.method-of-3-octets", [raw(frame(1, 1, b"\0\x14\0"), "a method frame of 3 octets")],
         frame_error("type 1, all octets = <<0,20,0>>: unknown_frame")),
    Case("frames.method-of-0-octets", [raw(frame(1, 1, b""), "an empty method frame")],
         frame_error("type 1, all octets = <<>>: unknown_frame")),
    Case("frames.header-of-11-octets",
         [raw(PUBLISH + frame(2, 1, bytes(11)), "basic.publish, a header frame of 11 octets")],
         frame_error("type 2, all octets = <<0,0,0,0,0,0,0,0,0,0,0>>: unknown_frame")),
    Case("frames.heartbeat-on-a-channel", [raw(frame(8, 1, b""), "a heartbeat on channel 1")],
         unexpected("type 8, all octets = <<>>", at=None)),
    Case("frames.heartbeat-with-payload", stage="open",
         when=[raw(frame(8, 0, b"x"), "a heartbeat with a payload").on(channel=0)],
         then=frame_error('type 8, all octets = <<"x">>: unknown_frame')),
    Case("frames.content-on-channel-0", stage="open",
         when=[raw(frame(3, 0, b"x"), "a body frame on channel 0").on(channel=0)],
         then=unexpected('type 3, all octets = <<"x">>', at=None)),
    Case("frames.one-octet-at-a-time",
         [raw(FLOW[i:i + 1], f"octet {i} of channel.flow") for i in range(len(FLOW))], [FLOWING]),
    Case("frames.many-in-one-write", [raw(FLOW * 3, "channel.flow three times")], [FLOWING] * 3),
]

METHODS = [
    Case("frames.unknown-class", [raw(frame(1, 1, struct.pack(">HH", 61, 10)), "method 61.10")],
         [connection_error(503, UNIMPLEMENTED, at=(61, 10))], rabbitmq=DROPPED),
    Case("frames.unknown-method", [raw(frame(1, 1, struct.pack(">HH", 50, 99)), "method 50.99")],
         [connection_error(503, UNIMPLEMENTED, at=(50, 99))], rabbitmq=DROPPED),
    Case("frames.unknown-method-on-channel-0", stage="open",
         when=[raw(frame(1, 0, struct.pack(">HH", 10, 99)),
                   "method 10.99 on channel 0").on(channel=0)],
         then=[connection_error(503, UNIMPLEMENTED, at=(10, 99))], rabbitmq=DROPPED),
    *[Case(f"frames.{name}-from-a-client", [m(name)], [connection_error(503, UNIMPLEMENTED)])
      for name in ("channel.open-ok", "access.request-ok", "exchange.declare-ok",
                   "queue.declare-ok", "basic.qos-ok", "basic.get-empty", "tx.select-ok",
                   "confirm.select-ok")],
    *[Case(f"frames.{name}-from-a-client", [Step(name, {}, {}, b"x")],
           [connection_error(503, UNIMPLEMENTED)])
      for name in ("basic.deliver", "basic.return", "basic.get-ok")],
]

EXPECTED_METHOD = unexpected("expected method frame, got non method frame instead", at=None)
EXPECTED_HEADER = unexpected("expected content header for class 60, got non content header frame "
                             "instead")
EXPECTED_BODY = unexpected("expected content body, got non content body frame instead")


def content(case_id: str, octets: bytes, what: str, then: list, **variants):
    """basic.publish, then the octets."""
    return Case(f"frames.{case_id}", [raw(PUBLISH + octets, f"basic.publish, {what}")], then,
                **variants)


CONTENT = [
    Case("frames.body-without-method", [raw(body(b"x"), "a body frame")], EXPECTED_METHOD),
    Case("frames.header-without-method", [raw(header(1), "a header frame")], EXPECTED_METHOD),
    content("body-without-header", body(b"x"), "a body", EXPECTED_HEADER),
    content("method-instead-of-header", FLOW, "channel.flow", EXPECTED_HEADER),
    content("method-instead-of-body", header(5) + FLOW, "a header of size 5, channel.flow",
            EXPECTED_BODY),
    content("method-amid-the-body", header(5) + body(b"ab") + FLOW,
            "a header of size 5, a body of 2, channel.flow", EXPECTED_BODY),
    content("header-instead-of-body", header(5) + header(5), "two headers of size 5",
            EXPECTED_BODY),
    content("header-of-another-class", header(0, class_id=50), "a header of class 50",
            unexpected("expected content header for class 60, got one for class 50 instead")),
    content("header-with-weight", header(0, weight=1), "a header of weight 1", EXPECTED_HEADER),
    content("body-longer-than-announced", header(2) + body(b"abc") + FLOW,
            "a header of size 2, a body of 3, channel.flow",
            [connection_error(501, "FRAME_ERROR - content body longer than announced",
                              at="basic.publish")], rabbitmq=EXPECTED_BODY),
    content("body-longer-by-a-frame", header(2) + body(b"ab") + body(b"c"),
            "a header of size 2, a body of 2, a body of 1", EXPECTED_METHOD),
    content("body-after-an-empty-one", header(0) + body(b""),
            "a header of size 0, an empty body frame", EXPECTED_METHOD),
    content("body-in-odd-pieces",
            header(2) + body(b"") + body(b"a") + body(b"") + body(b"b") + FLOW,
            "a header of size 2, bodies of 0, 1, 0 and 1, channel.flow", [FLOWING]),
    content("body-announced-too-large", header(2**63) + FLOW,
            "a header of size 2^63, channel.flow",
            [channel_error(406, "PRECONDITION_FAILED - message size 9223372036854775808 is larger "
                                "than configured max size 134217728", at="basic.publish")],
            rabbitmq=EXPECTED_BODY,
            note="Leveret need not wait for a body to refuse it"),
    Case("frames.interleaved-on-two-channels", given=[m("channel.open").on(channel=2)],
         when=[raw(PUBLISH + FLOW.replace(b"\x01\0\x01", b"\x01\0\x02", 1) + header(1) + body(b"x"),
                   "a publish on channel 1 with channel.flow on channel 2 amid its frames")],
         then=[FLOWING.on(channel=2)]),
]


def with_properties(case_id: str, octets: bytes, what: str, **variants):
    return content(case_id, header(0, props=octets), what, undecodable("basic.publish", octets),
                   rabbitmq=INTERNAL_ERROR, **variants)


PROPERTIES = [
    with_properties("properties-absent", b"", "a header without property flags"),
    with_properties("properties-flagged-but-absent", b"\xff\xff", "property flags 0xffff alone"),
    with_properties("properties-cut-off", b"\x80\0\x0atext",
                    "a content type of 10 octets of which 4 are there"),
    with_properties("properties-left-over", b"\0\0abc", "no property flags and 3 octets"),
    with_properties("properties-flags-continued", b"\0\x01\0\0", "property flags 0x0001 0x0000"),
    with_properties("properties-headers-malformed", b"\x20\0" + longstr(b"\x01n?"),
                    "headers with a value of type ?"),
    with_properties("properties-headers-past-the-end", b"\x20\0\xff\xff\xff\xffabc",
                    "headers of 4 GiB of which 3 octets are there"),
    content("properties-unused-flags", header(0, props=b"\0\x03") + FLOW,
            "property flags 0x0003, channel.flow", [FLOWING]),
    Case("frames.properties-not-utf-8",
         given=[m("queue.declare", queue="{q}", exclusive=True)],
         when=[publish("", "{q}", b"", content_type=b"\xff\xfe"),
               m("basic.get", queue="{q}", no_ack=True)],
         then=[message("basic.get-ok", b"", {"content_type": "\udcff\udcfe"}, delivery_tag=1,
                       routing_key="{q}")]),
]


def nested_tables(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = shortstr("n") + b"F" + longstr(inner)
    return longstr(inner)


def nested_arrays(depth: int) -> bytes:
    inner = b""
    for _ in range(depth):
        inner = b"A" + longstr(inner)
    return longstr(shortstr("n") + inner)


def malformed(case_id: str, name: str, octets: bytes, what: str, **variants):
    """A method whose arguments cannot be decoded."""
    return Case(f"frames.{case_id}", [raw(frame(1, 1, method(name, octets)), f"{name}, {what}")],
                undecodable(name, octets), **variants)


def declare(table: bytes) -> bytes:
    """The arguments of queue.declare of an exclusive server-named queue."""
    return b"\0\0" + shortstr("") + b"\x04" + table


def declared(case_id: str, table: bytes, what: str, **variants):
    return Case(f"frames.{case_id}",
                [raw(frame(1, 1, method("queue.declare", declare(table))),
                     f"queue.declare, {what}")],
                [reply("queue.declare-ok", queue=Any("name", "amq.gen-"))], **variants)


def not_utf8(case_id: str, name: bytes, what: str, **variants):
    return Case(f"frames.{case_id}",
                [raw(frame(1, 1, method("queue.delete", queue=name)),
                     f"queue.delete of a queue whose name {what}")],
                frame_error("Malformed UTF-8 in shortstr"), **variants)


WHOLE = arguments(AMQP_0_9_1["queue.declare"],
                  {"queue": "name", "arguments": {"x-max-length": 5}})
ARGUMENTS = [
    *[malformed(f"arguments-cut-to-{n}", "queue.declare", WHOLE[:n],
                f"its arguments cut to {n} octets") for n in range(len(WHOLE))],
    malformed("arguments-left-over", "channel.flow", b"\x01\x01", "an octet too many"),
    malformed("short-string-past-the-end", "queue.delete", b"\0\0\xffabc\0",
              "a name of 255 octets of which 4 are there"),
    malformed("table-past-the-end", "queue.declare", declare(b"\xff\xff\xff\xff"),
              "a table of 4 GiB of which nothing is there"),
    malformed("table-value-past-its-end", "queue.declare", declare(longstr(b"\x01nS\0\0\0\xff")),
              "a string in the table longer than the table", rabbitmq=DROPPED),
    malformed("table-value-of-unknown-type", "queue.declare", declare(longstr(b"\x01n?")),
              "a table value of type ?", rabbitmq=DROPPED),
    malformed("table-without-value", "queue.declare", declare(longstr(b"\x01n")),
              "a table key without a value", rabbitmq=DROPPED),
    malformed("table-array-past-its-end", "queue.declare",
              declare(longstr(b"\x01nA\0\0\0\x05I\0\0\0\1A")), "an array cut off",
              rabbitmq=DROPPED),
    *[Case(f"frames.tables-nested-{depth}",
           [raw(frame(1, 1, method("queue.declare", declare(nested_tables(depth)))),
                f"queue.declare, {depth} tables in each other")],
           undecodable("queue.declare", declare(nested_tables(depth))),
           rabbitmq=[reply("queue.declare-ok", queue=Any("name", "amq.gen-"))])
      for depth in (1000, 10000)],
    Case("frames.arrays-nested-10000",
         [raw(frame(1, 1, method("queue.declare", declare(nested_arrays(10000)))),
              "queue.declare, 10000 arrays in each other")],
         undecodable("queue.declare", declare(nested_arrays(10000))),
         rabbitmq=[reply("queue.declare-ok", queue=Any("name", "amq.gen-"))]),
    declared("tables-nested-50", nested_tables(50), "50 tables in each other"),
    declared("arrays-nested-50", nested_arrays(50), "50 arrays in each other"),
    declared("table-key-not-utf-8", longstr(b"\x01\xffI\0\0\0\1"),
             "a table key that is not UTF-8"),
    declared("table-key-twice", longstr(b"\x01nI\0\0\0\1\x01nI\0\0\0\2"), "a table key twice"),
    declared("table-boolean-of-2", longstr(b"\x01nt\x02"), "a boolean of 2 in the table"),
    Case("frames.bits-above-those-defined",
         [raw(frame(1, 1, method("channel.flow", b"\xff")), "channel.flow with all 8 bits set")],
         [FLOWING]),
    not_utf8("name-not-utf-8", b"\xff\xfe", "is 0xff 0xfe"),
    not_utf8("name-of-incomplete-utf-8", b"a\xc3", "ends in 0xc3"),
    not_utf8("name-of-overlong-utf-8", b"\xc0\x80", "is 0xc0 0x80"),
    not_utf8("name-of-a-surrogate", b"\xed\xa0\x80", "is 0xed 0xa0 0x80",
             rabbitmq=[reply("queue.delete-ok")]),
    Case("frames.vhost-not-utf-8", stage="opening",
         when=[raw(frame(1, 0, method("connection.open", virtual_host=b"\xff")),
                   "connection.open of a vhost that is not UTF-8").on(channel=0)],
         then=[connection_error(501, "FRAME_ERROR - Malformed UTF-8 in shortstr",
                                at="connection.open")]),
    Case("frames.routing-key-not-utf-8",
         given=[m("queue.declare", queue="{q}", exclusive=True),
                m("exchange.declare", exchange="{x}", type="fanout"),
                m("queue.bind", queue="{q}", exchange="{x}")],
         when=[publish("{x}", b"\xff", b"any"), m("basic.get", queue="{q}", no_ack=True)],
         then=[message("basic.get-ok", b"any", {}, delivery_tag=1, exchange="{x}",
                       routing_key="\udcff")],
         note="basic.publish is not checked for UTF-8"),
    Case("frames.arguments-missing-on-channel-0", stage="open",
         when=[raw(frame(1, 0, method("connection.close", b"")),
                   "connection.close without arguments").on(channel=0)],
         then=undecodable("connection.close", b""), rabbitmq=INTERNAL_ERROR),
    Case("frames.long-string-past-the-end", stage="open",
         when=[raw(frame(1, 0, method("connection.update-secret", b"\x7f\xff\xff\xffabc\0")),
                   "connection.update-secret, a secret of 2 GiB of which 4 octets are "
                   "there").on(channel=0)],
         then=undecodable("connection.update-secret", b"\x7f\xff\xff\xffabc\0"),
         rabbitmq=INTERNAL_ERROR),
]

START_OK = frame(1, 0, method("connection.start-ok", mechanism="PLAIN", locale="en_US",
                              response="\0guest\0guest",
                              client_properties={"product": "x", "capabilities": {"a": True}}))
CUT_OFF = [
    Case("frames.handshake-cut-off-everywhere",
         [cut_everywhere("socket", PROTOCOL_HEADERS["0-9-1"] + START_OK,
                         "the protocol header and connection.start-ok"),
          m("channel.flow", active=True)], [FLOWING]),
    Case("frames.publish-cut-off-everywhere",
         [cut_everywhere("open", frame(1, 1, method("channel.open")) + PUBLISH
                         + header(3, props={"content_type": "text", "headers": {"k": "v"}})
                         + body(b"abc"), "channel.open and a publish"),
          m("channel.flow", active=True)], [FLOWING]),
]

CASES = FRAMES + METHODS + CONTENT + PROPERTIES + ARGUMENTS + CUT_OFF
