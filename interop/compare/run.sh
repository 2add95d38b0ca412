#!/usr/bin/env bash
# Plays the same scenarios on Leveret and on a RabbitMQ, both started here, and compares what a
# client sees.
#
# usage: run.sh [FILE...] [pytest arguments]
#   FILE                    a file of scenarios/ without its ending; all of them, if none is named
#   --only rabbitmq|leveret play on that one alone, and print its records
#   --times N               with --only: N times, which must not differ
#   -k WORD                 those whose names contain the word
#
# LEVERET_BIN is the server's program; default target/release/leveret. Whatever is missing is an
# error: no scenario is skipped for want of a tool.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$root/target/interop/compare
venv=$work/venv

export PYTHONPYCACHEPREFIX=$work/pycache

options=() files=
while [ $# -gt 0 ]; do
    case $1 in
        # Options that take a word.
        --only | --times | -k | -m) options+=("$1" "${2:?$1 needs a value}"); shift 2 ;;
        -*) options+=("$1"); shift ;;
        *) files=${files:+$files,}$(basename "$1" .py); shift ;;
    esac
done

"$root/scripts/setup-test-deps.sh" perf
mkdir -p "$work"
if ! cmp -s "$here/requirements.txt" "$venv/installed.txt"; then
    python3 -m venv --clear "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
    cp "$here/requirements.txt" "$venv/installed.txt"
fi

cd "$here"
exec timeout --kill-after=20 600 "$venv/bin/python" -m pytest --quiet --files "$files" \
    ${options[@]+"${options[@]}"}
