#!/usr/bin/env bash
# Runs the wire-level conformance suite against the broker at AMQP_HOST:AMQP_PORT
# (default 127.0.0.1:5672, guest/guest). REFERENCE=rabbitmq expects RabbitMQ's variants.
# Arguments go to pytest: `run.sh -k queue.declare`.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../.." && pwd)"
work="$root/target/interop/conformance"
venv="$work/venv"

mkdir -p "$work"
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/installed.txt"
fi

cd "$here"
export PYTHONDONTWRITEBYTECODE=1
exec "$venv/bin/python" -m pytest "$@"
