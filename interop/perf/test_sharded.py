"""`w3-sharded` on RabbitMQ's sharding plugin: it asks for the policy that it needs."""

import re
import shlex

import pytest

from test_scenarios import W3_COLUMNS, assert_scenario, assert_table, heads

EXCHANGE = "myshard"


@pytest.fixture
def options(node, rabbitmq):
    """Leaves no exchange, policy or shard behind."""
    yield ["-h", rabbitmq.uri, "--node", node.node, "--time", 1]
    if "shard" in node.ctl("list_policies", "--quiet"):
        node.ctl("clear_policy", f"{EXCHANGE}-shard")
    with rabbitmq.channel() as channel:
        channel.exchange_delete(EXCHANGE)
        for number in range(4):
            channel.queue_delete(f"sharding: {EXCHANGE} - {node.node} - {number}")


def test_it_names_the_policy_that_is_missing_and_runs_with_it(node, rabbitmq, options, loads):
    refused = loads.start_perf("w3-sharded", *options, "--producers", 1).finish(status=1)
    error = refused.one_error()
    assert refused.out == ""
    assert f"{rabbitmq.address} has no queue 'sharding: {EXCHANGE} - {node.node} - 0'" in error

    policy = re.search(r"rabbitmqctl (set_policy .* --apply-to exchanges)", error).group(1)
    node.ctl(*shlex.split(policy))

    load = loads.perf("w3-sharded", *options, "--producers", "1,4")
    names = ["1 producer", "4 producers"]
    assert_scenario(load, rabbitmq, "w3-sharded", names)
    for run in load.runs:
        assert run["parameters"]["shards"] == 4
        assert run["totals"]["sent"] > 0 and run["totals"]["confirmed"] > 0
        assert run["checks"]["checked"] >= run["totals"]["received"] > 0
        assert run["checks"]["unchecked"] == 0
    published = [run["published"].get("RabbitMQ 3.3.5, received rate") for run in load.runs]
    assert published == [None, 46000]
    assert_table(load, rabbitmq, names, heads(load, *W3_COLUMNS, "RabbitMQ 3.3.5"))


def test_a_broker_without_sharding_is_named_in_one_line(leveret, perf):
    load = perf("w3-sharded", "-h", leveret.uri, "--time", 1, status=1)
    line = load.one_error()
    assert "has no queue 'sharding: myshard - " in line and "shards-per-node" in line
