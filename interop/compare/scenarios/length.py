"""x-max-length, x-max-length-bytes and x-overflow."""

from scenario import (Scenario, ack, bind, confirms, consume, declare, deliveries, died, exchange,
                      first_get, get, holds, m, publish, qos, reject, send, silence, take)

DEAD = declare("{dead}")
TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "{dead}"}
CONFIRM = m("confirm.select")


def limited(length=None, octets=None, overflow=None, queue="{q}", dead=False, **also):
    given = {"x-max-length": length, "x-max-length-bytes": octets, "x-overflow": overflow}
    return declare(queue, {k: v for k, v in given.items() if v is not None}
                   | (TO_DEAD if dead else {}) | also)


def too_long(step, count=1):
    return died(step, *[("maxlen", "{q}", "")] * count)


def refused_commit():
    return m("tx.commit").differs(
        "a transaction happens as a whole or not at all",
        "- < channel.close reply_code=406 reply_text='PRECONDITION_FAILED - partial tx completion' "
        "class_id=90 method_id=20",
        "+ < channel.close reply_code=406 reply_text='PRECONDITION_FAILED - transaction refused: "
        "queue '{q}' in vhost '/' is full' class_id=90 method_id=20")


SCENARIOS = [
    Scenario("length-drops-the-head", [
        DEAD,
        limited(2, dead=True),
        send("{q}", "a", "b", "c", "d"),
        too_long(take("{dead}", 2), 2),
        take("{q}", 2),
    ]),
    Scenario("length-drops-the-head-without-dead-lettering", [
        limited(1, overflow="drop-head"),
        CONFIRM,
        send("{q}", "a", "b", "c"),
        confirms(3),
        holds("{q}", 1),
        take(),
    ]),
    Scenario("length-zero", [
        DEAD,
        limited(0, dead=True),
        CONFIRM,
        send("{q}", "a"),
        confirms(1),
        too_long(take("{dead}")),
        get(),
        consume(no_ack=True),
        send("{q}", "b"),
        deliveries(1),
        confirms(1),
    ]),
    Scenario("length-zero-reject-publish", [
        limited(0, overflow="reject-publish"),
        CONFIRM,
        send("{q}", "a"),
        confirms(1),
        consume(no_ack=True),
        send("{q}", "b"),
        confirms(1),
        silence(0.2),
    ]),
    Scenario("length-does-not-count-unacknowledged", [
        DEAD,
        limited(1, dead=True),
        qos(1),
        consume(),
        send("{q}", "a"),
        deliveries(1),
        send("{q}", "b"),
        holds("{q}", 1),
        get("{dead}"),
        send("{q}", "c"),
        too_long(take("{dead}")),
        ack(1),
        deliveries(1),
    ]),
    Scenario("length-requeue-over-the-limit", [
        DEAD,
        limited(1, dead=True),
        send("{q}", "a"),
        take(no_ack=False),
        send("{q}", "b"),
        holds("{q}", 1),
        reject(1, requeue=True),
        too_long(take("{dead}")),
        take(),
    ]),
    Scenario("length-bytes-drops-the-head", [
        DEAD,
        limited(octets=10, dead=True),
        send("{q}", "aaaa", "bbbb", "cc", "d"),
        too_long(take("{dead}")),
        holds("{q}", 3),
        send("{q}", "eeeeeeeeee"),
        too_long(take("{dead}", 3), 3),
        send("{q}", "ffffffffffffffffffff"),
        too_long(take("{dead}", 2), 2),
        get(),
    ]),
    Scenario("length-bytes-counts-bodies-alone", [
        limited(octets=3),
        publish("", "{q}", "abc", headers={"long": "x" * 100}, message_id="y" * 100),
        holds("{q}", 1),
        send("{q}", "", ""),
        holds("{q}", 3),
    ]),
    Scenario("length-and-bytes-together", [
        DEAD,
        limited(3, 10, dead=True),
        send("{q}", "a", "b", "c", "d"),
        too_long(take("{dead}")),
        send("{q}", "eeeeeeeee"),
        too_long(take("{dead}", 2), 2),
        take("{q}", 2),
    ]),
    Scenario("length-reject-publish", [
        limited(1, overflow="reject-publish"),
        CONFIRM,
        send("{q}", "a", "b", "c"),
        confirms(3),
        take(),
        send("{q}", "d"),
        confirms(1),
        take(),
        get(),
    ]),
    Scenario("length-reject-publish-does-not-dead-letter", [
        DEAD,
        limited(1, overflow="reject-publish", dead=True),
        CONFIRM,
        send("{q}", "a", "b"),
        confirms(2),
        silence(0.2),
        get("{dead}"),
        take(),
    ]),
    Scenario("length-reject-publish-without-confirms", [
        limited(1, overflow="reject-publish"),
        publish("", "{q}", "a", mandatory=True),
        publish("", "{q}", "b", mandatory=True),
        silence(0.2),
        take(),
        get(),
    ]),
    Scenario("length-reject-publish-bytes", [
        limited(octets=3, overflow="reject-publish"),
        CONFIRM,
        send("{q}", "aa", "bb", "cc"),
        confirms(3),
        take("{q}"),
        send("{q}", "dddddd", "e"),
        confirms(2),
        take("{q}"),
    ]),
    Scenario("length-reject-publish-one-of-two-queues", [
        limited(0, overflow="reject-publish"),
        declare("{q2}"),
        exchange("{x}", "fanout"),
        bind("{q}", "{x}"),
        bind("{q2}", "{x}"),
        CONFIRM,
        publish("{x}", "", "a"),
        confirms(1),
        holds("{q2}", 1),
    ]),
    Scenario("length-reject-publish-mandatory", [
        limited(0, overflow="reject-publish"),
        CONFIRM,
        publish("", "{q}", "a", mandatory=True),
        confirms(1),
        silence(0.2),
    ]),
    Scenario("length-reject-publish-in-transaction", [
        limited(1, overflow="reject-publish"),
        declare("{q2}"),
        m("tx.select"),
        send("{q}", "a", "b"),
        send("{q2}", "c"),
        refused_commit(),
        m("tx.commit"),
        *[m("queue.declare", queue=queue, passive=True).differs(
            "nothing of it has happened",
            f"- < queue.declare-ok queue='{queue}' message_count=1 consumer_count=0",
            f"+ < queue.declare-ok queue='{queue}' message_count=0 consumer_count=0")
          for queue in ("{q}", "{q2}")],
    ]),
    Scenario("length-reject-publish-dlx", [
        DEAD,
        limited(1, overflow="reject-publish-dlx", dead=True),
        CONFIRM,
        send("{q}", "a", "b"),
        confirms(2),
        too_long(take("{dead}")),
        take(),
        get(),
    ]),
    Scenario("length-reject-publish-dlx-without-dlx", [
        limited(1, overflow="reject-publish-dlx"),
        CONFIRM,
        send("{q}", "a", "b"),
        confirms(2),
        take(),
        get(),
    ]),
    Scenario("length-reject-publish-dlx-in-transaction", [
        DEAD,
        limited(1, overflow="reject-publish-dlx", dead=True),
        m("tx.select"),
        send("{q}", "a", "b"),
        refused_commit(),
        *[m("queue.declare", queue=queue, passive=True).differs(
            "nothing of it has happened",
            f"- < queue.declare-ok queue='{queue}' message_count=1 consumer_count=0",
            f"+ < queue.declare-ok queue='{queue}' message_count=0 consumer_count=0")
          for queue in ("{q}", "{dead}")],
    ]),
    Scenario("length-drop-head-in-transaction", [
        DEAD,
        limited(1, dead=True),
        m("tx.select"),
        send("{q}", "a", "b", "c"),
        m("tx.commit"),
        too_long(take("{dead}", 2), 2),
        take(),
    ]),
    Scenario("length-with-waiting-consumer", [
        DEAD,
        limited(1, overflow="reject-publish", dead=True),
        CONFIRM,
        qos(2),
        consume(),
        send("{q}", "a", "b"),
        deliveries(2),
        send("{q}", "c", "d"),
        confirms(4),
        ack(1),
        deliveries(1),
    ]),
    Scenario("length-requeue-over-the-limit-reject-publish", [
        limited(1, overflow="reject-publish"),
        CONFIRM,
        send("{q}", "a"),
        confirms(1),
        take(no_ack=False),
        send("{q}", "b"),
        confirms(1),
        reject(1, requeue=True),
        holds("{q}", 2),
        send("{q}", "c"),
        confirms(1),
        take("{q}", 2),
    ]),
    Scenario("length-of-quorum-queue", [
        declare("{dead}"),
        declare("{q}", {"x-queue-type": "quorum", "x-max-length": 2, **TO_DEAD}, durable=True),
        CONFIRM,
        send("{q}", "a", "b", "c"),
        confirms(3),
        too_long(take("{dead}")),
        holds("{q}", 2),
        first_get(take("{q}", 2)),
    ]),
    Scenario("length-of-quorum-queue-reject-publish", [
        declare("{q}", {"x-queue-type": "quorum", "x-max-length": 1,
                        "x-overflow": "reject-publish"}, durable=True),
        CONFIRM,
        publish("", "{q}", "a"),
        confirms(1),
        publish("", "{q}", "b"),
        confirms(1).differs("the limit is exact", "- < basic.ack 2", "+ < basic.nack 2"),
        publish("", "{q}", "c"),
        confirms(1),
    ]),
]
