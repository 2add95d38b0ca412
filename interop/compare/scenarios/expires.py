"""x-expires: a queue that is not used goes. Used means consumers, a declaration or basic.get."""

from scenario import (Scenario, ack, bind, consume, declare, deliveries, exchange, get, gone, m,
                      pause, publish, send, take)


def expires(milliseconds, queue="{q}", **also):
    return declare(queue, arguments={"x-expires": milliseconds, **also})


PASSIVE = m("queue.declare", queue="{q}", passive=True)

SCENARIOS = [
    Scenario("expires-unused", [
        expires(100),
        gone(),
        PASSIVE,
    ]),
    Scenario("expires-with-messages-which-are-not-dead-lettered", [
        declare("{dead}"),
        expires(100, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "{dead}"}),
        send("{q}", "a", "b"),
        gone(),
        get("{dead}"),
    ]),
    Scenario("expires-not-with-a-consumer", [
        expires(150),
        consume(),
        pause(0.6),
        publish("", "{q}", "still here", mandatory=True),
        deliveries(1),
        m("basic.cancel", consumer_tag="c"),
        gone(),
    ]),
    Scenario("expires-declaration-is-use", [
        expires(1000),
        pause(0.6),
        expires(1000),
        pause(0.6),
        PASSIVE,
        pause(0.6),
        PASSIVE,
        gone(),
    ]),
    Scenario("expires-get-is-use", [
        expires(1000),
        pause(0.6),
        get(),
        pause(0.6),
        get(),
        pause(0.6),
        PASSIVE,
        gone(),
    ]),
    Scenario("expires-publishing-is-no-use", [
        expires(400),
        *[step for _ in range(4) for step in (pause(0.2), publish("", "{q}", "a"))],
        gone(),
    ]),
    Scenario("expires-with-unacknowledged-from-get", [
        expires(150),
        send("{q}", "a"),
        take(no_ack=False),
        gone(),
        ack(1),
        m("basic.qos", prefetch_count=1),
    ]),
    Scenario("expires-takes-bindings-along", [
        exchange("{x}", "fanout", auto_delete=True),
        expires(100),
        bind("{q}", "{x}"),
        gone(),
        m("exchange.declare", exchange="{x}", type="fanout", passive=True),
    ]),
    Scenario("expires-of-durable-and-exclusive", [
        declare("{q}", {"x-expires": 100}, durable=True),
        gone("{q}"),
        declare("{q2}", {"x-expires": 100}, exclusive=True),
        gone("{q2}"),
    ]),
]
