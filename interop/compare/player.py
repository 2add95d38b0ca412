"""Carries out one scenario against a broker and returns the record of what came.

A record is a list of entries, one a step: the lines that tell what the client saw. The reply to a
method is recorded with it. What the broker sends of its own accord is recorded where a step waits
for it; what no step waited for is listed at the end.
"""

import re
import select
import time

import wire
from methods import ASYNCHRONOUS, OTHER_REPLIES
from record import INDENT, Recorder
from scenario import PASSWORD, Scenario, Step

DEADLINE = 6
# Once something has been waited for in vain, the rest is not worth as much.
IMPATIENT = 0.5
POLL = 0.02


class Link:
    """A connection: what has come and was not asked for yet, and which channels are open."""

    def __init__(self, address, vhost: str, user: str, password: str):
        self.wire = wire.Connection(address)
        self.pending: list[wire.Received] = []
        self.channels: set[int] = set()
        self.gone = ""
        self.wire.send_protocol_header()
        self.wire.start_ok({"capabilities": {"basic.nack": True, "publisher_confirms": True,
                                             "consumer_cancel_notify": True,
                                             "connection.blocked": True}},
                           response=f"\0{user}\0{password}".encode())
        self.wire.read()
        self.wire.tune_ok()
        self.wire.open(vhost)
        opened = self.wire.read()
        if opened.name != "connection.open-ok":
            self.gone = f"refused: {opened}"
        self.ends: list[wire.Received] = []

    def pump(self, seconds: float) -> bool:
        """Reads what comes within that time, one method; false if nothing did."""
        if self.gone:
            return False
        readable, _, _ = select.select([self.wire.socket], [], [], max(seconds, 0))
        if not readable:
            return False
        try:
            got = self.wire.read()
        except wire.Closed:
            self.gone = "the socket was closed"
            return True
        self.pending.append(got)
        if got.name == "channel.close":
            self.wire.send_method(got.channel, "channel.close-ok")
            self.channels.discard(got.channel)
        elif got.name == "connection.close":
            self.wire.send_method(0, "connection.close-ok")
            self.gone = "connection.close"
            self.wire.close()
        elif got.name == "connection.close-ok":
            self.gone = "the client closed it"
            self.wire.close()
        elif got.name == "channel.close-ok":
            self.channels.discard(got.channel)
        return True

    def claim(self, channel: int, names: tuple[str, ...], seconds: float):
        """The first of these methods to come on the channel, or None."""
        deadline = time.monotonic() + seconds
        while True:
            for i, got in enumerate(self.pending):
                if got.name in names and got.channel in (channel, 0):
                    return self.pending.pop(i)
            if not self.pump(deadline - time.monotonic()):
                return None


class Player:
    def __init__(self, scenario: Scenario, broker, as_it_came: bool = False):
        self.scenario, self.broker = scenario, broker
        # What patterns of topic permissions may hold in braces stands for itself.
        own = {word: f"{{{word}}}" for word in ("username", "vhost", "client_id")}
        self.names: dict[str, str] = {"node": broker.node, **own}
        self.links: dict[str, Link] = {}
        self.recorder = Recorder(self.names)
        self.recorder.as_it_came = as_it_came
        self.deadline = DEADLINE
        self.out: list[str] = []
        # Something was waited for in vain.
        self.vain = False

    def play(self) -> list[list[str]]:
        entries = []
        try:
            if self.scenario.vhost != "/":
                vhost = self.fill(self.scenario.vhost)
                for words in (("add_vhost", vhost, *self.scenario.vhost_options),
                              ("set_permissions", "-p", vhost, "guest", ".*", ".*", ".*")):
                    status, output = self.broker.ctl(words)
                    if status != 0:
                        raise RuntimeError(f"{words}: {output}")
            for step in flat(self.scenario.steps):
                self.out = []
                if step.only in ("", self.broker.kind):
                    self.do(step)
                entries.append(self.out)
            self.out = []
            self.left_over()
            entries.append(self.out)
        except (OSError, AssertionError, RuntimeError, wire.Closed) as error:
            self.vain = True
            entries.append([f"! {type(error).__name__}: {self.recorder.text(str(error))}"])
            entries += [[] for _ in range(len(flat(self.scenario.steps)) + 1 - len(entries))]
        finally:
            for link in self.links.values():
                link.wire.close()
        return entries

    def do(self, step: Step):
        match step.kind:
            case "method":
                self.method(step)
            case "arrive":
                self.arrive(step)
            case "confirms":
                self.confirms(step)
            case "holds":
                self.holds(step)
            case "spread":
                self.spread(step)
            case "take":
                self.take(step)
            case "gone":
                self.queue_gone(step)
            case "silence":
                link = self.link(step)
                if link.pump(step.seconds):
                    self.received(link.pending.pop())
            case "pause":
                time.sleep(step.seconds)
            case "hang up":
                self.links.pop(step.conn).wire.close()
            case "ctl":
                status, output = self.broker.ctl([self.fill(word) for word in step.words])
                self.out.append(f"status {status}")
                if not step.fields.get("quiet"):
                    self.out += [f"{INDENT}{self.recorder.text(line)}"
                                 for line in output.splitlines() if line.strip()]
            case kind:
                raise TypeError(kind)

    # Names and connections.

    def fill(self, value):
        match value:
            case str():
                return re.sub(r"\{(\w+)\}", lambda found: self.name(found[1]), value)
            case dict():
                return {self.fill(k): self.fill(v) for k, v in value.items()}
            case list():
                return [self.fill(v) for v in value]
        return value

    def name(self, token: str) -> str:
        return self.names.setdefault(token, f"{self.scenario.id}.{token}")

    def link(self, step: Step) -> Link:
        link = self.links.get(step.conn)
        if link is None or link.gone:
            vhost = self.fill(self.scenario.vhost)
            # Users that scenarios make are told by the names of their connections.
            made = step.conn.startswith("{")
            user = (self.fill(step.conn), PASSWORD) if made else ("guest", "guest")
            link = self.links[step.conn] = Link(self.broker.address, vhost, *user)
        if (step.channel and step.channel not in link.channels and step.method != "channel.open"
                and not link.gone):
            link.wire.send_method(step.channel, "channel.open")
            if link.claim(step.channel, ("channel.open-ok",), self.deadline):
                link.channels.add(step.channel)
        return link

    # What steps do.

    def method(self, step: Step):
        link, fields = self.link(step), self.fill(step.fields)
        if step.properties is not None:
            link.wire.send_content(step.channel, step.method, fields, self.fill(step.properties),
                                   step.body)
        else:
            link.wire.send_method(step.channel, step.method, **fields)
        if step.method in ASYNCHRONOUS or fields.get("nowait"):
            return
        self.reply(link, step, OTHER_REPLIES.get(step.method, (step.method + "-ok",)))

    def reply(self, link: Link, step: Step, names: tuple[str, ...]):
        got = link.claim(step.channel, (*names, "channel.close", "connection.close"),
                         self.deadline)
        if got is None:
            self.nothing_came(link)
        else:
            self.received(got)
        return got

    def received(self, got: wire.Received):
        self.out += self.recorder.received(got)
        if got.properties.get("reply_to", "").startswith("amq.rabbitmq.reply-to."):
            # Where to answer: `{reply_to}` from now on.
            self.names["reply_to"] = got.properties["reply_to"]

    def nothing_came(self, link: Link):
        self.out.append(f"! {link.gone}" if link.gone else "! nothing came")
        self.give_up()

    def give_up(self):
        self.vain, self.deadline = True, IMPATIENT

    def arrive(self, step: Step):
        link = self.link(step) if step.method != "channel.close" else self.links[step.conn]
        for _ in range(step.count):
            got = self.reply(link, step, (step.method,))
            if got is None or got.name.endswith(".close"):
                return

    def confirms(self, step: Step):
        """Each `multiple` is spelt out: how many a broker confirms at once is its own affair."""
        link, known = self.link(step), {}
        confirmed = link.__dict__.setdefault("confirmed", {})
        while len(known) < step.count:
            got = link.claim(step.channel, ("basic.ack", "basic.nack", "channel.close",
                                            "connection.close"), self.deadline)
            if got is None:
                self.nothing_came(link)
                break
            if got.name.endswith(".close"):
                self.received(got)
                break
            last, tag = confirmed.setdefault(step.channel, set()), got.fields["delivery_tag"]
            first = tag
            if got.fields["multiple"]:
                first = 1
            for each in range(first, tag + 1):
                if each not in last:
                    last.add(each)
                    known[each] = got.name
        self.out += [f"< {name} {tag}" for tag, name in sorted(known.items())]

    def holds(self, step: Step):
        seen = self.await_count(step, step.fields["queue"], lambda seen: seen == step.count)
        if seen == step.count:
            self.out.append(f"it holds {seen}")
        else:
            self.out.append(f"! it holds {self.recorder.text(str(seen))}")
            self.give_up()

    def spread(self, step: Step):
        deadline, queues = time.monotonic() + self.deadline, step.fields["queues"]
        while time.monotonic() < deadline:
            counts = [self.await_count(step, queue, lambda _: True) for queue in queues]
            if not all(isinstance(count, int) for count in counts) or sum(counts) >= step.count:
                break
            time.sleep(POLL)
        if not all(isinstance(count, int) for count in counts) or sum(counts) != step.count:
            self.out.append(f"! they hold {self.recorder.text(str(counts))}")
            self.give_up()
            return
        self.out.append(f"{step.count} in {sum(map(bool, counts))} of {len(counts)} queues")
        if step.fields["even"]:
            odd = sum(count % 2 for count in counts)
            self.out.append(f"an odd number in {odd}")

    def await_count(self, step: Step, queue: str, enough):
        """The number of messages ready, once it is enough or time is up; or why there is none."""
        deadline, seen = time.monotonic() + self.deadline, None
        while time.monotonic() < deadline:
            link = self.link(step)
            link.wire.send_method(step.channel, "queue.declare", passive=True,
                                  queue=self.fill(queue))
            got = link.claim(step.channel, ("queue.declare-ok", "channel.close"), self.deadline)
            if got is None or got.name == "channel.close":
                return got and got.fields["reply_text"]
            seen = got.fields["message_count"]
            if enough(seen):
                break
            time.sleep(POLL)
        return seen

    def take(self, step: Step):
        if step.count > 1:
            # How many are left is told with each: all have to be there before the first is taken.
            self.await_count(step, step.fields["queue"], lambda seen: seen >= step.count)
        deadline, taken = time.monotonic() + self.deadline, 0
        while taken < step.count:
            link = self.link(step)
            link.wire.send_method(step.channel, "basic.get", queue=self.fill(step.fields["queue"]),
                                  no_ack=step.fields["no_ack"])
            got = link.claim(step.channel, ("basic.get-ok", "basic.get-empty", "channel.close",
                                            "connection.close"), self.deadline)
            if got is None:
                self.nothing_came(link)
                return
            if got.name == "basic.get-empty" and time.monotonic() < deadline:
                time.sleep(POLL)
                continue
            self.received(got)
            if got.name != "basic.get-ok":
                self.give_up()
                return
            taken += 1

    def queue_gone(self, step: Step):
        deadline = time.monotonic() + self.deadline
        while time.monotonic() < deadline:
            link = self.link(step)
            link.wire.send_content(1, "basic.publish", dict(
                exchange="", routing_key=self.fill(step.fields["queue"]), mandatory=True), {}, b"")
            link.wire.send_method(1, "channel.flow", active=True)
            link.claim(1, ("channel.flow-ok",), self.deadline)
            if link.claim(1, ("basic.return",), 0):
                self.out.append("it is gone")
                return
            time.sleep(POLL)
        self.out.append("! it is still there")
        self.give_up()

    def left_over(self):
        """What came and no step waited for, on channels that still answer."""
        for name, link in sorted(self.links.items()):
            for channel in sorted(link.channels):
                if not link.gone:
                    link.wire.send_method(channel, "channel.flow", active=True)
                    if not link.claim(channel, ("channel.flow-ok",), self.deadline):
                        self.out.append(f"channel {channel} of {name} does not answer")
            for got in link.pending:
                self.out.append(f"left over on channel {got.channel} of {name}:")
                self.received(got)


def flat(steps) -> list[Step]:
    out = []
    for step in steps:
        out += [step] if isinstance(step, Step) else flat(step)
    return out
