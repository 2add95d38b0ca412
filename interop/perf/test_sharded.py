"""W3 sharded, on RabbitMQ's sharding plugin and on Leveret: what asks for the policy that it needs,
and PerfTest's commands as they were in 2016."""

import contextlib
import re
import shlex
import subprocess

import pytest

from conftest import Broker
from server import Server, binary
from test_scenarios import W3_COLUMNS, assert_scenario, assert_table, heads
from tools import wait_until

EXCHANGE = "myshard"
SHARDS = 4


class OfRabbitMq:
    """The node that the other tests use as well."""

    def __init__(self, node):
        self.name = node.node
        self.ctl = node.ctl
        self.broker = Broker("127.0.0.1", node.port, "RabbitMQ")


class OfLeveret:
    """A node of the test's own: `leveret ctl` needs its data directory."""

    def __init__(self, server, folder):
        self.name = "rabbit@w3"
        self.broker = Broker("127.0.0.1", server.port, "Leveret")
        self._folder = folder

    def ctl(self, *arguments):
        command = [binary(), "ctl", "--data-dir", self._folder / "data", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(params=["leveret", "rabbitmq"])
def sharding(request, tmp_path):
    """Leaves no exchange, policy or shard behind."""
    with contextlib.ExitStack() as stack:
        if request.param == "leveret":
            server = stack.enter_context(Server(tmp_path, "nodename = rabbit@w3"))
            sharding = OfLeveret(server, tmp_path)
        else:
            sharding = OfRabbitMq(request.getfixturevalue("node"))
        yield sharding
        if "shard" in sharding.ctl("list_policies", "--quiet"):
            sharding.ctl("clear_policy", f"{EXCHANGE}-shard")
        with sharding.broker.channel() as channel:
            channel.exchange_delete(EXCHANGE)
            for number in range(SHARDS):
                channel.queue_delete(shard(sharding, number))


def shard(sharding, number):
    return f"sharding: {EXCHANGE} - {sharding.name} - {number}"


def test_it_names_the_policy_that_is_missing_and_runs_with_it(sharding, loads):
    broker = sharding.broker
    options = ["-h", broker.uri, "--node", sharding.name, "--time", 1]
    refused = loads.start_perf("w3-sharded", *options, "--producers", 1).finish(status=1)
    error = refused.one_error()
    assert refused.out == ""
    assert f"{broker.address} has no queue '{shard(sharding, 0)}'" in error

    policy = re.search(r"ctl (set_policy .* --apply-to exchanges)", error).group(1)
    sharding.ctl(*shlex.split(policy))

    load = loads.perf("w3-sharded", *options, "--producers", "1,4")
    names = ["1 producer", "4 producers"]
    assert_scenario(load, broker, "w3-sharded", names)
    for run in load.runs:
        assert run["parameters"]["shards"] == SHARDS
        assert run["totals"]["sent"] > 0 and run["totals"]["confirmed"] > 0
        assert run["checks"]["checked"] >= run["totals"]["received"] > 0
        assert run["checks"]["unchecked"] == 0
    published = [run["published"].get("RabbitMQ 3.3.5, received rate") for run in load.runs]
    assert published == [None, 46000]
    assert_table(load, broker, names, heads(load, *W3_COLUMNS, "RabbitMQ 3.3.5"))


def test_perf_tests_commands_of_2016_run_unchanged(sharding, loads):
    """One PerfTest consumes each shard; another one produces with random keys, and confirms."""
    broker = sharding.broker
    with broker.channel() as channel:
        channel.exchange_declare(EXCHANGE, "x-modulus-hash", durable=True)
    definition = f'{{"shards-per-node": {SHARDS}}}'
    sharding.ctl("set_policy", f"{EXCHANGE}-shard", f"^{EXCHANGE}$", definition)
    common = ["-h", broker.uri, "-p", "-e", EXCHANGE, "-c", 1000, "-f", "persistent"]
    consumers = [
        loads.start_perf_test(*common, "-u", shard(sharding, number), "-x0", "-y1", "-z", 12)
        for number in range(SHARDS)
    ]
    for number in range(SHARDS):
        wait_until(lambda: broker.has_consumers(shard(sharding, number)), "a consumer")
    producer = loads.start_perf_test(*common, "-x1", "-y0", "-K", "-C", 2000).finish()
    assert "nacked: 0" in producer.out or "nacked" not in producer.out
    received = sum(average(consumer.finish().out) for consumer in consumers)
    assert received > 0
    for number in range(SHARDS):
        assert broker.declared(shard(sharding, number)).message_count == 0


def average(out):
    return float(re.search(r"receiving rate avg: ([\d.]+) msg/s", out).group(1))


def test_a_broker_without_shards_is_named_in_one_line(leveret, perf):
    load = perf("w3-sharded", "-h", leveret.uri, "--time", 1, status=1)
    line = load.one_error()
    assert "has no queue 'sharding: myshard - " in line and "shards-per-node" in line
