#!/usr/bin/env python3
"""Checks that the crates of this workspace depend on each other only as docs/architecture.md says.

Dependencies run downwards only. To add a crate, or an arrow, change the table here and the drawing
there in the same commit.
"""

import json
import subprocess
import sys

# Who may depend on whom, outside of tests. A crate that is not a key here is an error.
ALLOWED = {
    "leveret": {
        "amqp-server", "sqs", "management", "shovel", "perf", "replication",
        "broker", "store", "wal", "client", "amqp",
    },
    "amqp-server": {"broker", "store", "amqp"},
    "sqs": {"broker"},
    "management": {"broker"},
    "shovel": {"client", "broker"},
    "perf": {"client"},
    "broker": {"store", "amqp"},
    "store": {"wal"},
    "wal": set(),
    "client": {"amqp"},
    "amqp": set(),
    # Tools for developers: nothing that is shipped depends on them.
    "bench": {"client", "perf", "amqp", "testkit"},
    "testkit": {
        "leveret", "amqp-server", "sqs", "management", "shovel", "perf",
        "broker", "store", "wal", "client", "amqp",
    },
}

# What the tests of any crate may use besides.
ALLOWED_IN_TESTS = {"testkit", "client"}


def workspace_packages():
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return metadata["packages"]


def faults(packages):
    members = {package["name"] for package in packages}
    for package in packages:
        name = package["name"]
        if name not in ALLOWED:
            yield f"{name}: not in the table of scripts/check-architecture.py"
            continue
        for dependency in package["dependencies"]:
            other = dependency["name"]
            if other not in members:
                continue
            in_tests = dependency["kind"] == "dev"
            allowed = ALLOWED[name] | (ALLOWED_IN_TESTS if in_tests else set())
            if other not in allowed:
                kind = "dev-dependency" if in_tests else "dependency"
                yield f"{name} -> {other}: this {kind} is not allowed"


def main():
    packages = workspace_packages()
    found = sorted(set(faults(packages)))
    for fault in found:
        print(f"architecture: {fault}", file=sys.stderr)
    if not found:
        print(f"architecture: {len(packages)} crates, all arrows allowed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
