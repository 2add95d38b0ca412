"""haigha 0.9, with its RabbitMQ extensions, on its blocking transport."""

import datetime
from decimal import Decimal

import haigha_on_python3  # noqa: F401, before haigha
import pytest
from haigha.connections.rabbit_connection import RabbitConnection
from haigha.exceptions import ChannelClosed
from haigha.message import Message

from common import (
    BIG_BODY,
    DEADLINE,
    HOST,
    NO_ROUTE,
    NOT_FOUND,
    PORT,
    PRECONDITION_FAILED,
    bodies,
    unique,
)


@pytest.fixture
def connection(names):
    connection = RabbitConnection(host=HOST, port=PORT, connect_timeout=DEADLINE)
    yield connection
    if connection.transport is not None:
        connection.close()


@pytest.fixture
def channel(connection):
    return connection.channel()


def count(connection, queue):
    """Messages ready in `queue`, as another channel sees them."""
    other = connection.channel()
    _, ready, _ = other.queue.declare(queue, passive=True)
    other.close()
    return ready


def declare(channel, queue, **options):
    channel.queue.declare(queue, auto_delete=False, **options)


def publish(channel, queue, body, **properties):
    channel.basic.publish(Message(body, **properties), "", queue)


def consume(connection, channel, queue, expected):
    """The first `expected` messages from `queue`, unacknowledged."""
    received = []
    channel.basic.consume(queue, received.append, no_ack=False)
    while len(received) < expected:
        connection.read_frames()
    return received


def test_publish_consume_ack_in_order(connection, channel, queue):
    declare(channel, queue, durable=True)
    sent = bodies(200)
    for body in sent:
        publish(channel, queue, body)
    messages = consume(connection, channel, queue, len(sent))
    assert [message.body for message in messages] == sent
    tags = [message.delivery_info["delivery_tag"] for message in messages]
    assert tags == list(range(1, 201))

    # Acknowledge all but the last, one by one: only that one comes back.
    for tag in tags[:-1]:
        channel.basic.ack(tag)
    channel.close()
    [message] = consume(connection, connection.channel(), queue, 1)
    assert message.body == sent[-1]
    assert message.delivery_info["redelivered"]


def test_publisher_confirms_cover_every_publish(connection, channel, queue):
    declare(channel, queue, durable=True)
    confirmed = []
    channel.basic.set_ack_listener(confirmed.append)
    channel.confirm.select()
    published = [
        channel.basic.publish(Message(body, delivery_mode=2), "", queue) for body in bodies(100)
    ]
    while len(confirmed) < 100:
        connection.read_frames()
    assert sorted(confirmed) == published
    assert count(connection, queue) == 100


def test_unroutable_mandatory_message_is_returned_before_its_confirm(connection, channel):
    events = []
    channel.basic.set_return_listener(lambda message: events.append(message))
    channel.basic.set_ack_listener(events.append)
    channel.confirm.select()
    key = unique("missing")
    channel.basic.publish(Message(BIG_BODY), "", key, mandatory=True)
    while len(events) < 2:
        connection.read_frames()
    returned, confirmed = events
    assert returned.return_info["reply_code"] == NO_ROUTE
    assert returned.return_info["routing_key"] == key
    assert returned.body == BIG_BODY
    assert confirmed == 1


def test_passive_declare_of_a_missing_queue_closes_only_the_channel(connection, channel, queue):
    with pytest.raises(ChannelClosed):
        channel.queue.declare(queue, passive=True)
    assert channel.close_info["reply_code"] == NOT_FOUND
    assert (channel.close_info["class_id"], channel.close_info["method_id"]) == (50, 10)
    declare(connection.channel(), queue)
    assert count(connection, queue) == 0


def test_redeclare_with_other_arguments_closes_only_the_channel(connection, channel, queue):
    declare(channel, queue, durable=True)
    with pytest.raises(ChannelClosed):
        declare(channel, queue, durable=False)
    assert channel.close_info["reply_code"] == PRECONDITION_FAILED
    declare(connection.channel(), queue, durable=True)


@pytest.mark.parametrize("body", [BIG_BODY, b""], ids=["over-frame-max", "empty"])
def test_body(connection, channel, queue, body):
    declare(channel, queue)
    publish(channel, queue, body)
    publish(channel, queue, b"next")
    received = consume(connection, channel, queue, 2)
    assert received[0].body == body
    assert received[1].body == b"next"


def test_headers_of_every_type(connection, channel, queue):
    # haigha cannot write arrays.
    headers = {
        "text": "värde",
        "bytes": bytearray(b"\x00\xff"),
        "bool": True,
        "int16": -(2**15),
        "int32": -(2**31),
        "int64": -(2**63),
        "float": 0.1,
        "decimal": Decimal("-3.14"),
        "timestamp": datetime.datetime(2009, 1, 14, 12, 30, 15),
        "void": None,
        "table": {"inner": {"deep": {"deeper": 1}}, "empty": {}},
    }
    declare(channel, queue)
    publish(channel, queue, b"", application_headers=headers)
    [message] = consume(connection, channel, queue, 1)
    assert message.properties["application_headers"] == headers


@pytest.mark.parametrize("reject", ["nack", "reject"])
def test_requeue_redelivers(connection, channel, queue, reject):
    declare(channel, queue)
    publish(channel, queue, b"again")
    message = channel.basic.get(queue, no_ack=False)
    assert not message.delivery_info["redelivered"]
    getattr(channel.basic, reject)(message.delivery_info["delivery_tag"], requeue=True)
    [message] = consume(connection, channel, queue, 1)
    assert message.body == b"again"
    assert message.delivery_info["redelivered"]


def test_prefetch_bounds_the_unacknowledged(connection, channel, queue):
    declare(channel, queue)
    for body in bodies(10):
        publish(channel, queue, body)
    channel.basic.qos(prefetch_count=3)
    received = consume(connection, channel, queue, 3)
    # The answer of the broker comes after whatever else it may have delivered.
    assert count(connection, queue) == 7
    assert len(received) == 3
    channel.basic.ack(1)
    while len(received) < 4:
        connection.read_frames()
    assert count(connection, queue) == 6
    assert [message.body for message in received] == bodies(4)


def test_tx_publishes_appear_on_commit_and_vanish_on_rollback(connection, channel, queue):
    declare(channel, queue)
    channel.tx.select()
    publish(channel, queue, b"one")
    publish(channel, queue, b"two")
    assert count(connection, queue) == 0
    channel.tx.commit()
    assert count(connection, queue) == 2
    publish(channel, queue, b"three")
    channel.tx.rollback()
    channel.tx.commit()
    assert count(connection, queue) == 2


def test_consumer_is_told_when_its_queue_is_deleted(connection, channel, queue):
    declare(channel, queue)
    cancelled = []
    channel.basic.consume(
        queue, lambda _message: None, consumer_tag="tag", cancel_cb=cancelled.append
    )
    connection.channel().queue.delete(queue)
    while not cancelled:
        connection.read_frames()
    assert cancelled == ["tag"]
