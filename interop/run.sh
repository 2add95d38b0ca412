#!/usr/bin/env bash
# Runs other languages' clients, and `leveret perf`, against a server that is started for them, and
# says how each did.
#
# usage: run.sh [--server PATH] [SUITE...]
#   --server PATH  the server's program; default target/release/leveret. Nothing is built here.
#   SUITE          a folder of interop/ with a run.sh; all of them, if none is named
#
# Fails if a suite fails or is missing, if the server dies or panics, or if it does not exit with
# status 0 within 10 s of SIGTERM. The server's log is kept in target/interop/server.log.
set -euo pipefail

readonly interop=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly root=$(dirname "$interop")
readonly log=$root/target/interop/server.log
readonly start_seconds=20 stop_seconds=10 suite_seconds=${SUITE_SECONDS:-300}

server=$root/target/release/leveret
server_pid=
scratch=
failed=0
summary=()

say() { printf '\ninterop: %s\n' "$*"; }
fail() { say "FAILED: $*" >&2; failed=1; }
running() { [ -n "$server_pid" ] && kill -0 "$server_pid" 2>/dev/null; }

clean_up() {
  if running; then kill -KILL "$server_pid" 2>/dev/null || true; fi
  if [ -n "$scratch" ]; then rm -rf "$scratch"; fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

accepts() { (exec 3<>"/dev/tcp/$AMQP_HOST/$AMQP_PORT") 2>/dev/null; }

start_server() {
  local variable
  # Settings of whoever runs this must not reach the server.
  for variable in $(compgen -e | grep -E '^(RABBITMQ|LEVERET)_' || true); do unset "$variable"; done
  scratch=$(mktemp -d)
  export AMQP_HOST=127.0.0.1 AMQP_PORT
  AMQP_PORT=$(free_port)
  echo "listeners.tcp.1 = 127.0.0.1:$AMQP_PORT" >"$scratch/leveret.conf"
  mkdir -p "$(dirname "$log")"
  "$server" --config "$scratch/leveret.conf" --data-dir "$scratch/data" >"$log" 2>&1 </dev/null &
  server_pid=$!
  # For suites that start one of their own, or use the program's other commands.
  LEVERET_BIN=$(realpath "$server")
  export LEVERET_BIN
  local deadline=$((SECONDS + start_seconds))
  until accepts; do
    if ! running; then fail "the server did not start"; return 1; fi
    if [ $SECONDS -ge $deadline ]; then
      fail "the server does not accept connections after $start_seconds s"
      return 1
    fi
    sleep 0.1
  done
  say "server $server_pid accepts connections on $AMQP_HOST:$AMQP_PORT"
}

run_suite() {
  local suite=$1 started=$SECONDS result=passed
  if [ ! -x "$interop/$suite/run.sh" ]; then
    fail "there is no executable interop/$suite/run.sh"
    summary+=("$suite missing -")
    return
  fi
  if ! running; then
    summary+=("$suite not-run -")
    return
  fi
  say "$suite"
  timeout --kill-after=10 "$suite_seconds" "$interop/$suite/run.sh" || result=failed
  if [ $result = failed ]; then fail "$suite"; fi
  summary+=("$suite $result $((SECONDS - started))")
  if ! running; then fail "the server died during $suite"; fi
}

stop_server() {
  if ! running; then
    if [ $failed -eq 0 ]; then fail "the server died after the last suite"; fi
    return
  fi
  kill -TERM "$server_pid"
  local deadline=$((SECONDS + stop_seconds))
  while running; do
    if [ $SECONDS -ge $deadline ]; then
      fail "the server still runs $stop_seconds s after SIGTERM"
      kill -KILL "$server_pid"
      break
    fi
    sleep 0.1
  done
  local status=0
  wait "$server_pid" || status=$?
  server_pid=
  if [ $status -ne 0 ]; then fail "the server ended with status $status"; fi
}

report() {
  if grep -q panicked "$log" 2>/dev/null; then
    fail "the server panicked:"
    grep -n -A 3 panicked "$log" | sed -n 1,40p >&2
  elif [ $failed -ne 0 ] && [ -s "$log" ]; then
    say "the end of the server's log ($log):"
    tail -n 20 "$log"
  fi
  say "summary"
  local line
  for line in "${summary[@]}"; do
    # shellcheck disable=SC2086
    printf '  %-12s %-8s %6s s\n' $line
  done
}

suites=()
while [ $# -gt 0 ]; do
  case $1 in
    --server) server=${2:?--server needs a path}; shift 2 ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "interop: unknown option $1; see --help" >&2; exit 2 ;;
    *) suites+=("${1%/}"); shift ;;
  esac
done
[ ${#suites[@]} -gt 0 ] || suites=(conformance python node go java perf-test perf compare rust)
if [ ! -x "$server" ]; then
  echo "interop: there is no server at $server; build it with: make build" >&2
  exit 2
fi

if start_server; then
  for suite in "${suites[@]}"; do run_suite "$suite"; done
  stop_server
fi
report
exit $failed
