#!/usr/bin/env bash
# Runs the Java client's suite against the broker at AMQP_HOST:AMQP_PORT (default 127.0.0.1:5672).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

export AMQP_HOST="${AMQP_HOST:-127.0.0.1}" AMQP_PORT="${AMQP_PORT:-5672}"

if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy default-jdk-headless maven
  else
    echo "interop/java: install a JDK, 17 or later, and Maven" >&2
    exit 1
  fi
fi

exec mvn --batch-mode --no-transfer-progress -Dstyle.color=never test
