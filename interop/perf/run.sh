#!/usr/bin/env bash
# Runs `leveret perf` against the broker at AMQP_HOST:AMQP_PORT (default 127.0.0.1:5672), which has
# to be Leveret, against a RabbitMQ that the tests start, and beside RabbitMQ's PerfTest.
#
# usage: run.sh [pytest arguments]
# LEVERET_BIN is the program whose `perf` is tested; default target/release/leveret.
#
# What is installed is kept in target/ and reused. Whatever is missing is an error: no test is
# skipped for want of a tool.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$root/target/interop/perf

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
# Keep compiled files out of the source tree.
export PYTHONPYCACHEPREFIX=$venv/pycache

LEVERET_BIN=$(realpath "${LEVERET_BIN:-$root/target/release/leveret}")
if [ ! -x "$LEVERET_BIN" ]; then
    echo "interop/perf: there is no $LEVERET_BIN; build it with: make build" >&2
    exit 1
fi
export LEVERET_BIN

"$root/scripts/setup-test-deps.sh" perf
PERF_TEST_CLASSPATH=$("$here/../perf-test/classpath.sh")
export PERF_TEST_CLASSPATH

# Done again whenever what decides the result has changed, or the system's Python has.
installed=$(sha256sum "$here/requirements.txt" "$here/run.sh" | sha256sum)
if ! "$venv/bin/python" -c 'import boto3, moto, pika, pytest' 2>/dev/null ||
    [ "$(cat "$venv/installed" 2>/dev/null)" != "$installed" ]; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install -q -r "$here/requirements.txt"
    echo "$installed" >"$venv/installed"
fi

cd "$here"
# Each test has its own time limit, but the clean-up after one that reached it has none.
exec timeout --kill-after=20 600 "$venv/bin/python" -m pytest "$@"
