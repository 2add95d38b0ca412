"""Workload W2: many channels on one connection, one message in flight on each.

Reimplements the loop of haigha's own scripts/stress_test, which its release 0.9.0 breaks. Each
channel declares an auto-delete exchange picked from ten and an auto-delete queue, binds and
consumes it, all without waiting for answers; then each delivery publishes the next message. With
--tx each publish is a transaction, and its commit publishes the next message. The names are the
same in every run, so one virtual host takes one run at a time.
"""

from gevent import monkey

monkey.patch_all()

import argparse
import random
import socket
import sys
import time

import gevent
import haigha_on_python3  # noqa: F401, before haigha
from gevent.event import Event
from haigha.connection import Connection
from haigha.connections.rabbit_connection import RabbitExchangeClass
from haigha.message import Message

EXCHANGES = [f"publish-{number}" for number in range(10)]


class PingPong:
    """One channel: counts what it has published and what came back."""

    def __init__(self, run, connection):
        self._run = run
        self._exchange = random.choice(EXCHANGES)
        self.published = 0
        self.round_trips = 0
        self.channel = connection.channel()
        self.queue = str(self.channel.channel_id)
        self.channel.add_open_listener(run.channel_opened)
        self.channel.add_close_listener(run.channel_closed)
        self.channel.exchange.declare(self._exchange, "direct", auto_delete=True)
        self.channel.queue.declare(self.queue, auto_delete=True)
        self.channel.queue.bind(self.queue, self._exchange, self.queue)
        self.channel.basic.consume(self.queue, self._delivered)

    def publish(self):
        if self._run.stopping or self.channel.closed:
            return
        self.published += 1
        message = Message(b"hello world")
        if self._run.tx:
            self.channel.publish_synchronous(
                message, exchange=self._exchange, routing_key=self.queue, cb=self._returned
            )
        else:
            self.channel.publish(message, exchange=self._exchange, routing_key=self.queue)

    def _delivered(self, _message):
        if not self._run.tx:
            self._returned()

    def _returned(self):
        self.round_trips += 1
        self.publish()


class Run:
    """One connection with its channels, from the first declaration to the last close."""

    def __init__(self, options):
        self.tx = options.tx
        self.stopping = False
        self.errors = []
        self._seconds = options.time
        self._deadline = options.deadline
        self._to_open = self._to_close = options.channels
        self._all_open = Event()
        self._all_closed = Event()
        self._disconnected = Event()
        # haigha's plain exchange class has lost auto_delete; its RabbitMQ one has it.
        self._connection = Connection(
            host=options.host,
            port=options.port,
            transport="gevent",
            sock_opts={(socket.IPPROTO_TCP, socket.TCP_NODELAY): 1},
            heartbeat=None,
            class_map={40: RabbitExchangeClass},
            close_cb=self._connection_closed,
        )
        self._channels = [PingPong(self, self._connection) for _ in range(options.channels)]

    def channel_opened(self, _channel):
        self._to_open -= 1
        if self._to_open == 0:
            self._all_open.set()

    def channel_closed(self, channel):
        if channel.close_info["reply_code"]:
            self._fail(f"channel {channel.channel_id}: {channel.close_info}")
        self._to_close -= 1
        if self._to_close == 0:
            self._all_closed.set()

    def _connection_closed(self):
        if self._connection.close_info["reply_code"] or not self.stopping:
            self._fail(f"connection: {self._connection.close_info}")
        self._disconnected.set()

    def _fail(self, error):
        self.errors.append(error)
        # Wake whoever waits for what can no longer come.
        self._all_open.set()
        self._all_closed.set()

    def _read_frames(self):
        while not self._disconnected.is_set():
            self._connection.read_frames()
            gevent.sleep(0)

    def _wait(self, event, what):
        if not event.wait(self._deadline):
            self.errors.append(f"{what} took over {self._deadline} s")

    def go(self):
        reader = gevent.spawn(self._read_frames)
        reader.link_exception(lambda failed: self._fail(f"reader: {failed.exception!r}"))
        self._wait(self._all_open, "opening the channels")
        if not self.errors:
            self._exchange_messages()
        self.stopping = True
        if not self.errors:
            self._close()
        reader.kill()

    def _exchange_messages(self):
        frames_read, frames_written = (
            self._connection.frames_read,
            self._connection.frames_written,
        )
        start = time.monotonic()
        for channel in self._channels:
            channel.publish()
        gevent.sleep(self._seconds)
        elapsed = time.monotonic() - start
        self._report(
            elapsed,
            self._connection.frames_read - frames_read,
            self._connection.frames_written - frames_written,
        )

    def _report(self, seconds, frames_read, frames_written):
        published = sum(channel.published for channel in self._channels)
        slowest = min(self._channels, key=lambda channel: channel.round_trips)
        print(f"completed {published} in {seconds:.6f}")
        print(f"{published / seconds:.6f} msg/s")
        print(f"frames read: {frames_read}, {frames_read / seconds:f}/s")
        print(f"frames written: {frames_written}, {frames_written / seconds:f}/s")
        print(f"slowest channel: {slowest.queue}, {slowest.round_trips} round trips")
        if slowest.round_trips == 0:
            self._fail(f"channel {slowest.queue} made no progress")

    def _close(self):
        for channel in self._channels:
            channel.channel.close()
        self._wait(self._all_closed, "closing the channels")
        self._connection.close()
        self._wait(self._disconnected, "closing the connection")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--port", type=int, default=5672)
    parser.add_argument("--channels", type=int, default=500)
    parser.add_argument("--time", type=float, default=300, help="seconds to exchange messages")
    parser.add_argument("--tx", action="store_true", help="make each publish a transaction")
    parser.add_argument("--deadline", type=float, default=30, help="seconds for opening, closing")
    run = Run(parser.parse_args())
    run.go()
    sys.exit("\n".join(run.errors) or 0)


if __name__ == "__main__":
    main()
