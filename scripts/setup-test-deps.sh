#!/usr/bin/env bash
# Installs what the checks need and the machine lacks; does nothing where all is there.
#
# usage: setup-test-deps.sh [lint] [test] [perf]      (lint and test, if none is named)
#   lint  cargo-deny, into target/tools
#   test  Python with venv, Node.js with npm, Go, a JDK with Maven, from the system's packages;
#         python3-amqplib, the only client of AMQP 0-8 that is still packaged; rabbitmq-server
#   perf  what interop/perf needs of these, but for the JDK: Python with venv, rabbitmq-server
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly cargo_deny_version=0.20.2
readonly tools=$PWD/target/tools
export PATH=$tools/bin:$PATH

say() { printf 'setup: %s\n' "$*"; }

# A debug build: it is three times as fast to build, and it checks in a second or two.
setup_lint() {
  local component
  for component in fmt clippy; do
    cargo "$component" --version >/dev/null 2>&1 || {
      say "cargo $component is missing; with rustup: rustup component add rustfmt clippy" >&2
      return 1
    }
  done
  if ! cargo deny --version >/dev/null 2>&1; then
    say "building cargo-deny $cargo_deny_version, about a minute on two cores"
    env -u CARGO_TARGET_DIR cargo install --quiet --locked --debug --root "$tools" \
      --version "$cargo_deny_version" cargo-deny
  fi
}

# The Debian packages that provide what is missing, one a line.
missing_for_perf() {
  # The interpreter may be one that has venv without Debian's package.
  python3 -c 'import venv, ensurepip' 2>/dev/null || echo python3-venv
  [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || echo rabbitmq-server
}

missing_for_test() {
  missing_for_perf
  /usr/bin/python3 -c 'import amqplib' 2>/dev/null || echo python3-amqplib
  command -v node >/dev/null || echo nodejs
  command -v npm >/dev/null || echo npm
  command -v go >/dev/null || echo golang-go
  command -v javac >/dev/null || echo default-jdk-headless
  command -v mvn >/dev/null || echo maven
}

# install COMMAND: installs the packages that COMMAND prints, until it prints none.
install() {
  local missing
  mapfile -t missing < <("$1")
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  if ! command -v apt-get >/dev/null; then
    say "this system has no apt-get; install these Debian packages or their like by hand" >&2
    return 1
  fi
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update --quiet --quiet
  without_services "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --quiet --quiet --no-install-recommends "${missing[@]}"
  mapfile -t missing < <("$1")
  [ ${#missing[@]} -eq 0 ] || { say "still missing: ${missing[*]}" >&2; return 1; }
}

# without_services COMMAND...: runs it as usual, but packages that it installs start no services: a
# RabbitMQ of the system would take the ports of Leveret's.
without_services() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e $policy ]; then
    trap '"${as_root[@]}" rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
    "${as_root[@]}" chmod +x $policy
  fi
  "$@"
)

[ $# -gt 0 ] || set -- lint test
for group in "$@"; do
  case $group in
    lint) setup_lint ;;
    test) install missing_for_test ;;
    perf) install missing_for_perf ;;
    *) say "unknown group: $group (lint, test and perf are known)" >&2; exit 2 ;;
  esac
done
