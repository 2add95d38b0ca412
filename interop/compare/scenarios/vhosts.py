"""Virtual hosts, and the type of a queue whose declaration names none."""

from scenario import Scenario, ctl, declare, first_get, get, m, reject, send, take

QUORUM = ("--default-queue-type", "quorum")

SCENARIOS = [
    Scenario("vhost-default-queue-type-quorum", [
        declare("{q}", durable=True),
        declare("{q}", durable=True),
        declare("{q}", {"x-queue-type": "quorum"}, durable=True),
        declare("{q}", {"x-queue-type": "classic"}, durable=True),
        send("{q}", "a"),
        first_get(take("{q}", no_ack=False)),
        reject(1, requeue=True),
        take("{q}"),
    ], vhost="{v}", vhost_options=QUORUM),
    Scenario("vhost-default-queue-type-is-not-for-those-that-cannot", [
        declare("{q1}"),
        declare("{q2}", durable=True, exclusive=True),
        declare("{q3}", durable=True, auto_delete=True),
        declare("", durable=True),
        declare("{q4}", {"x-max-priority": 5}, durable=True),
        declare("{q5}", {"x-queue-type": "classic"}, durable=True),
    ], vhost="{v}", vhost_options=QUORUM),
    Scenario("vhost-default-queue-type-stream", [
        declare("{q}", durable=True),
        get("{q}"),
    ], vhost="{v}", vhost_options=("--default-queue-type", "stream")),
    Scenario("vhost-default-queue-type-classic", [
        declare("{q}"),
        declare("{q}", {"x-queue-type": "classic"}),
    ], vhost="{v}", vhost_options=("--default-queue-type", "classic")),
    Scenario("vhost-added-and-deleted", [
        ctl("add_vhost", "{w}"),
        ctl("add_vhost", "{w}"),
        ctl("delete_vhost", "{w}"),
        ctl("delete_vhost", "{w}"),
    ]),
    Scenario("vhost-deleted-under-a-connection", [
        declare("{q}"),
        ctl("delete_vhost", "{v}", "--quiet"),
        m("queue.declare", queue="{q}", passive=True),
    ], vhost="{v}"),
]
