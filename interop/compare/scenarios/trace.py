"""The firehose: amq.rabbitmq.trace. RabbitMQ loses one of two vhosts that turn it on at once."""

from scenario import (Scenario, bind, closed, consume, ctl, declare, deliveries, exchange, get,
                      holds, m, publish, reject, send, take)

TRACED = [declare("{t}"), bind("{t}", "amq.rabbitmq.trace", "#")]
ON, OFF = ctl("trace_on", "-p", "{v}"), ctl("trace_off", "-p", "{v}")

SCENARIOS = [
    Scenario("trace-publish-and-get", [
        TRACED,
        exchange("{x}", "direct"),
        declare("{q}"), bind("{q}", "{x}", "k"),
        ON,
        publish("{x}", "k", "a", content_type="text/plain", headers={"h": 1, "s": "text"},
                delivery_mode=2, timestamp=1234567890, priority=3),
        take("{q}"),
        OFF,
        publish("{x}", "k", "not traced"),
        take("{t}", 2),
        get("{t}"),
    ], vhost="{v}", alone=True),
    Scenario("trace-default-exchange-and-delivery", [
        TRACED,
        declare("{q}"),
        ON,
        consume("{q}"),
        publish("", "{q}", "a"),
        deliveries(1),
        OFF,
        take("{t}", 2),
    ], vhost="{v}", alone=True),
    Scenario("trace-unrouted-and-copies", [
        TRACED,
        exchange("{x}", "fanout"),
        declare("{q1}"), bind("{q1}", "{x}"),
        declare("{q2}"), bind("{q2}", "{x}"),
        ON,
        publish("{x}", "k", "two queues", headers={"CC": ["c"]}),
        holds("{q2}", 1),
        publish("", "{nowhere}", "none"),
        holds("{t}", 2),
        OFF,
        take("{t}", 2),
    ], vhost="{v}", alone=True),
    Scenario("trace-redelivered", [
        TRACED,
        declare("{q}"),
        send("{q}", "a"),
        take("{q}", no_ack=False),
        reject(1, requeue=True),
        holds("{q}", 1),
        ON,
        take("{q}"),
        OFF,
        take("{t}"),
    ], vhost="{v}", alone=True),
    Scenario("trace-binding-keys", [
        declare("{p}"), bind("{p}", "amq.rabbitmq.trace", "publish.{x}"),
        declare("{d}"), bind("{d}", "amq.rabbitmq.trace", "deliver.{q}"),
        exchange("{x}", "direct"),
        declare("{q}"), bind("{q}", "{x}", "k"),
        ON,
        publish("{x}", "k", "a"),
        take("{q}"),
        OFF,
        take("{p}"),
        take("{d}"),
    ], vhost="{v}", alone=True),
    Scenario("trace-exchange-belongs-to-the-broker", [
        publish("amq.rabbitmq.trace", "k", "a"),
        closed(),
        m("exchange.delete", exchange="amq.rabbitmq.trace"),
        exchange("amq.rabbitmq.trace", "topic", durable=True, internal=True),
    ]),
]
