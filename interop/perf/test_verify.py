"""`--verify` finds what a broker must not do, here done by somebody else: messages that are
missing, come twice, or come after later ones. What a broker may do is no fault."""

import time

import pytest

from tools import wait_until

NOT_IN_ORDER = 3
# Without the random moment at which a load with a rate starts otherwise.
LOAD = ["-r", 1000, "-prsd", 0, "-z", 1, "--verify"]
FAULTS = "messages are missing, doubled or out of order"


@pytest.fixture
def other(broker, queue):
    """A channel of somebody else's, who is at the queue first."""
    with broker.channel() as channel:
        # As the load declares it.
        channel.queue_declare(queue, auto_delete=True)
        yield channel


@pytest.fixture
def load_on(loads, broker, queue):
    """Starts a verified load on the queue."""

    def start(*options, size=16):
        command = ["-h", broker.uri, "-u", queue, "-k", queue, "-s", size]
        return loads.start_perf(*command, *LOAD, *options)

    return start


def take(channel, queue, count):
    """So many messages, as method, properties and body."""
    taken = []
    for message in channel.consume(queue, inactivity_timeout=10):
        assert message[0], f"{len(taken)} of {count} messages came"
        taken.append(message)
        if len(taken) == count:
            return taken


def faults(load):
    checks = load.run["checks"]
    return {name: checks[name] for name in ("gaps", "duplicates", "reordered")}


def test_stolen_messages_are_gaps(queue, other, load_on):
    other.basic_qos(prefetch_count=50)
    # Its consumer is there before the load's.
    stolen = other.consume(queue, inactivity_timeout=10)
    load = load_on("-q", 100)
    for _ in range(50):
        method, _, _ = next(stolen)
        other.basic_ack(method.delivery_tag)
    # What it holds besides is put back.
    other.cancel()
    load.finish(status=NOT_IN_ORDER)
    assert faults(load)["gaps"] == 50
    assert faults(load)["duplicates"] == 0
    assert FAULTS in load.one_error()
    assert "NOT IN ORDER" in load.out
    (of_queue,) = [part for part in load.run["checks"]["by_consumer"] if part["gaps"]]
    assert (of_queue["queue"], of_queue["producer"]) == (queue, 0)


def test_a_message_published_again_is_a_duplicate(broker, queue, load_on):
    """Copies of what goes through the load's exchange go to its queue, too."""
    load = load_on()
    wait_until(lambda: broker.has_consumers(queue), "the consumer")
    with broker.channel() as channel:
        copies = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(copies, "direct", queue)
        for _, properties, body in take(channel, copies, 10):
            channel.basic_publish("", queue, body, properties)
    load.finish(status=NOT_IN_ORDER)
    assert faults(load)["gaps"] == 0
    assert faults(load)["duplicates"] == 10
    assert FAULTS in load.one_error()
    assert "duplicates 10" in load.out


@pytest.mark.parametrize("late", [0, 0.3], ids=["soon", "late"])
def test_messages_that_others_have_overtaken_are_reordered(queue, other, load_on, late):
    """Taken away, and published again at the end of the queue."""
    load = load_on("-q", 100)
    taken = take(other, queue, 20)
    for method, _, _ in taken:
        other.basic_ack(method.delivery_tag)
    other.cancel()
    time.sleep(late)
    for _, properties, body in taken:
        other.basic_publish("", queue, body, properties)
    load.finish(status=NOT_IN_ORDER)
    assert faults(load)["gaps"] == faults(load)["duplicates"] == 0
    assert faults(load)["reordered"] > 0
    assert FAULTS in load.one_error()


def test_what_is_requeued_is_no_fault(queue, other, load_on):
    """It comes again, marked as redelivered."""
    other.basic_qos(prefetch_count=20)
    load = load_on("-q", 50)
    for _ in range(5):
        for method, _, _ in take(other, queue, 20):
            other.basic_nack(method.delivery_tag, requeue=True)
    other.cancel()
    load.finish()
    assert faults(load) == {"gaps": 0, "duplicates": 0, "reordered": 0}
    assert load.run["checks"]["redelivered"] > 0
    assert "order: in order" in load.out


def test_what_a_lost_consumer_held_is_no_fault(broker, queue, load_on):
    """It went without an answer."""
    with broker.channel() as channel:
        channel.queue_declare(queue, auto_delete=True)
        channel.basic_qos(prefetch_count=30)
        load = load_on()
        take(channel, queue, 30)
        # With the connection: a cancelled consumer's messages are its channel's still.
    load.finish()
    assert faults(load) == {"gaps": 0, "duplicates": 0, "reordered": 0}
    assert load.run["checks"]["redelivered"] == 30


def test_bodies_without_room_for_a_producer_are_refused(leveret, perf):
    load = perf("-h", leveret.uri, *LOAD, "-x", 2, "-s", 12, status=2)
    assert "-s 16" in load.one_error()


@pytest.mark.parametrize(
    "options", [["-y", 0], ["-x", 0], ["-D", 5]], ids=["no consumer", "no producer", "some"]
)
def test_what_cannot_be_verified_is_refused(leveret, perf, options):
    load = perf("-h", leveret.uri, "--verify", *options, status=2)
    assert "--verify" in load.one_error()
