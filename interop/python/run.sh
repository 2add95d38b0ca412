#!/usr/bin/env bash
# Installs the Python clients and runs their tests against the broker at AMQP_HOST:AMQP_PORT.
#
# usage: run.sh [pytest arguments]
# REFERENCE=rabbitmq says that the broker is RabbitMQ, where it differs from Leveret on purpose.
#
# What is installed is kept in target/ and reused. Whatever is missing is an error: no test is
# skipped for want of a client.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
venv=$root/target/interop/python
haigha_version=0.9.0
haigha_sha256=5996f0a4bea619dec2a9adfd17fc5805037c13fe414ae31fdc3aecf2eaaa8d06

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
# Keep compiled files out of the source tree.
export PYTHONPYCACHEPREFIX=$venv/pycache

apt_install() {
    local sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -q
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

# The virtual environment. lib2to3 left the standard library with Python 3.13; haigha needs it.
make_venv() {
    local python=python3
    if ! "$python" -c 'import ensurepip, lib2to3, venv' 2>/dev/null; then
        apt_install python3-venv python3-lib2to3
        python=/usr/bin/python3
        "$python" -c 'import ensurepip, lib2to3, venv'
    fi
    "$python" -m venv --clear "$venv"
    "$venv/bin/pip" install -q -r "$here/requirements.txt"
}

site_packages() {
    "$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
}

# amqplib speaks AMQP 0-8. Only Debian still carries a copy for Python 3, for the system's Python.
# It is pure Python, so the tests import the same copy.
install_amqplib() {
    /usr/bin/python3 -c 'import amqplib.client_0_8' 2>/dev/null || apt_install python3-amqplib
    local package
    package=$(/usr/bin/python3 -c 'import amqplib; print(amqplib.__path__[0])')
    ln -sfn "$package" "$1/amqplib"
}

# haigha is written in Python 2. haigha_on_python3.py does at run time what lib2to3 cannot.
install_haigha() {
    local work
    work=$(mktemp -d)
    "$venv/bin/pip" download -q --no-deps --no-binary :all: --no-build-isolation \
        -d "$work" "haigha==$haigha_version"
    echo "$haigha_sha256  $work/haigha-$haigha_version.tar.gz" | sha256sum --check --quiet
    tar -xzf "$work/haigha-$haigha_version.tar.gz" -C "$work"
    "$venv/bin/python" -W ignore -m lib2to3 --write --nobackups --no-diffs \
        "$work/haigha-$haigha_version/haigha" >/dev/null 2>"$work/lib2to3.log" ||
        { cat "$work/lib2to3.log" >&2; return 1; }
    rm -rf "$1/haigha"
    mv "$work/haigha-$haigha_version/haigha" "$1/haigha"
    rm -rf "$work"
}

# Done again whenever what decides the result has changed, or the system's Python has.
installed=$(sha256sum "$here/requirements.txt" "$here/run.sh" | sha256sum)
if ! "$venv/bin/python" -c 'import haigha, pytest' 2>/dev/null ||
    [ "$(cat "$venv/installed" 2>/dev/null)" != "$installed" ]; then
    make_venv
    install_haigha "$(site_packages)"
    echo "$installed" >"$venv/installed"
fi
install_amqplib "$(site_packages)"

cd "$here"
# Each test has its own time limit, but the clean-up after one that reached it has none.
exec timeout --kill-after=10 600 "$venv/bin/python" -m pytest "$@"
