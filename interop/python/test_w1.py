"""Workload W1: a relay's producer and consumer of 2008, on AMQP 0-8 (see w1_producer.py)."""

import contextlib
import pathlib
import re
import subprocess

import pytest

from common import HOST, PORT

HERE = pathlib.Path(__file__).parent
COUNT = 20_000
SECONDS = 60

pytestmark = pytest.mark.timeout(2 * SECONDS)


class Script:
    """One of the scripts, run by the Python that Debian's amqplib is installed for."""

    def __init__(self, name, *options):
        self._process = subprocess.Popen(
            ["/usr/bin/python3", HERE / name, f"--host={HOST}", f"--port={PORT}", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.communicate()

    def wait_until_ready(self):
        line = self._process.stdout.readline()
        assert line == "ready\n", line + self._process.stderr.read()

    def finish(self):
        """Lets the script go on, and waits for it; returns what it has printed."""
        output, errors = self._process.communicate("\n", timeout=SECONDS)
        assert self._process.returncode == 0, output + errors
        return output


# Both orders: on Leveret, the exchange keeps the flags of whichever script declares it first.
@pytest.mark.parametrize("first, second", [("producer", "consumer"), ("consumer", "producer")])
@pytest.mark.parametrize("transaction", [500, COUNT])
def test_every_message_arrives_once_and_in_order(queue, exchange, first, second, transaction):
    options = {
        "producer": [f"--count={COUNT}", f"--transaction={transaction}", "--hold"],
        "consumer": [f"--queue={queue}"],
    }
    with contextlib.ExitStack() as running:
        scripts = {}
        for role in first, second:
            script = Script(f"w1_{role}.py", f"--exchange={exchange}", *options[role])
            scripts[role] = running.enter_context(script)
            script.wait_until_ready()
        # Only now is the queue certain to be bound when the producer goes on.
        sent = scripts["producer"].finish()
        received = scripts["consumer"].finish()
    assert re.fullmatch(rf"sent {COUNT + 1} in [\d.]+ s, \d+ msg/s\n", sent)
    assert re.fullmatch(rf"received {COUNT + 1} in [\d.]+ s, \d+ msg/s\n", received)
