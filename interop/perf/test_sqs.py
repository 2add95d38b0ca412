"""`leveret perf w5` against moto's SQS: both protocols, both signatures; the queues are gone after."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import boto3
import pytest

BINARY = os.environ.get("LEVERET_BIN", "target/release/leveret")
HERE = pathlib.Path(__file__).parent
REGIONS = ["us-east-1", "eu-west-1"]
PREFIX = "leveret-perf-w5-"
DEADLINE = 120

pytestmark = pytest.mark.timeout(DEADLINE + 60)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_server(command, port):
    """Starts a server, and waits until it accepts connections."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return server
        except OSError:
            time.sleep(0.1)
    server.kill()
    raise RuntimeError(f"{command} does not listen on {port}")


@pytest.fixture(scope="module", params=["moto_server", "moto_sqs"])
def service(request):
    """The URL of a service, and the options with which it understands calls."""
    port = free_port()
    commands = {
        "moto_server": [pathlib.Path(sys.executable).with_name("moto_server"), "-p", str(port)],
        "moto_sqs": [sys.executable, HERE / "moto_sqs.py", str(port)],
    }
    options = {"moto_server": ["--signature", "v4"], "moto_sqs": ["--signature", "v2"]}
    server = start_server(commands[request.param], port)
    yield f"http://127.0.0.1:{port}", options[request.param]
    server.terminate()
    server.wait(timeout=10)


def environment():
    """Without what a developer's machine may say about AWS."""
    return {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}


def command(endpoint, *options):
    regions = ["--region", ",".join(REGIONS)]
    return [BINARY, "perf", "w5", "--endpoint", endpoint, *regions, *options]


def perf(endpoint, *options):
    return subprocess.run(
        command(endpoint, *options),
        env=environment(),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )


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


def runs_of(path):
    document = json.loads(path.read_text())
    assert document["scenario"] == "w5"
    return document["runs"]


def test_every_message_of_both_protocols_is_taken(service, tmp_path):
    endpoint, options = service
    result = perf(endpoint, *options, "--messages", "50,100", "--json", tmp_path / "r.json")
    assert result.returncode == 0, result.stderr
    runs = runs_of(tmp_path / "r.json")
    query = f"query {options[-1]}"
    assert [run["name"] for run in runs] == [
        f"{protocol}, N={messages}, {region}"
        for protocol in (query, "json")
        for messages in (50, 100)
        for region in REGIONS
    ]
    for run in runs:
        assert run["totals"]["sent"] == run["parameters"]["messages"]
        assert run["totals"]["sent_rate"] > 0
        assert run["confirm_latency"]["count"] == run["totals"]["sent"]
        assert run["figures"]["errors"] == 0
        assert "error" not in run
        assert f"{run['name']} " in result.stdout
    assert queues_of(endpoint) == []


def test_every_message_comes_once(service, tmp_path):
    endpoint, options = service
    # moto takes no lock: to several receivers at once it hands out a message twice now and then.
    options = [*options, "--messages", "40", "--consume", "--receivers", "1"]
    result = perf(endpoint, *options, "--json", tmp_path / "r.json")
    assert result.returncode == 0, result.stderr
    for run in runs_of(tmp_path / "r.json"):
        checks = run["checks"]
        assert checks["checked"] == run["totals"]["received"] == 40
        assert checks["gaps"] == checks["duplicates"] == checks["unchecked"] == 0
        assert run["consumer_latency"]["count"] == 40
    assert queues_of(endpoint) == []


def test_batches_to_all_regions_together(service, tmp_path):
    endpoint, options = service
    options = [*options, "--messages", "95", "--batch", "10", "--together"]
    result = perf(endpoint, *options, "--json", tmp_path / "r.json")
    assert result.returncode == 0, result.stderr
    runs = runs_of(tmp_path / "r.json")
    assert [run["totals"]["sent"] for run in runs] == [190, 190]
    assert queues_of(endpoint) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_load_deletes_its_queues(service, number):
    endpoint, options = service
    options = [*options, "--messages", "1000000", "--in-flight", "2"]
    load = subprocess.Popen(command(endpoint, *options), env=environment())
    try:
        end = time.monotonic() + DEADLINE
        while not queues_of(endpoint) and time.monotonic() < end:
            time.sleep(0.1)
        load.send_signal(number)
        load.wait(timeout=30)
    finally:
        load.kill()
    assert queues_of(endpoint) == []


def test_an_endpoint_where_nothing_listens_is_named_in_one_line():
    endpoint = f"http://127.0.0.1:{free_port()}"
    result = perf(endpoint)
    assert result.returncode != 0
    assert endpoint in result.stderr
    assert "--endpoint" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_an_endpoint_that_is_no_url_says_what_one_looks_like():
    result = perf("localhost")
    assert result.returncode != 0
    assert "http://127.0.0.1:9324" in result.stderr
