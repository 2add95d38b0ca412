"""Quorum queues as a client sees them: what they refuse, delivery counts and their limit."""

from scenario import (Scenario, ack, consume, declare, deliveries, died, first_get, get, hang_up,
                      holds, m, nack, publish, qos, reject, send, take)

DEAD = declare("{dead}")
TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "{dead}"}


def quorum(queue="{q}", durable=True, flags=None, **arguments):
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    return declare(queue, {"x-queue-type": "quorum", **given}, durable=durable, **(flags or {}))


SCENARIOS = [
    Scenario("quorum-refuses", [
        quorum("{q1}", durable=False),
        quorum("{q2}", flags={"exclusive": True}),
        quorum("{q3}", flags={"auto_delete": True}),
        quorum(""),
        quorum("{q4}", max_priority=5),
        quorum("{q5}", queue_mode="lazy"),
        quorum("{q8}", dead_letter_strategy="sometimes"),
        quorum("{q9}", dead_letter_strategy=1),
        quorum("{q10}", quorum_initial_group_size=0),
        quorum("{q11}", quorum_initial_group_size="3"),
        quorum("{q12}", max_in_memory_bytes="x"),
        quorum("{q13}", queue_version=2),
        quorum("{q14}", max_age="1h"),
    ]),
    Scenario("quorum-accepts", [
        quorum("{q1}", overflow="reject-publish-dlx"),
        quorum("{q2}", max_in_memory_length=10),
        quorum("{q3}", expires=10000, message_ttl=10000, max_length=1, max_length_bytes=1),
        quorum("{q4}", queue_leader_locator="balanced"),
        quorum("{q5}", single_active_consumer=True, delivery_limit=3),
        quorum("{q6}", unknown="whatever"),
        quorum("{q7}", delivery_limit=-1),
    ]),
    Scenario("quorum-redeclared", [
        quorum(delivery_limit=3),
        quorum(delivery_limit=3),
        quorum(delivery_limit=4),
        quorum(),
        declare("{q}", {"x-queue-type": "classic", "x-delivery-limit": 3}, durable=True),
        declare("{q}", durable=True),
        m("queue.declare", queue="{q}", passive=True),
    ]),
    Scenario("classic-with-arguments-of-quorum", [
        declare("{q}", {"x-delivery-limit": 3}, durable=True),
        declare("{q2}", {"x-dead-letter-strategy": "at-least-once"}, durable=True),
        declare("{q3}", {"x-quorum-initial-group-size": 3}, durable=True),
        declare("{q4}", {"x-queue-type": "nonsense"}, durable=True),
        declare("{q5}", {"x-queue-type": 1}, durable=True),
    ]),
    Scenario("quorum-delivery-count", [
        quorum(),
        send("{q}", "a"),
        first_get(take(no_ack=False)),
        reject(1, requeue=True),
        take(no_ack=False),
        nack(2, requeue=True),
        take(no_ack=False),
        ack(3),
        get(),
    ]),
    Scenario("quorum-delivery-count-for-consumers", [
        quorum(),
        qos(1),
        send("{q}", "a"),
        consume(),
        deliveries(1),
        reject(1, requeue=True),
        deliveries(1),
        m("channel.close", reply_code=200),
        consume().on(2),
        deliveries(1).on(2),
    ]),
    Scenario("quorum-delivery-count-after-a-lost-connection", [
        quorum(),
        send("{q}", "a"),
        consume().on(1, "b"),
        deliveries(1).on(1, "b"),
        hang_up("b"),
        take(no_ack=False),
    ]),
    Scenario("quorum-delivery-limit-drops", [
        quorum(delivery_limit=1),
        send("{q}", "a"),
        first_get(take(no_ack=False)),
        reject(1, requeue=True),
        take(no_ack=False),
        reject(2, requeue=True),
        holds("{q}", 0),
        get(),
    ]),
    Scenario("quorum-delivery-limit-dead-letters", [
        DEAD,
        declare("{q}", {"x-queue-type": "quorum", "x-delivery-limit": 2, **TO_DEAD}, durable=True),
        send("{q}", "a"),
        first_get(take(no_ack=False)),
        reject(1, requeue=True),
        take(no_ack=False),
        reject(2, requeue=True),
        take(no_ack=False),
        reject(3, requeue=True),
        died(take("{dead}"), ("delivery_limit", "{q}", "")),
    ]),
    Scenario("quorum-delivery-limit-zero", [
        DEAD,
        declare("{q}", {"x-queue-type": "quorum", "x-delivery-limit": 0, **TO_DEAD}, durable=True),
        send("{q}", "a"),
        first_get(take(no_ack=False)),
        reject(1, requeue=True),
        died(take("{dead}"), ("delivery_limit", "{q}", "")),
    ]),
    Scenario("quorum-get", [
        quorum(),
        get(),
        send("{q}", "a", "b"),
        holds("{q}", 2),
        first_get(get(no_ack=False)),
        first_get(get(no_ack=True)),
        get(),
    ]),
    Scenario("quorum-requeue-keeps-the-place", [
        quorum(delivery_limit=5),
        send("{q}", "a", "b", "c"),
        holds("{q}", 3),
        first_get(take(count=2, no_ack=False)),
        reject(1, requeue=True),
        holds("{q}", 2),
        take(),
        first_get(take()),
    ]),
    Scenario("quorum-requeue-without-a-delivery-limit", [
        quorum(),
        send("{q}", "a", "b", "c"),
        holds("{q}", 3),
        first_get(take(count=2, no_ack=False)),
        reject(1, requeue=True),
        holds("{q}", 2),
        take().since("4.0", "there is a delivery limit of 20; what has none goes to the end, so "
                     "that the log can be cut off (rabbit_fifo:handle_aux/6)",
                     '- < basic.get-ok delivery_tag=3 redelivered=false exchange=\'\' '
                     'routing_key=\'{q}\' message_count=1',
                     '+ < basic.get-ok delivery_tag=3 redelivered=true exchange=\'\' '
                     'routing_key=\'{q}\' message_count=1',
                     '-     body "c"', '+     body "a"',
                     '-         x-delivery-count = long 0',
                     '+         x-delivery-count = long 1'),
    ]),
    Scenario("quorum-transient-message", [
        quorum(),
        publish("", "{q}", "a", delivery_mode=1),
        publish("", "{q}", "b"),
        first_get(take(count=2)),
    ]),
    Scenario("quorum-global-prefetch", [
        quorum(),
        qos(1, shared=True),
        consume().differs(
            "a limit that a channel's consumers share holds for queues of any type",
            "- < connection.close reply_code=540 reply_text='NOT_IMPLEMENTED - queue '{q}' in vhost "
            "'/' does not support global qos' class_id=60 method_id=20",
            "+ < basic.consume-ok consumer_tag='c'",
        ),
    ]),
    Scenario("quorum-exclusive-consumer", [
        quorum(),
        consume(tag="one", exclusive=True),
        consume(tag="two").differs(
            "exclusive means the same for queues of any type",
            "- < basic.consume-ok consumer_tag='two'",
            "+ < channel.close reply_code=403 reply_text='ACCESS_REFUSED - queue '{q}' in vhost '/' "
            "in exclusive use' class_id=60 method_id=20",
        ),
    ]),
    Scenario("quorum-purge-and-delete", [
        quorum(),
        send("{q}", "a", "b"),
        holds("{q}", 2),
        m("queue.purge", queue="{q}"),
        send("{q}", "c"),
        holds("{q}", 1),
        m("queue.delete", queue="{q}", if_empty=True).differs(
            "conditions of queue.delete hold for queues of any type",
            "- < connection.close reply_code=540 reply_text='NOT_IMPLEMENTED - cannot delete queue "
            "'{q}' in vhost '/'. queue.delete operations with if-empty flag set are not supported "
            "by quorum queues' class_id=50 method_id=40",
            "+ < channel.close reply_code=406 reply_text='PRECONDITION_FAILED - queue '{q}' in vhost "
            "'/' not empty' class_id=50 method_id=40",
        ),
        m("queue.delete", queue="{q}"),
    ]),
    Scenario("quorum-in-transaction", [
        quorum(),
        m("tx.select"),
        send("{q}", "a", "b"),
        get(),
        m("tx.commit"),
        holds("{q}", 2),
        first_get(take(no_ack=False)),
        ack(1),
        m("tx.rollback"),
        ack(1),
        m("tx.commit"),
        first_get(take()),
    ]),
    Scenario("quorum-consumer-priority", [
        quorum(),
        consume(tag="low", no_ack=True).on(1),
        consume(tag="high", no_ack=True, arguments={"x-priority": 5}).on(2),
        send("{q}", "a"),
        deliveries(1).on(2),
    ]),
    Scenario("quorum-message-ttl", [
        quorum(message_ttl=50),
        send("{q}", "a"),
        publish("", "{q}", "b", expiration="20"),
        holds("{q}", 2),
        holds("{q}", 0),
        get(),
    ]),
    Scenario("quorum-recover", [
        quorum(),
        send("{q}", "a"),
        consume(),
        deliveries(1),
        m("basic.recover", requeue=True),
        deliveries(1),
    ]),
]
