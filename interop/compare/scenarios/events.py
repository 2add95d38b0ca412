"""The event exchange: amq.rabbitmq.event."""

from scenario import (Scenario, bind, clear_policy, consume, ctl, declare, exchange, holds, m, qos,
                      set_policy, take)


def listen(*keys):
    """A queue for events with these keys, once what went before has been told."""
    return [declare("{e}"), *[bind("{e}", "amq.rabbitmq.event", key) for key in keys]]


def events(count):
    return take("{e}", count)


def typed(step):
    return step.since("3.13", "events of queues tell the type (rabbit_amqqueue_process)",
                      '+         type = "rabbit_classic_queue"')


SCENARIOS = [
    Scenario("event-queue", [
        listen("queue.#"),
        declare("{q}", {"x-max-length": 5}, durable=True).on(1, "b"),
        typed(events(1)),
        declare("{q2}", exclusive=True).on(1, "b"),
        typed(events(1)),
        m("queue.delete", queue="{q}").on(1, "b"),
        typed(events(1)),
    ], alone=True),
    Scenario("event-exchange", [
        listen("exchange.#"),
        exchange("{x}", "topic", durable=True).on(1, "b"),
        events(1),
        m("exchange.delete", exchange="{x}").on(1, "b"),
        events(1),
    ], alone=True),
    Scenario("event-binding", [
        exchange("{x}", "topic"),
        declare("{q}"),
        listen("binding.#"),
        bind("{q}", "{x}", "k", {"a": 1}),
        holds("{e}", 2),
        events(2),
        m("queue.unbind", queue="{q}", exchange="{x}", routing_key="k", arguments={"a": 1}),
        events(1),
    ], alone=True, note="The binding of the listener itself is told, too."),
    Scenario("event-connection-and-channel", [
        listen("connection.#", "channel.#"),
        qos(1).on(1, "b"),
        events(2),
        m("channel.close", reply_code=200).on(1, "b"),
        events(1),
        m("connection.close", reply_code=200).on(0, "b"),
        events(1),
    ], alone=True),
    Scenario("event-consumer", [
        declare("{q}"),
        listen("consumer.#"),
        consume("{q}", "c", {"x-priority": 3}),
        events(1),
        m("basic.cancel", consumer_tag="c"),
        events(1),
    ], alone=True),
    Scenario("event-user", [
        listen("user.#", "permission.#", "topic.#"),
        ctl("add_user", "--quiet", "{u}", "secret"),
        events(1),
        ctl("change_password", "--quiet", "{u}", "other"),
        events(1),
        ctl("set_user_tags", "--quiet", "{u}", "monitoring"),
        events(1),
        ctl("set_permissions", "--quiet", "{u}", "c", "w", "r"),
        events(1),
        ctl("set_topic_permissions", "--quiet", "{u}", "amq.topic", "w", "r"),
        events(1),
        ctl("clear_topic_permissions", "--quiet", "{u}"),
        events(1),
        ctl("clear_permissions", "--quiet", "{u}"),
        events(1),
        ctl("delete_user", "--quiet", "{u}"),
        events(1),
    ], alone=True),
    Scenario("event-policy", [
        listen("policy.#", "parameter.#"),
        set_policy("^{q}$", '{"max-length": 5}', priority=3),
        events(1),
        clear_policy(),
        events(1),
    ], alone=True),
    Scenario("event-vhost", [
        listen("vhost.created", "vhost.deleted"),
        ctl("add_vhost", "--quiet", "{w}"),
        events(1),
        ctl("delete_vhost", "--quiet", "{w}"),
        events(1),
    ], alone=True),
]
