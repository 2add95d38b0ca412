#!/usr/bin/env bash
# Runs RabbitMQ's PerfTest against the broker at AMQP_HOST:AMQP_PORT (default 127.0.0.1:5672): short
# runs of a fixed number of messages, which must all be sent and received. Speed is not judged.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
target="$(cd ../.. && pwd)/target/interop/perf-test"

uri="amqp://guest:guest@${AMQP_HOST:-127.0.0.1}:${AMQP_PORT:-5672}/%2f"
run_limit=30 # seconds after which PerfTest gives up waiting for its messages

classpath="$(./classpath.sh)"

passed=0
failed=0
log="$target/last-run.log"

# perf NAME ARGUMENT...: runs PerfTest into $log; 1 unless it ended by itself and logged no trouble.
perf() {
  local name="$1"
  shift
  echo "--- $name: $*"
  local status=0
  timeout --kill-after=5 $((run_limit + 15)) java -Xmx512m -cp "$classpath" \
    com.rabbitmq.perf.PerfTest --uri "$uri" --time "$run_limit" "$@" >"$log" 2>&1 || status=$?
  if [ "$status" != 0 ]; then
    verdict "$name" "exit status $status"
  elif grep -qE 'WARN|ERROR|[Ee]xception' "$log"; then
    verdict "$name" "trouble in the log"
  else
    return 0
  fi
  return 1
}

# verdict NAME [REASON]: counts a pass, or with a reason a failure, whose log it shows.
verdict() {
  if [ $# = 1 ]; then
    passed=$((passed + 1))
    grep -E 'rate avg' "$log" || true
  else
    failed=$((failed + 1))
    echo "FAILED $1: $2" >&2
    sed 's/^/    /' "$log" >&2
  fi
}

# complete NAME PRODUCERS CONSUMERS ARGUMENT...: each must reach its limit, which --pmessages and
# --cmessages set to the same number: PerfTest names both as the reasons it stopped.
complete() {
  local name="$1" producers="$2" consumers="$3"
  shift 3
  perf "$name" --producers "$producers" --consumers "$consumers" "$@" || return 0
  if ! reached Producer "$producers"; then
    verdict "$name" "not every message was sent within $run_limit s"
  elif ! reached Consumer "$consumers"; then
    verdict "$name" "not every message was received within $run_limit s"
  elif grep -qE '(nacked|returned): [1-9]' "$log"; then
    verdict "$name" "messages were nacked or returned"
  else
    verdict "$name"
  fi
}

# reached WHO COUNT: PerfTest adds the count in brackets when it is more than one.
reached() {
  local times=""
  if [ "$2" -gt 1 ]; then times=" \[$2\]"; fi
  grep -qE "^test stopped \((.*, )?$1 reached message limit$times(,.*)?\)$" "$log"
}

# rate_sum FIELD: what the lines of each second report, added up.
rate_sum() {
  grep -oE "$1: [0-9]+ msg/s" "$log" | awk '{ sum += $2 } END { print sum + 0 }'
}

# An unroutable mandatory message comes back; the last moment's returns may miss the last line.
all_returned() {
  local run_limit=4
  perf unroutable --producers 1 --consumers 0 --skip-binding-queues --exchange amq.direct \
    --flag mandatory --rate 2000 || return 0
  local sent returned
  sent="$(rate_sum sent)"
  returned="$(rate_sum returned)"
  if [ "$sent" -gt 4000 ] && [ $((returned * 10)) -ge $((sent * 9)) ]; then
    verdict unroutable
  else
    verdict unroutable "sent $sent, returned $returned"
  fi
}

# The confirms that a run reports each second, all but those of its last second.
confirms_seen() {
  local run_limit=4
  perf confirm-rate --producers 1 --consumers 1 --flag persistent --confirm 100 --rate 1000 \
    || return 0
  local sent confirmed
  sent="$(rate_sum sent)"
  confirmed="$(rate_sum confirmed)"
  if [ "$sent" -gt 2000 ] && [ $((confirmed * 10)) -ge $((sent * 9)) ]; then
    verdict confirm-rate
  else
    verdict confirm-rate "sent $sent, confirmed $confirmed"
  fi
}

queues="interop-perf-$$-%d"

complete defaults 1 1 --pmessages 50000 --cmessages 50000
complete confirms 1 1 --pmessages 20000 --cmessages 20000 --flag persistent --confirm 1000
# With a prefetch: without one, the Java client can stop itself. Its reader thread waits for room in
# a work queue of 1,000 deliveries, whose worker waits for a commit-ok that is not read for that
# reason. RabbitMQ's own speed sets that off as well, with --consumer-latency 100.
complete transactions 1 1 --pmessages 5000 --cmessages 5000 --ptxsize 10 --ctxsize 10 --qos 500
complete several-queues 4 4 --pmessages 5000 --cmessages 5000 \
  --queue-pattern "$queues" --queue-pattern-from 1 --queue-pattern-to 4
complete mandatory 1 1 --pmessages 20000 --cmessages 20000 --flag mandatory
complete topic 1 1 --pmessages 20000 --cmessages 20000 \
  --exchange amq.topic --type topic --routing-key '#' --random-routing-key
complete multiple-acks 1 1 --pmessages 20000 --cmessages 20000 --multi-ack-every 10 --qos 100
complete autoack 1 1 --pmessages 20000 --cmessages 20000 --autoack
complete polling 1 1 --pmessages 2000 --cmessages 2000 --polling
complete large-bodies 1 1 --pmessages 200 --cmessages 200 --size 400000 --qos 10
all_returned
confirms_seen

echo "PerfTest: $passed passed, $failed failed"
[ "$failed" = 0 ]
