"""amqplib, which speaks AMQP 0-8: no confirms, no nack, no consumer cancel notification."""

import datetime
from decimal import Decimal

import pytest
from amqplib import client_0_8 as amqp

from common import (
    BIG_BODY,
    HOST,
    NO_ROUTE,
    NOT_FOUND,
    PORT,
    PRECONDITION_FAILED,
    REFERENCE_IS_RABBITMQ,
    bodies,
    unique,
)


@pytest.fixture
def connection(names):
    connection = amqp.Connection(f"{HOST}:{PORT}", "guest", "guest")
    yield connection
    connection.close()


@pytest.fixture
def channel(connection):
    return connection.channel()


def count(connection, queue):
    """Messages ready in `queue`, as another channel sees them."""
    with connection.channel() as other:
        _, ready, _ = other.queue_declare(queue, passive=True)
        return ready


def declare(channel, queue, **options):
    return channel.queue_declare(queue, auto_delete=False, **options)


def publish(channel, queue, body, **properties):
    channel.basic_publish(amqp.Message(body, **properties), routing_key=queue)


def consume(channel, queue, expected):
    """The first `expected` messages from `queue`, unacknowledged."""
    received = []
    channel.basic_consume(queue, callback=received.append)
    while len(received) < expected:
        channel.wait()
    return received


def test_handshake_is_that_of_0_8(connection):
    assert (connection.version_major, connection.version_minor) == (8, 0)
    assert {"PLAIN", "AMQPLAIN"} <= set(connection.mechanisms)
    # amqplib understands five types of field, which the server's properties have to keep to.
    assert connection.server_properties["product"]
    assert connection.server_properties["version"]
    assert connection.known_hosts == ""


def test_access_request_answers_a_ticket(channel, queue):
    ticket = channel.access_request("/data", active=True, passive=True, read=True, write=True)
    assert ticket > 0
    # From here on amqplib sends the ticket with each method.
    declare(channel, queue)
    publish(channel, queue, b"with a ticket")
    assert channel.basic_get(queue).body == b"with a ticket"


def test_publish_consume_ack_in_order(connection, channel, queue):
    declare(channel, queue, durable=True)
    sent = bodies(200)
    for body in sent:
        publish(channel, queue, body)
    messages = consume(channel, queue, len(sent))
    assert [message.body for message in messages] == sent
    assert [message.delivery_tag for message in messages] == list(range(1, 201))

    # Acknowledge all but the last, one by one: only that one comes back.
    for message in messages[:-1]:
        channel.basic_ack(message.delivery_tag)
    channel.close()
    [message] = consume(connection.channel(), queue, 1)
    assert (message.body, message.redelivered) == (sent[-1], True)


def test_consumer_tags_and_cancel(channel, queue):
    declare(channel, queue)
    assigned = channel.basic_consume(queue)
    assert assigned
    assert channel.basic_consume(queue, consumer_tag="own") == "own"
    assert declare(channel, queue) == (queue, 0, 2)
    channel.basic_cancel(assigned)
    channel.basic_cancel("own")
    assert declare(channel, queue) == (queue, 0, 0)


def test_unbind_purge_and_delete(channel, queue, exchange):
    channel.exchange_declare(exchange, "topic", auto_delete=False)
    declare(channel, queue)
    channel.queue_bind(queue, exchange, "a.*")
    for _ in range(2):
        channel.basic_publish(amqp.Message("bound"), exchange, "a.b")
    channel.queue_unbind(queue, exchange, "a.*")
    channel.basic_publish(amqp.Message("unbound"), exchange, "a.b")
    assert channel.queue_purge(queue) == 2
    assert channel.queue_delete(queue) == 0
    channel.exchange_delete(exchange)


def test_unroutable_mandatory_message_is_returned(connection, channel, queue):
    declare(channel, queue)
    key = unique("missing")
    message = amqp.Message(BIG_BODY, message_id="42")
    channel.basic_publish(message, "amq.direct", key, mandatory=True)
    # The return comes before the answer to whatever follows it on the channel.
    declare(channel, queue)
    code, text, exchange, routing_key, returned = channel.returned_messages.get_nowait()
    assert (code, text, exchange, routing_key) == (NO_ROUTE, "NO_ROUTE", "amq.direct", key)
    assert (returned.body, returned.message_id) == (BIG_BODY, "42")


def test_passive_declare_of_a_missing_queue_closes_only_the_channel(connection, channel, queue):
    with pytest.raises(amqp.AMQPChannelException) as raised:
        channel.queue_declare(queue, passive=True)
    assert raised.value.amqp_reply_code == NOT_FOUND
    assert raised.value.amqp_method_sig == (50, 10)
    declare(connection.channel(), queue)
    assert count(connection, queue) == 0


def test_redeclare_of_an_exchange_with_another_type_closes_only_the_channel(
    connection, channel, exchange
):
    channel.exchange_declare(exchange, "direct", auto_delete=False)
    with pytest.raises(amqp.AMQPChannelException) as raised:
        channel.exchange_declare(exchange, "fanout", auto_delete=False)
    assert raised.value.amqp_reply_code == PRECONDITION_FAILED
    connection.channel().exchange_declare(exchange, "direct", auto_delete=False)


def test_redeclare_of_an_exchange_with_other_flags_changes_nothing(connection, channel, exchange):
    channel.exchange_declare(exchange, "direct", durable=False, auto_delete=False)
    if REFERENCE_IS_RABBITMQ:
        with pytest.raises(amqp.AMQPChannelException) as raised:
            channel.exchange_declare(exchange, "direct", durable=True, auto_delete=True)
        assert raised.value.amqp_reply_code == PRECONDITION_FAILED
    else:
        channel.exchange_declare(exchange, "direct", durable=True, auto_delete=True)
        # Had it become auto-delete, it would go with its last binding.
        name, _, _ = channel.queue_declare(exclusive=True)
        channel.queue_bind(name, exchange)
        channel.queue_unbind(name, exchange)
        channel.exchange_declare(exchange, "direct", passive=True)


@pytest.mark.parametrize("body", [BIG_BODY, b""], ids=["over-frame-max", "empty"])
def test_body(channel, queue, body):
    declare(channel, queue)
    publish(channel, queue, body)
    publish(channel, queue, b"next")
    received = consume(channel, queue, 2)
    # amqplib leaves an empty body as the text that it starts with.
    assert (received[0].body or b"") == body
    assert received[1].body == b"next"


def test_headers_and_properties(channel, queue):
    # All five types of field that AMQP 0-8 has.
    headers = {
        "text": "värde",
        "int": -(2**31),
        "decimal": Decimal("-3.14"),
        "timestamp": datetime.datetime(2009, 1, 14, 12, 30, 15),
        "table": {"inner": {"deep": {"deeper": 1}}, "empty": {}},
    }
    properties = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "application_headers": headers,
        "delivery_mode": 2,
        "priority": 9,
        "correlation_id": "correlation",
        "reply_to": "reply",
        "expiration": "60000",
        "message_id": "message",
        "timestamp": datetime.datetime(2009, 1, 14, 12, 30, 15),
        "type": "type",
        "user_id": "guest",
        "app_id": "app",
        "cluster_id": "cluster",
    }
    declare(channel, queue)
    publish(channel, queue, "text", **properties)
    [message] = consume(channel, queue, 1)
    assert message.properties == properties
    assert message.body == "text"


def test_reject_with_requeue_redelivers(channel, queue):
    declare(channel, queue)
    publish(channel, queue, b"again")
    message = channel.basic_get(queue)
    assert not message.redelivered
    channel.basic_reject(message.delivery_tag, requeue=True)
    [message] = consume(channel, queue, 1)
    assert (message.body, message.redelivered) == (b"again", True)


def test_recover_is_unanswered_and_redelivers(channel, queue):
    declare(channel, queue)
    for body in bodies(2):
        publish(channel, queue, body)
    received = consume(channel, queue, 2)
    del received[:]
    # 0-8 has no recover-ok: amqplib would choke on one below, where it waits for deliveries.
    channel.basic_recover(requeue=True)
    assert declare(channel, queue)[0] == queue
    while len(received) < 2:
        channel.wait()
    assert [message.body for message in received] == bodies(2)
    assert all(message.redelivered for message in received)


def test_prefetch_bounds_the_unacknowledged(connection, channel, queue):
    declare(channel, queue)
    for body in bodies(10):
        publish(channel, queue, body)
    channel.basic_qos(prefetch_size=0, prefetch_count=3, a_global=False)
    received = consume(channel, queue, 3)
    # The answer of the broker comes after whatever else it may have delivered.
    assert count(connection, queue) == 7
    assert channel.method_queue == []
    channel.basic_ack(received[0].delivery_tag)
    while len(received) < 4:
        channel.wait()
    assert count(connection, queue) == 6
    assert [message.body for message in received] == bodies(4)


def test_tx_publishes_appear_on_commit_and_vanish_on_rollback(connection, channel, queue):
    declare(channel, queue)
    channel.tx_select()
    publish(channel, queue, b"one")
    publish(channel, queue, b"two")
    assert count(connection, queue) == 0
    channel.tx_commit()
    assert count(connection, queue) == 2
    # Selecting again is no error and ends no transaction.
    publish(channel, queue, b"three")
    channel.tx_select()
    channel.tx_commit()
    assert count(connection, queue) == 3
    publish(channel, queue, b"four")
    channel.tx_rollback()
    channel.tx_commit()
    assert count(connection, queue) == 3


def test_tx_acks_take_effect_on_commit_only(connection, channel, queue):
    declare(channel, queue)
    for body in bodies(2):
        publish(channel, queue, body)
    channel.tx_select()
    first, second = consume(channel, queue, 2)
    channel.basic_ack(first.delivery_tag)
    channel.tx_commit()
    channel.basic_ack(second.delivery_tag)
    channel.tx_rollback()
    channel.close()
    [message] = consume(connection.channel(), queue, 1)
    assert (message.body, message.redelivered) == (second.body, True)
