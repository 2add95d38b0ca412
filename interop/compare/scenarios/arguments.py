"""The arguments of queues: values and types that are refused, and redeclarations that differ."""

from scenario import Scenario, declare
from wire import Typed

NUMBERS = ("x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes", "x-max-priority")
TEXTS = ("x-dead-letter-exchange", "x-dead-letter-routing-key", "x-overflow", "x-queue-mode",
         "x-queue-type")


def each(name, values):
    """Declares a queue of its own with each value of the argument."""
    also = ({"x-dead-letter-exchange": ""} if name == "x-dead-letter-routing-key" else {})
    return [declare(f"{{{'q%d' % i}}}", {name: value, **also}, durable=True)
            for i, value in enumerate(values)]


def short(name):
    return name.removeprefix("x-")


def redeclared(name, first, second, **also):
    """Declared with one value, then with the same, with another and with none; and without."""
    return Scenario(f"inequivalent-{short(name)}", [
        declare("{q}", {name: first, **also}),
        declare("{q}", {name: first, **also}),
        declare("{q}", {name: second, **also}),
        declare("{q}", also),
        declare("{q2}", also),
        declare("{q2}", {name: first, **also}),
    ])


SCENARIOS = [
    *[Scenario(f"invalid-{short(name)}", [
        each(name, [-1, 0, 1, "1", "x", "", True, None, 1.5, Typed("f", 1.0), {}, [], 4294967295,
                    4294967296, 2**62, Typed("b", 5), Typed("B", 200), Typed("s", 300),
                    Typed("u", 300), Typed("i", 5), Typed("l", 5), Typed("T", 5),
                    Typed("D", (0, 5)), Typed("x", b"5")]),
    ]) for name in NUMBERS],
    *[Scenario(f"invalid-{short(name)}", [
        each(name, ["", "x", 1, True, None, 1.5, [], {}]),
    ]) for name in TEXTS],
    Scenario("invalid-single-active-consumer", [
        each("x-single-active-consumer", [True, False, "true", 1, None]),
    ]),
    Scenario("invalid-queue-version", [
        each("x-queue-version", [1, 2, 0, 3, -1, "1", True]),
    ]),
    Scenario("overflow-values", [
        each("x-overflow", ["drop-head", "reject-publish", "reject-publish-dlx", "drop-tail"]),
    ]),
    Scenario("queue-mode-values", [
        each("x-queue-mode", ["default", "lazy", "eager"]),
    ]),
    Scenario("queue-master-locator-values", [
        each("x-queue-master-locator", ["client-local", "min-masters", "random"]),
    ], note="Any other value ends RabbitMQ 3.10's connection with 541, or gets no reply at all."),
    Scenario("queue-leader-locator-values", [
        each("x-queue-leader-locator", ["client-local", "balanced", "nowhere"]),
        [declare(f"{{{kind}{i}}}", {"x-queue-type": kind, "x-queue-leader-locator": value},
                 durable=True)
         for kind in ("quorum", "stream")
         for i, value in enumerate(("client-local", "balanced", "nowhere", 1))],
    ]),
    Scenario("unknown-argument", [
        declare("{q}", {"x-unknown": 1}),
        declare("{q}", {"x-unknown": 2}),
        declare("{q}"),
    ]),
    Scenario("two-invalid-arguments", [
        declare("{q}", {"x-max-length": -1, "x-expires": 0, "x-message-ttl": "x"}),
    ]),
    redeclared("x-message-ttl", 1000, 2000),
    redeclared("x-expires", 60000, 70000),
    redeclared("x-max-length", 1, 2),
    redeclared("x-max-length-bytes", 1, 2),
    redeclared("x-max-priority", 1, 2),
    redeclared("x-overflow", "drop-head", "reject-publish"),
    redeclared("x-dead-letter-exchange", "a", "b"),
    redeclared("x-dead-letter-routing-key", "a", "b", **{"x-dead-letter-exchange": "x"}),
    redeclared("x-single-active-consumer", True, False),
    redeclared("x-queue-mode", "lazy", "default"),
    redeclared("x-queue-type", "classic", "quorum"),
    redeclared("x-queue-version", 2, 1),
    redeclared("x-queue-master-locator", "client-local", "random"),
    Scenario("inequivalent-but-equal-number", [
        declare("{q}", {"x-max-length": 1}),
        declare("{q}", {"x-max-length": Typed("l", 1)}),
        declare("{q}", {"x-max-length": Typed("b", 1)}),
        declare("{q}", {"x-max-length": Typed("s", 1)}),
        declare("{q}", {"x-max-length": Typed("l", 2)}),
    ]),
    Scenario("inequivalent-property-comes-first", [
        declare("{q}", {"x-max-length": 1}, durable=True),
        declare("{q}", {"x-max-length": 2}),
        declare("{q}", {"x-max-length": 2}, durable=True, auto_delete=True),
        declare("{q}", {"x-max-length": "x"}, durable=True),
    ]),
]
