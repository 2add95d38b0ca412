"""Who gets the messages: one active consumer, priorities, exclusive consumers, cancellations."""

from scenario import (Scenario, ack, cancelled, closed, confirms, consume, ctl, declare,
                      deliveries, get, hang_up, holds, m, publish, qos, reject, send, silence,
                      take)

SAC = {"x-single-active-consumer": True}


def cancel(tag):
    return m("basic.cancel", consumer_tag=tag)


TIMED_OUT = ("< channel.close reply_code=406 reply_text='PRECONDITION_FAILED - delivery "
             "acknowledgement on channel 1 timed out. Timeout value used: 300 ms. This timeout "
             "value can be configured, see consumers doc guide to learn more")


SCENARIOS = [
    Scenario("sac-first-gets-all-then-the-next", [
        declare(arguments=SAC),
        consume(tag="one", no_ack=True).on(1),
        consume(tag="two", no_ack=True).on(2),
        consume(tag="three", no_ack=True).on(3),
        send("{q}", "a", "b"),
        deliveries(2).on(1),
        silence(0.1).on(2),
        cancel("one").on(1),
        send("{q}", "c"),
        deliveries(1).on(2),
        cancel("two").on(2),
        send("{q}", "d"),
        deliveries(1).on(3),
    ]),
    Scenario("sac-waits-when-prefetch-is-full", [
        declare(arguments=SAC),
        qos(1).on(1),
        consume(tag="one").on(1),
        consume(tag="two").on(2),
        send("{q}", "a", "b"),
        deliveries(1).on(1),
        silence(0.2).on(1),
        ack(1).on(1),
        deliveries(1).on(1),
    ]),
    Scenario("sac-cancel-with-unacknowledged", [
        declare(arguments=SAC),
        consume(tag="one").on(1),
        consume(tag="two").on(2),
        send("{q}", "a"),
        deliveries(1).on(1),
        cancel("one").on(1),
        send("{q}", "b"),
        deliveries(1).on(2),
        reject(1, requeue=True).on(1),
        deliveries(1).on(2),
    ], note="Not with a prefetch that is full: cancelling then crashes RabbitMQ 3.10's queue."),
    Scenario("sac-take-over-when-the-channel-closes", [
        declare(arguments=SAC),
        consume(tag="one").on(1),
        consume(tag="two").on(2),
        send("{q}", "a", "b"),
        deliveries(2).on(1),
        m("channel.close", reply_code=200).on(1),
        deliveries(2).on(2),
    ]),
    Scenario("sac-take-over-when-the-connection-is-lost", [
        declare(arguments=SAC),
        consume(tag="one").on(1, "b"),
        consume(tag="two").on(1, "a"),
        send("{q}", "a"),
        deliveries(1).on(1, "b"),
        hang_up("b"),
        deliveries(1),
    ]),
    Scenario("sac-exclusive-consumer-is-refused", [
        declare(arguments=SAC),
        consume(tag="one", exclusive=True),
        consume(tag="two"),
    ]),
    Scenario("sac-consumer-priority-decides-who-is-next", [
        declare(arguments=SAC),
        consume(tag="one", no_ack=True).on(1),
        consume(tag="two", no_ack=True).on(2),
        consume(tag="three", no_ack=True, arguments={"x-priority": 5}).on(3),
        send("{q}", "a"),
        deliveries(1).on(1),
        cancel("one").on(1),
        send("{q}", "b"),
        deliveries(1).on(3),
        cancel("three").on(3),
        send("{q}", "c"),
        deliveries(1).on(2),
    ]),
    Scenario("sac-get-is-still-possible", [
        declare(arguments=SAC),
        send("{q}", "a"),
        get(),
        qos(1),
        consume(tag="one"),
        send("{q}", "b", "c"),
        deliveries(1),
        holds("{q}", 1),
        get(),
    ]),
    Scenario("sac-false-is-none", [
        declare(arguments={"x-single-active-consumer": False}),
        declare(),
        declare("{q2}", {"x-single-active-consumer": "yes"}),
        declare("{q3}", {"x-single-active-consumer": 1}),
    ]),
    Scenario("sac-of-quorum-queue", [
        declare("{q}", {"x-queue-type": "quorum", **SAC}, durable=True),
        consume(tag="one", no_ack=True).on(1),
        consume(tag="two", no_ack=True).on(2),
        send("{q}", "a"),
        deliveries(1).on(1),
        cancel("one").on(1),
        send("{q}", "b"),
        deliveries(1).on(2),
    ]),
    Scenario("consumer-priority", [
        declare(),
        qos(1).on(1), qos(1).on(2),
        consume(tag="low").on(1),
        consume(tag="high", arguments={"x-priority": 10}).on(2),
        send("{q}", "a", "b", "c"),
        deliveries(1).on(2),
        deliveries(1).on(1),
        ack(1).on(2),
        deliveries(1).on(2),
    ]),
    Scenario("consumer-priority-negative-and-default", [
        declare(),
        consume(tag="negative", no_ack=True, arguments={"x-priority": -1}).on(1),
        consume(tag="default", no_ack=True).on(2),
        send("{q}", "a", "b"),
        deliveries(2).on(2),
        silence(0.1),
    ]),
    Scenario("consumers-of-one-priority-take-turns", [
        declare(),
        consume(tag="one", no_ack=True).on(1),
        consume(tag="two", no_ack=True).on(2),
        m("confirm.select").on(3),
        *[step for body in "abcd" for step in (publish("", "{q}", body).on(3), confirms(1).on(3))],
        deliveries(2).on(1),
        deliveries(2).on(2),
    ]),
    Scenario("consumer-priority-of-the-wrong-type", [
        declare(),
        consume(tag="c", arguments={"x-priority": "high"}),
        consume(tag="d", arguments={"x-priority": 1.5}),
        consume(tag="e", arguments={"x-priority": True}),
    ]),
    Scenario("exclusive-consumer", [
        declare(),
        consume(tag="one", exclusive=True),
        consume(tag="two").on(2),
        consume(tag="three", exclusive=True).on(2),
        get().on(2),
        cancel("one"),
        consume(tag="two").on(2),
        consume(tag="three", exclusive=True).on(3),
    ]),
    Scenario("consumer-is-cancelled-with-the-queue", [
        declare(),
        consume(tag="one"),
        m("queue.delete", queue="{q}").on(1, "b"),
        cancelled(1),
        cancel("one"),
    ]),
    Scenario("consumer-x-cancel-on-ha-failover", [
        declare(),
        consume(tag="one", arguments={"x-cancel-on-ha-failover": True}),
        consume(tag="two", arguments={"x-cancel-on-ha-failover": "yes"}),
    ]),
    Scenario("consumer-tag-is-made-up", [
        declare(),
        consume(tag=""),
    ]),
    Scenario("consumer-tag-in-use", [
        declare(),
        consume(tag="c"),
        consume(tag="c"),
    ]),
    Scenario("recover", [
        declare(),
        send("{q}", "a", "b"),
        holds("{q}", 2),
        consume(tag="c"),
        deliveries(2),
        m("basic.recover", requeue=True),
        deliveries(2),
    ]),
    Scenario("recover-without-requeue", [
        declare(),
        send("{q}", "a"),
        consume(tag="c"),
        deliveries(1),
        m("basic.recover", requeue=False),
    ]),
    Scenario("channel-flow", [
        m("channel.flow", active=True),
        m("channel.flow", active=False),
    ]),
    Scenario("consumer-timeout", [
        ctl(
            "eval", "application:set_env(rabbit, consumer_timeout, 300).").only_on("rabbitmq"),
        declare("{q}", {"x-consumer-timeout": 300}),
        consume(tag="c").on(1, "b"),
        send("{q}", "a"),
        deliveries(1).on(1, "b"),
        closed().on(1, "b").differs(
            "the consumer is named, too", f"- {TIMED_OUT}' class_id=0 method_id=0",
            f"+ {TIMED_OUT}. Consumer 'c' of queue '{{q}}'' class_id=0 method_id=0"),
        ctl(
            "eval", "application:set_env(rabbit, consumer_timeout, 1800000).").only_on("rabbitmq"),
        take(),
    ], alone=True, note="x-consumer-timeout is RabbitMQ 3.12's; before there is only a setting."),
]
