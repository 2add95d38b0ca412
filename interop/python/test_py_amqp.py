"""py-amqp (the `amqp` package), the transport under kombu and Celery."""

import datetime
import time
from decimal import Decimal

import amqp
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


def connect(**options):
    connection = amqp.Connection(f"{HOST}:{PORT}", connect_timeout=DEADLINE, **options)
    connection.connect()
    return connection


@pytest.fixture
def connection(names):
    connection = connect()
    yield connection
    connection.close()


@pytest.fixture
def channel(connection):
    return connection.channel()


def count(connection, queue):
    """Messages ready in `queue`, as another channel sees them."""
    with connection.channel() as other:
        return other.queue_declare(queue, passive=True).message_count


def declare(channel, queue, **options):
    return channel.queue_declare(queue, auto_delete=False, **options)


def publish(channel, queue, body, **properties):
    channel.basic_publish(amqp.Message(body, **properties), routing_key=queue)


def consume(channel, queue, expected):
    """The first `expected` deliveries from `queue`, unacknowledged."""
    received = []
    channel.basic_consume(queue, callback=received.append)
    while len(received) < expected:
        channel.connection.drain_events(timeout=DEADLINE)
    return received


def drain(connection, seconds):
    """Handles whatever the broker sends in the next `seconds`."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        try:
            connection.drain_events(timeout=left)
        except TimeoutError:
            return


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
    assert (message.body, message.delivery_info["redelivered"]) == (sent[-1], True)


def test_consume_with_the_brokers_and_with_an_own_tag(channel, queue):
    declare(channel, queue)
    assigned = channel.basic_consume(queue, callback=print)
    assert assigned
    assert channel.basic_consume(queue, consumer_tag="own", nowait=True) == "own"
    assert declare(channel, queue).consumer_count == 2
    channel.basic_cancel(assigned)
    channel.basic_cancel("own", nowait=True)
    assert declare(channel, queue).consumer_count == 0


def test_nowait_declarations_take_effect_unanswered(channel, queue, exchange):
    channel.exchange_declare(exchange, "direct", auto_delete=False, nowait=True)
    declare(channel, queue, nowait=True)
    channel.queue_bind(queue, exchange, "key", nowait=True)
    channel.confirm_select(nowait=True)
    channel.basic_publish(amqp.Message(b"bound"), exchange, "key")
    channel.wait(amqp.spec.Basic.Ack, timeout=DEADLINE)
    assert channel.basic_get(queue, no_ack=True).body == b"bound"
    channel.queue_purge(queue, nowait=True)
    channel.queue_delete(queue, nowait=True)
    channel.exchange_delete(exchange, nowait=True)
    with pytest.raises(amqp.NotFound):
        channel.queue_declare(queue, passive=True)


def test_publisher_confirms(names, queue):
    connection = connect(confirm_publish=True)
    channel = connection.channel()
    declare(channel, queue, durable=True)
    for body in bodies(20):
        # Returns only once the broker has confirmed.
        channel.basic_publish(
            amqp.Message(body, delivery_mode=2), routing_key=queue, confirm_timeout=DEADLINE
        )
    assert count(connection, queue) == 20
    connection.close()


def test_unroutable_mandatory_message_is_returned_before_its_confirm(connection, channel):
    events = []
    channel.events["basic_return"].add(lambda *returned: events.append(("return", returned)))
    channel.events["basic_ack"].add(lambda *confirmed: events.append(("ack", confirmed)))
    channel.confirm_select()
    key = unique("missing")
    channel.basic_publish(amqp.Message(BIG_BODY), routing_key=key, mandatory=True)
    while len(events) < 2:
        connection.drain_events(timeout=DEADLINE)
    [(_, (error, exchange, routing_key, message)), confirmed] = events
    assert (error.reply_code, error.reply_text) == (NO_ROUTE, "NO_ROUTE")
    assert (exchange, routing_key, message.body) == ("", key, BIG_BODY)
    assert confirmed == ("ack", (1, False))


def test_passive_declare_of_a_missing_queue_closes_only_the_channel(connection, channel, queue):
    with pytest.raises(amqp.NotFound) as raised:
        channel.queue_declare(queue, passive=True)
    assert raised.value.reply_code == NOT_FOUND
    assert raised.value.method_sig == amqp.spec.Queue.Declare
    # py-amqp has reopened the channel under its old number, right after its close-ok.
    declare(channel, queue)
    assert count(connection, queue) == 0


def test_redeclare_with_other_arguments_closes_only_the_channel(connection, channel, queue):
    declare(channel, queue, durable=True)
    with pytest.raises(amqp.PreconditionFailed) as raised:
        declare(channel, queue, durable=False)
    assert raised.value.reply_code == PRECONDITION_FAILED
    declare(connection.channel(), queue, durable=True)


def test_redeclare_of_an_exchange_with_other_flags_is_refused(connection, channel, exchange):
    channel.exchange_declare(exchange, "direct", auto_delete=False)
    with pytest.raises(amqp.PreconditionFailed):
        channel.exchange_declare(exchange, "direct", durable=True, auto_delete=False)
    connection.channel().exchange_declare(exchange, "direct", auto_delete=False)


@pytest.mark.parametrize("body", [BIG_BODY, b""], ids=["over-frame-max", "empty"])
def test_body(channel, queue, body):
    declare(channel, queue)
    publish(channel, queue, body)
    publish(channel, queue, b"next")
    received = consume(channel, queue, 2)
    # py-amqp leaves an empty body as the text that it starts with.
    assert (received[0].body or b"") == body
    assert received[1].body == b"next"


def test_headers_of_every_type(channel, queue):
    headers = {
        "text": "värde",
        "bool": True,
        "int": -(2**31) + 1,
        # py-amqp writes 64-bit integers as 'L', where other clients write 'l'.
        "long": -(2**62),
        "float": 0.1,
        "decimal": Decimal("-3.14"),
        "timestamp": datetime.datetime(2009, 1, 14, 12, 30, 15),
        "void": None,
        "table": {"inner": {"deeper": [1, {"x": None}]}, "empty": {}},
        "array": [1, "two", [3, [4, []]], {"five": 5.25}, None, True],
    }
    declare(channel, queue)
    publish(channel, queue, b"", application_headers=headers)
    [message] = consume(channel, queue, 1)
    assert message.headers == headers


def test_reject_with_requeue_redelivers(channel, queue):
    declare(channel, queue)
    publish(channel, queue, b"again")
    message = channel.basic_get(queue)
    assert not message.delivery_info["redelivered"]
    channel.basic_reject(message.delivery_tag, requeue=True)
    [message] = consume(channel, queue, 1)
    assert (message.body, message.delivery_info["redelivered"]) == (b"again", True)


def test_recover_redelivers_all_unacknowledged(connection, channel, queue):
    declare(channel, queue)
    for body in bodies(3):
        publish(channel, queue, body)
    received = consume(channel, queue, 3)
    channel.basic_ack(received[1].delivery_tag)
    del received[:]
    channel.basic_recover(requeue=True)
    drain(connection, QUIET)
    assert [message.body for message in received] == [bodies(3)[0], bodies(3)[2]]
    assert all(message.delivery_info["redelivered"] for message in received)


def test_prefetch_bounds_the_unacknowledged(connection, channel, queue):
    declare(channel, queue)
    for body in bodies(10):
        publish(channel, queue, body)
    channel.basic_qos(prefetch_size=0, prefetch_count=3, a_global=False)
    received = consume(channel, queue, 3)
    drain(connection, QUIET)
    assert len(received) == 3
    channel.basic_ack(received[0].delivery_tag)
    drain(connection, QUIET)
    assert [message.body for message in received] == bodies(4)


def test_tx_publishes_appear_on_commit_and_vanish_on_rollback(connection, channel, queue):
    declare(channel, queue)
    channel.tx_select()
    publish(channel, queue, b"one")
    publish(channel, queue, b"two")
    assert count(connection, queue) == 0
    channel.tx_commit()
    assert count(connection, queue) == 2
    publish(channel, queue, b"three")
    channel.tx_rollback()
    channel.tx_commit()
    assert count(connection, queue) == 2


def test_consumer_is_told_when_its_queue_is_deleted(connection, channel, queue):
    declare(channel, queue)
    cancelled = []
    tag = channel.basic_consume(queue, callback=print, on_cancel=cancelled.append)
    connection.channel().queue_delete(queue)
    while not cancelled:
        connection.drain_events(timeout=DEADLINE)
    assert cancelled == [tag]


def test_idle_connection_with_heartbeats_stays_open(names, queue):
    connection = connect(heartbeat=1)
    channel = connection.channel()
    heard = connection.bytes_recv
    end = time.monotonic() + 5
    while time.monotonic() < end:
        drain(connection, 0.25)
        # Sends ours; raises when the broker has been silent for two intervals.
        connection.heartbeat_tick()
    # What py-amqp counts here is frames: heartbeats, at least one an interval.
    assert connection.bytes_recv - heard >= 4
    declare(channel, queue)
    connection.close()
