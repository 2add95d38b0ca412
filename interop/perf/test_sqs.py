"""`leveret perf w5` on moto's SQS: both protocols, both signatures; its queues are gone after."""

import pathlib
import re
import signal
import socket
import subprocess
import sys

import boto3
import pytest

from server import free_port
from tools import wait_until

HERE = pathlib.Path(__file__).parent
REGIONS = ["us-east-1", "eu-west-1"]
PREFIX = "leveret-perf-w5-"


def accepts(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module", params=["moto_server", "moto_sqs"])
def service(request):
    """The URL of a service, and the options with which it understands calls."""
    port = free_port()
    commands = {
        "moto_server": [pathlib.Path(sys.executable).with_name("moto_server"), "-p", str(port)],
        "moto_sqs": [sys.executable, HERE / "moto_sqs.py", str(port)],
    }
    options = {"moto_server": ["--signature", "v4"], "moto_sqs": ["--signature", "v2"]}
    quiet = subprocess.DEVNULL
    server = subprocess.Popen(commands[request.param], stdout=quiet, stderr=quiet)
    try:
        wait_until(lambda: accepts(port) or server.poll() is not None, request.param)
        assert server.poll() is None, f"{request.param} ended"
        yield f"http://127.0.0.1:{port}", options[request.param]
    finally:
        server.kill()
        server.wait()


def w5(endpoint, *options):
    return ["w5", "--endpoint", endpoint, "--region", ",".join(REGIONS), *options]


def queues_of(endpoint):
    """The names of all queues that the scenario has left there."""
    names = []
    for region in REGIONS:
        client = boto3.client(
            "sqs",
            endpoint_url=endpoint,
            region_name=region,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        names += client.list_queues(QueueNamePrefix=PREFIX).get("QueueUrls", [])
    return names


PUBLISHED = {
    "m1.small from, sent rate": 71,
    "m1.small to, sent rate": 105,
    "c1.medium from, sent rate": 487,
    "c1.medium to, sent rate": 720,
    "c1.xlarge from, sent rate": 663,
    "c1.xlarge to, sent rate": 1594,
}


def test_every_message_of_both_protocols_is_taken(service, perf):
    endpoint, options = service
    load = perf(*w5(endpoint, *options, "--messages", "50,100"))
    assert load.document["scenario"] == "w5"
    assert [run["name"] for run in load.runs] == [
        f"{protocol}, N={messages}, {region}"
        for protocol in (f"query {options[-1]}", "json")
        for messages in (50, 100)
        for region in REGIONS
    ]
    for run in load.runs:
        assert run["broker"]["product"] == "SQS"
        assert run["totals"]["sent"] == run["parameters"]["messages"]
        assert run["totals"]["sent_rate"] > 0
        assert run["confirm_latency"]["count"] == run["totals"]["sent"]
        assert run["figures"]["errors"] == 0
        assert run["published"] == PUBLISHED
        assert "error" not in run
    assert_table(load)
    assert queues_of(endpoint) == []


def assert_table(load):
    lines, table = load.out.split("\n\n", 1)
    _, heads, *rows = table.splitlines()
    machines = [name.removesuffix(", sent rate") for name in sorted(PUBLISHED)]
    columns = re.split(r"\s{2,}", heads.strip())
    figures = ["sent/s", "confirm p50", "confirm p99", "received/s", "errors"]
    assert columns == ["case", *figures, *machines]
    for run, row in zip(load.runs, rows):
        name, *cells = re.split(r"\s{2,}", row)
        assert name == run["name"]
        assert len(cells) == len(columns) - 1
        assert re.search(rf"^  {re.escape(name)} .* msg/s", lines, re.MULTILINE)


def test_every_message_comes_once(service, perf):
    endpoint, options = service
    # moto takes no lock: to several receivers at once it hands out a message twice now and then.
    load = perf(*w5(endpoint, *options, "--messages", 40, "--consume", "--receivers", 1))
    for run in load.runs:
        checks = run["checks"]
        assert checks["checked"] == run["totals"]["received"] == 40
        assert checks["gaps"] == checks["duplicates"] == checks["unchecked"] == 0
        assert run["consumer_latency"]["count"] == 40
    assert queues_of(endpoint) == []


def test_batches_to_all_regions_together(service, perf):
    endpoint, options = service
    load = perf(*w5(endpoint, *options, "--messages", 95, "--batch", 10, "--together"))
    assert [run["totals"]["sent"] for run in load.runs] == [190, 190]
    assert queues_of(endpoint) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_load_deletes_its_queues(service, loads, number):
    endpoint, options = service
    load = loads.start_perf(*w5(endpoint, *options, "--messages", 1_000_000, "--in-flight", 2))
    wait_until(lambda: queues_of(endpoint), "the queues")
    load.process.send_signal(number)
    load.finish()
    assert load.runs[-1]["stopped"] == {"Interrupted": 1}
    assert queues_of(endpoint) == []


def test_an_endpoint_where_nothing_listens_is_named_in_one_line(perf):
    endpoint = f"http://127.0.0.1:{free_port()}"
    line = perf(*w5(endpoint), status=1).one_error()
    assert endpoint in line and "--endpoint" in line


def test_an_endpoint_that_is_no_url_says_what_one_looks_like(perf):
    assert "http://127.0.0.1:9324" in perf(*w5("localhost"), status=2).one_error()
