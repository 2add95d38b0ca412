"""kombu on its amqp transport, as Celery uses it."""

import time

import amqp
import kombu
import pytest

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


def connect(**transport_options):
    return kombu.Connection(
        f"amqp://guest:guest@{HOST}:{PORT}//", transport_options=transport_options
    )


@pytest.fixture
def connection(names):
    with connect() as connection:
        yield connection


@pytest.fixture
def channel(connection):
    return connection.channel()


@pytest.fixture
def bound(channel, queue, exchange):
    """A declared queue bound to a declared direct exchange, both durable as kombu has them."""
    bound = kombu.Queue(queue, kombu.Exchange(exchange, "direct"), routing_key="key")
    bound.maybe_bind(channel)
    bound.declare()
    return bound


def publish(channel, bound, body, **options):
    kombu.Producer(channel, bound.exchange, "key").publish(body, **options)


def count(connection, bound):
    """Messages ready in the queue, as another channel sees them."""
    with connection.channel() as other:
        return bound(other).queue_declare(passive=True).message_count


def drain(connection, seconds):
    """Handles whatever the broker sends in the next `seconds`."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            connection.drain_events(timeout=left)
        except TimeoutError:
            return


def start(channel, bound, prefetch_count=None):
    """Starts a consumer; what is returned collects its messages."""
    received = []
    consumer = kombu.Consumer(
        channel, [bound], on_message=received.append, prefetch_count=prefetch_count
    )
    consumer.consume()
    return received


def consume(connection, channel, bound, expected):
    """The first `expected` messages from the queue, unacknowledged."""
    received = start(channel, bound)
    while len(received) < expected:
        connection.drain_events(timeout=DEADLINE)
    return received


def test_publish_consume_ack_in_order(connection, channel, bound):
    sent = bodies(200)
    for body in sent:
        publish(channel, bound, body)
    messages = consume(connection, channel, bound, len(sent))
    assert [message.body for message in messages] == sent

    # Acknowledge all but the last, one by one: only that one comes back.
    for message in messages[:-1]:
        message.ack()
    channel.close()
    [message] = consume(connection, connection.channel(), bound, 1)
    assert (message.body, message.delivery_info["redelivered"]) == (sent[-1], True)


def test_simple_queue_of_json(connection, bound):
    simple = connection.SimpleQueue(bound)
    task = {"id": 1, "args": [1, [2, None]], "text": "värde"}
    simple.put(task)
    message = simple.get(timeout=DEADLINE)
    assert (message.payload, message.content_type) == (task, "application/json")
    message.ack()
    with pytest.raises(simple.Empty):
        simple.get(block=False)
    simple.close()


def test_publisher_confirms(connection, bound):
    with connect(confirm_publish=True) as confirming:
        for body in bodies(20):
            # Returns only once the broker has confirmed.
            publish(confirming, bound, body, confirm_timeout=DEADLINE)
        assert count(connection, bound) == 20


def test_unroutable_mandatory_message_is_returned_before_its_confirm(bound):
    with connect(confirm_publish=True) as confirming:
        returned = []
        producer = kombu.Producer(
            confirming.channel(), bound.exchange, on_return=lambda *call: returned.append(call)
        )
        key = unique("missing")
        producer.publish(BIG_BODY, routing_key=key, mandatory=True, confirm_timeout=DEADLINE)
        # `publish` returned on the confirm, so the return came before it.
        [(error, exchange, routing_key, message)] = returned
        assert error.reply_code == NO_ROUTE
        assert (exchange, routing_key) == (bound.exchange.name, key)
        assert message.body == BIG_BODY


def test_passive_declare_of_a_missing_queue_closes_only_the_channel(connection, channel, queue):
    missing = kombu.Queue(queue)(channel)
    with pytest.raises(connection.channel_errors) as raised:
        missing.queue_declare(passive=True)
    assert raised.value.reply_code == NOT_FOUND
    kombu.Queue(queue)(connection.channel()).queue_declare()
    assert count(connection, missing) == 0


def test_redeclare_with_other_arguments_closes_only_the_channel(connection, channel, bound):
    other = kombu.Queue(bound.name, max_length=5)(channel)
    with pytest.raises(connection.channel_errors) as raised:
        other.queue_declare()
    assert raised.value.reply_code == PRECONDITION_FAILED
    bound(connection.channel()).declare()


@pytest.mark.parametrize("body", [BIG_BODY, b""], ids=["over-frame-max", "empty"])
def test_body(connection, channel, bound, body):
    publish(channel, bound, body)
    publish(channel, bound, b"next")
    received = consume(connection, channel, bound, 2)
    # py-amqp leaves an empty body as the text that it starts with.
    assert (received[0].body or b"") == body
    assert received[1].body == b"next"


def test_headers_and_properties(connection, channel, bound):
    # Like those of a Celery task.
    headers = {
        "lang": "py",
        "id": "7f0e9a90",
        "retries": 0,
        "eta": None,
        "timelimit": [None, 300.5],
        "ignore_result": False,
        "big": 2**62,
        "stamps": {"group": ["a", ["b", {"c": None}]]},
    }
    publish(
        channel,
        bound,
        [1, 2],
        headers=headers,
        serializer="json",
        priority=9,
        expiration=60,
        correlation_id="correlation",
        reply_to="reply",
    )
    [message] = consume(connection, channel, bound, 1)
    assert message.headers == headers
    assert message.payload == [1, 2]
    assert message.properties["priority"] == 9
    assert message.properties["expiration"] == "60000"
    assert message.properties["correlation_id"] == "correlation"
    assert message.properties["reply_to"] == "reply"
    assert message.properties["delivery_mode"] == 2


def test_compressed_body(connection, channel, bound):
    publish(channel, bound, {"zeros": "0" * 100_000}, serializer="json", compression="zlib")
    [message] = consume(connection, channel, bound, 1)
    assert message.headers["compression"] == "application/x-gzip"
    assert message.payload == {"zeros": "0" * 100_000}


def test_requeue_redelivers(connection, channel, bound):
    publish(channel, bound, b"again")
    received = consume(connection, channel, bound, 1)
    assert not received[0].delivery_info["redelivered"]
    received.pop().requeue()
    while not received:
        connection.drain_events(timeout=DEADLINE)
    assert received[0].body == b"again"
    assert received[0].delivery_info["redelivered"]


def test_prefetch_bounds_the_unacknowledged(connection, channel, bound):
    for body in bodies(10):
        publish(channel, bound, body)
    received = start(channel, bound, prefetch_count=3)
    drain(connection, QUIET)
    assert len(received) == 3
    received[0].ack()
    drain(connection, QUIET)
    assert [message.body for message in received] == bodies(4)


def test_tx_publishes_appear_on_commit_and_vanish_on_rollback(connection, channel, bound):
    channel.tx_select()
    publish(channel, bound, b"one")
    publish(channel, bound, b"two")
    assert count(connection, bound) == 0
    channel.tx_commit()
    assert count(connection, bound) == 2
    publish(channel, bound, b"three")
    channel.tx_rollback()
    channel.tx_commit()
    assert count(connection, bound) == 2


def test_consumer_is_told_when_its_queue_is_deleted(connection, channel, bound):
    start(channel, bound)
    with connect() as other:
        bound(other.channel()).delete()
    with pytest.raises(amqp.ConsumerCancelled):
        connection.drain_events(timeout=DEADLINE)
