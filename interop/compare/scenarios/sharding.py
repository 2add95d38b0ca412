"""Sharding: a policy that makes the queues of an exchange."""

from scenario import (Scenario, bind, clear_policy, confirms, consume, ctl, declare, exchange, get,
                      holds, m, publish, set_policy, spread)

X = "^{x}$"


def shard(number):
    return "sharding: {x} - {node} - %d" % number


def refused(step, words):
    """What RabbitMQ means to say; 3.10 makes an internal error of it."""
    numbers = {"queue.delete": (50, 40), "queue.purge": (50, 30), "queue.bind": (50, 20),
               "queue.unbind": (50, 50), "basic.consume": (60, 20)}[step.method]
    return step.since(
        "3.13", "interceptors may raise errors (rabbit_channel_interceptor:call_module/4)",
        "- < connection.close reply_code=541 reply_text='INTERNAL_ERROR' class_id=0 method_id=0",
        f"+ < channel.close reply_code=406 reply_text='PRECONDITION_FAILED - {words}: "
        f"<<\"{{x}}\">>' class_id={numbers[0]} method_id={numbers[1]}")


def there(*numbers):
    return [m("queue.declare", queue=shard(number), passive=True) for number in numbers]


def published(count):
    return [m("confirm.select"), *[publish("{x}", f"key-{i}", str(i)) for i in range(count)],
            confirms(count)]


SHARDED = [set_policy(X, '{"shards-per-node": 3}'), exchange("{x}", "x-modulus-hash",
                                                             durable=True)]

SCENARIOS = [
    Scenario("shards-are-made", [
        SHARDED,
        there(0, 1, 2),
        there(3),
        published(20), published(20),
        spread(shard(0), shard(1), shard(2), total=40, even=True),
    ]),
    Scenario("shards-of-an-exchange-that-is-there", [
        exchange("{x}", "x-modulus-hash", durable=True),
        set_policy(X, '{"shards-per-node": 2}'),
        there(0, 1, 2),
    ]),
    Scenario("shards-of-a-direct-exchange", [
        exchange("{x}", "direct"),
        set_policy(X, '{"shards-per-node": 2, "routing-key": "k"}'),
        there(0, 1),
        m("confirm.select"),
        publish("{x}", "k", "a"),
        publish("{x}", "other", "b"),
        confirms(2),
        there(0, 1),
    ]),
    Scenario("shards-of-a-direct-exchange-without-key", [
        exchange("{x}", "direct"),
        set_policy(X, '{"shards-per-node": 2}'),
        m("confirm.select"),
        publish("{x}", "", "a"),
        confirms(1),
        there(0, 1),
    ]),
    Scenario("shards-durability-follows-the-exchange", [
        set_policy(X, '{"shards-per-node": 1}'),
        exchange("{x}", "x-modulus-hash", durable=False),
        declare(shard(0), durable=True),
        declare(shard(0), durable=False),
    ]),
    Scenario("shards-consume", [
        SHARDED,
        consume("{x}", "one", no_ack=True).on(1, "b"),
        consume("{x}", "two", no_ack=True).on(2, "b"),
        consume("{x}", "three", no_ack=True).on(3, "b"),
        there(0, 1, 2),
        consume("{x}", "four", no_ack=True).on(4, "b"),
        there(0, 1, 2),
    ]),
    Scenario("shards-get", [
        set_policy(X, '{"shards-per-node": 1}'),
        exchange("{x}", "x-modulus-hash", durable=True),
        get("{x}"),
        published(1),
        holds(shard(0), 1),
        get("{x}"),
        get("{x}"),
    ]),
    Scenario("shards-declare", [
        SHARDED,
        declare("{x}"),
        declare("{x}", durable=True),
        declare("{x}", {"x-max-length": 5}, durable=True),
        m("queue.declare", queue="{x}", passive=True),
    ]),
    Scenario("shards-refused", [
        SHARDED,
        refused(m("queue.delete", queue="{x}"), "Can't delete sharded queue"),
        refused(m("queue.purge", queue="{x}"), "Can't purge sharded queue"),
        refused(bind("{x}", "amq.fanout"), "Can't bind sharded queue"),
        refused(m("queue.unbind", queue="{x}", exchange="amq.fanout"),
                "Can't unbind sharded queue"),
        m("queue.delete", queue=shard(2)),
        there(0, 1),
    ]),
    Scenario("shards-grow-and-shrink", [
        set_policy(X, '{"shards-per-node": 1}'),
        exchange("{x}", "x-modulus-hash", durable=True),
        there(0),
        set_policy(X, '{"shards-per-node": 3}'),
        there(0, 1, 2),
        set_policy(X, '{"shards-per-node": 2}'),
        there(0, 1, 2),
        published(20),
        spread(shard(0), shard(1), shard(2), total=20),
    ]),
    Scenario("shards-without-the-policy", [
        SHARDED,
        clear_policy(),
        there(0, 1, 2),
        published(3),
        there(0, 1, 2),
        consume("{x}", "c"),
        m("basic.get", queue="{x}"),
        declare("{x}", durable=True),
    ]),
    Scenario("shards-routing-key-changed", [
        exchange("{x}", "direct"),
        set_policy(X, '{"shards-per-node": 1, "routing-key": "k"}'),
        set_policy(X, '{"shards-per-node": 1, "routing-key": "l"}'),
        m("confirm.select"),
        publish("{x}", "k", "a"),
        publish("{x}", "l", "b"),
        confirms(2),
        there(0),
    ]),
    Scenario("shards-zero", [
        set_policy(X, '{"shards-per-node": 0}'),
        exchange("{x}", "x-modulus-hash", durable=True),
        there(0),
        refused(consume("{x}", "c"), "Error finding sharded queue for"),
        declare("{x}"),
    ]),
    Scenario("shards-exchange-deleted", [
        SHARDED,
        m("exchange.delete", exchange="{x}"),
        there(0, 1, 2),
        exchange("{x}", "x-modulus-hash", durable=True),
        published(20),
        spread(shard(0), shard(1), shard(2), total=20),
    ]),
    Scenario("shards-with-queue-policy", [
        set_policy("^sharding: {x}", '{"max-length": 1}', "{p2}", apply_to="queues"),
        set_policy(X, '{"shards-per-node": 1}'),
        exchange("{x}", "x-modulus-hash", durable=True),
        published(3),
        holds(shard(0), 1),
    ]),
    Scenario("shards-policy-refused", [
        *[ctl("set_policy", "--quiet", "{p}", X, definition) for definition in (
            '{"shards-per-node": -1}', '{"shards-per-node": "3"}', '{"shards-per-node": 1.5}',
            '{"routing-key": 1}', '{"routing-key": "k"}',
            '{"shards-per-node": 2, "routing-key": 5}', '{"shards-per-node": 2, "unknown": 5}')],
        ctl("set_operator_policy", "--quiet", "{p}", X, '{"shards-per-node": 2}'),
    ]),
]
