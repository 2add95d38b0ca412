"""The methods of AMQP 0-9-1 and 0-8: numbers, argument types, synchronous replies.

Argument types: O octet, H short, L long, Q longlong, s shortstr, S longstr, F table, b bit.
Written from the published specifications; consecutive bits share an octet.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    name: str
    class_id: int
    method_id: int
    fields: tuple[tuple[str, str], ...]

    @property
    def class_name(self) -> str:
        return self.name.split(".")[0]


def _parse(text: str) -> dict[str, Method]:
    """Each line: `class method-number name field:type ...`; a class line is `class name number`."""
    methods, class_name, class_id = {}, "", 0
    for line in text.replace("\\\n", "").strip().splitlines():
        words = line.split()
        if words[0] == "class":
            class_name, class_id = words[1], int(words[2])
            continue
        fields = tuple((f.split(":")[0], f.split(":")[1]) for f in words[2:])
        name = f"{class_name}.{words[1]}"
        methods[name] = Method(name, class_id, int(words[0]), fields)
    return methods


AMQP_0_9_1 = _parse("""
class connection 10
10 start version_major:O version_minor:O server_properties:F mechanisms:S locales:S
11 start-ok client_properties:F mechanism:s response:S locale:s
20 secure challenge:S
21 secure-ok response:S
30 tune channel_max:H frame_max:L heartbeat:H
31 tune-ok channel_max:H frame_max:L heartbeat:H
40 open virtual_host:s capabilities:s insist:b
41 open-ok known_hosts:s
50 close reply_code:H reply_text:s class_id:H method_id:H
51 close-ok
60 blocked reason:s
61 unblocked
70 update-secret new_secret:S reason:s
71 update-secret-ok
class channel 20
10 open out_of_band:s
11 open-ok channel_id:S
20 flow active:b
21 flow-ok active:b
40 close reply_code:H reply_text:s class_id:H method_id:H
41 close-ok
class access 30
10 request realm:s exclusive:b passive:b active:b write:b read:b
11 request-ok ticket:H
class exchange 40
10 declare ticket:H exchange:s type:s passive:b durable:b auto_delete:b internal:b nowait:b \\
   arguments:F
11 declare-ok
20 delete ticket:H exchange:s if_unused:b nowait:b
21 delete-ok
30 bind ticket:H destination:s source:s routing_key:s nowait:b arguments:F
31 bind-ok
40 unbind ticket:H destination:s source:s routing_key:s nowait:b arguments:F
51 unbind-ok
class queue 50
10 declare ticket:H queue:s passive:b durable:b exclusive:b auto_delete:b nowait:b arguments:F
11 declare-ok queue:s message_count:L consumer_count:L
20 bind ticket:H queue:s exchange:s routing_key:s nowait:b arguments:F
21 bind-ok
30 purge ticket:H queue:s nowait:b
31 purge-ok message_count:L
40 delete ticket:H queue:s if_unused:b if_empty:b nowait:b
41 delete-ok message_count:L
50 unbind ticket:H queue:s exchange:s routing_key:s arguments:F
51 unbind-ok
class basic 60
10 qos prefetch_size:L prefetch_count:H global:b
11 qos-ok
20 consume ticket:H queue:s consumer_tag:s no_local:b no_ack:b exclusive:b nowait:b arguments:F
21 consume-ok consumer_tag:s
30 cancel consumer_tag:s nowait:b
31 cancel-ok consumer_tag:s
40 publish ticket:H exchange:s routing_key:s mandatory:b immediate:b
50 return reply_code:H reply_text:s exchange:s routing_key:s
60 deliver consumer_tag:s delivery_tag:Q redelivered:b exchange:s routing_key:s
70 get ticket:H queue:s no_ack:b
71 get-ok delivery_tag:Q redelivered:b exchange:s routing_key:s message_count:L
72 get-empty cluster_id:s
80 ack delivery_tag:Q multiple:b
90 reject delivery_tag:Q requeue:b
100 recover-async requeue:b
110 recover requeue:b
111 recover-ok
120 nack delivery_tag:Q multiple:b requeue:b
class tx 90
10 select
11 select-ok
20 commit
21 commit-ok
30 rollback
31 rollback-ok
class confirm 85
10 select nowait:b
11 select-ok
""")

# 0-8 as RabbitMQ serves it: queue.unbind and basic.recover-async/recover-ok, which the 0-8
# specification lacks, are there with their 0-9-1 numbers.
AMQP_0_8 = {name: method for name, method in AMQP_0_9_1.items() if name not in {
    "exchange.bind", "exchange.bind-ok", "exchange.unbind", "exchange.unbind-ok", "basic.nack",
    "confirm.select", "confirm.select-ok", "connection.blocked", "connection.unblocked",
    "connection.update-secret", "connection.update-secret-ok"}} | _parse("""
class connection 10
50 redirect host:s known_hosts:s
60 close reply_code:H reply_text:s class_id:H method_id:H
61 close-ok
class channel 20
11 open-ok
30 alert reply_code:H reply_text:s details:F
class basic 60
20 consume ticket:H queue:s consumer_tag:s no_local:b no_ack:b exclusive:b nowait:b
""")

SPECIFICATIONS = {"0-9-1": AMQP_0_9_1, "0-9": AMQP_0_9_1, "0-8": AMQP_0_8}

# Contents follow these methods.
WITH_CONTENT = {"basic.publish", "basic.return", "basic.deliver", "basic.get-ok"}

# basic properties in flag order, from bit 15 downwards.
PROPERTIES = (
    ("content_type", "s"), ("content_encoding", "s"), ("headers", "F"), ("delivery_mode", "O"),
    ("priority", "O"), ("correlation_id", "s"), ("reply_to", "s"), ("expiration", "s"),
    ("message_id", "s"), ("timestamp", "Q"), ("type", "s"), ("user_id", "s"), ("app_id", "s"),
    ("cluster_id", "s"),
)

# The reply that a client waits for, where it is not `<name>-ok`.
OTHER_REPLIES = {"basic.get": ("basic.get-ok", "basic.get-empty")}
ASYNCHRONOUS = {"basic.publish", "basic.ack", "basic.reject", "basic.nack", "basic.recover-async"}
