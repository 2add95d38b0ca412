"""The vocabulary in which the scenarios are written.

A scenario is data: a title and steps, carried out in order on each broker. No step says what must
come; what came is recorded, and the records are compared. Words in braces stand for names made for
that scenario alone: `{q}` is a queue, `{x}` an exchange, whatever else is at hand.
"""

from dataclasses import dataclass, field, replace


# Of users that scenarios make.
PASSWORD = "secret"


@dataclass(frozen=True)
class Difference:
    """What is different on purpose: lines of the step's record, `- ` RabbitMQ's, `+ ` Leveret's."""

    because: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """Something to do, or to wait for. `channel` and `conn` say where; they open when named."""

    kind: str
    method: str = ""
    fields: dict = field(default_factory=dict)
    properties: dict | None = None
    body: bytes = b""
    count: int = 1
    seconds: float = 0
    words: tuple[str, ...] = ()
    channel: int = 1
    conn: str = "a"
    difference: Difference | None = None
    # The broker that alone carries it out; empty for both.
    only: str = ""

    def on(self, channel: int = 1, conn: str = "a") -> "Step":
        return replace(self, channel=channel, conn=conn)

    def by(self, user: str = "{u}", channel: int = 1) -> "Step":
        """On a connection of that user, whose password is PASSWORD."""
        return replace(self, channel=channel, conn=user)

    def differs(self, because: str, *lines: str) -> "Step":
        """Leveret differs on purpose, in these lines."""
        return replace(self, difference=Difference(because, lines))

    def since(self, version: str, because: str, *lines: str) -> "Step":
        """RabbitMQ itself does since `version` what Leveret does; 3.10 does not."""
        return self.differs(f"RabbitMQ {version}: {because}", *lines)

    def only_on(self, broker: str) -> "Step":
        """For what has to be said to one of them before both can be asked the same."""
        assert broker in ("rabbitmq", "leveret"), broker
        return replace(self, only=broker)


@dataclass(frozen=True)
class Scenario:
    id: str
    steps: list
    # The vhost that its connections open; one other than / is made for it.
    vhost: str = "/"
    vhost_options: tuple[str, ...] = ()
    # Not beside others: what it looks at belongs to the whole broker.
    alone: bool = False
    note: str = ""


# Methods. The reply is waited for and recorded, or the error.


def m(method: str, **fields) -> Step:
    """Any method; arguments not named are zero, empty or false."""
    return Step("method", method, fields)


def declare(queue: str = "{q}", arguments: dict | None = None, **flags) -> Step:
    return m("queue.declare", queue=queue, arguments=arguments or {}, **flags)


def exchange(name: str = "{x}", type: str = "direct", arguments: dict | None = None,
             **flags) -> Step:
    return m("exchange.declare", exchange=name, type=type, arguments=arguments or {}, **flags)


def bind(queue: str, source: str, key: str = "", arguments: dict | None = None) -> Step:
    return m("queue.bind", queue=queue, exchange=source, routing_key=key,
             arguments=arguments or {})


def consume(queue: str = "{q}", tag: str = "c", arguments: dict | None = None, **flags) -> Step:
    return m("basic.consume", queue=queue, consumer_tag=tag, arguments=arguments or {}, **flags)


def qos(prefetch: int, shared: bool = False) -> Step:
    return m("basic.qos", prefetch_count=prefetch, **{"global": shared})


def get(queue: str = "{q}", no_ack: bool = True) -> Step:
    """Once, whatever comes."""
    return m("basic.get", queue=queue, no_ack=no_ack)


# Methods without a reply.


def publish(source: str, key: str, body: bytes | str = b"", mandatory=False,
            **properties) -> Step:
    body = body.encode() if isinstance(body, str) else body
    fields = dict(exchange=source, routing_key=key, mandatory=mandatory)
    return Step("method", "basic.publish", fields, properties, body)


def send(queue: str, *bodies: str, **properties) -> list[Step]:
    """Publishes each body to the queue through the default exchange."""
    return [publish("", queue, body, **properties) for body in bodies]


def ack(tag: int, multiple: bool = False) -> Step:
    return m("basic.ack", delivery_tag=tag, multiple=multiple)


def reject(tag: int, requeue: bool = False) -> Step:
    return m("basic.reject", delivery_tag=tag, requeue=requeue)


def nack(tag: int, multiple: bool = False, requeue: bool = False) -> Step:
    return m("basic.nack", delivery_tag=tag, multiple=multiple, requeue=requeue)


# Waiting, each with a deadline.


def deliveries(count: int = 1) -> Step:
    """Waits for so many messages on the channel."""
    return Step("arrive", "basic.deliver", count=count)


def returns(count: int = 1) -> Step:
    return Step("arrive", "basic.return", count=count)


def cancelled(count: int = 1) -> Step:
    """Waits for the broker to cancel a consumer."""
    return Step("arrive", "basic.cancel", count=count)


def closed() -> Step:
    """Waits for the broker to close the channel, or the connection."""
    return Step("arrive", "channel.close")


def confirms(count: int = 1) -> Step:
    """Waits until so many messages are confirmed, well or ill; recorded one by one, in order."""
    return Step("confirms", count=count)


def holds(queue: str, count: int) -> Step:
    """Waits until that many messages are ready in the queue."""
    return Step("holds", fields={"queue": queue}, count=count, conn="watch")


def spread(*queues: str, total: int, even: bool = False) -> Step:
    """Waits until the queues hold so many together. Which message is where, each broker's own hash
    decides; recorded is how many of the queues have any, and, if `even`, whether each number is."""
    return Step("spread", fields={"queues": list(queues), "even": even}, count=total, conn="watch")


def take(queue: str = "{q}", count: int = 1, no_ack: bool = True) -> Step:
    """basic.get, again and again until so many messages have come."""
    return Step("take", fields={"queue": queue, "no_ack": no_ack}, count=count)


def gone(queue: str = "{q}") -> Step:
    """Waits until the queue is no more. Looks with mandatory messages, which are no use of it."""
    return Step("gone", fields={"queue": queue}, conn="watch")


def silence(seconds: float = 0.3) -> Step:
    """Nothing comes on the connection for that long."""
    return Step("silence", seconds=seconds)


def pause(seconds: float) -> Step:
    """Only where time itself is the point: a time to live that must not have run out, or must."""
    return Step("pause", seconds=seconds)


def hang_up(conn: str = "a") -> Step:
    """The client closes its socket without a word."""
    return Step("hang up", conn=conn)


# Administration.


def ctl(*words: str) -> Step:
    """`rabbitmqctl` on the one, `leveret ctl` on the other; status and output are recorded."""
    return Step("ctl", words=words)


def status_of(*words: str) -> Step:
    """As `ctl`, but only the exit status is recorded: the words are each program's own."""
    return Step("ctl", words=words, fields={"quiet": True})


# `--quiet`: errors are printed, what is being done is not.


def set_policy(pattern: str, definition: str, name: str = "{p}", **options) -> Step:
    return ctl("set_policy", "--quiet", name, pattern, definition, *_options(options))


def clear_policy(name: str = "{p}") -> Step:
    return ctl("clear_policy", "--quiet", name)


def set_operator_policy(pattern: str, definition: str, name: str = "{op}", **options) -> Step:
    return ctl("set_operator_policy", "--quiet", name, pattern, definition, *_options(options))


def clear_operator_policy(name: str = "{op}") -> Step:
    return ctl("clear_operator_policy", "--quiet", name)


def _options(options: dict) -> list[str]:
    return [word for name, value in options.items()
            for word in (f"--{name.replace('_', '-')}", str(value))]


# Differences that many scenarios share.

NOT_YET_DELIVERED = "x-delivery-count only once there is something to count (rabbit_fifo_client)"


def first_get(step: Step) -> Step:
    """basic.get from a quorum queue: a message without headers that was not delivered before."""
    return step.since("3.13", NOT_YET_DELIVERED,
                      *["-     headers", "-         x-delivery-count = long 0"] * step.count)


def died(step: Step, *deaths: tuple[str, str, str], more: tuple[str, ...] = ()) -> Step:
    """A step that records dead-lettered messages: reason, queue and exchange of each last death."""
    lines = list(more)
    for reason, queue, source in deaths:
        lines += [f'+         x-last-death-exchange = "{source}"',
                  f'+         x-last-death-queue = "{queue}"',
                  f'+         x-last-death-reason = "{reason}"']
    return step.since("3.13", "x-last-death-* (mc:record_death/4)", *lines)
