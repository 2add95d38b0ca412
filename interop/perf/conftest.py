"""The two brokers, and the load testers."""

import contextlib
import dataclasses
import os
import signal
import uuid

import pika
import pytest

from rabbitmq import RabbitMq
from tools import Loads


@dataclasses.dataclass(frozen=True)
class Broker:
    host: str
    port: int
    product: str

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    @property
    def uri(self):
        return f"amqp://{self.address}"

    @contextlib.contextmanager
    def channel(self):
        parameters = pika.ConnectionParameters(self.host, self.port, heartbeat=0)
        with pika.BlockingConnection(parameters) as connection:
            yield connection.channel()

    def declared(self, queue):
        """What a passive declaration says of a queue; none if it is not there."""
        with self.channel() as channel:
            try:
                return channel.queue_declare(queue, passive=True).method
            except pika.exceptions.ChannelClosedByBroker as closed:
                assert closed.reply_code == 404, closed
                return None

    def has_consumers(self, queue):
        declared = self.declared(queue)
        return bool(declared and declared.consumer_count)


def pytest_configure():
    # Whoever ends the suite wants the processes that it started to end, too.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("terminated", returncode=1))


@pytest.fixture(scope="session")
def leveret():
    """The broker that run.sh's caller has started."""
    host, port = os.environ.get("AMQP_HOST", "127.0.0.1"), os.environ.get("AMQP_PORT", "5672")
    broker = Broker(host, int(port), "Leveret")
    try:
        with broker.channel():
            return broker
    except (OSError, pika.exceptions.AMQPError) as error:
        pytest.exit(f"no broker answers at {broker.address}: {error!r}", returncode=1)


@pytest.fixture(scope="session")
def node(tmp_path_factory):
    """Debian's RabbitMQ, for as long as the tests run."""
    node = RabbitMq(tmp_path_factory.mktemp("rabbitmq"))
    try:
        node.start()
        yield node
    finally:
        node.stop()


@pytest.fixture(scope="session")
def rabbitmq(node):
    return Broker("127.0.0.1", node.port, "RabbitMQ")


@pytest.fixture(params=["leveret", "rabbitmq"])
def broker(request):
    """Each of the two in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def loads(tmp_path):
    loads = Loads(tmp_path)
    yield loads
    loads.end()


@pytest.fixture
def perf(loads):
    """Runs `leveret perf` to its end: `perf(option…, status=0)`."""
    return loads.perf


@pytest.fixture
def queue(broker):
    """A name for a queue of the broker that is not there after the test, either."""
    name = f"leveret-interop-perf-{uuid.uuid4().hex[:12]}"
    yield name
    with broker.channel() as channel:
        channel.queue_delete(name)
