"""A script that reads PerfTest's output reads `leveret perf`'s: the same patterns match the same
lines, whose fields are the same."""

import csv
import dataclasses

import pytest

from perf_test_output import (
    COMPACT_HEAD,
    COMPACT_LINE,
    INTERVAL,
    STARTING,
    SUMMARY,
    fields,
    matches,
    reasons,
)
from tools import Loads

SECONDS = 2
# What is sent is not judged: few messages leave room for all the loads at once.
COMMON = ["-z", SECONDS, "-d", "an-id", "-r", 200]

OPTIONS = {
    "defaults": [],
    "confirms and returns": ["-c", 50, "-f", "persistent", "-f", "mandatory"],
    "agents": ["-ms", "-x", 2, "-X", 2, "-y", 2],
    "producer": ["-y", 0],
}


@dataclasses.dataclass
class Both:
    """What the two wrote when told the same: PerfTest, and `leveret perf`."""

    theirs: str
    ours: str
    their_csv: list
    our_csv: list


@pytest.fixture(scope="module")
def outputs(leveret, tmp_path_factory):
    """By options and format. All of one tester run at the same time, on queues of their own, and
    then all of the other: while Java starts eight times, a load may miss a whole second."""
    folder = tmp_path_factory.mktemp("outputs")
    loads = Loads(folder)
    try:
        theirs = run_all(loads.start_perf_test, leveret, folder / "theirs")
        ours = run_all(loads.start_perf, leveret, folder / "ours")
    finally:
        loads.end()
    assert {output.err for output, _ in ours.values()} == {""}
    return {
        key: Both(theirs[key][0].out, ours[key][0].out, theirs[key][1], ours[key][1])
        for key in theirs
    }


def run_all(start, leveret, folder):
    """What each load wrote, and the rows of its file."""
    folder.mkdir()
    started = {}
    for name, options in OPTIONS.items():
        for form in ("default", "compact"):
            file = folder / f"{name} {form}.csv"
            command = ["-h", leveret.uri, *COMMON, *options, "-mf", form, "-o", file]
            started[name, form] = (start(*command), file)
    for load, _ in started.values():
        load.finish()
    return {
        key: (load, list(csv.reader(file.read_text().splitlines())))
        for key, (load, file) in started.items()
    }


@pytest.fixture(params=OPTIONS)
def default(request, outputs):
    return outputs[request.param, "default"]


@pytest.fixture(params=OPTIONS)
def compact(request, outputs):
    return outputs[request.param, "compact"]


def agents(output, what):
    return sorted(match["agent"] for match in matches(STARTING, output) if what in match["agent"])


def test_each_second_has_the_figures_of_perf_test(default):
    theirs, ours = (matches(INTERVAL, output) for output in (default.theirs, default.ours))
    assert theirs and ours
    assert {match["id"] for match in theirs + ours} == {"an-id"}
    assert fields(ours[0]) == fields(theirs[0])


def test_the_summary_has_the_figures_of_perf_test(default):
    assert reasons(default.ours) == reasons(default.theirs) == {"Reached time limit"}
    theirs, ours = (matches(SUMMARY, output) for output in (default.theirs, default.ours))
    assert [fields(match) for match in ours] == [fields(match) for match in theirs]
    assert {match["id"] for match in theirs + ours} == {"id: an-id, "}


def test_each_channel_is_announced(default):
    assert agents(default.ours, "channel") == agents(default.theirs, "channel") != []


def test_each_connection_is_announced(default):
    assert agents(default.ours, "") == agents(default.theirs, "") != []


def test_there_is_a_line_for_each_second_up_to_the_last(default):
    times = [round(float(match["time"])) for match in matches(INTERVAL, default.ours)]
    assert times == list(range(1, SECONDS + 1))


def test_compact_lines_are_a_table_with_the_columns_of_perf_test(compact):
    for output in (compact.theirs, compact.ours):
        (head,) = matches(COMPACT_HEAD, output)
        columns = fields(head)
        lines = matches(COMPACT_LINE, output)
        assert lines
        for line in lines:
            rates = 2 * ("confirmed" in columns) + len(columns & {"sent", "returned", "received"})
            assert line["rates"].count("msg/s") == rates
            assert len(line["latencies"].split()) == 2 * sum("latency" in name for name in columns)
    assert fields(matches(COMPACT_HEAD, compact.ours)[0]) == fields(
        matches(COMPACT_HEAD, compact.theirs)[0]
    )


def test_the_compact_summary_has_no_id(compact):
    theirs, ours = (matches(SUMMARY, output) for output in (compact.theirs, compact.ours))
    assert [fields(match) for match in ours] == [fields(match) for match in theirs]
    assert {match["id"] for match in theirs + ours} == {None}


def test_csv_has_the_columns_of_perf_test(default):
    assert default.our_csv[0] == default.their_csv[0]
    theirs, ours = default.their_csv[1], default.our_csv[1]
    assert [bool(value) for value in ours] == [bool(value) for value in theirs]
    assert theirs[0] == ours[0] == "an-id"
