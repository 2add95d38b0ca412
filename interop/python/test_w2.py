"""Workload W2: many channels on one connection, with haigha (see w2_haigha.py)."""

import pathlib
import re
import subprocess
import sys

import pytest

from common import HOST, PORT

SCRIPT = pathlib.Path(__file__).parent / "w2_haigha.py"
SECONDS = 60

pytestmark = pytest.mark.timeout(2 * SECONDS)


@pytest.mark.parametrize("tx", [[], ["--tx"]], ids=["plain", "tx"])
@pytest.mark.parametrize("channels", [1, 10, 50, 500])
def test_every_channel_makes_progress(channels, tx):
    run = subprocess.run(
        [
            sys.executable,
            SCRIPT,
            f"--host={HOST}",
            f"--port={PORT}",
            f"--channels={channels}",
            "--time=2",
            *tx,
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    # The script fails when a channel made no round trip, or any was closed by the broker.
    assert run.returncode == 0, run.stdout + run.stderr
    slowest = re.search(r"^slowest channel: \d+, (\d+) round trips$", run.stdout, re.MULTILINE)
    assert int(slowest[1]) > 0
    assert re.search(r"^[\d.]+ msg/s$", run.stdout, re.MULTILINE)
