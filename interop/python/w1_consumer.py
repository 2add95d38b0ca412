"""Workload W1, the consumer: acknowledges message by message until `quit`, over AMQP 0-8.

Fails unless the indices that the bodies carry come in order and without gaps. For the system's
Python, where Debian installs amqplib.
"""

import argparse
import sys
import time

from amqplib import client_0_8 as amqp


class Consumer:
    """Counts the messages up to `quit` and remembers the first that was out of order."""

    def __init__(self, channel):
        self._channel = channel
        self.received = 0
        self.misplaced = None
        self.quit = False
        self.first_at = None

    def __call__(self, message):
        if self.first_at is None:
            self.first_at = time.monotonic()
        if message.body == b"quit":
            self.quit = True
        elif self.misplaced is None and int(message.body.split()[0]) != self.received:
            self.misplaced = f"{message.body[:20]!r} came as number {self.received}"
        self.received += 1
        self._channel.basic_ack(message.delivery_tag)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--port", type=int, default=5672)
    parser.add_argument("--exchange", default="X")
    parser.add_argument("--queue", default="w1")
    options = parser.parse_args()

    connection = amqp.Connection(f"{options.host}:{options.port}", "guest", "guest")
    channel = connection.channel()
    channel.access_request("/data", active=True, passive=True, read=True)
    channel.exchange_declare(options.exchange, "direct", durable=True, auto_delete=False)
    channel.queue_declare(options.queue, durable=True, auto_delete=False)
    channel.queue_bind(options.queue, options.exchange, "")
    consumer = Consumer(channel)
    tag = channel.basic_consume(options.queue, callback=consumer)
    print("ready", flush=True)

    while not consumer.quit:
        channel.wait()
    seconds = time.monotonic() - consumer.first_at
    print(
        f"received {consumer.received} in {seconds:.3f} s, {consumer.received / seconds:.0f} msg/s"
    )
    channel.basic_cancel(tag)
    channel.close()
    connection.close()
    if consumer.misplaced:
        sys.exit(f"out of order: {consumer.misplaced}")


if __name__ == "__main__":
    main()
