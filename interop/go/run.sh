#!/usr/bin/env bash
# Runs the amqp091-go suite against the broker at AMQP_HOST:AMQP_PORT (default 127.0.0.1:5672).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(cd ../.. && pwd)/target/interop/go"

export AMQP_HOST="${AMQP_HOST:-127.0.0.1}" AMQP_PORT="${AMQP_PORT:-5672}"
export GOFLAGS="${GOFLAGS:-} -mod=readonly" GOTOOLCHAIN=local

if ! command -v go >/dev/null; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy golang-go
  else
    echo "interop/go: install Go 1.20 or later" >&2
    exit 1
  fi
fi
version="$(go env GOVERSION)"
if [ "$(printf '%s\n' go1.20 "$version" | sort -V | head -n 1)" != go1.20 ]; then
  echo "interop/go: needs Go 1.20 or later, found $version" >&2
  exit 1
fi

mkdir -p "$target"
go vet ./...
go test -c -o "$target/interop.test" .
exec "$target/interop.test" -test.v -test.timeout=90s
