"""Class queue (50): declare, bind, purge, delete, unbind."""

from table import (Any, Case, channel_error, hang_up, m, message, nothing, pause, publish,
                   reply)
from wire import Typed

DECLARE = m("queue.declare", queue="{q}")
EXCLUSIVE = m("queue.declare", queue="{q}", exclusive=True)
EXCHANGE = m("exchange.declare", exchange="{x}", type="direct")
DECLARED = reply("queue.declare-ok", queue="{q}")
NO_QUEUE = [channel_error(404, "NOT_FOUND - no queue '{q}' in vhost '/'")]
NO_EXCHANGE = [channel_error(404, "NOT_FOUND - no exchange '{x}' in vhost '/'")]
NONE_DECLARED = [channel_error(404, "NOT_FOUND - no previously declared queue")]
DEFAULT_REFUSED = [channel_error(403, "ACCESS_REFUSED - operation not permitted on the default "
                                      "exchange")]
LOCKED = [channel_error(405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue "
                             "'{q}' in vhost '/'. It could be originally declared on another "
                             "connection or the exclusive property value does not match that of "
                             "the original declaration.")]


def declare(**arguments):
    return m("queue.declare", queue="{q}", exclusive=True,
             arguments={f"x-{k.replace('_', '-')}": v for k, v in arguments.items()})


def inequivalent(arg: str, received: str, current: str):
    return [channel_error(406, f"PRECONDITION_FAILED - inequivalent arg '{arg}' for queue '{{q}}' "
                               f"in vhost '/': received {received} but current is {current}")]


def argument_cases(name: str, first, second, kind: str = "signedint", **also):
    """Redeclaration with the argument missing, changed and added."""
    with_first, arg = declare(**{name: first}, **also), f"x-{name.replace('_', '-')}"
    shown, changed = (str(v).lower() if kind == "bool" else v for v in (first, second))
    the_value = f"the value '{shown}' of type '{kind}'"
    return [
        Case(f"queue.declare-{arg}", [with_first], [DECLARED]),
        Case(f"queue.declare-{arg}-again", given=[with_first], when=[with_first],
             then=[DECLARED]),
        Case(f"queue.declare-inequivalent-{arg}-absent", given=[with_first],
             when=[declare(**also)], then=inequivalent(arg, "none", the_value)),
        Case(f"queue.declare-inequivalent-{arg}-given", given=[declare(**also)],
             when=[with_first], then=inequivalent(arg, the_value, "none")),
        Case(f"queue.declare-inequivalent-{arg}-differs", given=[with_first],
             when=[declare(**{name: second}, **also)],
             then=inequivalent(arg, f"'{changed}'", f"'{shown}'")),
    ]


def invalid(case_id: str, arguments: dict, arg: str, reason: str, **variants):
    return Case(f"queue.declare-invalid-{case_id}",
                [m("queue.declare", queue="{q}", durable=True, arguments=arguments)],
                [channel_error(406, f"PRECONDITION_FAILED - invalid arg '{arg}' for queue '{{q}}' "
                                    f"in vhost '/'{reason}")], **variants)


def ignored(case_id: str, arguments: dict):
    return Case(f"queue.declare-{case_id}",
                [m("queue.declare", queue="{q}", exclusive=True, arguments=arguments)],
                [DECLARED])


INTEGER_ARGUMENTS = ("x-message-ttl", "x-expires", "x-max-length", "x-max-length-bytes",
                     "x-max-priority")
STRING_ARGUMENTS = ("x-overflow", "x-queue-mode", "x-queue-type")

DECLARE_CASES = [
    *[Case(f"queue.declare-{name}", [m("queue.declare", queue="{q}", **flags)], [DECLARED])
      for name, flags in {
          "plain": {}, "durable": {"durable": True}, "exclusive": {"exclusive": True},
          "auto-delete": {"auto_delete": True},
          "all-flags": {"durable": True, "exclusive": True, "auto_delete": True},
          "ticket-ignored": {"ticket": 4711}}.items()],
    Case("queue.declare-nowait", [m("queue.declare", queue="{q}", nowait=True)], [nothing()]),
    Case("queue.declare-server-named", [m("queue.declare", exclusive=True)],
         [reply("queue.declare-ok", queue=Any("name", "amq.gen-"))]),
    Case("queue.declare-counts",
         given=[EXCLUSIVE, publish("", "{q}", b"1"), publish("", "{q}", b"2"),
                m("basic.qos", prefetch_count=1), m("basic.consume", queue="{q}"),
                reply("basic.consume-ok", consumer_tag=Any("tag", "amq.ctag-")),
                message("basic.deliver", b"1", consumer_tag="{tag}",
                        delivery_tag=1, routing_key="{q}")],
         when=[EXCLUSIVE],
         then=[reply("queue.declare-ok", queue="{q}", message_count=1, consumer_count=1)]),
    Case("queue.declare-name-with-cr-lf-stripped",
         [m("queue.declare", queue="\r\n{q}\r\n", exclusive=True)], [DECLARED],
         note="every CR and LF goes, at the ends or not"),
    Case("queue.declare-reserved-name", [m("queue.declare", queue="amq.mine")],
         [channel_error(403, "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix "
                             "'amq.*'")]),
    Case("queue.declare-reserved-gen-name", [m("queue.declare", queue="amq.gen-mine")],
         [channel_error(403, "ACCESS_REFUSED - queue name 'amq.gen-mine' contains reserved "
                             "prefix 'amq.*'")]),
    Case("queue.declare-server-named-again-by-name",
         given=[m("queue.declare", exclusive=True),
                reply("queue.declare-ok", queue=Any("name", "amq.gen-"))],
         when=[m("queue.declare", queue="{name}", exclusive=True)],
         then=[channel_error(403, "ACCESS_REFUSED - queue name '{name}' contains reserved prefix "
                                  "'amq.*'")]),
    Case("queue.declare-server-named-passive-by-name",
         given=[m("queue.declare", exclusive=True),
                reply("queue.declare-ok", queue=Any("name", "amq.gen-"))],
         when=[m("queue.declare", queue="{name}", passive=True)],
         then=[reply("queue.declare-ok", queue="{name}")]),
    Case("queue.declare-passive-empty-name-is-not-the-last-declared", given=[EXCLUSIVE],
         when=[m("queue.declare", queue="", passive=True)],
         then=[channel_error(404, "NOT_FOUND - no queue '' in vhost '/'")]),

    *[Case(f"queue.declare-reply-to-{name}",
           [m("queue.declare", queue="amq.rabbitmq.reply-to", passive=passive)],
           [reply("queue.declare-ok", queue="amq.rabbitmq.reply-to", consumer_count=1)])
      for name, passive in (("passive", True), ("active", False))],
    Case("queue.declare-name-of-255-octets",
         [m("queue.declare", queue="n" * 255, exclusive=True)],
         [reply("queue.declare-ok", queue="n" * 255)]),

    # passive
    Case("queue.declare-passive", given=[DECLARE],
         when=[m("queue.declare", queue="{q}", passive=True)], then=[DECLARED]),
    Case("queue.declare-passive-ignores-flags", given=[DECLARE],
         when=[m("queue.declare", queue="{q}", passive=True, durable=True, exclusive=True,
                 auto_delete=True, arguments={"x-max-length": -1})], then=[DECLARED]),
    Case("queue.declare-passive-nowait", given=[DECLARE],
         when=[m("queue.declare", queue="{q}", passive=True, nowait=True)], then=[nothing()]),
    Case("queue.declare-passive-missing", [m("queue.declare", queue="{q}", passive=True)],
         NO_QUEUE),
    Case("queue.declare-passive-missing-nowait",
         [m("queue.declare", queue="{q}", passive=True, nowait=True)], NO_QUEUE),
    Case("queue.declare-passive-missing-not-ascii",
         [m("queue.declare", queue="очередь-é", passive=True)],
         [channel_error(404, "NOT_FOUND - no queue 'очередь-é' in vhost '/'")]),
    Case("queue.declare-passive-missing-text-of-over-255-octets",
         [m("queue.declare", queue="p" * 255, passive=True)],
         [channel_error(404, "NOT_FOUND - no queue '" + "p" * 230 + "...")]),
    Case("queue.declare-passive-missing-text-cut-between-characters",
         [m("queue.declare", queue="n" + "é" * 127, passive=True)],
         [channel_error(404, "NOT_FOUND - no queue 'n" + "é" * 114 + "...")],
         rabbitmq=[channel_error(404, "NOT_FOUND - no queue 'n" + "é" * 114 + "\udcc3...")],
         note="RabbitMQ cuts at 252 octets, amid a character if need be"),
    Case("queue.declare-passive-empty-name", [m("queue.declare", queue="", passive=True)],
         [channel_error(404, "NOT_FOUND - no queue '' in vhost '/'")]),

    # equivalence
    Case("queue.declare-inequivalent-durable", given=[DECLARE],
         when=[m("queue.declare", queue="{q}", durable=True)],
         then=inequivalent("durable", "'true'", "'false'")),
    Case("queue.declare-inequivalent-not-durable",
         given=[m("queue.declare", queue="{q}", durable=True)], when=[DECLARE],
         then=inequivalent("durable", "'false'", "'true'")),
    Case("queue.declare-inequivalent-auto-delete", given=[DECLARE],
         when=[m("queue.declare", queue="{q}", auto_delete=True)],
         then=inequivalent("auto_delete", "'true'", "'false'")),
    Case("queue.declare-inequivalent-exclusive", given=[DECLARE], when=[EXCLUSIVE], then=LOCKED),
    Case("queue.declare-inequivalent-not-exclusive", given=[EXCLUSIVE], when=[DECLARE],
         then=LOCKED),
    Case("queue.declare-exclusive-durable-again-not-durable",
         given=[m("queue.declare", queue="{q}", exclusive=True, durable=True)],
         when=[EXCLUSIVE], then=[DECLARED]),
    Case("queue.declare-inequivalent-is-checked-durable-before-auto-delete", given=[DECLARE],
         when=[m("queue.declare", queue="{q}", durable=True, auto_delete=True,
                 arguments={"x-max-length": 1})],
         then=inequivalent("durable", "'true'", "'false'")),
    Case("queue.declare-inequivalent-nowait", given=[DECLARE],
         when=[m("queue.declare", queue="{q}", durable=True, nowait=True)],
         then=inequivalent("durable", "'true'", "'false'")),
    Case("queue.declare-integer-type-of-an-argument-not-compared",
         given=[declare(max_length=5)],
         when=[declare(max_length=Typed("l", 5))], then=[DECLARED]),
    Case("queue.declare-unknown-arguments-not-compared", given=[EXCLUSIVE],
         when=[declare(whatever=1)], then=[DECLARED]),
    Case("queue.declare-inequivalent-before-invalid", given=[EXCLUSIVE],
         when=[declare(max_length=-1)],
         then=inequivalent("x-max-length", "the value '-1' of type 'signedint'", "none")),
    *argument_cases("message_ttl", 60000, 70000),
    *argument_cases("expires", 60000, 70000),
    *argument_cases("max_length", 10, 20),
    *argument_cases("max_length_bytes", 1000, 2000),
    *argument_cases("max_priority", 5, 6),
    *argument_cases("dead_letter_exchange", "dlx", "dlx2", "longstr"),
    *argument_cases("dead_letter_routing_key", "k", "k2", "longstr", dead_letter_exchange="dlx"),
    *argument_cases("overflow", "reject-publish", "drop-head", "longstr"),
    *argument_cases("queue_mode", "lazy", "default", "longstr"),
    *argument_cases("single_active_consumer", True, False, "bool"),
    Case("queue.declare-x-queue-type-classic-when-absent", given=[EXCLUSIVE],
         when=[declare(queue_type="classic")], then=[DECLARED]),
    Case("queue.declare-x-queue-type-absent-when-classic", given=[declare(queue_type="classic")],
         when=[EXCLUSIVE], then=[DECLARED]),
    Case("queue.declare-inequivalent-x-queue-type",
         given=[m("queue.declare", queue="{q}", durable=True)],
         when=[m("queue.declare", queue="{q}", durable=True,
                 arguments={"x-queue-type": "quorum"})],
         then=inequivalent("x-queue-type", "the value 'quorum' of type 'longstr'", "none")),

    # invalid arguments
    *[invalid(f"{arg}-type", {arg: "5"}, arg, ': "expected integer, got longstr"')
      for arg in INTEGER_ARGUMENTS],
    *[invalid(f"{arg}-negative", {arg: -1}, arg, ": {value_negative,-1}")
      for arg in INTEGER_ARGUMENTS],
    *[invalid(f"{arg}-type", {arg: 5}, arg, ": {unacceptable_type,signedint}")
      for arg in STRING_ARGUMENTS],
    invalid("x-expires-zero", {"x-expires": 0}, "x-expires", ": {value_zero,0}"),
    *[invalid(f"{arg}-too-large", {arg: 315_360_000_001}, arg,
              ": {value_too_large,315360000001}") for arg in ("x-message-ttl", "x-expires")],
    invalid("x-max-priority-too-large", {"x-max-priority": 256}, "x-max-priority",
            ": {max_value_exceeded,256}"),
    invalid("x-max-length-bool", {"x-max-length": True}, "x-max-length",
            ': "expected integer, got bool"'),
    invalid("x-max-length-double", {"x-max-length": 1.5}, "x-max-length",
            ': "expected integer, got double"'),
    Case("queue.declare-invalid-x-dead-letter-exchange-type",
         [m("queue.declare", queue="{q}", arguments={"x-dead-letter-exchange": 5})],
         [channel_error(406, "PRECONDITION_FAILED - invalid type 'signedint' for arg "
                             "'x-dead-letter-exchange' in queue '{q}' in vhost '/'")]),
    invalid("x-dead-letter-routing-key-alone", {"x-dead-letter-routing-key": "k"},
            "x-dead-letter-routing-key", ": routing_key_but_no_dlx_defined"),
    invalid("x-dead-letter-routing-key-type",
            {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": 5},
            "x-dead-letter-routing-key", ": {unacceptable_type,signedint}"),
    invalid("x-overflow-value", {"x-overflow": "no-such"}, "x-overflow", ": invalid_overflow"),
    invalid("x-queue-mode-value", {"x-queue-mode": "no-such"}, "x-queue-mode",
            ': "unsupported queue mode \'no-such\'"'),
    invalid("x-queue-type-value", {"x-queue-type": "no-such"}, "x-queue-type",
            ': "unsupported queue type \'no-such\'"'),
    invalid("x-queue-version-value", {"x-queue-version": 3}, "x-queue-version",
            ': "unsupported queue version \'3\'"'),
    invalid("x-single-active-consumer-type", {"x-single-active-consumer": "yes"},
            "x-single-active-consumer", ": {unacceptable_type,longstr}"),
    invalid("x-max-age-on-classic", {"x-max-age": "1D"}, "x-max-age",
            " of queue type rabbit_classic_queue"),
    invalid("x-delivery-limit-on-classic", {"x-delivery-limit": 5}, "x-delivery-limit",
            " of queue type rabbit_classic_queue"),
    invalid("x-max-priority-on-quorum", {"x-queue-type": "quorum", "x-max-priority": 5},
            "x-max-priority", " of queue type rabbit_quorum_queue"),
    *[invalid(f"{arg}-on-classic", {arg: 1}, arg, " of queue type rabbit_classic_queue")
      for arg in ("x-dead-letter-strategy", "x-initial-cluster-size",
                  "x-quorum-initial-group-size", "x-max-in-memory-length",
                  "x-max-in-memory-bytes", "x-stream-max-segment-size-bytes")],
    *[Case(f"queue.declare-quorum-{name}",
           [m("queue.declare", queue="{q}", arguments={"x-queue-type": "quorum"}, **flags)],
           [channel_error(406, f"PRECONDITION_FAILED - invalid property '{shown}' for queue "
                               "'{q}' in vhost '/'")])
      for name, shown, flags in (
          ("not-durable", "non-durable", {}),
          ("exclusive", "exclusive-owner", {"durable": True, "exclusive": True}),
          ("auto-delete", "auto-delete", {"durable": True, "auto_delete": True}))],
    Case("queue.declare-quorum-server-named",
         [m("queue.declare", durable=True, arguments={"x-queue-type": "quorum"})],
         [channel_error(406, "PRECONDITION_FAILED - Cannot declare a server-named queue for type "
                             "rabbit_quorum_queue")]),
    ignored("x-queue-master-locator", {"x-queue-master-locator": "client-local"}),
    ignored("unknown-argument", {"x-unheard-of": {"deep": [1, 2]}, "no-prefix": 5}),
    ignored("x-message-ttl-zero", {"x-message-ttl": 0}),
    ignored("x-max-length-zero", {"x-max-length": 0}),
    ignored("x-max-priority-zero", {"x-max-priority": 0}),
    ignored("x-overflow-reject-publish-dlx", {"x-overflow": "reject-publish-dlx"}),
    ignored("x-dead-letter-exchange-default", {"x-dead-letter-exchange": ""}),
    ignored("x-queue-version-2", {"x-queue-version": 2}),
]

CASES = DECLARE_CASES + [
    # exclusive queues of another connection
    *[Case(f"queue.locked-{name}", given=[EXCLUSIVE.on(conn="b")], when=[step], then=LOCKED)
      for name, step in {
          "declare": DECLARE,
          "declare-exclusive": EXCLUSIVE,
          "declare-passive": m("queue.declare", queue="{q}", passive=True),
          "purge": m("queue.purge", queue="{q}"),
          "delete": m("queue.delete", queue="{q}"),
          "bind": m("queue.bind", queue="{q}", exchange="amq.direct", routing_key="k"),
          "consume": m("basic.consume", queue="{q}"),
          "get": m("basic.get", queue="{q}"),
      }.items()],
    Case("queue.locked-unbind",
         given=[EXCLUSIVE.on(conn="b"),
                m("queue.bind", queue="{q}", exchange="amq.direct",
                  routing_key="{q}").on(conn="b")],
         when=[m("queue.unbind", queue="{q}", exchange="amq.direct", routing_key="{q}")],
         then=LOCKED),
    Case("queue.exclusive-on-another-channel", given=[EXCLUSIVE],
         when=[EXCLUSIVE.on(channel=2)], then=[DECLARED]),
    Case("queue.exclusive-takes-messages-from-others", given=[EXCLUSIVE.on(conn="b"),
                                                              m("confirm.select"),
                                                              publish("", "{q}", b"to you"),
                                                              reply("basic.ack", delivery_tag=1)],
         when=[m("basic.get", queue="{q}", no_ack=True).on(conn="b")],
         then=[message("basic.get-ok", b"to you", {}, delivery_tag=1, routing_key="{q}")]),

    Case("queue.exclusive-deleted-when-its-owner-hangs-up",
         given=[EXCLUSIVE.on(conn="b"), hang_up("b"), pause(0.5)],
         when=[m("queue.declare", queue="{q}", passive=True)], then=NO_QUEUE),

    # empty name: the queue declared last on this channel
    *[Case(f"queue.last-declared-{name}", given=[EXCLUSIVE], when=[step], then=[then])
      for name, step, then in (
          ("bind", m("queue.bind", exchange="amq.direct", routing_key="{q}"),
           reply("queue.bind-ok")),
          ("unbind", m("queue.unbind", exchange="amq.direct", routing_key="k"),
           reply("queue.unbind-ok")),
          ("purge", m("queue.purge"), reply("queue.purge-ok")),
          ("delete", m("queue.delete"), reply("queue.delete-ok")),
          ("get", m("basic.get"), reply("basic.get-empty")),
          ("consume", m("basic.consume", consumer_tag="c"),
           reply("basic.consume-ok", consumer_tag="c")))],
    *[Case(f"queue.none-declared-{name}", [step], NONE_DECLARED) for name, step in (
        ("bind", m("queue.bind", exchange="amq.direct", routing_key="k")),
        ("unbind", m("queue.unbind", exchange="amq.direct", routing_key="k")),
        ("purge", m("queue.purge")),
        ("delete", m("queue.delete")),
        ("get", m("basic.get")),
        ("consume", m("basic.consume")))],
    Case("queue.last-declared-is-the-channel's-own", given=[EXCLUSIVE.on(channel=2)],
         when=[m("queue.purge")], then=NONE_DECLARED),
    Case("queue.last-declared-after-passive", given=[DECLARE.on(channel=2),
                                                     m("queue.declare", queue="{q}",
                                                       passive=True)],
         when=[m("queue.purge")], then=[reply("queue.purge-ok")]),
    Case("queue.last-declared-after-server-named", given=[m("queue.declare", exclusive=True)],
         when=[m("queue.purge")], then=[reply("queue.purge-ok")]),
    Case("queue.last-declared-was-deleted", given=[EXCLUSIVE, m("queue.delete", queue="{q}")],
         when=[m("queue.purge")], then=NO_QUEUE),
    Case("queue.last-declared-bind-without-routing-key-uses-the-queue-name",
         given=[EXCHANGE, EXCLUSIVE, m("queue.bind", exchange="{x}"),
                publish("{x}", "{q}", b"by name")],
         when=[m("basic.get", queue="{q}", no_ack=True)],
         then=[message("basic.get-ok", b"by name", {}, delivery_tag=1, exchange="{x}",
                       routing_key="{q}")]),
    Case("queue.bind-named-without-routing-key-keeps-it-empty",
         given=[EXCHANGE, EXCLUSIVE, m("queue.bind", queue="{q}", exchange="{x}"),
                publish("{x}", "{q}", b"lost"), publish("{x}", "", b"empty key")],
         when=[m("basic.get", queue="{q}", no_ack=True)],
         then=[message("basic.get-ok", b"empty key", {}, delivery_tag=1, exchange="{x}")]),

    # bind
    Case("queue.bind", given=[EXCHANGE, EXCLUSIVE],
         when=[m("queue.bind", queue="{q}", exchange="{x}", routing_key="k",
                 arguments={"a": 1})], then=[reply("queue.bind-ok")]),
    Case("queue.bind-nowait", given=[EXCHANGE, EXCLUSIVE],
         when=[m("queue.bind", queue="{q}", exchange="{x}", routing_key="k", nowait=True)],
         then=[nothing()]),
    Case("queue.bind-twice-delivers-once",
         given=[EXCHANGE, EXCLUSIVE, *[m("queue.bind", queue="{q}", exchange="{x}",
                                         routing_key="k")] * 2],
         when=[publish("{x}", "k", b"once"), m("basic.get", queue="{q}", no_ack=True)],
         then=[message("basic.get-ok", b"once", {}, delivery_tag=1, exchange="{x}",
                       routing_key="k")]),
    Case("queue.bind-missing-queue", given=[EXCHANGE],
         when=[m("queue.bind", queue="{q}", exchange="{x}")], then=NO_QUEUE),
    Case("queue.bind-missing-exchange", given=[EXCLUSIVE],
         when=[m("queue.bind", queue="{q}", exchange="{x}")], then=NO_EXCHANGE),
    Case("queue.bind-both-missing", [m("queue.bind", queue="{q}", exchange="{x}")], NO_EXCHANGE),
    Case("queue.bind-to-default", given=[EXCLUSIVE],
         when=[m("queue.bind", queue="{q}", exchange="", routing_key="k")],
         then=DEFAULT_REFUSED),
    Case("queue.bind-missing-exchange-nowait", given=[EXCLUSIVE],
         when=[m("queue.bind", queue="{q}", exchange="{x}", nowait=True)], then=NO_EXCHANGE),
    Case("queue.bind-headers-invalid-x-match",
         given=[EXCLUSIVE], when=[m("queue.bind", queue="{q}", exchange="amq.headers",
                                    arguments={"x-match": "some"})],
         then=[channel_error(406, "PRECONDITION_FAILED - Invalid x-match field value <<\"some\">>; "
                                  "expected all, any, all-with-x, or any-with-x")]),
    Case("queue.bind-headers-x-match-type",
         given=[EXCLUSIVE], when=[m("queue.bind", queue="{q}", exchange="amq.headers",
                                    arguments={"x-match": 5})],
         then=[channel_error(406, "PRECONDITION_FAILED - Invalid x-match field type signedint "
                                  "(value 5); expected longstr")]),

    # unbind
    Case("queue.unbind",
         given=[EXCHANGE, EXCLUSIVE, m("queue.bind", queue="{q}", exchange="{x}",
                                       routing_key="k")],
         when=[m("queue.unbind", queue="{q}", exchange="{x}", routing_key="k")],
         then=[reply("queue.unbind-ok")]),
    Case("queue.unbind-stops-routing",
         given=[EXCHANGE, EXCLUSIVE, m("queue.bind", queue="{q}", exchange="{x}",
                                       routing_key="k"),
                m("queue.unbind", queue="{q}", exchange="{x}", routing_key="k")],
         when=[publish("{x}", "k", b"back", mandatory=True)],
         then=[message("basic.return", b"back", {}, reply_code=312, reply_text="NO_ROUTE",
                       exchange="{x}", routing_key="k")]),
    Case("queue.unbind-with-other-arguments-removes-nothing",
         given=[EXCHANGE, EXCLUSIVE, m("queue.bind", queue="{q}", exchange="{x}",
                                       routing_key="k", arguments={"a": 1}),
                m("queue.unbind", queue="{q}", exchange="{x}", routing_key="k")],
         when=[publish("{x}", "k", b"kept"), m("basic.get", queue="{q}", no_ack=True)],
         then=[message("basic.get-ok", b"kept", {}, delivery_tag=1, exchange="{x}",
                       routing_key="k")]),
    Case("queue.unbind-missing-binding", given=[EXCHANGE, EXCLUSIVE],
         when=[m("queue.unbind", queue="{q}", exchange="{x}", routing_key="k")],
         then=[reply("queue.unbind-ok")]),
    Case("queue.unbind-missing-queue", given=[EXCHANGE],
         when=[m("queue.unbind", queue="{q}", exchange="{x}")],
         then=[reply("queue.unbind-ok")]),
    Case("queue.unbind-missing-exchange", given=[EXCLUSIVE],
         when=[m("queue.unbind", queue="{q}", exchange="{x}")],
         then=[reply("queue.unbind-ok")]),
    Case("queue.unbind-from-default", given=[EXCLUSIVE],
         when=[m("queue.unbind", queue="{q}", exchange="", routing_key="{q}")],
         then=DEFAULT_REFUSED),

    # purge
    Case("queue.purge", given=[EXCLUSIVE, publish("", "{q}", b"1"), publish("", "{q}", b"2")],
         when=[m("queue.purge", queue="{q}")], then=[reply("queue.purge-ok", message_count=2)]),
    Case("queue.purge-keeps-unacknowledged",
         given=[EXCLUSIVE, publish("", "{q}", b"1"), publish("", "{q}", b"2"),
                m("basic.get", queue="{q}")],
         when=[m("queue.purge", queue="{q}"), m("basic.reject", delivery_tag=1, requeue=True),
               m("basic.get", queue="{q}")],
         then=[reply("queue.purge-ok", message_count=1),
               message("basic.get-ok", b"1", {}, delivery_tag=2, redelivered=True,
                       routing_key="{q}")]),
    Case("queue.purge-nowait", given=[EXCLUSIVE],
         when=[m("queue.purge", queue="{q}", nowait=True)], then=[nothing()]),
    Case("queue.purge-missing", [m("queue.purge", queue="{q}")], NO_QUEUE),
    Case("queue.purge-missing-nowait", [m("queue.purge", queue="{q}", nowait=True)], NO_QUEUE),

    # delete
    Case("queue.delete", given=[EXCLUSIVE, publish("", "{q}", b"1")],
         when=[m("queue.delete", queue="{q}")], then=[reply("queue.delete-ok", message_count=1)]),
    Case("queue.delete-counts-only-ready-messages",
         given=[EXCLUSIVE, publish("", "{q}", b"1"), publish("", "{q}", b"2"),
                m("basic.get", queue="{q}")],
         when=[m("queue.delete", queue="{q}")], then=[reply("queue.delete-ok", message_count=1)]),
    Case("queue.delete-nowait", given=[EXCLUSIVE],
         when=[m("queue.delete", queue="{q}", nowait=True)], then=[nothing()]),
    Case("queue.delete-missing", [m("queue.delete", queue="{q}")], [reply("queue.delete-ok")]),
    Case("queue.delete-missing-if-unused-if-empty",
         [m("queue.delete", queue="{q}", if_unused=True, if_empty=True)],
         [reply("queue.delete-ok")]),
    Case("queue.delete-if-unused-in-use",
         given=[EXCLUSIVE, m("basic.consume", queue="{q}")],
         when=[m("queue.delete", queue="{q}", if_unused=True)],
         then=[channel_error(406, "PRECONDITION_FAILED - queue '{q}' in vhost '/' in use")]),
    Case("queue.delete-if-empty-not-empty", given=[EXCLUSIVE, publish("", "{q}", b"1")],
         when=[m("queue.delete", queue="{q}", if_empty=True)],
         then=[channel_error(406, "PRECONDITION_FAILED - queue '{q}' in vhost '/' not empty")]),
    Case("queue.delete-if-empty-with-unacknowledged",
         given=[EXCLUSIVE, publish("", "{q}", b"1"), m("basic.get", queue="{q}")],
         when=[m("queue.delete", queue="{q}", if_empty=True)],
         then=[reply("queue.delete-ok")]),
    Case("queue.delete-if-empty-is-checked-first",
         given=[EXCLUSIVE, publish("", "{q}", b"1"), m("basic.qos", prefetch_count=1),
                m("basic.consume", queue="{q}", consumer_tag="c"),
                reply("basic.consume-ok", consumer_tag="c"),
                message("basic.deliver", b"1", consumer_tag="c", delivery_tag=1,
                        routing_key="{q}"), publish("", "{q}", b"2")],
         when=[m("queue.delete", queue="{q}", if_unused=True, if_empty=True)],
         then=[channel_error(406, "PRECONDITION_FAILED - queue '{q}' in vhost '/' not empty")]),
    Case("queue.delete-if-unused-if-empty", given=[EXCLUSIVE],
         when=[m("queue.delete", queue="{q}", if_unused=True, if_empty=True)],
         then=[reply("queue.delete-ok")]),
    Case("queue.auto-delete-after-the-last-consumer",
         given=[m("queue.declare", queue="{q}", auto_delete=True),
                m("basic.consume", queue="{q}", consumer_tag="c"),
                m("basic.cancel", consumer_tag="c")],
         when=[m("queue.declare", queue="{q}", passive=True)], then=NO_QUEUE),
    Case("queue.auto-delete-not-before-a-first-consumer",
         given=[m("queue.declare", queue="{q}", auto_delete=True)],
         when=[m("queue.declare", queue="{q}", passive=True)], then=[DECLARED]),
]
