"""Class confirm (85), and what publishing on a channel in confirm mode brings."""

from table import Any, Case, channel_error, m, message, nothing, publish, reply

SELECT = m("confirm.select")
QUEUE = m("queue.declare", queue="{q}", exclusive=True)


def acked(tag: int, multiple: bool = False):
    return reply("basic.ack", delivery_tag=tag, multiple=multiple)


# With one message outstanding `multiple` says nothing, and from a server neither does `requeue`.
NACKED = reply("basic.nack", delivery_tag=2, multiple=Any("either"), requeue=Any("either"))
FULL = [SELECT, m("queue.declare", queue="{q}", exclusive=True,
                  arguments={"x-max-length": 1, "x-overflow": "reject-publish"}),
        publish("", "{q}", b"1"), acked(1)]

def returned(body: bytes):
    return message("basic.return", body, {}, reply_code=312, reply_text="NO_ROUTE",
                   routing_key="nowhere")


CASES = [
    Case("confirm.select", [SELECT], [reply("confirm.select-ok")]),
    Case("confirm.select-nowait", [m("confirm.select", nowait=True)], [nothing()]),
    Case("confirm.select-twice", given=[SELECT], when=[SELECT],
         then=[reply("confirm.select-ok")]),
    Case("confirm.select-after-tx", given=[m("tx.select")], when=[SELECT],
         then=[channel_error(406, "PRECONDITION_FAILED - cannot switch from tx to confirm mode")]),
    Case("confirm.select-nowait-after-tx", given=[m("tx.select")],
         when=[m("confirm.select", nowait=True)],
         then=[channel_error(406, "PRECONDITION_FAILED - cannot switch from tx to confirm mode")]),
    Case("confirm.ack", given=[SELECT, QUEUE], when=[publish("", "{q}", b"1")], then=[acked(1)]),
    Case("confirm.ack-persistent-to-a-durable-queue",
         given=[SELECT, m("queue.declare", queue="{q}", durable=True)],
         when=[publish("", "{q}", b"1", delivery_mode=2)], then=[acked(1)]),
    Case("confirm.ack-unroutable", given=[SELECT], when=[publish("", "nowhere", b"1")],
         then=[acked(1)]),
    Case("confirm.return-comes-before-ack", given=[SELECT],
         when=[publish("", "nowhere", b"1", mandatory=True)], then=[returned(b"1"), acked(1)]),
    Case("confirm.tags-start-at-select",
         given=[QUEUE, publish("", "{q}", b"before"), SELECT],
         when=[publish("", "{q}", b"after")], then=[acked(1)]),
    Case("confirm.tags-go-on-after-a-second-select",
         given=[SELECT, QUEUE, publish("", "{q}", b"1"), acked(1), SELECT],
         when=[publish("", "{q}", b"2")], then=[acked(2)]),
    Case("confirm.tags-are-the-channel's-own",
         given=[SELECT, QUEUE, publish("", "{q}", b"1"), acked(1), SELECT.on(channel=2)],
         when=[publish("", "{q}", b"2").on(channel=2)], then=[acked(1)]),
    Case("confirm.nack-when-the-queue-is-full", given=FULL,
         when=[publish("", "{q}", b"2")], then=[NACKED]),
    Case("confirm.mandatory-to-a-full-queue-is-not-returned", given=FULL,
         when=[publish("", "{q}", b"2", mandatory=True)], then=[NACKED]),
    Case("confirm.missing-exchange-closes-the-channel", given=[SELECT],
         when=[publish("{x}", "k")],
         then=[channel_error(404, "NOT_FOUND - no exchange '{x}' in vhost '/'")]),
    Case("confirm.consumer-acks-do-not-mix-with-confirms",
         given=[SELECT, QUEUE, publish("", "{q}", b"1"), acked(1),
                m("basic.get", queue="{q}")],
         when=[m("basic.ack", delivery_tag=1), publish("", "{q}", b"2")], then=[acked(2)]),
]
