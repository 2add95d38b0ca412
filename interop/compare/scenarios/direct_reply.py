"""Direct reply-to: amq.rabbitmq.reply-to."""

from scenario import (Scenario, closed, confirms, consume, declare, deliveries, m, publish,
                      returns, take)

REPLY = "amq.rabbitmq.reply-to"

SCENARIOS = [
    Scenario("reply-to-request-and-reply", [
        declare("{q}"),
        consume(REPLY, "r", no_ack=True),
        publish("", "{q}", "request", reply_to=REPLY, correlation_id="1"),
        take("{q}").on(1, "b"),
        publish("", "{reply_to}", "reply", correlation_id="1", delivery_mode=2,
                headers={"h": 1}).on(1, "b"),
        deliveries(1),
        m("queue.declare", queue="{reply_to}", passive=True).on(1, "b"),
        m("basic.cancel", consumer_tag="r"),
        publish("", "{reply_to}", "late", mandatory=True).on(1, "b"),
        returns(1).on(1, "b"),
    ]),
    Scenario("reply-to-mandatory-reply", [
        declare("{q}"),
        consume(REPLY, "r", no_ack=True),
        publish("", "{q}", "request", reply_to=REPLY),
        take("{q}").on(1, "b"),
        publish("", "{reply_to}", "reply", mandatory=True).on(1, "b"),
        deliveries(1),
        returns(1).on(1, "b"),
    ]),
    Scenario("reply-to-requester-is-gone", [
        declare("{q}"),
        consume(REPLY, "r", no_ack=True).on(1, "b"),
        publish("", "{q}", "request", reply_to=REPLY).on(1, "b"),
        take("{q}"),
        m("connection.close", reply_code=200).on(0, "b"),
        publish("", "{reply_to}", "late", mandatory=True),
        returns(1),
        m("queue.declare", queue="{reply_to}", passive=True),
    ]),
    Scenario("reply-to-confirms", [
        declare("{q}"),
        consume(REPLY, "r", no_ack=True),
        publish("", "{q}", "request", reply_to=REPLY),
        take("{q}").on(1, "b"),
        m("confirm.select").on(1, "b"),
        publish("", "{reply_to}", "reply").on(1, "b"),
        confirms(1).on(1, "b"),
        deliveries(1),
    ]),
    Scenario("reply-to-needs-no-ack", [
        consume(REPLY, "r"),
    ]),
    Scenario("reply-to-once-a-channel", [
        consume(REPLY, "r", no_ack=True),
        consume(REPLY, "s", no_ack=True),
    ]),
    Scenario("reply-to-publish-without-consumer", [
        declare("{q}"),
        publish("", "{q}", "request", reply_to=REPLY),
        closed(),
    ]),
    Scenario("reply-to-exclusive-is-ignored", [
        consume(REPLY, "r", no_ack=True, exclusive=True),
    ]),
    Scenario("reply-to-declare", [
        m("queue.declare", queue=REPLY),
        m("queue.declare", queue=REPLY, passive=True),
        m("queue.declare", queue=REPLY + ".nonsense", passive=True),
    ]),
    Scenario("reply-to-other-methods", [
        m("basic.get", queue=REPLY, no_ack=True),
        m("queue.purge", queue=REPLY),
        m("queue.delete", queue=REPLY),
        m("queue.bind", queue=REPLY, exchange="amq.fanout"),
    ]),
    Scenario("reply-to-cancel", [
        consume(REPLY, "r", no_ack=True),
        m("basic.cancel", consumer_tag="r"),
        consume(REPLY, "r", no_ack=True),
    ]),
    Scenario("reply-to-unroutable-reply", [
        publish("", REPLY + ".nonsense", "reply", mandatory=True),
        returns(1),
    ]),
]
