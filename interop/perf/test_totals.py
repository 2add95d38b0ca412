"""The totals count each message, also of agents that do not start at once."""

from tools import wait_until

MESSAGES = 1000


def one_side(broker, queue, *options):
    return ["-h", broker.uri, "-u", queue, "-k", queue, "-z", 20, *options]


def test_both_sides_of_a_load_reach_their_limits(broker, queue, perf):
    totals = perf(*one_side(broker, queue, "-C", MESSAGES, "-D", MESSAGES)).run["totals"]
    assert totals["sent"] == totals["received"] == MESSAGES


def test_what_a_producer_sends_counts_from_its_first_message(broker, queue, perf):
    """With a rate, it starts at a random moment within a second."""
    load = perf(*one_side(broker, queue, "-y", 0, "-C", MESSAGES, "-r", 4000))
    assert load.run["totals"]["sent"] == MESSAGES


def test_what_a_consumer_receives_counts_from_its_first_message(broker, queue, loads):
    """It starts a second later than it could, when all messages wait for it."""
    receiver = loads.start_perf(*one_side(broker, queue, "-x", 0, "-D", MESSAGES, "-csd", 1))
    wait_until(lambda: broker.declared(queue), "the queue")
    loads.perf(*one_side(broker, queue, "-y", 0, "-C", MESSAGES))
    receiver.finish()
    assert receiver.run["totals"]["received"] == MESSAGES
    assert receiver.run["consumer_latency"]["count"] == MESSAGES
