#!/usr/bin/env bash
# Runs the lapin suite against the broker at AMQP_HOST:AMQP_PORT (default 127.0.0.1:5672).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
CARGO_TARGET_DIR="$(cd ../.. && pwd)/target/interop/rust"
export CARGO_TARGET_DIR AMQP_HOST="${AMQP_HOST:-127.0.0.1}" AMQP_PORT="${AMQP_PORT:-5672}"

if ! command -v cargo >/dev/null; then
  echo "interop/rust: install Rust 1.88 or later, with cargo" >&2
  exit 1
fi

cargo test --locked --no-run
# Every test limits itself; the outer limit is for a hang that their runtime cannot see.
exec timeout --kill-after=5 90 cargo test --locked
