"""Each scenario on each broker, for a second or so: what comes out is whole and plausible. Speed is
not judged."""

import json
import re

import pytest

PUBLISHED_W1 = "RabbitMQ 1.4, sent rate"
PUBLISHED_W3 = ("RabbitMQ 3.3.5, received rate", "RabbitMQ 3.6.1, received rate")

# Ticks of 10 ms: below this, the tester does not divide a broker's CPU time by messages.
COUNTABLE_CPU_SECONDS = 0.1


def assert_sound(run, broker, name):
    """What holds for each run of each scenario."""
    assert run["name"] == name
    assert "error" not in run, run["error"]
    assert run["broker"]["product"] == broker.product
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", run["broker"]["version"])
    assert run["broker"]["address"] == broker.address
    assert "steady_from_second" not in run
    totals = run["totals"]
    assert totals["seconds"] > 0
    assert totals["sent"] > 0 or totals["received"] > 0
    assert (totals["sent_rate"] > 0) == (totals["sent"] > 0)
    assert totals["load_cpu_seconds"] > 0
    assert_process(run)
    assert_checks(run)


def assert_process(run):
    """A broker on this machine is watched, by the process that listens on its port."""
    totals = run["totals"]
    program = {"Leveret": "leveret", "RabbitMQ": "beam.smp"}[run["broker"]["product"]]
    with open(f"/proc/{run['broker']['pid']}/cmdline") as command:
        assert command.read().split("\0")[0].endswith(program)
    assert totals["broker_rss_bytes"] > 1 << 20
    cpu = totals["broker_cpu_seconds"]
    assert ("broker_cpu_us_per_message" in totals) == (cpu >= COUNTABLE_CPU_SECONDS)
    if cpu >= COUNTABLE_CPU_SECONDS:
        messages = totals["received"] or totals["sent"]
        assert totals["broker_cpu_us_per_message"] == pytest.approx(cpu * 1e6 / messages, rel=0.1)


def assert_checks(run):
    checks = run.get("checks")
    if checks:
        assert (checks["gaps"], checks["duplicates"], checks["reordered"]) == (0, 0, 0), checks


def assert_table(load, broker, names, heads):
    """The table on standard output: a row for each case, under the broker and the columns."""
    before, table = load.out.split("\n\n", 1)
    assert before.startswith(f"{load.document['scenario']}: ")
    lines = table.splitlines()
    assert re.search(rf"\b{broker.product} \d+\.\d+\.\d+", lines[0])
    assert re.split(r"\s{2,}", lines[1].strip()) == ["case", *heads]
    rows = [re.split(r"\s{2,}", line) for line in lines[2 : 2 + len(names)]]
    assert [row[0] for row in rows] == names
    assert {len(row) for row in rows} == {1 + len(heads)}
    for name in names:
        assert re.search(rf"^  {re.escape(name)} .* msg/s", before, re.MULTILINE)
    return {row[0]: dict(zip(heads, row[1:])) for row in rows}


def heads(load, *names):
    """What no run of a table has is no column of it."""
    has_confirms = any("confirm_latency" in run for run in load.runs)
    has_cpu = any("broker_cpu_us_per_message" in run["totals"] for run in load.runs)
    there = {"confirm p99": has_confirms, "CPU µs/msg": has_cpu}
    return [name for name in names if there.get(name, True)]


def assert_scenario(load, broker, scenario, names):
    document = load.document
    assert document["format"] == "leveret-perf/1"
    assert document["scenario"] == scenario
    assert len(document["runs"]) == len(names)
    for run, name in zip(document["runs"], names):
        assert_sound(run, broker, name)


@pytest.fixture
def protocol(broker, perf):
    """RabbitMQ 4 has dropped AMQP 0-8."""
    connected = perf("-h", broker.uri, "-C", 1, "-z", 5).run["broker"]
    dropped = connected["product"] == "RabbitMQ" and int(connected["version"].split(".")[0]) >= 4
    return ["--protocol", "0-9-1"] if dropped else []


def test_w1_commits_everything_and_consumes_it_in_order(broker, perf, protocol):
    options = ["--transaction", "500,2000", "--messages", 3000, *protocol]
    load = perf("w1", "-h", broker.uri, *options)
    names = ["T=500", "T=2000", "T=500, not persistent", "T=2000, not persistent"]
    assert_scenario(load, broker, "w1", names)
    published = [1538, 2390, 3372, None]
    for run, rate in zip(load.runs, published):
        assert run["published"].get(PUBLISHED_W1) == rate
        assert run["totals"]["sent"] == run["totals"]["received"] == 3000
        assert run["checks"]["checked"] == 3000 and run["checks"]["unchecked"] == 0
        commits = -(-3000 // run["parameters"]["transaction"])
        assert run["confirm_latency"]["count"] == commits
        assert run["figures"]["consumed/s"] > 0
    columns = ["sent/s", "confirm max", "consumed/s", "CPU µs/msg", "RabbitMQ 1.4"]
    table = assert_table(load, broker, names, heads(load, *columns))
    assert [table[name]["RabbitMQ 1.4"] for name in names] == ["1,538", "2,390", "3,372", "–"]


@pytest.mark.parametrize("tx", [False, True], ids=["plain", "tx"])
def test_w2_plays_on_all_channels(broker, perf, tx):
    options = ["--channels", "1,20", "--time", 0.5] + ["--tx"] * tx
    load = perf("w2", "-h", broker.uri, *options)
    names = ["1 channel", "20 channels"]
    assert_scenario(load, broker, "w2", names)
    for run in load.runs:
        totals, figures = run["totals"], run["figures"]
        assert run["stopped"] == {"Reached time limit": 1}
        assert run["parameters"]["tx"] == tx
        assert totals["sent"] > 0 and totals["received"] > 0
        # One message under way on each channel.
        assert abs(totals["sent"] - totals["received"]) <= run["parameters"]["channels"]
        # Method, header, body; with transactions also the commit.
        of_sent = (3 + tx) * totals["sent_rate"]
        assert figures["frames written/s"] == pytest.approx(of_sent)
        of_received = 3 * totals["received_rate"] + tx * totals["sent_rate"]
        assert figures["frames read/s"] == pytest.approx(of_received)
        assert ("confirm_latency" if tx else "consumer_latency") in run
    latencies = [] if tx else ["p50", "p99"]
    columns = ["sent/s", *latencies, "CPU µs/msg", "frames read/s", "frames written/s"]
    assert_table(load, broker, names, heads(load, *columns))


W3_COLUMNS = ["received/s", "p50", "p99", "confirm p99", "CPU µs/msg"]
W3_PUBLISHED = ["RabbitMQ 3.3.5", "RabbitMQ 3.6.1"]


def test_w3_confirms_and_receives_on_each_queue(broker, perf):
    load = perf("w3", "-h", broker.uri, "--queues", "1,5", "--time", 0.6)
    names = ["1 queue", "5 queues"]
    assert_scenario(load, broker, "w3", names)
    published = [(8900, 6000), (None, 18000)]
    for run, rates in zip(load.runs, published):
        totals = run["totals"]
        assert totals["sent"] > 0 and totals["confirmed"] > 0 and totals["received"] > 0
        assert run["checks"]["checked"] >= totals["received"]
        assert run["checks"]["unchecked"] == 0
        assert tuple(run["published"].get(name) for name in PUBLISHED_W3) == rates
        for latency in (run["consumer_latency"], run["confirm_latency"]):
            assert 0 < latency["min_ns"] <= latency["p50_ns"] <= latency["p99_ns"] < 10e9
    table = assert_table(load, broker, names, heads(load, *W3_COLUMNS, *W3_PUBLISHED))
    assert [table["5 queues"][name] for name in W3_PUBLISHED] == ["–", "18,000"]


def test_w4_receives_each_order_of_each_flood(broker, perf):
    load = perf("w4", "-h", broker.uri, "--time", 1, "--rate", 200)
    floods = {"10 x 50 messages": 500, "10 x 100 messages": 1000, "20 x 50 messages": 1000}
    names = [*floods, "10 at 200/s, 1 s"]
    assert_scenario(load, broker, "w4", names)
    for run in load.runs[:-1]:
        assert run["totals"]["sent"] == run["totals"]["received"] == floods[run["name"]]
        assert run["consumer_latency"]["count"] == run["checks"]["checked"] == floods[run["name"]]
        assert run["consumer_latency"]["stdev_ns"] > 0
    sustained = load.runs[-1]["totals"]
    assert sustained["received_rate"] == pytest.approx(2000, rel=0.3)
    columns = ["mean", "stdev", "p99", "max", "received/s", "CPU µs/msg"]
    assert_table(load, broker, names, heads(load, *columns[:5]))


SUITE = (
    ["16 B, transient", "1 KiB, transient", "1 KiB, persistent"]
    + ["1 queue", "2 queues", "4 queues", "8 queues", "fan-out to 10 queues"]
    + ["1 channel", "10 channels", "50 channels", "500 channels"]
    + ["tx of 1", "tx of 10", "tx of 100", "tx of 1000"]
    + ["latency at 100/s", "latency at 1000/s", "latency at 5000/s", "latency at 20000/s"]
    + ["backlog, fill", "backlog, drain"]
)
SUITE_COLUMNS = ["received/s", "sent/s", "p50", "p99", "confirm p99", "CPU µs/msg"]


def test_suite_has_a_figure_for_each_case(leveret, perf):
    load = perf("suite", "-h", leveret.uri, "--time", 0.1, "--backlog", 2000)
    assert_scenario(load, leveret, "suite", SUITE)
    assert_table(load, leveret, SUITE, heads(load, *SUITE_COLUMNS))


@pytest.mark.parametrize("part", ["persistent", "queue", "tx of", "latency"])
def test_suite_runs_only_what_is_asked_for(rabbitmq, perf, part):
    load = perf("suite", "-h", rabbitmq.uri, "--time", 0.3, "--only", part)
    names = [name for name in SUITE if part in name]
    assert_scenario(load, rabbitmq, "suite", names)
    assert_table(load, rabbitmq, names, heads(load, *SUITE_COLUMNS))


def test_suite_drains_the_backlog_that_it_has_filled(broker, perf):
    load = perf("suite", "-h", broker.uri, "--only", "backlog", "--backlog", 3000)
    assert_scenario(load, broker, "suite", ["backlog, fill", "backlog, drain"])
    fill, drain = (run["totals"] for run in load.runs)
    assert (fill["sent"], fill["received"]) == (3000, 0)
    assert (drain["sent"], drain["received"]) == (0, 3000)
    assert broker.declared("leveret-perf-suite-backlog") is None


def test_suite_consumes_on_each_of_500_channels(broker, perf):
    load = perf("suite", "-h", broker.uri, "--only", "500 channels", "--time", 1)
    assert load.run["totals"]["received"] > 0


def test_two_brokers_stand_side_by_side(leveret, rabbitmq, perf):
    options = ["--channels", 5, "--time", 0.5, "--rounds", 2]
    load = perf("w2", "-h", leveret.uri, "--against", rabbitmq.uri, *options)
    brokers = [leveret, rabbitmq]
    turns = [(round, broker) for round in (1, 2) for broker in brokers]
    assert len(load.runs) == len(turns)
    for run, (round, broker) in zip(load.runs, turns):
        assert run["round"] == round
        assert_sound(run, broker, "5 channels")
    columns = ["sent/s", "p50", "p99", "CPU µs/msg", "frames read/s", "frames written/s"]
    table = assert_table(load, leveret, ["5 channels"], [*columns, *columns, "B/A"])
    assert re.search(r"A  Leveret \S+ +B  RabbitMQ \S+", load.out)
    # Each broker's median of both rounds, and their ratio.
    a, b = (
        sum(run["totals"]["sent_rate"] for run in load.runs[first::2]) / 2 for first in (0, 1)
    )
    assert float(table["5 channels"]["B/A"]) == pytest.approx(b / a, rel=0.01, abs=0.006)


def test_a_plain_load_runs_on_two_brokers_by_turns(leveret, rabbitmq, perf):
    options = ["-z", 1, "-c", 100, "-f", "persistent", "--rounds", 1]
    load = perf("-h", leveret.uri, "--against", rabbitmq.uri, *options)
    assert [run["broker"]["product"] for run in load.runs] == ["Leveret", "RabbitMQ"]
    for run in load.runs:
        assert "error" not in run
        assert run["totals"]["received_rate"] > 0 and run["totals"]["confirmed"] > 0
    assert "A  Leveret" in load.out and "B  RabbitMQ" in load.out


def test_steady_says_where_the_figures_begin(leveret, rabbitmq, loads):
    """At the same time on both: it takes some seconds until a state is steady."""
    options = ["--steady", "-z", 7, "-r", 1000]
    started = [loads.start_perf("-h", broker.uri, *options) for broker in (leveret, rabbitmq)]
    for load in started:
        run = load.finish().run
        begins = run["steady_from_second"]
        assert 0 <= begins <= 2.5
        assert run["totals"]["seconds"] <= 7.5 - begins
        assert run["totals"]["received_rate"] == pytest.approx(1000, rel=0.2)
        assert f"steady state: from second {begins:.1f}" in load.out


@pytest.mark.parametrize("scenario", ["w1", "w2"])
def test_steady_is_never_passed_over_in_silence(leveret, perf, scenario):
    """These are too short for a steady state: then it is said that there was none."""
    options = {
        "w1": ["--transaction", 500, "--messages", 1000],
        "w2": ["--channels", 1, "--time", 0.5],
    }
    load = perf(scenario, "-h", leveret.uri, "--steady", *options[scenario])
    assert all("steady_from_second" not in run for run in load.runs)
    assert load.err.count("no steady state was found") == len(load.runs)


def test_csv_page_and_history_are_kept_beside(leveret, perf, tmp_path):
    files = ["--csv", tmp_path / "w2.csv", "--history", tmp_path / "history"]
    options = ["--channels", 1, "--time", 1, "--html", tmp_path / "w2.html", "--label", "a"]
    load = perf("w2", "-h", leveret.uri, *options, *files)
    assert load.document["label"] == "a"
    assert len((tmp_path / "w2.csv").read_text().splitlines()) > 1
    (line,) = (tmp_path / "history").read_text().splitlines()
    assert json.loads(line) == load.document
    assert "1 channel" in (tmp_path / "w2.html").read_text()
