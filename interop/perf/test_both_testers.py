"""One load tester sends what the other receives: each reads the other's numbers and times."""

import time

import pytest

from perf_test_output import latency, reasons
from tools import wait_until

MESSAGES = 2000

OPTIONS = [
    pytest.param([], id="defaults"),
    pytest.param(["-s", 1000], id="size"),
    pytest.param(["-f", "persistent", "-c", 100], id="persistent"),
    pytest.param(["-jb", "-s", 300], id="json"),
    pytest.param(["-ms"], id="millis"),
]


def both_sides(broker, queue, options):
    """The routing key is the same on both: PerfTest takes latencies of no other messages."""
    return ["-h", broker.uri, "-u", queue, "-k", queue, "-z", 20, *options]


def sending(broker, queue, options):
    return [*both_sides(broker, queue, options), "-x", 1, "-y", 0, "-C", MESSAGES]


def receiving(broker, queue, options):
    return [*both_sides(broker, queue, options), "-x", 0, "-y", 1, "-D", MESSAGES]


def assert_plausible(microseconds):
    assert 0 < microseconds < 5_000_000


def unit(options):
    return ("ms", 1000) if "-ms" in options else ("µs", 1)


@pytest.mark.parametrize("options", OPTIONS)
def test_perf_test_receives_what_leveret_perf_sends(broker, queue, loads, options):
    command = receiving(broker, queue, options)
    if "-ms" in options:
        # They wait for a second, lest a latency be less than a millisecond.
        receiver = loads.start_perf_test(*command, "--consumer-start-delay", 1)
        wait_until(lambda: broker.declared(queue), "the queue")
        # It is bound next.
        time.sleep(0.1)
    else:
        receiver = loads.start_perf_test(*command)
        wait_until(lambda: broker.has_consumers(queue), "the consumer")
    sender = loads.perf(*sending(broker, queue, options))
    receiver.finish()

    run = sender.run
    assert run["totals"]["sent"] == MESSAGES
    assert run["stopped"] == {"Producer reached message limit": 1}
    if "-c" in options:
        assert run["totals"]["confirmed"] == run["confirm_latency"]["count"] == MESSAGES
    assert sender.err == ""

    assert reasons(receiver.out) == {"Consumer reached message limit"}, receiver
    values, named = latency(receiver.out, "consumer_latency")
    name, microseconds = unit(options)
    assert named == name
    for value in values:
        assert_plausible(value * microseconds)


@pytest.mark.parametrize("options", OPTIONS)
def test_leveret_perf_receives_what_perf_test_sends(broker, queue, loads, options):
    receiver = loads.start_perf(*receiving(broker, queue, options))
    wait_until(lambda: broker.has_consumers(queue), "the consumer")
    sender = loads.start_perf_test(*sending(broker, queue, options)).finish()
    receiver.finish()

    assert reasons(sender.out) == {"Producer reached message limit"}, sender

    run = receiver.run
    assert run["stopped"] == {"Consumer reached message limit": 1}
    assert run["totals"]["received"] == MESSAGES
    # It would say that times are of another clock.
    assert receiver.err == ""
    taken = run["consumer_latency"]
    assert taken["count"] == MESSAGES
    if "-ms" in options:
        assert taken["max_ns"] < 5e9
    else:
        assert_plausible(taken["min_ns"] / 1000)
        assert_plausible(taken["max_ns"] / 1000)
    checks = run["checks"]
    assert checks["checked"] + checks["unchecked"] >= MESSAGES
    assert (checks["gaps"], checks["duplicates"], checks["reordered"]) == (0, 0, 0), checks
    values, named = latency(receiver.out, "consumer_latency")
    name, microseconds = unit(options)
    assert named == name
    assert values[-1] == taken["max_ns"] // (1000 * microseconds)
