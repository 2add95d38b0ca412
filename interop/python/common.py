"""What the tests of all clients share: where the broker is, and the data they send through it."""

import os
import random
import uuid

HOST = os.environ.get("AMQP_HOST", "127.0.0.1")
PORT = int(os.environ.get("AMQP_PORT", "5672"))

# REFERENCE=rabbitmq runs the suite against RabbitMQ. Today's refuses on AMQP 0-8 connections what
# its release 1.4 accepted there and Leveret accepts: redeclaring an exchange with other flags.
REFERENCE_IS_RABBITMQ = os.environ.get("REFERENCE") == "rabbitmq"

# The longest that a client waits for one answer before its test fails, in seconds.
DEADLINE = 10

# How long to watch for something that must not come, in seconds.
QUIET = 0.3

# 1 MiB, more than any frame_max negotiated here. Random, so that swapped frames are noticed.
BIG_BODY = random.Random(0).randbytes(1 << 20)

NO_ROUTE = 312
NOT_FOUND = 404
PRECONDITION_FAILED = 406


def unique(prefix):
    """A name that no other test, run or client uses."""
    return f"leveret-interop-{prefix}-{uuid.uuid4().hex[:12]}"


def bodies(count):
    """`count` different bodies whose order can be checked."""
    return [b"message %d" % index for index in range(count)]
