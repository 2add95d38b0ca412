"""pika's SelectConnection: callbacks on an I/O loop."""

from decimal import Decimal

import pika
import pytest
from pika.exceptions import ChannelClosedByBroker

from common import (
    BIG_BODY,
    DEADLINE,
    HOST,
    NO_ROUTE,
    NOT_FOUND,
    PORT,
    PRECONDITION_FAILED,
    QUIET,
    bodies,
    unique,
)


class Loop:
    """Runs the I/O loop of one connection until what a test waits for has happened."""

    def __init__(self):
        self.connection = None
        opened = self.recorder()
        failed = self.recorder()
        self.connection = pika.SelectConnection(
            pika.ConnectionParameters(HOST, PORT),
            on_open_callback=opened,
            on_open_error_callback=failed,
            on_close_callback=self.recorder(),
        )
        self.until(lambda: opened.calls or failed.calls)
        assert opened.calls, failed.calls

    def recorder(self):
        return Recorder(self)

    def until(self, condition):
        expired = []

        def expire():
            expired.append(True)
            self.connection.ioloop.stop()

        timer = self.connection.ioloop.call_later(DEADLINE, expire)
        while not condition():
            assert not expired, "what the test waits for did not happen"
            self.connection.ioloop.start()
        self.connection.ioloop.remove_timeout(timer)

    def run_for(self, seconds):
        done = []
        self.connection.ioloop.call_later(seconds, lambda: (done.append(1), self.stop()))
        self.until(lambda: done)

    def stop(self):
        self.connection.ioloop.stop()

    def channel(self):
        opened = self.recorder()
        self.connection.channel(on_open_callback=opened)
        [(channel,)] = opened.wait()
        return channel

    def close(self):
        if self.connection.is_open:
            self.connection.close()
            self.until(lambda: self.connection.is_closed)


class Recorder:
    """A callback that keeps what it was called with, and has `Loop.until` look again."""

    def __init__(self, loop):
        self._loop = loop
        self.calls = []

    def __call__(self, *arguments):
        self.calls.append(arguments)
        if self._loop.connection is not None:
            self._loop.stop()

    def wait(self, count=1):
        self._loop.until(lambda: len(self.calls) >= count)
        return self.calls


@pytest.fixture
def loop(names):
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def channel(loop):
    return loop.channel()


def declare(loop, channel, queue, **options):
    declared = loop.recorder()
    channel.queue_declare(queue, callback=declared, **options)
    [(frame,)] = declared.wait()
    return frame.method


def count(loop, queue):
    """Messages ready in `queue`, as another channel sees them."""
    return declare(loop, loop.channel(), queue, passive=True).message_count


def close(loop, channel):
    closed = loop.recorder()
    channel.add_on_close_callback(closed)
    channel.close()
    closed.wait()


def consume(loop, channel, queue, expected):
    """The first `expected` deliveries from `queue`, unacknowledged."""
    delivered = loop.recorder()
    channel.basic_consume(queue, delivered)
    return [arguments[1:] for arguments in delivered.wait(expected)]


def test_publish_consume_ack_in_order(loop, channel, queue):
    declare(loop, channel, queue, durable=True)
    sent = bodies(200)
    for body in sent:
        channel.basic_publish("", queue, body)
    deliveries = consume(loop, channel, queue, len(sent))
    assert [body for _, _, body in deliveries] == sent
    assert [method.delivery_tag for method, _, _ in deliveries] == list(range(1, 201))

    # Acknowledge all but the last, one by one: only that one comes back.
    for method, _, _ in deliveries[:-1]:
        channel.basic_ack(method.delivery_tag)
    close(loop, channel)
    [(method, _, body)] = consume(loop, loop.channel(), queue, 1)
    assert (body, method.redelivered) == (sent[-1], True)


def test_publisher_confirms_cover_every_publish(loop, channel, queue):
    declare(loop, channel, queue, durable=True)
    confirmed, selected = loop.recorder(), loop.recorder()
    channel.confirm_delivery(confirmed, callback=selected)
    selected.wait()
    persistent = pika.BasicProperties(delivery_mode=pika.DeliveryMode.Persistent.value)
    for body in bodies(100):
        channel.basic_publish("", queue, body, persistent)

    covered = set()
    while len(covered) < 100:
        confirms = confirmed.wait()
        for (frame,) in confirms:
            assert isinstance(frame.method, pika.spec.Basic.Ack)
            tag = frame.method.delivery_tag
            new = set(range(1, tag + 1)) - covered if frame.method.multiple else {tag}
            assert new and not new & covered, f"{tag} is confirmed twice"
            covered |= new
        confirms.clear()
    assert covered == set(range(1, 101))
    assert count(loop, queue) == 100


def test_unroutable_mandatory_message_is_returned_before_its_confirm(loop, channel):
    events, selected = loop.recorder(), loop.recorder()
    channel.add_on_return_callback(lambda _channel, *returned: events("return", *returned))
    channel.confirm_delivery(lambda frame: events("confirm", frame.method), callback=selected)
    selected.wait()
    channel.basic_publish("", unique("missing"), b"nowhere", mandatory=True)

    returned, confirmed = events.wait(2)
    assert (returned[0], confirmed[0]) == ("return", "confirm")
    _, method, _, body = returned
    assert (method.reply_code, method.reply_text, body) == (NO_ROUTE, "NO_ROUTE", b"nowhere")
    _, confirm = confirmed
    assert isinstance(confirm, pika.spec.Basic.Ack)
    assert confirm.delivery_tag == 1


def fails_with(loop, channel):
    """The reply code with which the broker closes `channel`."""
    closed = loop.recorder()
    channel.add_on_close_callback(closed)
    [(_, reason)] = closed.wait()
    assert isinstance(reason, ChannelClosedByBroker)
    return reason.reply_code


def test_passive_declare_of_a_missing_queue_closes_only_the_channel(loop, channel, queue):
    channel.queue_declare(queue, passive=True)
    assert fails_with(loop, channel) == NOT_FOUND
    assert declare(loop, loop.channel(), queue).queue == queue


def test_redeclare_with_other_arguments_closes_only_the_channel(loop, channel, queue):
    declare(loop, channel, queue, durable=True)
    channel.queue_declare(queue, durable=False)
    assert fails_with(loop, channel) == PRECONDITION_FAILED
    assert declare(loop, loop.channel(), queue, durable=True).queue == queue


def test_publish_to_a_missing_exchange_closes_only_the_channel(loop, channel, queue):
    channel.basic_publish(unique("missing"), queue, b"nowhere")
    assert fails_with(loop, channel) == NOT_FOUND
    assert declare(loop, loop.channel(), queue).queue == queue


@pytest.mark.parametrize("body", [BIG_BODY, b""], ids=["over-frame-max", "empty"])
def test_body(loop, channel, queue, body):
    declare(loop, channel, queue)
    channel.basic_publish("", queue, body)
    channel.basic_publish("", queue, b"next")
    received = consume(loop, channel, queue, 2)
    assert received[0][2] == body
    assert received[1][2] == b"next"


def test_headers_of_every_type(loop, channel, queue):
    headers = {
        "text": "värde",
        "bytes": b"\x00\xff",
        "bool": True,
        "int": -5,
        "long": -(2**62),
        "decimal": Decimal("2.5"),
        "void": None,
        "table": {"inner": {"deeper": [1, {"x": None}]}},
        "array": [1, "two", [3, [4, []]], {"five": 5}],
    }
    declare(loop, channel, queue)
    channel.basic_publish("", queue, b"", pika.BasicProperties(headers=headers))
    [(_, properties, _)] = consume(loop, channel, queue, 1)
    assert properties.headers == headers


@pytest.mark.parametrize("reject", ["basic_nack", "basic_reject"])
def test_requeue_redelivers(loop, channel, queue, reject):
    declare(loop, channel, queue)
    channel.basic_publish("", queue, b"again")
    delivered = loop.recorder()
    channel.basic_consume(queue, delivered)
    [(_, first, _, _)] = delivered.wait()
    assert not first.redelivered
    getattr(channel, reject)(first.delivery_tag, requeue=True)
    _, second, _, body = delivered.wait(2)[1]
    assert (body, second.redelivered, second.delivery_tag) == (b"again", True, 2)


def test_prefetch_bounds_the_unacknowledged(loop, channel, queue):
    declare(loop, channel, queue)
    for body in bodies(10):
        channel.basic_publish("", queue, body)
    limited = loop.recorder()
    channel.basic_qos(prefetch_count=3, callback=limited)
    limited.wait()
    delivered = loop.recorder()
    channel.basic_consume(queue, delivered)
    loop.run_for(QUIET)
    assert len(delivered.calls) == 3
    channel.basic_ack(1)
    loop.run_for(QUIET)
    assert len(delivered.calls) == 4


def test_tx_publishes_appear_on_commit_and_vanish_on_rollback(loop, channel, queue):
    declare(loop, channel, queue)
    selected, committed, rolled_back = (loop.recorder() for _ in range(3))
    channel.tx_select(callback=selected)
    selected.wait()
    channel.basic_publish("", queue, b"one")
    channel.basic_publish("", queue, b"two")
    assert count(loop, queue) == 0
    channel.tx_commit(callback=committed)
    committed.wait()
    assert count(loop, queue) == 2
    channel.basic_publish("", queue, b"three")
    channel.tx_rollback(callback=rolled_back)
    rolled_back.wait()
    channel.tx_commit(callback=committed)
    committed.wait(2)
    assert count(loop, queue) == 2


def test_consumer_is_told_when_its_queue_is_deleted(loop, channel, queue):
    declare(loop, channel, queue)
    cancelled, consuming = loop.recorder(), loop.recorder()
    channel.add_on_cancel_callback(cancelled)
    tag = channel.basic_consume(queue, lambda *_: None, callback=consuming)
    consuming.wait()
    loop.channel().queue_delete(queue)
    [(frame,)] = cancelled.wait()
    assert frame.method.consumer_tag == tag
