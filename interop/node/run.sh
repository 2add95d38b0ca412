#!/usr/bin/env bash
# Runs the amqplib suite against the broker at AMQP_HOST:AMQP_PORT (default 127.0.0.1:5672).
# Installs the locked dependencies into node_modules first; that step is quick when repeated.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

export AMQP_HOST="${AMQP_HOST:-127.0.0.1}" AMQP_PORT="${AMQP_PORT:-5672}"

if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy nodejs npm
  else
    echo "interop/node: install Node.js 18 or later, with npm" >&2
    exit 1
  fi
fi
if [ "$(node -p 'process.versions.node.split(".")[0]')" -lt 18 ]; then
  echo "interop/node: needs Node.js 18 or later, found $(node --version)" >&2
  exit 1
fi

# `npm ci` empties node_modules every time; skip it while the lock file is the one installed.
if ! cmp -s package-lock.json node_modules/.installed-lock.json; then
  npm ci --silent
  cp package-lock.json node_modules/.installed-lock.json
fi

# The outer limit ends a run whose sockets keep Node alive after the tests have timed out.
exec timeout --kill-after=5 90 npm test --silent
