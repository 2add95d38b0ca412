"""Who may do what: permissions, and topic permissions by routing key."""

from scenario import (PASSWORD, Scenario, bind, ctl, declare, exchange, holds, m, publish, status_of,
                      take)

# Class and method of what is refused.
PUBLISH, BIND, UNBIND = (60, 40), (50, 20), (50, 50)
BIND_EXCHANGE, UNBIND_EXCHANGE = (40, 30), (40, 40)


def user(*permissions):
    return [status_of("add_user", "{u}", PASSWORD),
            status_of("set_permissions", "-p", "{v}", "{u}", *(permissions or (".*",) * 3))]


def topics(exchange, write, read):
    return status_of("set_topic_permissions", "-p", "{v}", "{u}", exchange, write, read)


def flow():
    """Answered after what was published."""
    return m("channel.flow", active=True).by()


def bind_exchange(key):
    return m("exchange.bind", destination="amq.fanout", source="{x}", routing_key=key).by()


def unbind(key):
    return m("queue.unbind", queue="{q}", exchange="{x}", routing_key=key).by()


def refused(step, operation, what, ids):
    def line(text):
        return (f"< channel.close reply_code=403 reply_text='ACCESS_REFUSED - {text} in vhost '{{v}}' "
                f"refused for user '{{u}}'' class_id={ids[0]} method_id={ids[1]}")

    return step.since("3.13", "says what was tried (rabbit_access_control:check_access)",
                      f"- {line(f'access to {what}')}", f"+ {line(f'{operation} access to {what}')}")


def unwritable(step, key, ids=PUBLISH):
    return refused(step, "write", f"topic '{key}' in exchange '{{x}}'", ids)


def unreadable(step, key, ids=BIND):
    return refused(step, "read", f"topic '{key}' in exchange '{{x}}'", ids)


def take_nothing(queue):
    return m("basic.get", queue=queue).by()


SCENARIOS = [
    Scenario("topic-write", [
        user(), exchange(type="topic"), declare(), bind("{q}", "{x}", "#"),
        topics("{x}", "^a", ".*"),
        publish("{x}", "abc", "1").by(), holds("{q}", 1).by(),
        publish("{x}", "bcd", "2").by(), unwritable(flow(), "bcd"), flow(),
        publish("{x}", "abd", "3").by(), holds("{q}", 2).by(),
        take("{q}", 2),
    ], vhost="{v}"),
    Scenario("topic-read", [
        user(), exchange(type="topic"), declare(),
        topics("{x}", ".*", r"^a\."),
        bind("{q}", "{x}", "a.*").by(),
        unreadable(bind("{q}", "{x}", "b.*").by(), "b.*"),
        unreadable(bind("{q}", "{x}", "#").by(), "#"),
        bind_exchange("a.b"), unreadable(bind_exchange("b.b"), "b.b", BIND_EXCHANGE),
        bind("{q}", "{x}", "b.*"), unreadable(unbind("b.*"), "b.*", UNBIND), unbind("a.*"),
        unreadable(m("exchange.unbind", destination="amq.fanout", source="{x}",
                     routing_key="b").by(), "b", UNBIND_EXCHANGE),
    ], vhost="{v}"),
    Scenario("topic-one-exchange", [
        user(), exchange(type="topic"), exchange("{y}", "topic"), declare(),
        topics("{x}", "", ""),
        bind("{q}", "{y}", "k").by(), publish("{y}", "k", "1").by(), take("{q}").by(),
        unreadable(bind("{q}", "{x}", "k").by(), "k"), bind("{q}", "{x}", "").by(),
        publish("{x}", "", "2").by(), take("{q}").by(),
        publish("{x}", "k").by(), unwritable(flow(), "k"),
    ], vhost="{v}"),
    # Exchanges of other types ask nobody.
    Scenario("topic-other-types", [
        user(), declare(),
        [[exchange(name, type), topics(name, "^a", "^a"), bind("{q}", name, key).by(),
          publish(name, key, type).by(), take("{q}").by()]
         for name, type, key in (("{d}", "direct", "k"), ("{f}", "fanout", "k"),
                                 ("{h}", "headers", "k"), ("{c}", "x-consistent-hash", "1"))],
    ], vhost="{v}"),
    Scenario("topic-names", [
        user(), exchange(type="topic"), declare(),
        topics("{x}", r"^{username}/{vhost}$", "^{client_id}$"),
        bind("{q}", "{x}", "#"), bind("{q}", "{x}", "{client_id}").by(),
        unreadable(bind("{q}", "{x}", "x").by(), "x"),
        publish("{x}", "{u}/{v}", "1").by(), take("{q}").by(),
        publish("{x}", "other/{v}", "2").by(), unwritable(flow(), "other/{v}"),
    ], vhost="{v}"),
    Scenario("topic-copies", [
        user(), exchange(type="topic"), declare(), bind("{q}", "{x}", "#"),
        topics("{x}", "^a", ".*"),
        publish("{x}", "a", "1", headers={"CC": ["ab"], "BCC": ["ac"]}).by(), flow(),
        take("{q}"),
        publish("{x}", "a", "2", headers={"CC": ["ab", "c"]}).by(),
        flow().since("4.0.3", "copies ask as well (rabbit_channel:check_write_permitted_on_topics)",
                     "- < channel.flow-ok active=true",
                     "+ < channel.close reply_code=403 reply_text='ACCESS_REFUSED - write access to "
                     "topic 'c' in exchange '{x}' in vhost '{v}' refused for user '{u}'' class_id=60 "
                     "method_id=40"),
    ], vhost="{v}"),
    Scenario("topic-order", [
        user(), exchange(type="topic"), exchange("{i}", "topic", internal=True),
        topics("{x}", "^a", ".*"), topics("{i}", "^a", ".*"),
        publish("{i}", "b").by(), flow(),
        publish("{x}", "b", user_id="nobody").by(), unwritable(flow(), "b"),
        publish("{x}", "b", expiration="never").by(), unwritable(flow(), "b"),
        publish("{x}", "b", headers={"CC": "text"}).by(), unwritable(flow(), "b"),
        publish("{x}", "a", headers={"CC": "text"}).by(), flow(),
        publish("{none}", "a", headers={"CC": "text"}).by(), flow(),
    ], vhost="{v}"),
    Scenario("topic-changed", [
        user(), exchange(type="topic"), declare(), bind("{q}", "{x}", "#"),
        topics("{x}", "^a", ".*"), topics("{x}", "^b", ".*"),
        publish("{x}", "b", "1").by(), take("{q}").by(),
        status_of("clear_topic_permissions", "-p", "{v}", "{u}", "{x}"),
        m("connection.close", reply_code=200).by(channel=0),
        publish("{x}", "c", "2").by(), take("{q}").by(),
    ], vhost="{v}"),
    Scenario("look-ahead", [
        user("^(?!amq)", "^(?!{x})", "^(?!{q}$)"),
        ctl("list_permissions", "-p", "{v}"),
        declare("{q2}").by(), take_nothing("{q2}"),
        refused(take_nothing("{q}"), "read", "queue '{q}'", (60, 70)),
        exchange("{x}"), publish("{x}", "k").by(),
        refused(flow(), "write", "exchange '{x}'", PUBLISH),
    ], vhost="{v}"),
]
