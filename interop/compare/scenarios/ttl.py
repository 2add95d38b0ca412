"""Time to live: of a queue's messages, of a message, of a queue."""

from scenario import (Scenario, ack, closed, confirms, consume, declare, deliveries, died, get,
                      holds, m, nack, pause, publish, qos, reject, send, silence, take)

DEAD = declare("{dead}")
TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "{dead}"}


def lives(milliseconds, **also):
    return declare(arguments={"x-message-ttl": milliseconds, **also})


SCENARIOS = [
    Scenario("ttl-of-queue-expires-in-order", [
        DEAD,
        lives(50, **TO_DEAD),
        send("{q}", "a", "b", "c"),
        died(take("{dead}", 3), *[("expired", "{q}", "")] * 3),
        holds("{q}", 0),
    ]),
    Scenario("ttl-zero-without-consumer", [
        DEAD,
        lives(0, **TO_DEAD),
        send("{q}", "a"),
        get(),
        died(take("{dead}"), ("expired", "{q}", "")),
    ]),
    Scenario("ttl-zero-with-consumer-that-is-ready", [
        lives(0),
        consume(no_ack=True),
        send("{q}", "a", "b"),
        deliveries(2),
    ]),
    Scenario("ttl-zero-with-consumer-that-is-not-ready", [
        DEAD,
        lives(0, **TO_DEAD),
        qos(1),
        consume(),
        send("{q}", "a", "b"),
        deliveries(1),
        died(take("{dead}"), ("expired", "{q}", "")),
        ack(1),
        silence(),
    ]),
    Scenario("ttl-zero-mandatory-is-not-returned", [
        lives(0),
        m("confirm.select"),
        publish("", "{q}", "a", mandatory=True),
        confirms(1),
        silence(0.1),
    ]),
    Scenario("expiration-of-message", [
        DEAD,
        declare(arguments=TO_DEAD),
        publish("", "{q}", "a", expiration="50"),
        died(take("{dead}"), ("expired", "{q}", "")),
    ]),
    Scenario("expiration-zero-without-consumer", [
        DEAD,
        declare(arguments=TO_DEAD),
        publish("", "{q}", "a", expiration="0"),
        died(take("{dead}"), ("expired", "{q}", "")),
    ]),
    Scenario("expiration-zero-with-consumer-that-is-ready", [
        declare(),
        consume(no_ack=True),
        publish("", "{q}", "a", expiration="0"),
        deliveries(1),
    ]),
    Scenario("expiration-and-ttl-the-shorter-counts", [
        DEAD,
        lives(60_000, **TO_DEAD),
        publish("", "{q}", "message is shorter", expiration="40"),
        died(take("{dead}"), ("expired", "{q}", "")),
        declare("{q2}", arguments={"x-message-ttl": 40, **TO_DEAD}),
        publish("", "{q2}", "queue is shorter", expiration="60000"),
        died(take("{dead}"), ("expired", "{q2}", "")),
    ]),
    Scenario("expiration-behind-a-lasting-message", [
        DEAD,
        declare(arguments=TO_DEAD),
        publish("", "{q}", "lasting"),
        publish("", "{q}", "brief", expiration="20"),
        pause(0.3),
        m("queue.declare", queue="{q}", passive=True).differs(
            "messages expire wherever they are, not only at the head",
            "- < queue.declare-ok queue='{q}' message_count=2 consumer_count=0",
            "+ < queue.declare-ok queue='{q}' message_count=1 consumer_count=0"),
        get(),
        died(take("{dead}"), ("expired", "{q}", "")),
        get(),
    ]),
    Scenario("expiration-is-delivered-as-it-came", [
        declare(),
        publish("", "{q}", "a", expiration="60000", headers={"h": 1}),
        take(),
    ]),
    Scenario("ttl-of-unacknowledged-counts-on", [
        DEAD,
        lives(400, **TO_DEAD),
        send("{q}", "a"),
        take(no_ack=False),
        pause(0.6),
        get("{dead}"),
        reject(1, requeue=True),
        died(take("{dead}"), ("expired", "{q}", "")),
    ]),
    Scenario("ttl-requeue-in-time-keeps-the-time", [
        DEAD,
        lives(500, **TO_DEAD),
        send("{q}", "a"),
        take(no_ack=False),
        reject(1, requeue=True),
        take(no_ack=False),
        nack(2, requeue=True),
        died(take("{dead}"), ("expired", "{q}", "")),
    ]),
    Scenario("ttl-unacknowledged-of-gone-connection", [
        DEAD,
        lives(200, **TO_DEAD),
        consume().on(conn="b"),
        send("{q}", "a"),
        deliveries(1).on(conn="b"),
        pause(0.4),
        m("connection.close", reply_code=200).on(0, "b"),
        died(take("{dead}"), ("expired", "{q}", "")),
    ]),
    Scenario("ttl-not-for-acknowledged", [
        lives(100),
        send("{q}", "a"),
        take(no_ack=False),
        pause(0.3),
        ack(1),
        get(),
    ]),
    Scenario("expiration-invalid", [
        step for value in ("", "x", "-1", "1.5", " 1", "1 ", "+1", "4294967296", "4294967295",
                           "315360000001", "00005", "0x5")
        for step in (publish("", "{nowhere}", "a", expiration=value), m("basic.qos"))
    ]),
    Scenario("expiration-far-too-large", [
        publish("", "{nowhere}", "a", expiration="9" * 20),
        m("basic.qos").differs(
            "Erlang breaks a long term over two lines",
            "- < channel.close reply_code=406 reply_text='PRECONDITION_FAILED - invalid expiration "
            "'99999999999999999999': {value_too_large,\\n" + " " * 44 + "99999999999999999999}' "
            "class_id=60 method_id=40",
            "+ < channel.close reply_code=406 reply_text='PRECONDITION_FAILED - invalid expiration "
            "'99999999999999999999': {value_too_large,99999999999999999999}' "
            "class_id=60 method_id=40"),
    ]),
    Scenario("expiration-invalid-and-routed-nowhere", [
        publish("", "{nowhere}", "a", mandatory=True, expiration="x"),
        closed(),
        publish("{nowhere}", "", "a", expiration="x"),
        closed(),
    ]),
    Scenario("ttl-with-transaction", [
        DEAD,
        declare(arguments=TO_DEAD),
        m("tx.select"),
        publish("", "{q}", "a", expiration="30"),
        pause(0.1),
        get("{dead}"),
        m("tx.commit"),
        died(take("{dead}"), ("expired", "{q}", "")),
    ]),
    Scenario("ttl-transient-and-persistent", [
        DEAD,
        declare(durable=True, arguments={"x-message-ttl": 30, **TO_DEAD}),
        publish("", "{q}", "a", delivery_mode=2),
        publish("", "{q}", "b", delivery_mode=1),
        died(take("{dead}", 2), *[("expired", "{q}", "")] * 2),
    ]),
]
