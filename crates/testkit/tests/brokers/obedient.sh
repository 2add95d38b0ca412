#!/bin/sh
# Says that it listens where the configuration says, and counts its starts in the data folder.
set -e
config=$2
data=$4
mkdir -p "$data"
echo started >> "$data/starts"
echo "warning: only a script" >&2
trap 'echo bye; exit ${BROKER_STATUS:-0}' TERM
echo "listening on amqp://$(sed -n 's/listeners.tcp.1 = //p' "$config") (amqp)"
while :; do sleep 0.01; done
