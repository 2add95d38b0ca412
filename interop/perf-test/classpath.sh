#!/usr/bin/env bash
# Prints the Java classpath of RabbitMQ's PerfTest, which Maven fetches if it is not there; installs
# a JDK and Maven where they are missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(cd ../.. && pwd)/target/interop/perf-test"

if ! command -v java >/dev/null || ! command -v mvn >/dev/null; then
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    {
      apt-get update -q
      DEBIAN_FRONTEND=noninteractive apt-get install -qy default-jdk-headless maven
    } >&2
  else
    echo "interop/perf-test: install a JDK, 17 or later, and Maven" >&2
    exit 1
  fi
fi

mkdir -p "$target"
mvn --batch-mode --quiet -Dstyle.color=never dependency:build-classpath >&2
cat "$target/classpath"
