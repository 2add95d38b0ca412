"""Workload W1, the producer: persistent messages in transactions, over AMQP 0-8.

Publishes --count bodies that carry their index, commits every --transaction messages, then
publishes the body `quit`. For the system's Python, where Debian installs amqplib.
"""

import argparse
import os
import sys
import time

from amqplib import client_0_8 as amqp


def exchange_flags():
    """The flags of 2008, unlike the consumer's on purpose: on AMQP 0-8 that is no error.

    RabbitMQ accepted it then. Today it answers 406 to 0-8 clients too, so it gets equal flags.
    """
    if os.environ.get("REFERENCE") == "rabbitmq":
        return {"durable": True, "auto_delete": False}
    return {"durable": False, "auto_delete": True}


def publish_all(channel, options):
    mode = 1 if options.non_persistent else 2

    def publish(body):
        channel.basic_publish(amqp.Message(body, delivery_mode=mode), options.exchange, "")

    for index in range(options.count):
        publish((b"%d " % index).ljust(options.size, b"."))
        if (index + 1) % options.transaction == 0:
            channel.tx_commit()
            channel.tx_select()  # again, although the channel is transactional for good
    publish(b"quit")
    channel.tx_commit()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--port", type=int, default=5672)
    parser.add_argument("--exchange", default="X")
    parser.add_argument("--count", type=int, default=20_000, help="messages before the last one")
    parser.add_argument("--transaction", type=int, default=500, help="messages in a transaction")
    parser.add_argument("--size", type=int, default=1_000, help="bytes in a body")
    parser.add_argument("--non-persistent", action="store_true")
    parser.add_argument("--hold", action="store_true", help="publish after a line on stdin")
    options = parser.parse_args()

    connection = amqp.Connection(f"{options.host}:{options.port}", "guest", "guest")
    channel = connection.channel()
    channel.access_request("/data", active=True, write=True)
    channel.exchange_declare(options.exchange, "direct", **exchange_flags())
    channel.tx_select()
    print("ready", flush=True)
    if options.hold:
        sys.stdin.readline()

    start = time.monotonic()
    publish_all(channel, options)
    seconds = time.monotonic() - start
    print(f"sent {options.count + 1} in {seconds:.3f} s, {(options.count + 1) / seconds:.0f} msg/s")
    channel.close()
    connection.close()


if __name__ == "__main__":
    main()
