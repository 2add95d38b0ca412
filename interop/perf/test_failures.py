"""What goes wrong is said in one line, with an exit status; what was measured so far is kept."""

import concurrent.futures
import signal
import time

import pytest

from conftest import Broker
from server import Server, free_port
from tools import wait_until

FAILED = 1


def assert_failed(load, *parts):
    """One line, which has these parts; the result says the same."""
    line = load.one_error()
    for part in parts:
        assert part in line, line
    assert load.run["error"] == line.removeprefix("leveret perf: ")


def assert_nothing_measured(load):
    assert load.run["totals"]["sent"] == load.run["totals"]["received"] == 0
    assert "rate avg" not in load.out


def test_a_refused_login_names_the_user(broker, perf):
    load = perf("-h", f"amqp://guest:wrong@{broker.address}", "-z", 1, status=FAILED)
    assert_failed(load, "'guest'", "ACCESS_REFUSED")
    assert_nothing_measured(load)
    assert "wrong" not in load.out + load.err
    assert not any("wrong" in word for word in load.document["command"])


def test_a_missing_vhost_is_named(broker, perf):
    load = perf("-h", f"{broker.uri}/nowhere", "-z", 1, status=FAILED)
    assert_failed(load, "'nowhere'", "NOT_ALLOWED")
    assert_nothing_measured(load)


def test_a_missing_queue_is_named_if_it_has_to_be_there(broker, queue, perf):
    load = perf("-h", broker.uri, "-p", "-e", "amq.direct", "-u", queue, "-z", 1, status=FAILED)
    assert_failed(load, f"'{queue}'", "--predeclared")
    assert_nothing_measured(load)
    assert broker.declared(queue) is None


def test_a_missing_exchange_is_named_if_it_has_to_be_there(broker, perf):
    load = perf("-h", broker.uri, "-p", "-e", "nothing", "-y", 0, "-z", 1, status=FAILED)
    assert_failed(load, "'nothing'", "--predeclared")
    assert_nothing_measured(load)


def test_a_queue_of_another_kind_is_not_taken(broker, queue, perf):
    with broker.channel() as channel:
        channel.queue_declare(queue, durable=True)
    load = perf("-h", broker.uri, "-u", queue, "-z", 1, status=FAILED)
    assert_failed(load, f"'{queue}'", "PRECONDITION_FAILED")
    assert_nothing_measured(load)


def test_a_port_where_nothing_listens_is_named(perf):
    port = free_port()
    load = perf("-h", f"amqp://127.0.0.1:{port}", "-z", 1, status=FAILED)
    assert_failed(load, f"127.0.0.1:{port}")
    assert_nothing_measured(load)


@pytest.mark.parametrize("scenario", ["w1", "w2", "w3", "w4", "suite"])
def test_each_scenario_says_why_it_cannot_run(broker, perf, scenario):
    load = perf(scenario, "-h", f"amqp://guest:wrong@{broker.address}", status=FAILED)
    line = load.one_error()
    assert "'guest'" in line and "ACCESS_REFUSED" in line
    assert all("ACCESS_REFUSED" in run["error"] for run in load.runs)


def test_a_scenario_without_cases_is_refused(leveret, perf):
    load = perf("suite", "-h", leveret.uri, "--only", "no such case", status=2)
    assert "no such case" in load.one_error()


def wait_for_figures(load):
    """Waits for the first line of them."""
    line = ""
    while ", time " not in line:
        line = load.process.stdout.readline()
        assert line, "the load ended"


def assert_figures_up_to_there(load):
    run = load.run
    totals = run["totals"]
    assert 0 < totals["seconds"] < 10
    assert totals["sent"] > 0 and totals["received"] > 0
    assert totals["sent_rate"] == pytest.approx(totals["sent"] / totals["seconds"])
    assert len(run["series"]) >= 1
    assert run["consumer_latency"]["count"] > 0
    for line in ("sending rate avg: ", "receiving rate avg: ", "consumer latency min/median"):
        assert line in load.out


def test_the_death_of_a_broker_ends_the_load_with_its_figures(tmp_path, loads):
    with Server(tmp_path) as server:
        broker = Broker("127.0.0.1", server.port, "Leveret")
        load = loads.start_perf("-h", broker.uri, "-r", 2000, "-prsd", 0, "-z", 8)
        wait_for_figures(load)
        server.kill()
        load.finish(status=FAILED)
    assert_failed(load, broker.address)
    assert_figures_up_to_there(load)
    assert load.run["totals"]["broker_cpu_seconds"] > 0
    assert "test stopped (Error: " in load.out


def test_a_queue_deleted_meanwhile_ends_the_load_with_its_figures(broker, queue, loads):
    load = loads.start_perf("-h", broker.uri, "-u", queue, "-r", 2000, "-prsd", 0, "-z", 8)
    wait_for_figures(load)
    with broker.channel() as channel:
        channel.queue_delete(queue)
    load.finish(status=FAILED)
    assert_failed(load, f"'{queue}'")
    assert_figures_up_to_there(load)
    assert "test stopped (Error: " in load.out


def test_ctrl_c_is_heeded_at_any_moment(leveret, loads):
    """Here, while a line of figures is printed."""

    def interrupt_at_the_first_line(load):
        wait_for_figures(load)
        load.process.send_signal(signal.SIGINT)
        return load.finish().run["stopped"]

    started = [loads.start_perf("-h", leveret.uri, "-r", 100, "-z", 4) for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(len(started)) as threads:
        stopped = list(threads.map(interrupt_at_the_first_line, started))
    assert stopped == [{"Interrupted": 1}] * len(started)


def test_ctrl_c_ends_a_load_in_good_order(broker, queue, loads):
    load = loads.start_perf("-h", broker.uri, "-u", queue, "-r", 2000, "-prsd", 0, "-z", 8)
    wait_for_figures(load)
    time.sleep(0.2)
    load.process.send_signal(signal.SIGINT)
    load.finish()
    assert load.err == ""
    assert load.run["stopped"] == {"Interrupted": 1}
    assert "error" not in load.run
    assert_figures_up_to_there(load)
    assert "test stopped (Interrupted)" in load.out
    # Its consumer is gone, and with it the queue.
    wait_until(lambda: broker.declared(queue) is None, "the queue's end")


@pytest.mark.parametrize(
    "command",
    [
        ["w2", "--time", 30, "--channels", "5,6"],
        ["w3", "--time", 30, "--queues", "1,2"],
        ["suite", "--time", 30],
    ],
    ids=lambda command: command[0],
)
def test_ctrl_c_ends_a_scenario_in_good_order(leveret, loads, command):
    scenario, *options = command
    load = loads.start_perf(scenario, "-h", leveret.uri, *options)
    time.sleep(0.7)
    load.process.send_signal(signal.SIGINT)
    load.finish()
    assert load.run["stopped"] == {"Interrupted": 1}
    assert "error" not in load.run
    assert load.run["totals"]["sent"] > 0


def test_ctrl_c_leaves_nothing_of_w1_behind(broker, loads):
    try:
        load = loads.start_perf("w1", "-h", broker.uri, "--messages", 100_000_000)
        time.sleep(0.7)
        load.process.send_signal(signal.SIGINT)
        load.finish()
        assert load.run["stopped"] == {"Interrupted": 1}
        assert load.run["totals"]["sent"] > 0
        assert broker.declared("leveret-perf-w1") is None
    finally:
        with broker.channel() as channel:
            channel.queue_delete("leveret-perf-w1")
            channel.exchange_delete("X")


def test_a_result_that_cannot_be_written_is_an_error(leveret, loads, tmp_path):
    load = loads.start_perf("-h", leveret.uri, "-C", 10, "--html", tmp_path / "none" / "page.html")
    load.finish(status=FAILED)
    assert "none/page.html" in load.one_error()
