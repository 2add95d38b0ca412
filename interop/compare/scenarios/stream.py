"""Stream queues as a client sees them over AMQP 0-9-1."""

from scenario import (Scenario, ack, cancelled, confirms, consume, declare, deliveries,
                      get, m, nack, publish, qos, reject, send, silence)
from wire import Typed


def stream(queue="{q}", durable=True, flags=None, **arguments):
    given = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
    return declare(queue, {"x-queue-type": "stream", **given}, durable=durable, **(flags or {}))


def confirmed(*bodies, queue="{q}", **properties):
    """Published one by one and confirmed: a stream is read as far as it is confirmed."""
    return [m("confirm.select"),
            *[step for body in bodies
              for step in (publish("", queue, body, **properties), confirms(1))]]


def read(offset=None, tag="c", channel=2):
    """A consumer on a channel of its own."""
    arguments = {} if offset is None else {"x-stream-offset": offset}
    return [qos(100).on(channel), consume(tag=tag, arguments=arguments).on(channel)]


SCENARIOS = [
    Scenario("stream-refuses", [
        stream("{q1}", durable=False),
        stream("{q2}", flags={"exclusive": True}),
        stream("{q3}", flags={"auto_delete": True}),
        stream(""),
        stream("{q4}", message_ttl=1000),
        stream("{q5}", expires=1000),
        stream("{q6}", max_length=1000),
        stream("{q7}", dead_letter_exchange=""),
        stream("{q8}", max_priority=5),
        stream("{q9}", overflow="reject-publish"),
        stream("{q10}", single_active_consumer=True),
        stream("{q11}", max_age="1"),
        stream("{q12}", max_age="1x"),
        stream("{q13}", max_age=1),
        stream("{q15}", max_length_bytes=-1),
        stream("{q16}", stream_max_segment_size_bytes="x"),
        stream("{q17}", stream_max_segment_size_bytes=-1),
        stream("{q18}", initial_cluster_size=0),
        stream("{q19}", delivery_limit=3),
        stream("{q20}", queue_mode="lazy"),
    ]),
    Scenario("stream-accepts", [
        stream("{q1}", max_age="1h"),
        *[stream("{a%d}" % i, max_age=f"7{unit}") for i, unit in enumerate("YMDhms")],
        stream("{q2}", max_length_bytes=1000000, stream_max_segment_size_bytes=500000),
        stream("{q3}", initial_cluster_size=1, queue_leader_locator="client-local"),
        stream("{q3}", initial_cluster_size=1, queue_leader_locator="client-local"),
        stream("{q3}"),
        stream("{q4}", unknown=1),
    ]),
    Scenario("stream-get-is-refused", [
        stream(),
        get(),
    ]),
    Scenario("stream-consume-needs-a-prefetch", [
        stream(),
        consume(),
    ]),
    Scenario("stream-consume-needs-acknowledgements", [
        stream(),
        qos(10),
        consume(no_ack=True),
    ]),
    Scenario("stream-exclusive-and-global-prefetch", [
        stream(),
        qos(10),
        consume(exclusive=True),
        qos(10, shared=True).on(2),
        consume(tag="d").on(2),
    ]),
    Scenario("stream-offset-first", [
        stream(),
        confirmed("a", "b", "c"),
        read("first"),
        deliveries(3).on(2),
        confirmed("d"),
        deliveries(1).on(2),
    ]),
    Scenario("stream-offset-default-is-next", [
        stream(),
        confirmed("a", "b"),
        read(),
        silence(0.3).on(2),
        confirmed("c"),
        deliveries(1).on(2),
    ]),
    Scenario("stream-offset-next", [
        stream(),
        confirmed("a", "b"),
        read("next"),
        silence(0.3).on(2),
        confirmed("c"),
        deliveries(1).on(2),
    ]),
    Scenario("stream-offset-last", [
        stream(),
        confirmed("a", "b", "c"),
        read("last"),
        deliveries(1).on(2),
    ]),
    Scenario("stream-offset-number", [
        stream(),
        confirmed("a", "b", "c"),
        read(1),
        deliveries(2).on(2),
        read(Typed("l", 2), "d", 3),
        deliveries(1).on(3),
        read(0, "e", 4),
        deliveries(3).on(4),
    ]),
    Scenario("stream-offset-number-to-come", [
        stream(),
        confirmed("a", "b"),
        read(3),
        confirmed("c", "d"),
        deliveries(1).on(2),
    ]),
    Scenario("stream-offset-timestamp", [
        stream(),
        confirmed("a", "b"),
        read(Typed("T", 1000000000)),
        deliveries(2).on(2),
        read(Typed("T", 4000000000), "d", 3),
        silence(0.2).on(3),
        confirmed("c"),
        deliveries(1).on(2),
        deliveries(1).on(3),
    ]),
    Scenario("stream-offset-interval", [
        stream(),
        confirmed("a", "b"),
        read("1h"),
        deliveries(2).on(2),
        read("1D", "d", 3),
        deliveries(2).on(3),
    ]),
    Scenario("stream-offset-invalid", [
        stream(),
        qos(10),
        consume(tag="a", arguments={"x-stream-offset": "1x"}),
        qos(10),
        consume(tag="b", arguments={"x-stream-offset": "0h"}),
        qos(10),
        consume(tag="c", arguments={"x-stream-offset": -1}),
    ], note="Other texts, booleans and fractions end RabbitMQ's connection with 541."),
    Scenario("stream-offset-on-a-classic-queue", [
        declare(),
        consume(arguments={"x-stream-offset": "first"}),
        declare("{q2}", {"x-queue-type": "quorum"}, durable=True),
        consume("{q2}", "d", {"x-stream-offset": "first"}),
    ]),
    Scenario("stream-consumer-arguments-of-others", [
        stream(),
        qos(10),
        consume(arguments={"x-priority": 5}),
    ]),
    Scenario("stream-acknowledgements-are-credit", [
        stream(),
        confirmed("a", "b", "c", "d"),
        qos(2).on(2),
        consume(arguments={"x-stream-offset": "first"}).on(2),
        deliveries(2).on(2),
        silence(0.3).on(2),
        ack(1).on(2),
        deliveries(1).on(2),
        ack(3, multiple=True).on(2),
        deliveries(1).on(2),
    ]),
    *[Scenario(f"stream-{name}-is-credit-too", [
        stream(),
        confirmed("a", "b"),
        qos(1).on(2),
        consume(arguments={"x-stream-offset": "first"}).on(2),
        deliveries(1).on(2),
        refusal.on(2),
        deliveries(1).on(2).since(
            "3.13", "all kinds of settlement give credit (rabbit_stream_queue:settle/5)",
            "- < connection.close reply_code=540 reply_text='NOT_IMPLEMENTED - basic.nack and "
            "basic.reject not supported by stream queues queue '{q}' in vhost '/'' "
            f"class_id=60 method_id={number}",
            "+ < basic.deliver consumer_tag='c' delivery_tag=2 redelivered=false exchange='' "
            "routing_key='{q}'",
            '+     body "b"', "+     headers", "+         x-stream-offset = long 1"),
    ]) for name, number, refusal in (("reject", 90, reject(1)),
                                     ("nack", 120, nack(1, requeue=True)))],
    Scenario("stream-is-read-again-by-each", [
        stream(),
        confirmed("a", "b"),
        read("first", "c", 2),
        deliveries(2).on(2),
        ack(2, multiple=True).on(2),
        read("first", "d", 3),
        deliveries(2).on(3),
        m("basic.cancel", consumer_tag="c").on(2),
        consume(tag="e", arguments={"x-stream-offset": "first"}).on(2),
        deliveries(2).on(2),
    ]),
    Scenario("stream-message-as-published", [
        stream(),
        confirmed("a", headers={"h": 1, "x": "y"}, delivery_mode=2, priority=3,
                  content_type="text/plain", correlation_id="cid", message_id="mid",
                  timestamp=1234567890, expiration="10", reply_to="r", type="t", app_id="app"),
        read("first"),
        deliveries(1).on(2),
    ]),
    Scenario("stream-empty-body-and-exchange", [
        stream(),
        m("exchange.declare", exchange="{x}", type="topic"),
        m("queue.bind", queue="{q}", exchange="{x}", routing_key="#"),
        m("confirm.select"),
        publish("{x}", "some.key", ""),
        confirms(1),
        read("first"),
        deliveries(1).on(2),
    ]),
    Scenario("stream-counts-purge-and-delete", [
        stream(),
        confirmed("a", "b"),
        m("queue.purge", queue="{q}"),
        m("queue.delete", queue="{q}", if_unused=True),
        m("queue.delete", queue="{q}", if_empty=True),
        m("queue.delete", queue="{q}"),
    ]),
    Scenario("stream-in-transaction", [
        stream(),
        m("tx.select"),
        send("{q}", "a"),
        m("tx.commit"),
        read("first"),
        deliveries(1).on(2),
    ]),
    Scenario("stream-filter", [
        stream(),
        m("confirm.select"),
        publish("", "{q}", "a", headers={"x-stream-filter-value": "apple"}),
        confirms(1),
        qos(10).on(2),
        consume(arguments={"x-stream-offset": "first", "x-stream-filter": "apple"}).on(2),
        deliveries(1).on(2),
    ], note="Filters are 3.13's; what 3.10 does with their arguments is to ignore them."),
    Scenario("stream-consumer-is-cancelled-with-the-queue", [
        stream(),
        read("first"),
        m("queue.delete", queue="{q}"),
        cancelled(1).on(2),
    ]),
]
