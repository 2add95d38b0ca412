"""kill -9 under load, again and again on the same data: what was confirmed is there, in order.

CRASH_ROUNDS says how often; `make test-long` has more of them than the usual run.
"""

import collections
import contextlib
import os
import random
import threading
import time
import zlib

import pika
import pytest

from server import Server

ROUNDS = int(os.environ.get("CRASH_ROUNDS") or 4)
SEED = int(os.environ.get("CRASH_SEED") or random.randrange(1 << 32))

# The mark `redelivered` is written to the log after a while, and so are acknowledgements: what a
# consumer got this many seconds before the end may come again without it.
UNMARKED = 0.25

QUEUE = "crash"
BATCH = 25

pytestmark = [pytest.mark.own_broker, pytest.mark.timeout(60 + 10 * ROUNDS)]

PERSISTENT = pika.BasicProperties(delivery_mode=2)


def body(producer, number, size):
    """A body that says whose it is, and that it is whole."""
    text = b"%s %d " % (producer.encode(), number)
    text = text.ljust(len(text) + size, b".")
    return b"%08x " % zlib.crc32(text) + text


def read(content):
    checksum, text = content.split(b" ", 1)
    assert int(checksum, 16) == zlib.crc32(text), f"a damaged body: {content[:60]}"
    producer, number, _ = text.split(b" ", 2)
    return producer.decode(), int(number)


def connect(server):
    parameters = pika.ConnectionParameters("127.0.0.1", server.port, heartbeat=0)
    return pika.BlockingConnection(parameters)


class Client(threading.Thread):
    """Works until the server is gone; fails the test if it ends for any other reason."""

    # What the end of a server looks like to a client.
    GONE = (pika.exceptions.AMQPConnectionError, pika.exceptions.ChannelWrongStateError, OSError)

    def __init__(self, server):
        super().__init__(daemon=True)
        self._server = server
        self._failure = None
        self.start()

    def run(self):
        try:
            with contextlib.suppress(*self.GONE):
                self.work()
        except BaseException as failure:
            self._failure = failure

    def finish(self):
        self.join(timeout=20)
        assert not self.is_alive(), f"{self} does not notice that the server is gone"
        if self._failure:
            raise self._failure


class Producer(Client):
    """Numbers its messages, over all rounds; knows which of them were confirmed."""

    def __init__(self, server, name, state, seed):
        self.name_of_messages = name
        self.state = state
        self.random = random.Random(seed)
        super().__init__(server)

    def next(self):
        number = self.state.published
        self.state.published += 1
        size = self.random.choice([0, 10, 100, 1_000, self.random.randrange(20_000)])
        return body(self.name_of_messages, number, size)

    def confirm(self, numbers):
        self.state.confirmed.update(numbers)


class WaitingProducer(Producer):
    """Waits for each confirm."""

    def work(self):
        channel = connect(self._server).channel()
        channel.confirm_delivery()
        while True:
            number = self.state.published
            channel.basic_publish("", QUEUE, self.next(), PERSISTENT)
            self.confirm([number])


class TransactionalProducer(Producer):
    """Commits batch by batch: each of them is there as a whole, or not at all."""

    def work(self):
        channel = connect(self._server).channel()
        channel.tx_select()
        while True:
            first = self.state.published
            for _ in range(BATCH):
                channel.basic_publish("", QUEUE, self.next(), PERSISTENT)
            self.state.batches.append(range(first, first + BATCH))
            channel.tx_commit()
            self.confirm(range(first, first + BATCH))


class PipeliningProducer(Producer):
    """Has up to 300 unconfirmed messages."""

    AHEAD = 300

    def work(self):
        parameters = pika.ConnectionParameters("127.0.0.1", self._server.port, heartbeat=0)
        connection = pika.SelectConnection(
            parameters,
            on_open_callback=lambda connection: connection.channel(on_open_callback=self._opened),
            on_open_error_callback=lambda connection, _: connection.ioloop.stop(),
            on_close_callback=lambda connection, _: connection.ioloop.stop(),
        )
        connection.ioloop.start()

    def _opened(self, channel):
        # Delivery tags count from 1, numbers go on where the last round has stopped.
        self._base = self.state.published - 1
        self._next_to_confirm = self.state.published
        channel.confirm_delivery(self._confirmed, callback=lambda _: self._publish(channel))
        self._channel = channel

    def _publish(self, channel):
        while channel.is_open and self.state.published - self._next_to_confirm < self.AHEAD:
            channel.basic_publish("", QUEUE, self.next(), PERSISTENT)

    def _confirmed(self, frame):
        ack = frame.method
        assert isinstance(ack, pika.spec.Basic.Ack), f"refused: {ack}"
        last = self._base + ack.delivery_tag
        first = self._next_to_confirm if ack.multiple else last
        assert first == self._next_to_confirm, "confirms are not in order"
        self.confirm(range(first, last + 1))
        self._next_to_confirm = last + 1
        self._publish(self._channel)


class Consumer(Client):
    """Acknowledges one by one; knows what it got, when, and whether it was marked."""

    def __init__(self, server):
        self.received = []
        super().__init__(server)

    def work(self):
        channel = connect(self._server).channel()
        channel.basic_qos(prefetch_count=50)
        for method, _, content in channel.consume(QUEUE):
            self.received.append((read(content), method.redelivered, time.monotonic()))
            channel.basic_ack(method.delivery_tag)


class State:
    """A producer's messages, over all rounds."""

    def __init__(self):
        self.published = 0
        self.confirmed = set()
        self.batches = []


class Account:
    """What consumers have got so far."""

    def __init__(self, states):
        self._states = states
        # When a message was last received, if it may come again.
        self._seen = {}
        self._all = collections.defaultdict(set)

    def add(self, received, killed):
        """What one consumer got, in its order; `killed`: when the server ended before that."""
        last = collections.defaultdict(lambda: -1)
        for (producer, number), redelivered, at in received:
            assert number > last[producer], f"{producer} {number} came after {last[producer]}"
            last[producer] = number
            assert number < self._states[producer].published, f"{producer} {number}: never sent"
            before = self._seen.get((producer, number))
            if before is not None and killed is not None and before < killed - UNMARKED:
                assert redelivered, f"{producer} {number} came again, and is not marked"
            self._seen[producer, number] = at
            self._all[producer].add(number)

    def assert_complete(self):
        for producer, state in self._states.items():
            lost = sorted(state.confirmed - self._all[producer])
            assert not lost, f"{len(lost)} of {producer} were confirmed and lost: {lost[:20]}"
            for batch in state.batches:
                there = self._all[producer].intersection(batch)
                assert len(there) in (0, len(batch)), f"a part of a transaction: {batch} {there}"


def drain(server):
    """Takes everything out of the queue; returns it as a consumer's."""
    received = []
    with connect(server) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=500)
        for method, _, content in channel.consume(QUEUE, inactivity_timeout=0.2):
            if method is None:
                break
            received.append((read(content), method.redelivered, time.monotonic()))
            channel.basic_ack(method.delivery_tag)
        channel.cancel()
        left = channel.queue_declare(QUEUE, passive=True).method.message_count
        assert left == 0, f"{left} messages are there and do not come"
    return received


def run_clients(server, states, randomness, consume):
    """Lets producers and perhaps a consumer work, and kills the server under them."""
    kinds = {
        "waiting": WaitingProducer,
        "transactional": TransactionalProducer,
        "pipelining": PipeliningProducer,
    }
    clients = [
        kinds[name](server, name, state, randomness.random()) for name, state in states.items()
    ]
    consumer = Consumer(server) if consume else None
    time.sleep(randomness.uniform(0.1, 1.2))
    server.kill()
    killed = time.monotonic()
    for client in clients + [consumer] * consume:
        client.finish()
    return (consumer.received if consumer else []), killed


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(
            [
                "leveret.queue_memory = 1MiB",
                "leveret.log_file_size = 1MiB",
                "leveret.log_size = 4MiB",
            ],
            id="small files",
        ),
        pytest.param([], id="defaults"),
    ],
)
def test_nothing_confirmed_is_lost_or_misplaced_when_the_server_is_killed(tmp_path, config):
    randomness = random.Random(SEED)
    print(f"CRASH_SEED={SEED}")
    states = {name: State() for name in ["waiting", "transactional", "pipelining"]}
    account = Account(states)
    with Server(tmp_path, *config) as server:
        with connect(server) as connection:
            connection.channel().queue_declare(QUEUE, durable=True)
        for number in range(ROUNDS):
            received, killed = run_clients(server, states, randomness, consume=number % 2 == 1)
            account.add(received, None)
            if number % 4 >= 2:
                # It does not get far: killed again, while nobody but a consumer is there.
                server.start()
                consumer = Consumer(server)
                time.sleep(randomness.uniform(0.05, 0.4))
                server.kill()
                consumer.finish()
                account.add(consumer.received, killed)
                killed = time.monotonic()
            server.start()
            account.add(drain(server), killed)
            account.assert_complete()
            print(number, {name: len(state.confirmed) for name, state in states.items()})
        log = server.log()
        assert "panicked" not in log and "ERROR" not in log, log
        server.stop()
