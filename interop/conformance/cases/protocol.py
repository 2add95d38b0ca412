"""Protocol headers, and where AMQP 0-9 and 0-8 differ from 0-9-1.

In 0-8 as RabbitMQ serves it: connection.close is method 60 and close-ok 61, channel.open-ok has no
argument, basic.consume has no arguments table, and exchange.bind, exchange.unbind, basic.nack and
class confirm are not there; all else is as in 0-9-1, field tables included. A ticket is ignored
wherever there is one.
"""

from table import (Any, Case, Has, channel_error, connection_error, m, message, nothing, octets,
                   pause, publish, raw, reply, socket_closed)
from wire import PROTOCOL_HEADERS, Typed, frame

SUPPORTED = b"AMQP\x00\x00\x09\x01"
CAPABILITIES = dict.fromkeys((
    "publisher_confirms", "exchange_exchange_bindings", "basic.nack", "consumer_cancel_notify",
    "connection.blocked", "consumer_priorities", "authentication_failure_close",
    "per_consumer_qos", "direct_reply_to"), True)
QUEUE = m("queue.declare", queue="{q}", exclusive=True)
EXCHANGE = m("exchange.declare", exchange="{x}", type="direct")


def header(octets: bytes):
    return raw(octets, f"the protocol header {octets!r}").on(channel=0)


def start(major: int, minor: int, capabilities: dict, product: str, version: str):
    return [reply("connection.start", version_major=major, version_minor=minor,
                  server_properties=Has({"product": product, "version": Any("version", version),
                                         "capabilities": capabilities}),
                  mechanisms="PLAIN AMQPLAIN", locales="en_US")]


def starts(case_id: str, octets: bytes, major: int, minor: int, capabilities: dict):
    return Case(f"protocol.header-{case_id}", stage="socket", when=[header(octets)],
                then=start(major, minor, capabilities, "Leveret", "3.13."),
                rabbitmq=start(major, minor, capabilities, "RabbitMQ", "3."))


HEADERS = [
    starts("0-9-1", SUPPORTED, 0, 9, CAPABILITIES),
    starts("0-9", PROTOCOL_HEADERS["0-9"], 0, 9, CAPABILITIES),
    starts("0-8", PROTOCOL_HEADERS["0-8"], 8, 0, {}),
    starts("0-8-as-published", b"AMQP\x01\x01\x09\x01", 8, 0, {}),
    *[Case(f"protocol.header-{name}-answered-with-0-9-1", stage="socket", when=[header(sent)],
           then=[octets(SUPPORTED), socket_closed()]) for name, sent in {
               "0-9-0": b"AMQP\x00\x00\x09\x00", "0-8-0": b"AMQP\x00\x00\x08\x00",
               "0-10": b"AMQP\x01\x01\x00\x0a", "1-0": b"AMQP\x00\x01\x00\x00",
               "1-0-sasl": b"AMQP\x03\x01\x00\x00", "1-0-tls": b"AMQP\x02\x01\x00\x00",
               "0-0-10": b"AMQP\x00\x00\x0a\x00", "255": b"AMQP\xff\xff\xff\xff",
               "http": b"GET / HTTP/1.1\r\n\r\n", "lower-case": b"amqp\x00\x00\x09\x01",
               "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"}.items()],
    Case("protocol.header-in-pieces", stage="socket",
         when=[header(SUPPORTED[:3]), pause(0.05), header(SUPPORTED[3:])],
         then=start(0, 9, CAPABILITIES, "Leveret", "3.13."),
         rabbitmq=start(0, 9, CAPABILITIES, "RabbitMQ", "3.")),
    Case("protocol.header-that-does-not-come", stage="socket",
         when=[header(b"AMQP"), pause(7)], then=[socket_closed()],
         note="the handshake may take 10 s"),
]


def in_0_9(case_id: str, **rest):
    return Case(f"protocol.0-9-{case_id}", protocol="0-9", **rest)


def in_0_8(case_id: str, **rest):
    return Case(f"protocol.0-8-{case_id}", protocol="0-8", **rest)


def inequivalent(arg: str, received: str, current: str):
    return [channel_error(406, f"PRECONDITION_FAILED - inequivalent arg '{arg}' for exchange "
                               f"'{{x}}' in vhost '/': received '{received}' but current is "
                               f"'{current}'")]


def foreign(number: tuple[int, int]):
    return [connection_error(503, "COMMAND_INVALID - unimplemented method", at=number)]


def numbered(class_id: int, method_id: int, arguments: bytes = b""):
    payload = class_id.to_bytes(2, "big") + method_id.to_bytes(2, "big") + arguments
    return raw(frame(1, 1, payload), f"method {class_id}.{method_id}")


VERSION_0_9 = [
    in_0_9("publish-and-get", given=[QUEUE],
           when=[publish("", "{q}", b"hello"), m("basic.get", queue="{q}", no_ack=True)],
           then=[message("basic.get-ok", b"hello", {}, delivery_tag=1, routing_key="{q}")]),
    in_0_9("exchange-bind", given=[EXCHANGE],
           when=[m("exchange.bind", destination="{x}", source="amq.fanout", routing_key="{x}")],
           then=[reply("exchange.bind-ok")]),
    in_0_9("close", stage="open", when=[m("connection.close", reply_code=200).on(channel=0)],
           then=[reply("connection.close-ok")]),
    in_0_9("connection-error", given=[QUEUE], when=[m("channel.open")],
           then=[connection_error(504, "CHANNEL_ERROR - second 'channel.open' seen")]),
]

VERSION_0_8 = [
    in_0_8("open", stage="opening",
           when=[m("connection.open", virtual_host="/", insist=True).on(channel=0)],
           then=[reply("connection.open-ok")]),
    in_0_8("open-unknown-vhost", stage="opening",
           when=[m("connection.open", virtual_host="no-such").on(channel=0)],
           then=[connection_error(530, "NOT_ALLOWED - vhost no-such not found")]),
    in_0_8("close", stage="open", when=[m("connection.close", reply_code=200).on(channel=0)],
           then=[reply("connection.close-ok")]),
    in_0_8("close-by-its-0-9-1-number", stage="open",
           when=[raw(frame(1, 0, b"\0\x0a\0\x32" + b"\0\xc8\0\0\0\0\0"),
                     "method 10.50 with the arguments of connection.close").on(channel=0)],
           then=[connection_error(503, "COMMAND_INVALID - unimplemented method",
                                  at="connection.redirect")],
           rabbitmq=[connection_error(541, "INTERNAL_ERROR", at=None)],
           note="10.50 is connection.redirect in 0-8"),
    in_0_8("channel-open", stage="open", when=[m("channel.open", out_of_band="x")],
           then=[reply("channel.open-ok")]),
    in_0_8("channel-open-twice", when=[m("channel.open")],
           then=[connection_error(504, "CHANNEL_ERROR - second 'channel.open' seen")]),
    in_0_8("channel-close", when=[m("channel.close", reply_code=200)],
           then=[reply("channel.close-ok")]),
    in_0_8("channel-flow-not-active", when=[m("channel.flow", active=False)],
           then=[connection_error(540, "NOT_IMPLEMENTED - active=false")]),
    in_0_8("access-request", when=[m("access.request", realm="/data", active=True)],
           then=[reply("access.request-ok", ticket=1)]),
    in_0_8("exchange-declare",
           when=[m("exchange.declare", ticket=1, exchange="{x}", type="topic", durable=True,
                   auto_delete=True, internal=True, arguments={"x": 1})],
           then=[reply("exchange.declare-ok")]),
    in_0_8("exchange-declare-type-differs", given=[EXCHANGE],
           when=[m("exchange.declare", exchange="{x}", type="fanout")],
           then=inequivalent("type", "fanout", "direct")),
    in_0_8("exchange-declare-durable-differs", given=[EXCHANGE],
           when=[m("exchange.declare", exchange="{x}", type="direct", durable=True)],
           then=[reply("exchange.declare-ok")],
           rabbitmq=inequivalent("durable", "true", "false")),
    in_0_8("exchange-declare-auto-delete-differs", given=[EXCHANGE],
           when=[m("exchange.declare", exchange="{x}", type="direct", auto_delete=True)],
           then=[reply("exchange.declare-ok")],
           rabbitmq=inequivalent("auto_delete", "true", "false")),
    in_0_8("exchange-declare-passive-missing",
           when=[m("exchange.declare", exchange="{x}", passive=True)],
           then=[channel_error(404, "NOT_FOUND - no exchange '{x}' in vhost '/'")]),
    in_0_8("exchange-delete", given=[EXCHANGE], when=[m("exchange.delete", exchange="{x}")],
           then=[reply("exchange.delete-ok")]),
    in_0_8("exchange-bind-is-not-there",
           when=[numbered(40, 30)], then=foreign((40, 30)), rabbitmq=[socket_closed()]),
    in_0_8("queue-declare",
           when=[m("queue.declare", ticket=1, queue="{q}", exclusive=True,
                   arguments={"x-max-length": 5})],
           then=[reply("queue.declare-ok", queue="{q}")]),
    in_0_8("queue-declare-durable-differs", given=[m("queue.declare", queue="{q}")],
           when=[m("queue.declare", queue="{q}", durable=True)],
           then=[channel_error(406, "PRECONDITION_FAILED - inequivalent arg 'durable' for queue "
                                    "'{q}' in vhost '/': received 'true' but current is "
                                    "'false'")]),
    in_0_8("queue-bind", given=[QUEUE, EXCHANGE],
           when=[m("queue.bind", ticket=1, queue="{q}", exchange="{x}", routing_key="k",
                   arguments={"a": 1})], then=[reply("queue.bind-ok")]),
    in_0_8("queue-unbind", given=[QUEUE, EXCHANGE],
           when=[m("queue.unbind", ticket=1, queue="{q}", exchange="{x}", routing_key="k")],
           then=[reply("queue.unbind-ok")], note="an addition; the 0-8 document has no unbind"),
    in_0_8("queue-purge", given=[QUEUE, publish("", "{q}", b"1")],
           when=[m("queue.purge", ticket=1, queue="{q}")],
           then=[reply("queue.purge-ok", message_count=1)]),
    in_0_8("queue-delete", given=[QUEUE],
           when=[m("queue.delete", ticket=1, queue="{q}", if_unused=True, if_empty=True)],
           then=[reply("queue.delete-ok")]),
    in_0_8("qos", when=[m("basic.qos", prefetch_count=5)], then=[reply("basic.qos-ok")]),
    in_0_8("consume", given=[QUEUE, publish("", "{q}", b"1")],
           when=[m("basic.consume", ticket=1, queue="{q}", consumer_tag="c")],
           then=[reply("basic.consume-ok", consumer_tag="c"),
                 message("basic.deliver", b"1", {}, consumer_tag="c", delivery_tag=1,
                         routing_key="{q}")]),
    in_0_8("consume-nowait", given=[QUEUE],
           when=[m("basic.consume", queue="{q}", consumer_tag="c", nowait=True)],
           then=[nothing()]),
    in_0_8("cancel", given=[QUEUE, m("basic.consume", queue="{q}", consumer_tag="c")],
           when=[m("basic.cancel", consumer_tag="c")],
           then=[reply("basic.cancel-ok", consumer_tag="c")]),
    in_0_8("publish-and-get-every-property", given=[QUEUE],
           when=[publish("", "{q}", b"p", **(every := dict(
               content_type="a", content_encoding="b", headers={
                   "S": "s", "I": 1, "l": 2**40, "t": True, "d": 0.5, "F": {"k": []},
                   "A": [None], "T": Typed("T", 5), "D": Typed("D", (1, 5)),
                   "x": Typed("x", b"\0")},
               delivery_mode=1, priority=1, correlation_id="c", reply_to="r", expiration="60000",
               message_id="m", timestamp=1, type="t", user_id="guest", app_id="a",
               cluster_id="cl"))), m("basic.get", ticket=1, queue="{q}", no_ack=True)],
           then=[message("basic.get-ok", b"p", every, delivery_tag=1, routing_key="{q}")]),
    in_0_8("publish-mandatory-unroutable", when=[publish("", "nowhere", b"b", mandatory=True)],
           then=[message("basic.return", b"b", {}, reply_code=312, reply_text="NO_ROUTE",
                         routing_key="nowhere")]),
    in_0_8("publish-to-missing-exchange", when=[publish("{x}", "k", b"b")],
           then=[channel_error(404, "NOT_FOUND - no exchange '{x}' in vhost '/'")]),
    in_0_8("get-empty", given=[QUEUE], when=[m("basic.get", queue="{q}")],
           then=[reply("basic.get-empty")]),
    in_0_8("ack-unknown-tag", when=[m("basic.ack", delivery_tag=7)],
           then=[channel_error(406, "PRECONDITION_FAILED - unknown delivery tag 7")]),
    in_0_8("reject", given=[QUEUE, publish("", "{q}", b"1"), m("basic.get", queue="{q}")],
           when=[m("basic.reject", delivery_tag=1, requeue=True),
                 m("basic.get", queue="{q}", no_ack=True)],
           then=[message("basic.get-ok", b"1", {}, delivery_tag=2, redelivered=True,
                         routing_key="{q}")]),
    in_0_8("recover-is-asynchronous",
           given=[QUEUE, publish("", "{q}", b"1"), m("basic.get", queue="{q}")],
           when=[m("basic.recover-async", requeue=True),
                 m("basic.get", queue="{q}", no_ack=True)],
           then=[message("basic.get-ok", b"1", {}, delivery_tag=2, redelivered=True,
                         routing_key="{q}")],
           note="method 60.100, basic.recover in 0-8 and basic.recover-async in 0-9-1"),
    in_0_8("recover-of-0-9-1", when=[m("basic.recover", requeue=True)],
           then=[reply("basic.recover-ok")]),
    in_0_8("nack-is-not-there", when=[numbered(60, 120, b"\0" * 8 + b"\1")],
           then=foreign((60, 120)), rabbitmq=[socket_closed()]),
    in_0_8("confirm-is-not-there", when=[numbered(85, 10, b"\0")],
           then=foreign((85, 10)), rabbitmq=[socket_closed()]),
    in_0_8("file-qos-is-not-implemented", when=[numbered(70, 10, bytes(7))],
           then=foreign((70, 10))),
    in_0_8("dtx-select-is-not-implemented", when=[numbered(100, 10)], then=foreign((100, 10))),
    in_0_8("tx", given=[QUEUE, m("tx.select"), publish("", "{q}", b"1"), m("tx.commit")],
           when=[m("tx.rollback"), m("basic.get", queue="{q}", no_ack=True)],
           then=[reply("tx.rollback-ok"),
                 message("basic.get-ok", b"1", {}, delivery_tag=1, routing_key="{q}")]),
]

CASES = HEADERS + VERSION_0_9 + VERSION_0_8
