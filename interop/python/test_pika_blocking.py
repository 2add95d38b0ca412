"""pika's BlockingConnection."""

import datetime
from decimal import Decimal

import pika
import pytest
from pika.compat import long
from pika.exceptions import ChannelClosedByBroker, UnroutableError

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


def connect(**options):
    return pika.BlockingConnection(pika.ConnectionParameters(HOST, PORT, **options))


@pytest.fixture
def connection(names):
    connection = connect()
    yield connection
    if connection.is_open:
        connection.close()


@pytest.fixture
def channel(connection):
    return connection.channel()


def count(connection, queue):
    """Messages ready in `queue`, as another channel sees them."""
    other = connection.channel()
    ready = other.queue_declare(queue, passive=True).method.message_count
    other.close()
    return ready


def consume(channel, queue, expected):
    """Up to `expected` deliveries from `queue`, unacknowledged."""
    deliveries = []
    for method, properties, body in channel.consume(queue, inactivity_timeout=DEADLINE):
        assert method is not None, f"{len(deliveries)} of {expected} deliveries came"
        deliveries.append((method, properties, body))
        if len(deliveries) == expected:
            return deliveries


def test_publish_consume_ack_in_order(connection, channel, queue):
    channel.queue_declare(queue, durable=True)
    sent = bodies(200)
    for body in sent:
        channel.basic_publish("", queue, body)

    deliveries = consume(channel, queue, len(sent))
    assert [body for _, _, body in deliveries] == sent
    assert [method.delivery_tag for method, _, _ in deliveries] == list(range(1, 201))
    assert not any(method.redelivered for method, _, _ in deliveries)

    # Acknowledge all but the last, one by one: only that one comes back.
    for method, _, _ in deliveries[:-1]:
        channel.basic_ack(method.delivery_tag)
    channel.close()
    [(method, _, body)] = consume(connection.channel(), queue, 1)
    assert (body, method.redelivered) == (sent[-1], True)


def test_ack_multiple_acknowledges_all_before_it(connection, channel, queue):
    channel.queue_declare(queue)
    for body in bodies(10):
        channel.basic_publish("", queue, body)
    deliveries = consume(channel, queue, 10)
    channel.basic_ack(deliveries[7][0].delivery_tag, multiple=True)
    channel.close()
    left = consume(connection.channel(), queue, 2)
    assert [body for _, _, body in left] == bodies(10)[8:]


def test_publisher_confirms(connection, channel, queue):
    channel.queue_declare(queue, durable=True)
    channel.confirm_delivery()
    persistent = pika.BasicProperties(delivery_mode=pika.DeliveryMode.Persistent.value)
    for body in bodies(20):
        # Returns only once the broker has confirmed.
        channel.basic_publish("", queue, body, persistent)
    assert count(connection, queue) == 20


def test_unroutable_mandatory_message_is_returned_before_its_confirm(channel):
    channel.confirm_delivery()
    # pika raises only if the return came before the confirm.
    with pytest.raises(UnroutableError) as raised:
        channel.basic_publish("", unique("missing"), b"nowhere", mandatory=True)
    [returned] = raised.value.messages
    assert returned.method.reply_code == NO_ROUTE
    assert returned.method.reply_text == "NO_ROUTE"
    assert returned.body == b"nowhere"


def test_unroutable_mandatory_message_is_returned_without_confirms(connection, channel):
    returns = []
    channel.add_on_return_callback(lambda _channel, *returned: returns.append(returned))
    key = unique("missing")
    properties = pika.BasicProperties(message_id="42", headers={"a": 1})
    channel.basic_publish("amq.direct", key, BIG_BODY, properties, mandatory=True)
    connection.process_data_events(time_limit=DEADLINE)
    [(method, properties, body)] = returns
    assert (method.reply_code, method.exchange, method.routing_key) == (NO_ROUTE, "amq.direct", key)
    assert (properties.message_id, properties.headers) == ("42", {"a": 1})
    assert body == BIG_BODY


def test_unroutable_message_is_dropped_and_confirmed_without_mandatory(channel):
    channel.confirm_delivery()
    channel.basic_publish("", unique("missing"), b"nowhere")


def test_passive_declare_of_a_missing_queue_closes_only_the_channel(connection, channel, queue):
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.queue_declare(queue, passive=True)
    assert raised.value.reply_code == NOT_FOUND
    assert channel.is_closed
    connection.channel().queue_declare(queue)
    assert count(connection, queue) == 0


@pytest.mark.parametrize("other", [{"durable": False}, {"arguments": {"x-max-length": 5}}])
def test_redeclare_with_other_arguments_closes_only_the_channel(connection, channel, queue, other):
    original = {"durable": True, "arguments": {"x-max-length": 9}}
    channel.queue_declare(queue, **original)
    with pytest.raises(ChannelClosedByBroker) as raised:
        channel.queue_declare(queue, **(original | other))
    assert raised.value.reply_code == PRECONDITION_FAILED
    connection.channel().queue_declare(queue, **original)


@pytest.mark.parametrize("body", [BIG_BODY, b""], ids=["over-frame-max", "empty"])
def test_body(channel, queue, body):
    channel.queue_declare(queue)
    channel.basic_publish("", queue, body)
    channel.basic_publish("", queue, b"next")
    received = consume(channel, queue, 2)
    assert received[0][2] == body
    assert received[1][2] == b"next"


def test_headers_and_properties(channel, queue):
    stamp = datetime.datetime(2009, 1, 14, 12, 30, 15, tzinfo=datetime.timezone.utc)
    headers = {
        "text": "värde",
        "empty": "",
        "bytes": b"\x00\xff",
        "true": True,
        "false": False,
        "int": -(2**31),
        "long": 2**62,
        "small-as-long": long(7),
        "decimal": Decimal("-3.14"),
        "timestamp": stamp,
        "void": None,
        "table": {"inner": {"deep": {"deeper": [1, {"x": None}]}}, "empty": {}},
        "array": [1, "two", [3, [4, []]], {"five": 5}, None, True],
    }
    properties = pika.BasicProperties(
        content_type="text/plain",
        content_encoding="utf-8",
        headers=headers,
        delivery_mode=2,
        priority=9,
        correlation_id="correlation",
        reply_to="reply",
        expiration="60000",
        message_id="message",
        timestamp=1_231_936_215,
        type="type",
        user_id="guest",
        app_id="app",
        cluster_id="cluster",
    )
    channel.queue_declare(queue)
    channel.basic_publish("", queue, b"", properties)
    [(_, received, _)] = consume(channel, queue, 1)
    assert received.headers == headers
    assert received == properties


@pytest.mark.parametrize("reject", ["basic_nack", "basic_reject"])
def test_requeue_redelivers(channel, queue, reject):
    channel.queue_declare(queue)
    channel.basic_publish("", queue, b"again")
    method, _, _ = channel.basic_get(queue)
    assert not method.redelivered
    getattr(channel, reject)(method.delivery_tag, requeue=True)
    [(method, _, body)] = consume(channel, queue, 1)
    assert (body, method.redelivered) == (b"again", True)


@pytest.mark.parametrize("reject", ["basic_nack", "basic_reject"])
def test_rejected_without_requeue_is_gone(connection, channel, queue, reject):
    channel.queue_declare(queue)
    channel.basic_publish("", queue, b"dropped")
    channel.basic_publish("", queue, b"kept")
    method, _, _ = channel.basic_get(queue)
    getattr(channel, reject)(method.delivery_tag, requeue=False)
    channel.close()
    [(method, _, body)] = consume(connection.channel(), queue, 1)
    assert (body, method.redelivered) == (b"kept", False)


def test_prefetch_bounds_the_unacknowledged(connection, channel, queue):
    channel.queue_declare(queue)
    for body in bodies(10):
        channel.basic_publish("", queue, body)
    channel.basic_qos(prefetch_count=3)
    tags = []
    channel.basic_consume(queue, lambda _channel, method, *_: tags.append(method.delivery_tag))
    connection.sleep(QUIET)
    assert tags == [1, 2, 3]
    channel.basic_ack(2)
    connection.sleep(QUIET)
    assert tags == [1, 2, 3, 4]
    channel.basic_ack(4, multiple=True)
    connection.sleep(QUIET)
    assert tags == [1, 2, 3, 4, 5, 6, 7]


def test_tx_publishes_appear_on_commit_and_vanish_on_rollback(connection, channel, queue):
    channel.queue_declare(queue)
    channel.tx_select()
    channel.basic_publish("", queue, b"one")
    channel.basic_publish("", queue, b"two")
    assert count(connection, queue) == 0
    channel.tx_commit()
    assert count(connection, queue) == 2
    channel.basic_publish("", queue, b"three")
    channel.tx_rollback()
    channel.tx_commit()
    assert count(connection, queue) == 2


def test_tx_acks_take_effect_on_commit_only(connection, channel, queue):
    channel.queue_declare(queue)
    for body in bodies(2):
        channel.basic_publish("", queue, body)
    channel.tx_select()
    first, second = consume(channel, queue, 2)
    channel.basic_ack(first[0].delivery_tag)
    channel.tx_commit()
    channel.basic_ack(second[0].delivery_tag)
    channel.tx_rollback()
    channel.close()
    [(method, _, body)] = consume(connection.channel(), queue, 1)
    assert (body, method.redelivered) == (second[2], True)


def test_consumer_is_told_when_its_queue_is_deleted(connection, channel, queue):
    channel.queue_declare(queue)
    cancelled = []
    channel.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
    tag = channel.basic_consume(queue, lambda *_: None)
    connection.channel().queue_delete(queue)
    connection.process_data_events(time_limit=DEADLINE)
    assert cancelled == [tag]


def test_idle_connection_with_heartbeats_stays_open(queue):
    # pika closes a connection on which it has heard nothing for two intervals.
    connection = connect(heartbeat=1)
    connection.sleep(5)
    connection.channel().queue_declare(queue, exclusive=True)
    connection.close()
