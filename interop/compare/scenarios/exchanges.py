"""Exchange types that come with plugins, and alternate exchanges."""

from scenario import (Scenario, bind, confirms, declare, exchange, get, holds, m, publish, returns,
                      silence, spread, take)
from wire import Typed

CONFIRM = m("confirm.select")


def many(source, count, key="key-%d", **properties):
    """So many messages, all confirmed."""
    return [CONFIRM, *[publish(source, key % i if "%" in key else key, str(i), **properties)
                       for i in range(count)], confirms(count)]


def queues(count, key="1", source="{x}"):
    return [step for i in range(1, count + 1)
            for step in (declare("{q%d}" % i), bind("{q%d}" % i, source, key))]


def e2e(destination, source, key=""):
    return m("exchange.bind", destination=destination, source=source, routing_key=key)


def each_holds(*counts):
    return [holds("{q%d}" % (i + 1), count) for i, count in enumerate(counts)]


def unknown(type, word="unknown"):
    text = f"{word} exchange type '{type}'' class_id=40 method_id=10"
    return exchange(type=type).since(
        "3.13", "the channel is closed, not the connection (rabbit_exchange:check_type/1)",
        f"- < connection.close reply_code=503 reply_text='COMMAND_INVALID - {text}",
        f"+ < channel.close reply_code=406 reply_text='PRECONDITION_FAILED - {text}")


SCENARIOS = [
    Scenario("modulus-hash", [
        exchange(type="x-modulus-hash"),
        queues(3, ""),
        many("{x}", 20), many("{x}", 20),
        spread("{q1}", "{q2}", "{q3}", total=40, even=True),
    ]),
    Scenario("modulus-hash-ignores-binding-keys", [
        exchange(type="x-modulus-hash"),
        declare("{q1}"), bind("{q1}", "{x}", "some"), bind("{q1}", "{x}", "other"),
        declare("{q2}"), bind("{q2}", "{x}", "x"),
        many("{x}", 20), many("{x}", 20),
        spread("{q1}", "{q2}", total=40, even=True),
    ]),
    Scenario("modulus-hash-without-bindings", [
        exchange(type="x-modulus-hash"),
        publish("{x}", "k", "a", mandatory=True),
        returns(1),
    ]),
    Scenario("modulus-hash-to-exchanges", [
        exchange(type="x-modulus-hash"),
        exchange("{y1}", "fanout"), exchange("{y2}", "fanout"),
        e2e("{y1}", "{x}"), e2e("{y2}", "{x}"),
        declare("{q1}"), bind("{q1}", "{y1}"),
        declare("{q2}"), bind("{q2}", "{y2}"),
        many("{x}", 20), many("{x}", 20),
        spread("{q1}", "{q2}", total=40, even=True),
    ]),
    Scenario("modulus-hash-cc", [
        exchange(type="x-modulus-hash"),
        queues(3, ""),
        CONFIRM,
        *[step for i in range(10)
          for step in (publish("{x}", f"key-{i}", "a", headers={"CC": ["copy", f"copy-{i}"]}),
                       confirms(1))],
        spread("{q1}", "{q2}", "{q3}", total=10),
    ]),
    Scenario("consistent-hash", [
        exchange(type="x-consistent-hash"),
        declare("{q1}"), bind("{q1}", "{x}", "1"),
        declare("{q2}"), bind("{q2}", "{x}", "3"),
        many("{x}", 40), many("{x}", 40),
        spread("{q1}", "{q2}", total=80, even=True),
    ]),
    Scenario("consistent-hash-weights", [
        exchange(type="x-consistent-hash"),
        declare("{q1}"),
        bind("{q1}", "{x}", "x"),
        bind("{q1}", "{x}", "0"),
        bind("{q1}", "{x}", "-1"),
        bind("{q1}", "{x}", "1.5"),
        bind("{q1}", "{x}", ""),
        bind("{q1}", "{x}", " 1"),
        bind("{q1}", "{x}", "10"),
        bind("{q1}", "{x}", "10"),
        bind("{q1}", "{x}", "20"),
    ]),
    Scenario("consistent-hash-arguments", [
        exchange("{x1}", "x-consistent-hash", {"hash-header": "h"}),
        exchange("{x2}", "x-consistent-hash", {"hash-property": "message_id"}),
        exchange("{x3}", "x-consistent-hash", {"hash-property": "correlation_id"}),
        exchange("{x4}", "x-consistent-hash", {"hash-property": "timestamp"}),
        exchange("{x5}", "x-consistent-hash", {"hash-property": "app_id"}),
        exchange("{x6}", "x-consistent-hash", {"hash-header": "h", "hash-property": "message_id"}),
        exchange("{x9}", "x-consistent-hash", {"hash-header": ""}),
    ]),
    Scenario("consistent-hash-by-header-keeps-together", [
        exchange(type="x-consistent-hash", arguments={"hash-header": "h"}),
        queues(2),
        CONFIRM,
        *[publish("{x}", f"key-{i}", "a", headers={"h": "same"}) for i in range(10)],
        confirms(10),
        spread("{q1}", "{q2}", total=10),
        m("queue.purge", queue="{q1}", nowait=True),
        m("queue.purge", queue="{q2}", nowait=True),
        *[publish("{x}", f"key-{i}", "a") for i in range(10)],
        confirms(10),
        spread("{q1}", "{q2}", total=10),
    ]),
    Scenario("consistent-hash-by-message-id-keeps-together", [
        exchange(type="x-consistent-hash", arguments={"hash-property": "message_id"}),
        queues(2),
        CONFIRM,
        *[publish("{x}", f"key-{i}", "a", message_id="same") for i in range(10)],
        confirms(10),
        spread("{q1}", "{q2}", total=10),
    ]),
    Scenario("random-exchange", [
        exchange(type="x-random"),
        queues(1, "anything"),
        many("{x}", 5),
        holds("{q1}", 5),
        exchange("{y}", "x-random"),
        publish("{y}", "k", "a", mandatory=True).on(2),
        returns(1).on(2),
    ]),
    Scenario("random-exchange-two-bindings-of-one-queue", [
        exchange(type="x-random"),
        declare("{q1}"), bind("{q1}", "{x}", "a"), bind("{q1}", "{x}", "b"),
        many("{x}", 5),
        holds("{q1}", 5),
    ]),
    Scenario("local-random-exchange", [
        exchange(type="x-local-random").since(
            "4.0", "there is such a type",
            "- < connection.close reply_code=503 reply_text='COMMAND_INVALID - unknown exchange "
            "type 'x-local-random'' class_id=40 method_id=10",
            "+ < exchange.declare-ok"),
    ]),
    Scenario("unknown-exchange-type", [
        unknown("x-nonsense"),
        unknown("", "invalid"),
    ]),
    Scenario("recent-history-default-is-twenty", [
        exchange(type="x-recent-history"),
        many("{x}", 25),
        declare("{q1}"), bind("{q1}", "{x}", ""),
        holds("{q1}", 20),
        take("{q1}", 20),
    ]),
    Scenario("recent-history-length", [
        exchange(type="x-recent-history", arguments={"x-recent-history-length": 2}),
        many("{x}", 3, headers={"h": 1}, delivery_mode=2),
        declare("{q1}"), bind("{q1}", "{x}", "bound"),
        take("{q1}", 2),
        publish("{x}", "k", "new").on(2),
        take("{q1}"),
        declare("{q2}"), bind("{q2}", "{x}", "bound"),
        take("{q2}", 2),
    ]),
    Scenario("recent-history-bound-again", [
        exchange(type="x-recent-history", arguments={"x-recent-history-length": 2}),
        many("{x}", 3),
        declare("{q1}"), bind("{q1}", "{x}", "a"),
        holds("{q1}", 2),
        bind("{q1}", "{x}", "a"),
        bind("{q1}", "{x}", "b"),
        holds("{q1}", 4),
        publish("{x}", "k", "new").on(2),
        holds("{q1}", 5),
    ]),
    Scenario("recent-history-to-an-exchange", [
        exchange(type="x-recent-history", arguments={"x-recent-history-length": 2}),
        many("{x}", 3),
        exchange("{y}", "fanout"),
        declare("{q1}"), bind("{q1}", "{y}"),
        e2e("{y}", "{x}", "bound"),
        take("{q1}", 2).differs(
            "a history comes in order to exchanges too",
            "- < basic.get-ok delivery_tag=1 redelivered=false exchange='{x}' routing_key='key-2' "
            "message_count=1",
            "+ < basic.get-ok delivery_tag=1 redelivered=false exchange='{x}' routing_key='key-1' "
            "message_count=1",
            '+     body "1"',
            "+ < basic.get-ok delivery_tag=2 redelivered=false exchange='{x}' routing_key='key-2' "
            "message_count=0",
            "- < basic.get-ok delivery_tag=2 redelivered=false exchange='{x}' routing_key='key-1' "
            "message_count=0",
            '-     body "1"'),
    ]),
    Scenario("recent-history-no-store", [
        exchange(type="x-recent-history", arguments={"x-recent-history-length": 5}),
        CONFIRM,
        publish("{x}", "k", "kept"),
        publish("{x}", "k", "not kept", headers={"x-recent-history-no-store": True}),
        publish("{x}", "k", "kept too", headers={"x-recent-history-no-store": False}),
        confirms(3),
        declare("{q1}"), bind("{q1}", "{x}", ""),
        take("{q1}", 2),
        get("{q1}"),
    ]),
    Scenario("recent-history-arguments", [
        exchange("{x1}", "x-recent-history", {"x-recent-history-length": 0}),
        exchange("{x2}", "x-recent-history", {"x-recent-history-length": -1}),
        exchange("{x3}", "x-recent-history", {"x-recent-history-length": "5"}),
        exchange("{x4}", "x-recent-history", {"x-recent-history-length": Typed("l", 5)}),
        exchange("{x4}", "x-recent-history", {"x-recent-history-length": 5}),
        exchange("{x4}", "x-recent-history", {"x-recent-history-length": 6}),
        exchange("{x4}", "x-recent-history"),
    ]),
    Scenario("recent-history-deleted", [
        exchange(type="x-recent-history"),
        many("{x}", 3),
        m("exchange.delete", exchange="{x}"),
        exchange(type="x-recent-history"),
        declare("{q1}"), bind("{q1}", "{x}", ""),
        holds("{q1}", 0),
    ]),
    Scenario("alternate-exchange", [
        exchange("{ae}", "fanout"),
        declare("{q1}"), bind("{q1}", "{ae}"),
        exchange("{x}", "direct", {"alternate-exchange": "{ae}"}),
        declare("{q2}"), bind("{q2}", "{x}", "k"),
        publish("{x}", "k", "routed"),
        publish("{x}", "other", "unrouted", mandatory=True),
        take("{q2}"),
        take("{q1}"),
        silence(0.1),
    ]),
    Scenario("alternate-exchange-that-does-not-exist", [
        exchange("{x}", "direct", {"alternate-exchange": "{nowhere}"}),
        publish("{x}", "k", "a", mandatory=True),
        returns(1),
    ]),
    Scenario("alternate-exchange-chain-and-cycle", [
        exchange("{x1}", "direct", {"alternate-exchange": "{x2}"}),
        exchange("{x2}", "direct", {"alternate-exchange": "{x1}"}),
        publish("{x1}", "k", "a", mandatory=True),
        returns(1),
        declare("{q1}"), bind("{q1}", "{x2}", "k"),
        publish("{x1}", "k", "b", mandatory=True),
        take("{q1}"),
        silence(0.1),
    ]),
    Scenario("alternate-exchange-argument", [
        exchange("{x1}", "direct", {"alternate-exchange": 1}),
        exchange("{x2}", "direct", {"alternate-exchange": ""}),
        exchange("{x3}", "direct", {"alternate-exchange": "a"}),
        exchange("{x3}", "direct", {"alternate-exchange": "b"}),
        exchange("{x3}", "direct"),
        exchange("{x4}", "direct"),
        exchange("{x4}", "direct", {"alternate-exchange": "a"}),
    ]),
    Scenario("alternate-exchange-is-the-default-one", [
        exchange("{x}", "direct", {"alternate-exchange": ""}),
        declare("{q}"),
        publish("{x}", "{q}", "a", mandatory=True),
        returns(1),
    ]),
]
