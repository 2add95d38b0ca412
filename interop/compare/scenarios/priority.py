"""x-max-priority: which message goes first."""

from scenario import (Scenario, ack, consume, declare, deliveries, died, get, holds, m, nack,
                      pause, publish, qos, reject, take)

DEAD = declare("{dead}")
TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "{dead}"}


def priorities(highest, **also):
    return declare(arguments={"x-max-priority": highest, **also})


def of(priority, body):
    return publish("", "{q}", body, **({} if priority is None else {"priority": priority}))


SCENARIOS = [
    Scenario("priority-order", [
        priorities(5),
        of(1, "one"), of(None, "none"), of(3, "three"), of(0, "zero"), of(5, "five"),
        of(3, "three again"), of(1, "one again"),
        take(count=7),
    ]),
    Scenario("priority-over-the-highest", [
        priorities(5),
        of(5, "five"), of(9, "nine"), of(255, "255"), of(4, "four"),
        take(count=4),
    ]),
    Scenario("priority-in-a-queue-without", [
        declare(),
        of(1, "one"), of(9, "nine"),
        take(count=2),
    ]),
    Scenario("priority-zero-is-no-priorities", [
        priorities(0),
        of(1, "one"), of(9, "nine"),
        take(count=2),
    ]),
    Scenario("priority-highest-of-255", [
        priorities(255),
        of(254, "254"), of(255, "255"), of(1, "1"),
        take(count=3),
    ]),
    Scenario("priority-invalid", [
        priorities(256),
        priorities(-1),
        priorities("5"),
        priorities(5),
        priorities(6),
        declare(),
    ]),
    Scenario("priority-requeue-goes-to-its-place", [
        priorities(5),
        of(1, "a"), of(1, "b"), of(5, "c"), of(5, "d"),
        holds("{q}", 4),
        take(count=3, no_ack=False),
        nack(3, multiple=True, requeue=True),
        take(count=4),
    ]),
    Scenario("priority-requeue-one-by-one", [
        priorities(5),
        of(1, "a"), of(5, "b"), of(5, "c"),
        take(count=3, no_ack=False),
        reject(2, requeue=True),
        reject(3, requeue=True),
        reject(1, requeue=True),
        take(count=3),
    ]),
    Scenario("priority-overtakes-what-waits-for-prefetch", [
        priorities(5),
        qos(1),
        of(1, "a"), of(1, "b"), of(5, "c"),
        holds("{q}", 3),
        consume(),
        deliveries(1),
        of(5, "d"),
        holds("{q}", 3),
        ack(1), deliveries(1),
        ack(2), deliveries(1),
        ack(3), deliveries(1),
    ]),
    Scenario("priority-length-drops-what-would-go-next", [
        DEAD,
        priorities(5, **{"x-max-length": 2}, **TO_DEAD),
        of(5, "five"), of(1, "one"), of(3, "three"), of(None, "none"), of(4, "four"),
        died(take("{dead}", 3), *[("maxlen", "{q}", "")] * 3),
        take(count=2),
    ]),
    Scenario("priority-length-drops-the-oldest", [
        DEAD,
        priorities(5, **{"x-max-length": 2}, **TO_DEAD),
        of(1, "a"), of(1, "b"), of(1, "c"),
        died(take("{dead}"), ("maxlen", "{q}", "")),
        take(count=2),
    ]),
    Scenario("priority-length-reject-publish", [
        priorities(5, **{"x-max-length": 1, "x-overflow": "reject-publish"}),
        of(1, "a"), of(5, "b"),
        pause(0.2),
        take(),
        get(),
    ]),
    Scenario("priority-ttl-behind-lasting-messages", [
        DEAD,
        priorities(5, **TO_DEAD),
        publish("", "{q}", "lasting", priority=5),
        publish("", "{q}", "brief", priority=1, expiration="30"),
        publish("", "{q}", "brief behind", priority=5, expiration="30"),
        pause(0.3),
        m("queue.declare", queue="{q}", passive=True).differs(
            "messages expire wherever they are, not only at the head",
            "- < queue.declare-ok queue='{q}' message_count=3 consumer_count=0",
            "+ < queue.declare-ok queue='{q}' message_count=1 consumer_count=0"),
        take("{q}"),
        holds("{dead}", 2),
    ]),
    Scenario("priority-ttl-of-queue", [
        DEAD,
        priorities(5, **{"x-message-ttl": 60}, **TO_DEAD),
        of(1, "a"), of(5, "b"), of(1, "c"),
        holds("{dead}", 3),
    ]),
    Scenario("priority-counts-and-purge", [
        priorities(5),
        of(1, "a"), of(5, "b"),
        holds("{q}", 2),
        take(no_ack=False),
        m("queue.purge", queue="{q}"),
        m("queue.delete", queue="{q}"),
    ]),
    Scenario("priority-of-quorum-queue-is-refused", [
        declare("{q}", {"x-queue-type": "quorum", "x-max-priority": 5}, durable=True),
    ]),
]
