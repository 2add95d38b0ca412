"""Names for queues and exchanges that are removed from the broker after each test."""

import amqp
import pytest

from common import DEADLINE, HOST, PORT, unique


def pytest_collection_finish(session):
    """Say once that no broker answers, rather than once a test; unless no test needs one."""
    if all(item.get_closest_marker("own_broker") for item in session.items):
        return
    try:
        connect().close()
    except (OSError, amqp.AMQPError) as error:
        pytest.exit(f"no broker answers at {HOST}:{PORT}: {error!r}", returncode=1)


def connect():
    connection = amqp.Connection(f"{HOST}:{PORT}", connect_timeout=DEADLINE)
    connection.connect()
    return connection


class Names:
    """Hands out unique names; `cleanup` deletes whatever was declared under them."""

    def __init__(self):
        self._queues = []
        self._exchanges = []

    def queue(self):
        self._queues.append(unique("queue"))
        return self._queues[-1]

    def exchange(self):
        self._exchanges.append(unique("exchange"))
        return self._exchanges[-1]

    def cleanup(self):
        if not self._queues and not self._exchanges:
            return
        with connect() as connection:
            channel = connection.channel()
            for queue in self._queues:
                channel.queue_delete(queue)
            for exchange in self._exchanges:
                channel.exchange_delete(exchange)


@pytest.fixture
def names():
    names = Names()
    yield names
    names.cleanup()


@pytest.fixture
def queue(names):
    return names.queue()


@pytest.fixture
def exchange(names):
    return names.exchange()
