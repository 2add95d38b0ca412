"""Class exchange (40): declare, delete, bind, unbind."""

from table import Case, Step, channel_error, connection_error, m, message, nothing, publish, reply
from wire import Typed

DECLARE = m("exchange.declare", exchange="{x}", type="direct")
TWO = [DECLARE, m("exchange.declare", exchange="{x2}", type="fanout")]
QUEUE = m("queue.declare", queue="{q}", exclusive=True)
INEQUIVALENT = ("PRECONDITION_FAILED - inequivalent arg '{}' for exchange '{{x}}' in vhost '/': "
                "received '{}' but current is '{}'")


def inequivalent(arg: str, received: str, current: str):
    return [channel_error(406, INEQUIVALENT.format(arg, received, current))]


def missing(name: str):
    return [channel_error(404, f"NOT_FOUND - no exchange '{name}' in vhost '/'")]


DEFAULT_REFUSED = [channel_error(403, "ACCESS_REFUSED - operation not permitted on the default "
                                      "exchange")]
ROUTED = m("basic.get", queue="{q}", no_ack=True)


def routes(case_id: str, kind: str, binding: Step, message_: Step, matches: bool):
    """Whether a message published with mandatory comes to the bound queue, or back."""
    key = message_.fields["routing_key"]
    there = [message("basic.get-ok", b"m", delivery_tag=1, exchange="{x}", routing_key=key)]
    back = [message("basic.return", b"m", reply_code=312, reply_text="NO_ROUTE", exchange="{x}",
                    routing_key=key), reply("basic.get-empty")]
    return Case(f"exchange.{case_id}",
                given=[m("exchange.declare", exchange="{x}", type=kind), QUEUE, binding],
                when=[message_, ROUTED], then=there if matches else back)


def topic(pattern: str, key: str, matches: bool):
    return routes(f"topic-'{pattern}'-{'takes' if matches else 'passes-over'}-'{key}'", "topic",
                  m("queue.bind", queue="{q}", exchange="{x}", routing_key=pattern),
                  publish("{x}", key, b"m", mandatory=True), matches)


def headers(case_id: str, criteria: dict, sent: dict | None, matches: bool):
    properties = {} if sent is None else {"headers": sent}
    return routes(f"headers-{case_id}", "headers",
                  m("queue.bind", queue="{q}", exchange="{x}", arguments=criteria),
                  publish("{x}", "", b"m", mandatory=True, **properties), matches)


NESTED = {"x-number": 5, "x-list": ["a", True, None], "x-table": {"k": "v"}}

CASES = [
    # declare
    *[Case(f"exchange.declare-{kind}", [m("exchange.declare", exchange="{x}", type=kind)],
           [reply("exchange.declare-ok")]) for kind in ("direct", "fanout", "topic", "headers")],
    Case("exchange.declare-all-flags",
         [m("exchange.declare", exchange="{x}", type="topic", durable=True, auto_delete=True,
            internal=True, arguments=NESTED)],
         [reply("exchange.declare-ok")]),
    Case("exchange.declare-nowait", [m("exchange.declare", exchange="{x}", type="direct",
                                       nowait=True)], [nothing()]),
    Case("exchange.declare-twice", given=[DECLARE], when=[DECLARE],
         then=[reply("exchange.declare-ok")]),
    Case("exchange.declare-ticket-ignored",
         [m("exchange.declare", exchange="{x}", type="direct", ticket=4711)],
         [reply("exchange.declare-ok")]),
    Case("exchange.declare-unknown-arguments-not-compared", given=[DECLARE],
         when=[m("exchange.declare", exchange="{x}", type="direct", arguments=NESTED)],
         then=[reply("exchange.declare-ok")]),
    Case("exchange.declare-name-with-cr-lf-stripped",
         given=[m("exchange.declare", exchange="\r\n{x}\r\n", type="direct")],
         when=[m("exchange.declare", exchange="{x}", passive=True)],
         then=[reply("exchange.declare-ok")]),
    Case("exchange.declare-reserved-name",
         [m("exchange.declare", exchange="amq.mine", type="direct")],
         [channel_error(403, "ACCESS_REFUSED - exchange name 'amq.mine' contains reserved prefix "
                             "'amq.*'")]),
    Case("exchange.declare-reserved-name-that-exists",
         [m("exchange.declare", exchange="amq.direct", type="direct", durable=True)],
         [reply("exchange.declare-ok")]),
    Case("exchange.declare-reserved-name-that-exists-otherwise",
         [m("exchange.declare", exchange="amq.direct", type="direct")],
         [channel_error(406, "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange "
                             "'amq.direct' in vhost '/': received 'false' but current is "
                             "'true'")]),
    Case("exchange.declare-unknown-type", [m("exchange.declare", exchange="{x}", type="no-such")],
         [channel_error(406, "PRECONDITION_FAILED - unknown exchange type 'no-such'")],
         rabbitmq_3_10=[connection_error(503, "COMMAND_INVALID - unknown exchange type "
                                              "'no-such'")]),
    Case("exchange.declare-empty-type", [m("exchange.declare", exchange="{x}", type="")],
         [channel_error(406, "PRECONDITION_FAILED - invalid exchange type ''")],
         rabbitmq_3_10=[connection_error(503, "COMMAND_INVALID - invalid exchange type ''")]),
    Case("exchange.declare-unknown-type-of-an-existing-exchange", given=[DECLARE],
         when=[m("exchange.declare", exchange="{x}", type="no-such")],
         then=[channel_error(406, "PRECONDITION_FAILED - unknown exchange type 'no-such'")],
         rabbitmq_3_10=[connection_error(503, "COMMAND_INVALID - unknown exchange type "
                                              "'no-such'")]),
    Case("exchange.declare-inequivalent-type", given=[DECLARE],
         when=[m("exchange.declare", exchange="{x}", type="fanout")],
         then=inequivalent("type", "fanout", "direct")),
    Case("exchange.declare-inequivalent-durable", given=[DECLARE],
         when=[m("exchange.declare", exchange="{x}", type="direct", durable=True)],
         then=inequivalent("durable", "true", "false")),
    Case("exchange.declare-inequivalent-auto-delete", given=[DECLARE],
         when=[m("exchange.declare", exchange="{x}", type="direct", auto_delete=True)],
         then=inequivalent("auto_delete", "true", "false")),
    Case("exchange.declare-inequivalent-internal", given=[DECLARE],
         when=[m("exchange.declare", exchange="{x}", type="direct", internal=True)],
         then=inequivalent("internal", "true", "false")),
    Case("exchange.declare-inequivalent-is-checked-in-the-order-of-arguments", given=[DECLARE],
         when=[m("exchange.declare", exchange="{x}", type="topic", durable=True, internal=True)],
         then=inequivalent("type", "topic", "direct")),
    Case("exchange.declare-inequivalent-alternate-exchange-given", given=[DECLARE],
         when=[m("exchange.declare", exchange="{x}", type="direct",
                 arguments={"alternate-exchange": "other"})],
         then=[channel_error(406, "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' "
                                  "for exchange '{x}' in vhost '/': received the value 'other' of "
                                  "type 'longstr' but current is none")]),
    Case("exchange.declare-inequivalent-alternate-exchange-absent",
         given=[m("exchange.declare", exchange="{x}", type="direct",
                  arguments={"alternate-exchange": "other"})],
         when=[DECLARE],
         then=[channel_error(406, "PRECONDITION_FAILED - inequivalent arg 'alternate-exchange' "
                                  "for exchange '{x}' in vhost '/': received none but current is "
                                  "the value 'other' of type 'longstr'")]),
    Case("exchange.declare-inequivalent-alternate-exchange-differs",
         given=[m("exchange.declare", exchange="{x}", type="direct",
                  arguments={"alternate-exchange": "other"})],
         when=[m("exchange.declare", exchange="{x}", type="direct",
                 arguments={"alternate-exchange": "another"})],
         then=inequivalent("alternate-exchange", "another", "other")),
    Case("exchange.declare-alternate-exchange-of-wrong-type",
         [m("exchange.declare", exchange="{x}", type="direct",
            arguments={"alternate-exchange": 5})],
         [channel_error(406, "PRECONDITION_FAILED - invalid type 'signedint' for arg "
                             "'alternate-exchange' in exchange '{x}' in vhost '/'")]),
    Case("exchange.declare-default-exchange", [m("exchange.declare", exchange="", type="direct",
                                                 durable=True)], DEFAULT_REFUSED),
    Case("exchange.declare-passive", given=[DECLARE],
         when=[m("exchange.declare", exchange="{x}", passive=True)],
         then=[reply("exchange.declare-ok")]),
    Case("exchange.declare-passive-ignores-type-and-flags", given=[DECLARE],
         when=[m("exchange.declare", exchange="{x}", type="no-such", passive=True, durable=True)],
         then=[reply("exchange.declare-ok")]),
    Case("exchange.declare-passive-nowait", given=[DECLARE],
         when=[m("exchange.declare", exchange="{x}", passive=True, nowait=True)],
         then=[nothing()]),
    Case("exchange.declare-passive-missing", [m("exchange.declare", exchange="{x}", passive=True)],
         missing("{x}")),
    Case("exchange.declare-passive-missing-nowait",
         [m("exchange.declare", exchange="{x}", passive=True, nowait=True)], missing("{x}")),
    Case("exchange.declare-passive-default", [m("exchange.declare", exchange="", passive=True)],
         DEFAULT_REFUSED),
    *[Case(f"exchange.declare-passive-{name}",
           [m("exchange.declare", exchange=name, passive=True)], [reply("exchange.declare-ok")])
      for name in ("amq.direct", "amq.fanout", "amq.topic", "amq.headers", "amq.match")],

    # delete
    Case("exchange.delete", given=[DECLARE], when=[m("exchange.delete", exchange="{x}")],
         then=[reply("exchange.delete-ok")]),
    Case("exchange.delete-nowait", given=[DECLARE],
         when=[m("exchange.delete", exchange="{x}", nowait=True)], then=[nothing()]),
    Case("exchange.delete-missing", [m("exchange.delete", exchange="{x}")],
         [reply("exchange.delete-ok")]),
    Case("exchange.delete-missing-if-unused", [m("exchange.delete", exchange="{x}",
                                                 if_unused=True)], [reply("exchange.delete-ok")]),
    Case("exchange.delete-default", [m("exchange.delete", exchange="")], DEFAULT_REFUSED),
    *[Case(f"exchange.delete-{name}", [m("exchange.delete", exchange=name)],
           [channel_error(403, f"ACCESS_REFUSED - deletion of system exchange '{name}' in vhost "
                               "'/' not allowed")]) for name in ("amq.direct", "amq.no-such")],
    Case("exchange.delete-if-unused-in-use",
         given=[DECLARE, QUEUE, m("queue.bind", queue="{q}", exchange="{x}", routing_key="k")],
         when=[m("exchange.delete", exchange="{x}", if_unused=True)],
         then=[channel_error(406, "PRECONDITION_FAILED - exchange '{x}' in vhost '/' in use")]),
    Case("exchange.delete-if-unused-unused", given=[DECLARE],
         when=[m("exchange.delete", exchange="{x}", if_unused=True)],
         then=[reply("exchange.delete-ok")]),
    Case("exchange.delete-if-unused-that-is-only-a-destination",
         given=[*TWO, m("exchange.bind", destination="{x}", source="{x2}")],
         when=[m("exchange.delete", exchange="{x}", if_unused=True)],
         then=[reply("exchange.delete-ok")]),
    Case("exchange.delete-removes-bindings",
         given=[DECLARE, QUEUE, m("queue.bind", queue="{q}", exchange="{x}", routing_key="k"),
                m("exchange.delete", exchange="{x}"), DECLARE],
         when=[publish("{x}", "k", b"lost"), m("basic.get", queue="{q}")],
         then=[reply("basic.get-empty")]),
    Case("exchange.auto-delete-after-the-last-binding",
         given=[m("exchange.declare", exchange="{x}", type="direct", auto_delete=True), QUEUE,
                m("queue.bind", queue="{q}", exchange="{x}", routing_key="k"),
                m("queue.unbind", queue="{q}", exchange="{x}", routing_key="k")],
         when=[m("exchange.declare", exchange="{x}", passive=True)], then=missing("{x}")),
    Case("exchange.auto-delete-after-its-queue-is-deleted",
         given=[m("exchange.declare", exchange="{x}", type="direct", auto_delete=True), QUEUE,
                m("queue.bind", queue="{q}", exchange="{x}", routing_key="k"),
                m("queue.delete", queue="{q}")],
         when=[m("exchange.declare", exchange="{x}", passive=True)], then=missing("{x}")),
    Case("exchange.auto-delete-not-before-a-first-binding",
         given=[m("exchange.declare", exchange="{x}", type="direct", auto_delete=True)],
         when=[m("exchange.declare", exchange="{x}", passive=True)],
         then=[reply("exchange.declare-ok")]),
    Case("exchange.auto-delete-chain",
         given=[m("exchange.declare", exchange="{x}", type="direct", auto_delete=True),
                m("exchange.declare", exchange="{x2}", type="direct", auto_delete=True), QUEUE,
                m("exchange.bind", destination="{x2}", source="{x}", routing_key="k"),
                m("queue.bind", queue="{q}", exchange="{x2}", routing_key="k"),
                m("queue.unbind", queue="{q}", exchange="{x2}", routing_key="k")],
         when=[m("exchange.declare", exchange="{x}", passive=True)], then=missing("{x}")),

    # bind
    Case("exchange.bind", given=TWO,
         when=[m("exchange.bind", destination="{x}", source="{x2}", routing_key="k")],
         then=[reply("exchange.bind-ok")]),
    Case("exchange.bind-twice",
         given=[*TWO, m("exchange.bind", destination="{x}", source="{x2}", routing_key="k")],
         when=[m("exchange.bind", destination="{x}", source="{x2}", routing_key="k")],
         then=[reply("exchange.bind-ok")]),
    Case("exchange.bind-nowait", given=TWO,
         when=[m("exchange.bind", destination="{x}", source="{x2}", nowait=True)],
         then=[nothing()]),
    Case("exchange.bind-to-itself", given=[DECLARE],
         when=[m("exchange.bind", destination="{x}", source="{x}", routing_key="k")],
         then=[reply("exchange.bind-ok")]),
    Case("exchange.bind-routes-through",
         given=[*TWO, QUEUE, m("exchange.bind", destination="{x}", source="{x2}"),
                m("queue.bind", queue="{q}", exchange="{x}", routing_key="k")],
         when=[publish("{x2}", "k", b"through"), m("basic.get", queue="{q}", no_ack=True)],
         then=[message("basic.get-ok", b"through", {}, delivery_tag=1, exchange="{x2}",
                       routing_key="k")]),
    Case("exchange.bind-cycle-delivers-once",
         given=[m("exchange.declare", exchange="{x}", type="fanout"),
                m("exchange.declare", exchange="{x2}", type="fanout"), QUEUE,
                m("exchange.bind", destination="{x}", source="{x2}"),
                m("exchange.bind", destination="{x2}", source="{x}"),
                m("queue.bind", queue="{q}", exchange="{x}"),
                m("queue.bind", queue="{q}", exchange="{x2}")],
         when=[publish("{x}", "k", b"once"), m("basic.get", queue="{q}", no_ack=True)],
         then=[message("basic.get-ok", b"once", {}, delivery_tag=1, exchange="{x}",
                       routing_key="k")]),
    Case("exchange.bind-missing-source", given=[DECLARE],
         when=[m("exchange.bind", destination="{x}", source="{x2}")], then=missing("{x2}")),
    Case("exchange.bind-missing-destination", given=[DECLARE],
         when=[m("exchange.bind", destination="{x2}", source="{x}")], then=missing("{x2}")),
    Case("exchange.bind-both-missing", [m("exchange.bind", destination="{x}", source="{x2}")],
         missing("{x2}")),
    Case("exchange.bind-missing-source-nowait", given=[DECLARE],
         when=[m("exchange.bind", destination="{x}", source="{x2}", nowait=True)],
         then=missing("{x2}")),
    Case("exchange.bind-from-default", given=[DECLARE],
         when=[m("exchange.bind", destination="{x}", source="")], then=DEFAULT_REFUSED),
    Case("exchange.bind-to-default", given=[DECLARE],
         when=[m("exchange.bind", destination="", source="{x}")], then=DEFAULT_REFUSED),

    # unbind
    Case("exchange.unbind",
         given=[*TWO, m("exchange.bind", destination="{x}", source="{x2}", routing_key="k")],
         when=[m("exchange.unbind", destination="{x}", source="{x2}", routing_key="k")],
         then=[reply("exchange.unbind-ok")]),
    Case("exchange.unbind-nowait",
         given=[*TWO, m("exchange.bind", destination="{x}", source="{x2}", routing_key="k")],
         when=[m("exchange.unbind", destination="{x}", source="{x2}", routing_key="k",
                 nowait=True)],
         then=[nothing()]),
    Case("exchange.unbind-missing-binding", given=TWO,
         when=[m("exchange.unbind", destination="{x}", source="{x2}", routing_key="k")],
         then=[reply("exchange.unbind-ok")]),
    Case("exchange.unbind-missing-source", given=[DECLARE],
         when=[m("exchange.unbind", destination="{x}", source="{x2}")],
         then=[reply("exchange.unbind-ok")]),
    Case("exchange.unbind-missing-destination", given=[DECLARE],
         when=[m("exchange.unbind", destination="{x2}", source="{x}")],
         then=[reply("exchange.unbind-ok")]),
    Case("exchange.unbind-both-missing", [m("exchange.unbind", destination="{x}", source="{x2}")],
         [reply("exchange.unbind-ok")]),
    Case("exchange.unbind-from-default", given=[DECLARE],
         when=[m("exchange.unbind", destination="{x}", source="")], then=DEFAULT_REFUSED),
    Case("exchange.unbind-to-default", given=[DECLARE],
         when=[m("exchange.unbind", destination="", source="{x}")], then=DEFAULT_REFUSED),

    # publishing to exchanges of a kind
    Case("exchange.internal-publish",
         given=[m("exchange.declare", exchange="{x}", type="direct", internal=True)],
         when=[publish("{x}", "k")],
         then=[channel_error(403, "ACCESS_REFUSED - cannot publish to internal exchange '{x}' in "
                                  "vhost '/'")]),
    Case("exchange.internal-is-reached-through-a-binding",
         given=[m("exchange.declare", exchange="{x}", type="fanout", internal=True),
                m("exchange.declare", exchange="{x2}", type="fanout"), QUEUE,
                m("exchange.bind", destination="{x}", source="{x2}"),
                m("queue.bind", queue="{q}", exchange="{x}")],
         when=[publish("{x2}", "k", b"in"), m("basic.get", queue="{q}", no_ack=True)],
         then=[message("basic.get-ok", b"in", {}, delivery_tag=1, exchange="{x2}",
                       routing_key="k")]),
    Case("exchange.alternate-takes-what-is-unroutable",
         given=[m("exchange.declare", exchange="{x2}", type="fanout"), QUEUE,
                m("queue.bind", queue="{q}", exchange="{x2}"),
                m("exchange.declare", exchange="{x}", type="direct",
                  arguments={"alternate-exchange": "{x2}"})],
         when=[publish("{x}", "nowhere", b"alternate", mandatory=True),
               m("basic.get", queue="{q}", no_ack=True)],
         then=[message("basic.get-ok", b"alternate", {}, delivery_tag=1, exchange="{x}",
                       routing_key="nowhere")]),
    Case("exchange.alternate-that-is-missing",
         given=[m("exchange.declare", exchange="{x}", type="direct",
                  arguments={"alternate-exchange": "{x2}"})],
         when=[publish("{x}", "nowhere", b"lost", mandatory=True)],
         then=[message("basic.return", b"lost", {}, reply_code=312, reply_text="NO_ROUTE",
                       exchange="{x}", routing_key="nowhere")]),

    # routing
    routes("direct-takes-its-key", "direct",
           m("queue.bind", queue="{q}", exchange="{x}", routing_key="k"),
           publish("{x}", "k", b"m", mandatory=True), True),
    routes("direct-passes-over-another-key", "direct",
           m("queue.bind", queue="{q}", exchange="{x}", routing_key="k"),
           publish("{x}", "K", b"m", mandatory=True), False),
    routes("fanout-takes-any-key", "fanout",
           m("queue.bind", queue="{q}", exchange="{x}", routing_key="k"),
           publish("{x}", "other", b"m", mandatory=True), True),
    *[topic(*row) for row in (
        ("a.b", "a.b", True), ("a.b", "a.c", False), ("a.b", "a.b.c", False), ("a.*", "a.b", True),
        ("a.*", "a", False), ("a.*", "a.", True), ("*", "", False), ("", "", True),
        ("#", "", True), ("#", "a.b.c", True), ("a.#", "a", True), ("a.#", "a.b.c", True),
        ("a.#", "ab", False), ("#.z", "z", True), ("#.z", "a.b.z", True), ("#.z", "a.b", False),
        ("a.#.z", "a.z", True), ("a.#.z", "a.b.c.z", True), ("*.#", "a", True), ("*.#", "", False),
        ("#.#", "", True), ("#.*.#", "a", True), ("a*", "ab", False), ("a#", "ab", False),
        ("a..b", "a..b", True), ("a.*.b", "a..b", True))],
    headers("all-by-default", {"a": "1", "b": "2"}, {"a": "1", "b": "2", "c": "3"}, True),
    headers("all-misses-one", {"a": "1", "b": "2"}, {"a": "1"}, False),
    headers("all-of-nothing-takes-everything", {}, {"a": "1"}, True),
    headers("all-of-nothing-takes-no-headers", {}, None, True),
    headers("all-without-headers", {"a": "1"}, None, False),
    headers("any", {"x-match": "any", "a": "1", "b": "2"}, {"b": "2"}, True),
    headers("any-misses-all", {"x-match": "any", "a": "1"}, {"a": "2"}, False),
    headers("any-of-nothing", {"x-match": "any"}, {"a": "1"}, False),
    headers("void-needs-presence-only", {"a": None}, {"a": 5}, True),
    headers("void-needs-presence", {"a": None}, {"b": 5}, False),
    headers("all-passes-over-x-names", {"x-match": "all", "x-a": "1"}, {}, True),
    headers("all-with-x-compares-x-names", {"x-match": "all-with-x", "x-a": "1"}, {}, False),
    headers("any-passes-over-x-names", {"x-match": "any", "x-a": "1"}, {"x-a": "1"}, False),
    headers("any-with-x-compares-x-names", {"x-match": "any-with-x", "x-a": "1"}, {"x-a": "1"},
            True),
    headers("values-of-other-types-differ", {"a": "1"}, {"a": 1}, False),
    headers("integer-widths-do-not-matter", {"a": 1}, {"a": Typed("l", 1)}, True),
]
