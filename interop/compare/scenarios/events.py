"""The event exchange: amq.rabbitmq.event."""

import pathlib

from scenario import (Scenario, bind, clear_policy, consume, ctl, declare, exchange, holds, m, qos,
                      set_policy, status_of, take)


def listen(*keys):
    """A queue for events with these keys, once what went before has been told."""
    return [declare("{e}"), *[bind("{e}", "amq.rabbitmq.event", key) for key in keys]]


def events(count):
    return take("{e}", count)


def typed(step):
    return step.since("3.13", "events of queues tell the type (rabbit_amqqueue_process)",
                      '+         type = "rabbit_classic_queue"')


def said(queue, key):
    return [declare(f"{{{queue}}}"), bind(f"{{{queue}}}", "amq.rabbitmq.event", key)]


def set_limits():
    return ctl("set_parameter", "--quiet", "vhost-limits", "limits", '{"max-queues": 500}').differs(
        "they have no effect yet, which is said",
        "+         Warning: parameters of component 'vhost-limits' are kept, but have no effect yet")


def imported():
    """Definitions of one vhost and one user, both with the name `imported`."""
    file = pathlib.Path(__file__).with_name("imported.json")
    return status_of("import_definitions", "--quiet", str(file))


def erlang(step, header, length):
    """RabbitMQ tells what is nested in an imported parameter in the words of Erlang."""
    return step.differs("a table is told as one",
                        f'- {header} = "#{{<<\"max-length\">> => {length}}}"',
                        f"+ {header}.max-length = long {length}")


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
        listen("user.#", "permission.#", "topic.#", "parameter.#"),
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
        ctl("set_topic_permissions", "--quiet", "{u}", "amq.topic", "w", "r"),
        events(1),
        ctl("clear_topic_permissions", "--quiet", "{u}", "amq.topic"),
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
        set_policy("^{q}$", '{"max-length": 5}', priority=3),
        clear_policy(),
        events(1),
    ], alone=True, note="Setting it again changes nothing, and is not told."),
    Scenario("event-operator-policy", [
        listen("policy.#", "operator.#", "parameter.#"),
        ctl("set_operator_policy", "--quiet", "{p}", "^{q}$", '{"max-length": 5}'),
        events(2),
        ctl("set_operator_policy", "--quiet", "{p}", "^{q}$", '{"max-length": 5}'),
        ctl("clear_operator_policy", "--quiet", "{p}"),
        events(2),
    ], alone=True),
    Scenario("event-parameter", [
        listen("parameter.#"),
        set_limits(),
        events(1),
        set_limits(),
        ctl("clear_parameter", "--quiet", "vhost-limits", "limits"),
        events(1),
        ctl("set_global_parameter", "--quiet", "{g}", '{"a": [1, 1.5, null, true, "x"]}'),
        events(1),
        ctl("set_global_parameter", "--quiet", "{g}", '"x"'),
        events(1),
        ctl("set_global_parameter", "--quiet", "{g}", '"x"'),
        events(1),
        ctl("clear_global_parameter", "--quiet", "{g}"),
    ], alone=True, note="Global ones are told each time they are set, and not when they go."),
    Scenario("event-import", [
        [said("users", "user.#"), said("permissions", "permission.#"), said("topic", "topic.#"),
         said("policies", "policy.#"), said("parameters", "parameter.#")],
        imported(),
        take("{users}", 2),
        take("{permissions}", 1),
        take("{topic}", 1),
        erlang(take("{policies}", 2), "         definition", 5),
        erlang(take("{parameters}", 3), "         value.definition", 5),
        ctl("delete_vhost", "--quiet", "imported"),
        take("{permissions}", 1),
        take("{topic}", 1),
        take("{policies}", 1),
        ctl("delete_user", "--quiet", "imported"),
        take("{users}", 1),
    ], alone=True),
    Scenario("event-vhost", [
        listen("vhost.created", "vhost.deleted"),
        ctl("add_vhost", "--quiet", "{w}"),
        events(1),
        ctl("delete_vhost", "--quiet", "{w}"),
        events(1),
    ], alone=True),
]
