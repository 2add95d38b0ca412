"""aio-pika (on aiormq and pamqp)."""

import asyncio
import datetime
from decimal import Decimal

import aio_pika
import pytest
from aio_pika.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed, PublishError
from pamqp.commands import Basic

from common import BIG_BODY, DEADLINE, HOST, NO_ROUTE, PORT, QUIET, bodies, unique


@pytest.fixture
async def connection(names):
    async with await aio_pika.connect(f"amqp://guest:guest@{HOST}:{PORT}/") as connection:
        yield connection


@pytest.fixture
async def channel(connection):
    """A channel with confirms, which are aio-pika's default."""
    return await connection.channel()


async def count(connection, name):
    """Messages ready in the queue, as another channel sees them."""
    async with connection.channel() as other:
        queue = await other.declare_queue(name, passive=True)
        return queue.declaration_result.message_count


async def publish(channel, name, body, **properties):
    message = aio_pika.Message(body, **properties)
    return await channel.default_exchange.publish(message, routing_key=name)


async def consume(channel, name, expected):
    """The first `expected` deliveries from the queue, unacknowledged."""
    queue = await channel.get_queue(name)
    deliveries = asyncio.Queue()
    await queue.consume(deliveries.put)
    async with asyncio.timeout(DEADLINE):
        return [await deliveries.get() for _ in range(expected)]


async def test_publish_consume_ack_in_order(connection, channel, queue):
    await channel.declare_queue(queue, durable=True)
    sent = bodies(200)
    for body in sent:
        await publish(channel, queue, body)
    deliveries = await consume(channel, queue, len(sent))
    assert [message.body for message in deliveries] == sent
    assert [message.delivery_tag for message in deliveries] == list(range(1, 201))

    # Acknowledge all but the last, one by one: only that one comes back.
    for message in deliveries[:-1]:
        await message.ack()
    await channel.close()
    [message] = await consume(await connection.channel(), queue, 1)
    assert (message.body, message.redelivered) == (sent[-1], True)


async def test_publisher_confirms_of_concurrent_publishes(connection, channel, queue):
    await channel.declare_queue(queue, durable=True)
    confirms = await asyncio.gather(
        *(
            publish(channel, queue, body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            for body in bodies(100)
        )
    )
    assert all(isinstance(confirm, Basic.Ack) for confirm in confirms)
    assert await count(connection, queue) == 100


async def test_unroutable_mandatory_message_is_returned_before_its_confirm(connection):
    channel = await connection.channel(on_return_raises=True)
    # aio-pika publishes as mandatory by default, and raises only if the return came first.
    with pytest.raises(PublishError) as raised:
        await publish(channel, unique("missing"), BIG_BODY)
    assert raised.value.frame.reply_code == NO_ROUTE
    assert raised.value.message.body == BIG_BODY


async def test_returns_are_told_apart_from_confirms_in_a_mix(channel, queue):
    await channel.declare_queue(queue)
    names = [queue if index % 3 else unique("missing") for index in range(60)]
    results = await asyncio.gather(*(publish(channel, name, b"") for name in names))
    for name, result in zip(names, results, strict=True):
        assert isinstance(result, Basic.Ack) == (name == queue)


async def test_passive_declare_of_a_missing_queue_closes_only_the_channel(
    connection, channel, queue
):
    with pytest.raises(ChannelNotFoundEntity):
        await channel.declare_queue(queue, passive=True)
    await (await connection.channel()).declare_queue(queue)
    assert await count(connection, queue) == 0


async def test_redeclare_with_other_arguments_closes_only_the_channel(connection, channel, queue):
    await channel.declare_queue(queue, durable=True)
    with pytest.raises(ChannelPreconditionFailed):
        await channel.declare_queue(queue, durable=False)
    await (await connection.channel()).declare_queue(queue, durable=True)


@pytest.mark.parametrize("body", [BIG_BODY, b""], ids=["over-frame-max", "empty"])
async def test_body(channel, queue, body):
    await channel.declare_queue(queue)
    await publish(channel, queue, body)
    await publish(channel, queue, b"next")
    received = await consume(channel, queue, 2)
    assert received[0].body == body
    assert received[1].body == b"next"


async def test_headers_of_every_type(channel, queue):
    # pamqp picks the smallest of b, s, u, I, i and l that holds an integer.
    headers = {
        "text": "värde",
        "bytes": bytearray(b"\x00\xff"),
        "bool": True,
        "int8": -128,
        "int16": -32768,
        "uint16": 65535,
        "int32": -(2**31),
        "uint32": 2**32 - 1,
        "int64": -(2**63),
        "float": 0.5,
        "decimal": Decimal("3.14"),
        "timestamp": datetime.datetime(2009, 1, 14, tzinfo=datetime.timezone.utc),
        "void": None,
        "table": {"inner": {"deeper": [1, {"x": None}]}, "empty": {}},
        "array": [1, "two", [300, [-70000, []]], {"five": 5.25}, None, True],
    }
    await channel.declare_queue(queue)
    await publish(channel, queue, b"", headers=headers)
    [message] = await consume(channel, queue, 1)
    assert message.headers == headers


async def test_properties(channel, queue):
    properties = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "delivery_mode": aio_pika.DeliveryMode.PERSISTENT,
        "priority": 9,
        "correlation_id": "correlation",
        "reply_to": "reply",
        "expiration": 60,
        "message_id": "message",
        "timestamp": datetime.datetime(2009, 1, 14, tzinfo=datetime.timezone.utc),
        "type": "type",
        "user_id": "guest",
        "app_id": "app",
    }
    await channel.declare_queue(queue)
    await publish(channel, queue, b"", **properties)
    [message] = await consume(channel, queue, 1)
    assert {name: getattr(message, name) for name in properties} == properties


@pytest.mark.parametrize("reject", ["nack", "reject"])
async def test_requeue_redelivers(channel, queue, reject):
    declared = await channel.declare_queue(queue)
    await publish(channel, queue, b"again")
    message = await declared.get(timeout=DEADLINE)
    assert not message.redelivered
    await getattr(message, reject)(requeue=True)
    [message] = await consume(channel, queue, 1)
    assert (message.body, message.redelivered) == (b"again", True)


async def test_prefetch_bounds_the_unacknowledged(channel, queue):
    declared = await channel.declare_queue(queue)
    for body in bodies(10):
        await publish(channel, queue, body)
    await channel.set_qos(prefetch_count=3)
    received = asyncio.Queue()
    await declared.consume(received.put)
    await asyncio.sleep(QUIET)
    assert received.qsize() == 3
    await received.get_nowait().ack()
    await asyncio.sleep(QUIET)
    assert [received.get_nowait().body for _ in range(received.qsize())] == bodies(4)[1:]


async def test_tx_publishes_appear_on_commit_and_vanish_on_rollback(connection, queue):
    channel = await connection.channel(publisher_confirms=False)
    await channel.declare_queue(queue)
    async with channel.transaction():
        await publish(channel, queue, b"one")
        await publish(channel, queue, b"two")
        assert await count(connection, queue) == 0
    assert await count(connection, queue) == 2
    with pytest.raises(ZeroDivisionError):
        async with channel.transaction():
            await publish(channel, queue, b"three")
            raise ZeroDivisionError
    async with channel.transaction():
        pass
    assert await count(connection, queue) == 2


async def test_consumer_is_told_when_its_queue_is_deleted(connection, channel, queue):
    declared = await channel.declare_queue(queue)
    cancelled = asyncio.Queue()
    underlay = await channel.get_underlay_channel()
    underlay.on_consumer_cancel_callbacks.add(cancelled.put)
    tag = await declared.consume(asyncio.Queue().put)
    await (await connection.channel()).queue_delete(queue)
    async with asyncio.timeout(DEADLINE):
        assert (await cancelled.get()).consumer_tag == tag
