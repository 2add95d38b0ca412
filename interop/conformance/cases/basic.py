"""Class basic (60): qos, consume, cancel, publish, get, ack, reject, nack, recover."""

from table import (Any, Case, channel_error, connection_error, hang_up, m, message, nothing, pause,
                   publish, reply, silence)
from wire import Typed

QUEUE = m("queue.declare", queue="{q}", exclusive=True)
CONSUME = m("basic.consume", queue="{q}", consumer_tag="c")
CONSUMING = reply("basic.consume-ok", consumer_tag="c")
NO_QUEUE = [channel_error(404, "NOT_FOUND - no queue '{q}' in vhost '/'")]
IN_EXCLUSIVE_USE = [channel_error(403, "ACCESS_REFUSED - queue '{q}' in vhost '/' in exclusive "
                                       "use")]
GET = m("basic.get", queue="{q}")
NONE_LEFT = reply("basic.get-empty")
COUNT = m("basic.get", queue="{q}", no_ack=True)


def put(*bodies: bytes):
    return [publish("", "{q}", body) for body in bodies]


def got(tag: int, body: bytes, left: int = 0, redelivered: bool = False, properties={}):
    return message("basic.get-ok", body, properties, delivery_tag=tag, redelivered=redelivered,
                   routing_key="{q}", message_count=left)


def delivered(tag: int, body: bytes, consumer_tag="c", redelivered: bool = False, properties={}):
    return message("basic.deliver", body, properties, consumer_tag=consumer_tag,
                   delivery_tag=tag, redelivered=redelivered, routing_key="{q}")


def returned(body: bytes, routing_key: str = "nowhere", properties={}):
    return message("basic.return", body, properties, reply_code=312, reply_text="NO_ROUTE",
                   routing_key=routing_key)


def unknown_tag(tag: int):
    return [channel_error(406, f"PRECONDITION_FAILED - unknown delivery tag {tag}")]


QOS = [
    Case("basic.qos", [m("basic.qos", prefetch_count=10)], [reply("basic.qos-ok")]),
    Case("basic.qos-global", [m("basic.qos", prefetch_count=10, **{"global": True})],
         [reply("basic.qos-ok")]),
    Case("basic.qos-prefetch-size", [m("basic.qos", prefetch_size=4096, prefetch_count=10)],
         [connection_error(540, "NOT_IMPLEMENTED - prefetch_size!=0 (4096)")]),
    Case("basic.qos-zero-is-unlimited",
         given=[QUEUE, m("basic.qos", prefetch_count=0), *put(b"1", b"2"), CONSUME],
         when=[], then=[delivered(1, b"1"), delivered(2, b"2")]),
    Case("basic.qos-limits-a-consumer",
         given=[QUEUE, m("basic.qos", prefetch_count=1), *put(b"1", b"2"), CONSUME, CONSUMING],
         when=[], then=[delivered(1, b"1"), silence()]),
    Case("basic.qos-ack-makes-room",
         given=[QUEUE, m("basic.qos", prefetch_count=1), *put(b"1", b"2"), CONSUME, CONSUMING,
                delivered(1, b"1")],
         when=[m("basic.ack", delivery_tag=1)], then=[delivered(2, b"2")]),
    Case("basic.qos-is-per-consumer",
         given=[QUEUE, m("basic.qos", prefetch_count=1), *put(b"1", b"2", b"3"), CONSUME,
                CONSUMING, delivered(1, b"1")],
         when=[m("basic.consume", queue="{q}", consumer_tag="d")],
         then=[reply("basic.consume-ok", consumer_tag="d"), delivered(2, b"2", "d"), silence()]),
    Case("basic.qos-global-is-per-channel",
         given=[QUEUE, m("basic.qos", prefetch_count=1, **{"global": True}),
                *put(b"1", b"2", b"3"), CONSUME, CONSUMING, delivered(1, b"1")],
         when=[m("basic.consume", queue="{q}", consumer_tag="d")],
         then=[reply("basic.consume-ok", consumer_tag="d"), silence()]),
    Case("basic.qos-does-not-limit-no-ack",
         given=[QUEUE, m("basic.qos", prefetch_count=1), *put(b"1", b"2")],
         when=[m("basic.consume", queue="{q}", consumer_tag="c", no_ack=True)],
         then=[CONSUMING, delivered(1, b"1"), delivered(2, b"2")]),
    Case("basic.qos-does-not-limit-get",
         given=[QUEUE, m("basic.qos", prefetch_count=1), *put(b"1", b"2"), GET],
         when=[GET], then=[got(2, b"2")]),
]

CONSUMERS = [
    Case("basic.consume", given=[QUEUE], when=[CONSUME], then=[CONSUMING]),
    Case("basic.consume-server-named", given=[QUEUE], when=[m("basic.consume", queue="{q}")],
         then=[reply("basic.consume-ok", consumer_tag=Any("tag", "amq.ctag-"))]),
    Case("basic.consume-nowait", given=[QUEUE],
         when=[m("basic.consume", queue="{q}", consumer_tag="c", nowait=True)], then=[nothing()]),
    Case("basic.consume-nowait-delivers",
         given=[QUEUE, *put(b"1")],
         when=[m("basic.consume", queue="{q}", consumer_tag="c", nowait=True)],
         then=[delivered(1, b"1")]),
    Case("basic.consume-ok-comes-before-deliveries", given=[QUEUE, *put(b"1", b"2")],
         when=[CONSUME], then=[CONSUMING, delivered(1, b"1"), delivered(2, b"2")]),
    Case("basic.consume-missing-queue", [CONSUME], NO_QUEUE),
    Case("basic.consume-missing-queue-nowait",
         [m("basic.consume", queue="{q}", consumer_tag="c", nowait=True)], NO_QUEUE),
    Case("basic.consume-duplicate-tag", given=[QUEUE, CONSUME], when=[CONSUME],
         then=[connection_error(530, "NOT_ALLOWED - attempt to reuse consumer tag 'c'")]),
    Case("basic.consume-same-tag-on-another-channel", given=[QUEUE, CONSUME],
         when=[CONSUME.on(channel=2)], then=[CONSUMING]),
    Case("basic.consume-exclusive", given=[QUEUE],
         when=[m("basic.consume", queue="{q}", consumer_tag="c", exclusive=True)],
         then=[CONSUMING]),
    Case("basic.consume-of-an-exclusively-consumed-queue",
         given=[QUEUE, m("basic.consume", queue="{q}", consumer_tag="c", exclusive=True)],
         when=[m("basic.consume", queue="{q}", consumer_tag="d")], then=IN_EXCLUSIVE_USE),
    Case("basic.consume-exclusive-of-a-consumed-queue", given=[QUEUE, CONSUME],
         when=[m("basic.consume", queue="{q}", consumer_tag="d", exclusive=True)],
         then=IN_EXCLUSIVE_USE),
    Case("basic.consume-exclusive-after-cancel",
         given=[QUEUE, CONSUME, m("basic.cancel", consumer_tag="c")],
         when=[m("basic.consume", queue="{q}", consumer_tag="c", exclusive=True)],
         then=[CONSUMING]),
    Case("basic.consume-no-local-ignored", given=[QUEUE, *put(b"mine")],
         when=[m("basic.consume", queue="{q}", consumer_tag="c", no_local=True)],
         then=[CONSUMING, delivered(1, b"mine")]),
    Case("basic.consume-unknown-arguments-ignored", given=[QUEUE],
         when=[m("basic.consume", queue="{q}", consumer_tag="c", arguments={"x-own": [1]})],
         then=[CONSUMING]),
    Case("basic.consume-invalid-x-priority-type", given=[QUEUE],
         when=[m("basic.consume", queue="{q}", consumer_tag="c", arguments={"x-priority": "1"})],
         then=[channel_error(406, "PRECONDITION_FAILED - invalid arg 'x-priority' for queue "
                                  "'{q}' in vhost '/': \"expected integer, got longstr\"")]),
    Case("basic.consume-invalid-x-cancel-on-ha-failover-type", given=[QUEUE],
         when=[m("basic.consume", queue="{q}", consumer_tag="c",
                 arguments={"x-cancel-on-ha-failover": "yes"})],
         then=[channel_error(406, "PRECONDITION_FAILED - invalid arg 'x-cancel-on-ha-failover' "
                                  "for queue '{q}' in vhost '/': {unacceptable_type,longstr}")]),
    Case("basic.consume-x-stream-offset-on-classic", given=[QUEUE],
         when=[m("basic.consume", queue="{q}", consumer_tag="c",
                 arguments={"x-stream-offset": "first"})],
         then=[channel_error(406, "PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue "
                                  "'{q}' in vhost '/' of queue type rabbit_classic_queue")]),
    Case("basic.consume-highest-x-priority-first",
         given=[QUEUE, CONSUME,
                m("basic.consume", queue="{q}", consumer_tag="high",
                  arguments={"x-priority": 5})],
         when=put(b"1", b"2"), then=[delivered(1, b"1", "high"), delivered(2, b"2", "high")]),
    Case("basic.consume-round-robin",
         given=[QUEUE, CONSUME, m("basic.consume", queue="{q}", consumer_tag="d")],
         when=put(b"1", b"2", b"3"),
         then=[delivered(1, b"1"), delivered(2, b"2", "d"), delivered(3, b"3")]),
    Case("basic.consume-redelivered-after-close",
         given=[QUEUE, *put(b"1"), GET.on(channel=2),
                m("channel.close", reply_code=200).on(channel=2)],
         when=[CONSUME], then=[CONSUMING, delivered(1, b"1", redelivered=True)]),

    Case("basic.consume-redelivered-after-hanging-up",
         given=[m("queue.declare", queue="{q}"), *put(b"1"), GET.on(conn="b"), hang_up("b"),
                pause(0.5)],
         when=[CONSUME], then=[CONSUMING, delivered(1, b"1", redelivered=True)]),

    Case("basic.cancel", given=[QUEUE, CONSUME], when=[m("basic.cancel", consumer_tag="c")],
         then=[reply("basic.cancel-ok", consumer_tag="c")]),
    Case("basic.cancel-nowait", given=[QUEUE, CONSUME],
         when=[m("basic.cancel", consumer_tag="c", nowait=True)], then=[nothing()]),
    Case("basic.cancel-unknown-tag", [m("basic.cancel", consumer_tag="no-such")],
         [reply("basic.cancel-ok", consumer_tag="no-such")]),
    Case("basic.cancel-unknown-tag-nowait",
         [m("basic.cancel", consumer_tag="no-such", nowait=True)], [nothing()]),
    Case("basic.cancel-keeps-unacknowledged",
         given=[QUEUE, *put(b"1"), CONSUME, CONSUMING, delivered(1, b"1"),
                m("basic.cancel", consumer_tag="c")],
         when=[m("basic.ack", delivery_tag=1), GET], then=[NONE_LEFT]),
    Case("basic.cancel-comes-when-the-queue-is-deleted",
         client_properties={"capabilities": {"consumer_cancel_notify": True}},
         given=[m("queue.declare", queue="{q}"), CONSUME],
         when=[m("queue.delete", queue="{q}").on(conn="b")],
         then=[reply("queue.delete-ok").on(conn="b"),
               reply("basic.cancel", consumer_tag="c", nowait=True).on(conn="a")]),
    Case("basic.cancel-not-sent-without-the-capability",
         given=[m("queue.declare", queue="{q}"), CONSUME],
         when=[m("queue.delete", queue="{q}").on(conn="b")],
         then=[reply("queue.delete-ok").on(conn="b"), silence().on(conn="a")]),
]

EXPIRATION = {
    "text": ("abc", "no_integer"), "trailing": ("12a", '{leftover_string,"a"}'),
    "empty": ("", "no_integer"), "negative": ("-1", "{value_negative,-1}"),
    "too-large": ("315360000001", "{value_too_large,315360000001}"),
}

PUBLISH = [
    Case("basic.publish-and-get", given=[QUEUE], when=[*put(b"hello"), COUNT],
         then=[got(1, b"hello")]),
    Case("basic.publish-empty-body", given=[QUEUE], when=[*put(b""), COUNT], then=[got(1, b"")]),
    Case("basic.publish-body-of-several-frames", given=[QUEUE],
         when=[*put(bytes(range(256)) * 1200), COUNT], then=[got(1, bytes(range(256)) * 1200)]),
    Case("basic.publish-every-property", given=[QUEUE],
         when=[publish("", "{q}", b"p", content_type="text/plain", content_encoding="gzip",
                       delivery_mode=2, priority=7, correlation_id="c-1", reply_to="r",
                       expiration="60000", message_id="m-1", timestamp=1700000000,
                       type="order", user_id="guest", app_id="a", cluster_id="cl"), COUNT],
         then=[got(1, b"p", properties=dict(
             content_type="text/plain", content_encoding="gzip", delivery_mode=2, priority=7,
             correlation_id="c-1", reply_to="r", expiration="60000", message_id="m-1",
             timestamp=1700000000, type="order", user_id="guest", app_id="a",
             cluster_id="cl"))]),
    Case("basic.publish-every-header-type", given=[QUEUE],
         when=[publish("", "{q}", b"h", headers=(every := {
             "S": "text", "S-raw": Typed("S", b"\xff\xfe"), "I": -5, "l": 2**40, "t": True,
             "f": False, "d": 1.5, "F": {"in": {"side": [1, "two", None]}}, "A": [1, [2, []], {}],
             "V": None, "b": Typed("b", -7), "B": Typed("B", 200), "s": Typed("s", -300),
             "u": Typed("u", 60000), "i": Typed("i", 4_000_000_000), "T": Typed("T", 1700000000),
             "f4": Typed("f", 0.5), "D": Typed("D", (2, 12345)), "x": Typed("x", b"\x00\x01"),
             "": "empty key"})), COUNT],
         then=[got(1, b"h", properties={"headers": every})]),
    *[Case(f"basic.publish-delivery-mode-{mode}-passed-on", given=[QUEUE],
           when=[publish("", "{q}", b"v", delivery_mode=mode), COUNT],
           then=[got(1, b"v", properties={"delivery_mode": mode})],
           rabbitmq_3_10=[channel_error(406, "PRECONDITION_FAILED - invalid message: "
                                             f"{{delivery_mode_unknown,{mode}}}",
                                        at="basic.publish")])
      for mode in (0, 7)],
    *[Case(f"basic.publish-{name}-passed-on", given=[QUEUE],
           when=[publish("", "{q}", b"v", **{prop: number}), COUNT],
           then=[got(1, b"v", properties={prop: number})])
      for name, prop, number in (("priority-255", "priority", 255),
                                 ("timestamp-of-64-bits", "timestamp", 2**64 - 1),
                                 ("expiration-with-sign", "expiration", "+60000"))],
    Case("basic.publish-to-missing-exchange", [publish("{x}", "k")],
         [channel_error(404, "NOT_FOUND - no exchange '{x}' in vhost '/'")]),
    Case("basic.publish-to-missing-exchange-then-dropped-until-close-ok",
         given=[QUEUE], when=[publish("{x}", "k"), *put(b"dropped"), COUNT],
         then=[channel_error(404, "NOT_FOUND - no exchange '{x}' in vhost '/'",
                             at="basic.publish")]),
    Case("basic.publish-immediate", given=[QUEUE],
         when=[publish("", "{q}", b"now", immediate=True)],
         then=[connection_error(540, "NOT_IMPLEMENTED - immediate=true")]),
    Case("basic.publish-unroutable", [publish("", "nowhere", b"lost")], [nothing()]),
    Case("basic.publish-mandatory-unroutable",
         [publish("", "nowhere", b"back", mandatory=True, message_id="m", headers={"a": 1})],
         [returned(b"back", properties={"message_id": "m", "headers": {"a": 1}})]),
    Case("basic.publish-mandatory-unroutable-empty-body",
         [publish("", "nowhere", b"", mandatory=True)], [returned(b"")]),
    Case("basic.publish-too-large", given=[QUEUE],
         when=[publish("", "{q}", bytes(134217729))],
         then=[channel_error(406, "PRECONDITION_FAILED - message size 134217729 is larger than "
                                  "configured max size 134217728")]),
    Case("basic.publish-mandatory-routable", given=[QUEUE],
         when=[publish("", "{q}", b"there", mandatory=True), COUNT], then=[got(1, b"there")]),
    Case("basic.publish-user-id-of-another",
         [publish("", "nowhere", user_id="someone")],
         [channel_error(406, "PRECONDITION_FAILED - user_id property set to 'someone' but "
                             "authenticated user was 'guest'")]),
    Case("basic.publish-user-id-empty", [publish("", "nowhere", user_id="")],
         [channel_error(406, "PRECONDITION_FAILED - user_id property set to '' but "
                             "authenticated user was 'guest'")]),
    *[Case(f"basic.publish-invalid-expiration-{name}", given=[QUEUE],
           when=[publish("", "{q}", expiration=value)],
           then=[channel_error(406, f"PRECONDITION_FAILED - invalid expiration '{value}': "
                                    f"{reason}")])
      for name, (value, reason) in EXPIRATION.items()],
    Case("basic.publish-exchange-is-checked-before-expiration",
         [publish("{x}", "k", expiration="abc")],
         [channel_error(404, "NOT_FOUND - no exchange '{x}' in vhost '/'")]),
    Case("basic.publish-user-id-is-checked-before-expiration",
         [publish("", "k", user_id="someone", expiration="abc")],
         [channel_error(406, "PRECONDITION_FAILED - user_id property set to 'someone' but "
                             "authenticated user was 'guest'")]),
    Case("basic.publish-cc", given=[QUEUE, m("queue.declare", queue="{q2}", exclusive=True)],
         when=[publish("", "{q}", b"copy", headers={"CC": ["{q2}"]}),
               m("basic.get", queue="{q2}", no_ack=True)],
         then=[message("basic.get-ok", b"copy", {"headers": {"CC": ["{q2}"]}}, delivery_tag=1,
                       routing_key="{q}")]),
    Case("basic.publish-bcc-is-taken-off",
         given=[QUEUE, m("queue.declare", queue="{q2}", exclusive=True)],
         when=[publish("", "{q}", b"copy", headers={"BCC": ["{q2}"], "a": 1}),
               m("basic.get", queue="{q2}", no_ack=True)],
         then=[message("basic.get-ok", b"copy", {"headers": {"a": 1}}, delivery_tag=1,
                       routing_key="{q}")]),
    *[Case(f"basic.publish-{key}-that-is-no-array", given=[QUEUE],
           when=[publish("", "{q}", headers={key: "q2"})],
           then=[channel_error(406, "PRECONDITION_FAILED - invalid message: "
                                    f'{{unacceptable_type_in_header,"{key}",longstr}}')])
      for key in ("CC", "BCC")],
    Case("basic.publish-cc-passes-over-what-is-no-string",
         given=[QUEUE, m("queue.declare", queue="{q2}", exclusive=True)],
         when=[publish("", "{q}", b"copy", headers={"CC": [1, "{q2}", None]}),
               m("basic.get", queue="{q2}", no_ack=True)],
         then=[message("basic.get-ok", b"copy", {"headers": {"CC": [1, "{q2}", None]}},
                       delivery_tag=1, routing_key="{q}")]),
]

GETS = [
    Case("basic.get", given=[QUEUE, *put(b"1", b"2", b"3")], when=[GET],
         then=[got(1, b"1", left=2)]),
    Case("basic.get-empty", given=[QUEUE], when=[GET], then=[NONE_LEFT]),
    Case("basic.get-missing-queue", [GET], NO_QUEUE),
    Case("basic.get-of-an-exclusively-consumed-queue",
         given=[QUEUE, m("basic.consume", queue="{q}", exclusive=True)], when=[GET],
         then=[NONE_LEFT]),
    Case("basic.get-tags-count-with-no-ack", given=[QUEUE, *put(b"1", b"2"), COUNT], when=[GET],
         then=[got(2, b"2")]),
    Case("basic.get-tags-are-shared-with-deliveries",
         given=[QUEUE, *put(b"1", b"2"), GET],
         when=[CONSUME], then=[CONSUMING, delivered(2, b"2")]),
    Case("basic.get-tags-are-the-channel's-own", given=[QUEUE, *put(b"1", b"2"), GET],
         when=[GET.on(channel=2)], then=[got(1, b"2")]),
    Case("basic.get-redelivered",
         given=[QUEUE, *put(b"1"), GET, m("basic.reject", delivery_tag=1, requeue=True)],
         when=[GET], then=[got(2, b"1", redelivered=True)]),
]

DEATH = {
    "x-first-death-exchange": "", "x-first-death-queue": "{q}", "x-first-death-reason": "rejected",
    "x-death": [{"count": Typed("l", 1), "reason": "rejected", "queue": "{q}",
                 "time": Any("time"), "exchange": "", "routing-keys": ["{q}"]}]}
LAST_DEATH = {"x-last-death-exchange": "", "x-last-death-queue": "{q}",
              "x-last-death-reason": "rejected"}
TWO_GOT = [QUEUE, *put(b"1", b"2"), GET, GET]
SETTLE = [
    Case("basic.ack", given=TWO_GOT, when=[m("basic.ack", delivery_tag=1)], then=[nothing()]),
    Case("basic.ack-out-of-order", given=TWO_GOT,
         when=[m("basic.ack", delivery_tag=2), m("basic.ack", delivery_tag=1)], then=[nothing()]),
    Case("basic.ack-multiple", given=TWO_GOT,
         when=[m("basic.ack", delivery_tag=2, multiple=True)], then=[nothing()]),
    Case("basic.ack-multiple-0-is-all", given=TWO_GOT,
         when=[m("basic.ack", delivery_tag=0, multiple=True), m("basic.recover", requeue=True),
               COUNT], then=[reply("basic.recover-ok"), NONE_LEFT]),
    *[Case(f"basic.{method}-multiple-0-with-none-left",
           [m(f"basic.{method}", delivery_tag=0, multiple=True)], [nothing()])
      for method in ("ack", "nack")],
    *[Case(f"basic.{method}-unknown-tag", [m(f"basic.{method}", delivery_tag=7)], unknown_tag(7))
      for method in ("ack", "nack", "reject")],
    *[Case(f"basic.{method}-tag-0", [m(f"basic.{method}", delivery_tag=0)], unknown_tag(0))
      for method in ("ack", "nack", "reject")],
    *[Case(f"basic.{method}-multiple-unknown-tag", given=TWO_GOT,
           when=[m(f"basic.{method}", delivery_tag=7, multiple=True)], then=unknown_tag(7))
      for method in ("ack", "nack")],
    *[Case(f"basic.{method}-twice", given=TWO_GOT,
           when=[m(f"basic.{method}", delivery_tag=1)] * 2, then=unknown_tag(1))
      for method in ("ack", "nack", "reject")],
    Case("basic.ack-multiple-twice", given=TWO_GOT,
         when=[m("basic.ack", delivery_tag=2, multiple=True)] * 2, then=unknown_tag(2)),
    Case("basic.ack-multiple-below-what-is-left", given=TWO_GOT,
         when=[m("basic.ack", delivery_tag=1), m("basic.ack", delivery_tag=1, multiple=True)],
         then=unknown_tag(1)),
    Case("basic.ack-after-requeue", given=TWO_GOT,
         when=[m("basic.nack", delivery_tag=1, requeue=True), m("basic.ack", delivery_tag=1)],
         then=unknown_tag(1)),
    Case("basic.ack-after-recover", given=[*TWO_GOT, m("basic.recover", requeue=True)],
         when=[m("basic.ack", delivery_tag=1)], then=unknown_tag(1)),
    Case("basic.ack-of-a-no-ack-get", given=[QUEUE, *put(b"1"), COUNT],
         when=[m("basic.ack", delivery_tag=1)], then=unknown_tag(1)),
    Case("basic.ack-on-another-channel", given=[QUEUE, *put(b"1"), GET],
         when=[m("basic.ack", delivery_tag=1).on(channel=2)], then=unknown_tag(1)),
    Case("basic.ack-after-the-queue-is-gone",
         given=[QUEUE, *put(b"1"), GET, m("queue.delete", queue="{q}")],
         when=[m("basic.ack", delivery_tag=1)], then=[nothing()]),
    Case("basic.ack-tag-of-64-bits", [m("basic.ack", delivery_tag=2**64 - 1)],
         unknown_tag(2**64 - 1)),
    Case("basic.reject-drops", given=[QUEUE, *put(b"1"), GET],
         when=[m("basic.reject", delivery_tag=1), GET], then=[NONE_LEFT]),
    Case("basic.nack-requeue-keeps-the-order", given=[QUEUE, *put(b"1", b"2", b"3"), GET, GET],
         when=[m("basic.nack", delivery_tag=2, multiple=True, requeue=True), GET, GET, GET],
         then=[got(3, b"1", 2, True), got(4, b"2", 1, True), got(5, b"3")]),
    Case("basic.reject-dead-letters",
         given=[m("queue.declare", queue="{q2}", exclusive=True),
                m("queue.declare", queue="{q}", exclusive=True,
                  arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "{q2}"}),
                *put(b"1"), GET, m("basic.reject", delivery_tag=1)],
         when=[m("basic.consume", queue="{q2}", consumer_tag="c", no_ack=True)],
         then=[CONSUMING, message("basic.deliver", b"1", {"headers": DEATH | LAST_DEATH},
                                  consumer_tag="c", delivery_tag=2, routing_key="{q2}")],
         rabbitmq_3_10=[CONSUMING, message("basic.deliver", b"1", {"headers": DEATH},
                                           consumer_tag="c", delivery_tag=2,
                                           routing_key="{q2}")]),
    Case("basic.recover", given=TWO_GOT,
         when=[m("basic.recover", requeue=True), GET, GET],
         then=[reply("basic.recover-ok"), got(3, b"1", 1, True), got(4, b"2", 0, True)]),
    Case("basic.recover-with-nothing-to-recover", [m("basic.recover", requeue=True)],
         [reply("basic.recover-ok")]),
    Case("basic.recover-without-requeue", [m("basic.recover", requeue=False)],
         [connection_error(540, "NOT_IMPLEMENTED - requeue=false")]),
    Case("basic.recover-async", given=TWO_GOT,
         when=[m("basic.recover-async", requeue=True), GET], then=[got(3, b"1", 1, True)]),
    Case("basic.recover-async-without-requeue", [m("basic.recover-async", requeue=False)],
         [connection_error(540, "NOT_IMPLEMENTED - requeue=false")]),
    Case("basic.recover-delivers-again",
         given=[QUEUE, *put(b"1"), CONSUME, CONSUMING, delivered(1, b"1")],
         when=[m("basic.recover", requeue=True)],
         then=[reply("basic.recover-ok"), delivered(2, b"1", redelivered=True)]),
]

REPLY_TO = m("basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True)
DIRECT_REPLY_TO = [
    Case("basic.reply-to-consume", [REPLY_TO], [reply("basic.consume-ok", consumer_tag="r")]),
    Case("basic.reply-to-consume-with-ack",
         [m("basic.consume", queue="amq.rabbitmq.reply-to")],
         [channel_error(406, "PRECONDITION_FAILED - reply consumer cannot acknowledge")]),
    Case("basic.reply-to-consume-twice", given=[REPLY_TO],
         when=[m("basic.consume", queue="amq.rabbitmq.reply-to", consumer_tag="s", no_ack=True)],
         then=[channel_error(406, "PRECONDITION_FAILED - reply consumer already set")]),
    Case("basic.reply-to-publish-without-consumer", given=[QUEUE],
         when=[publish("", "{q}", reply_to="amq.rabbitmq.reply-to")],
         then=[channel_error(406, "PRECONDITION_FAILED - fast reply consumer does not exist")]),
    Case("basic.reply-to-round-trip",
         given=[QUEUE, REPLY_TO, publish("", "{q}", b"ask", reply_to="amq.rabbitmq.reply-to"),
                GET.on(channel=2),
                got(1, b"ask", properties={"reply_to": Any("back", "amq.rabbitmq.reply-to.")})],
         when=[publish("", "{back}", b"answer").on(channel=2)],
         then=[message("basic.deliver", b"answer", {}, consumer_tag="r", delivery_tag=1,
                       routing_key="{back}").on(channel=1)]),
]

CASES = QOS + CONSUMERS + PUBLISH + GETS + SETTLE + DIRECT_REPLY_TO
