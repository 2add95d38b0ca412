//! Queues, exchanges, bindings and consumers: listed, purged, deleted.

use client::{ConsumeOptions, ExchangeOptions, FieldTable, PropertiesBuilder, QueueOptions};
use testkit::Broker;

use crate::running::*;
use crate::support::durable::{bind, declare_durable};
use crate::support::rules::publish_to;
use crate::support::*;

/// The same entities that the expected lists of RabbitMQ were made with.
async fn populated(broker: &Broker) -> (client::Connection, u16) {
    let (mut connection, channel) = open(broker).await;
    let limited = QueueOptions {
        arguments: FieldTable::new()
            .with("x-max-length", 10)
            .with("x-queue-type", "classic"),
        ..QueueOptions::durable()
    };
    let declared = connection.declare_queue(channel, "q1", &limited).await;
    declared.expect("a queue");
    declare(&mut connection, channel, "q2").await;
    let options = client::ExchangeOptions {
        arguments: FieldTable::new().with("alternate-exchange", "amq.fanout"),
        ..routes::durable_exchange()
    };
    routes::declare_exchange(&mut connection, channel, "x1", "topic", &options).await;
    let arguments = FieldTable::new().with("foo", "bar").with("n", 5);
    let bound = connection
        .bind(channel, "q1", "x1", "a.*.b", &arguments)
        .await;
    bound.expect("a binding");
    let bound = connection.bind_exchange(channel, "x1", "amq.direct", "k", routes::none());
    bound.await.expect("a binding");
    publish(&mut connection, channel, "q1", b"hi");
    publish(&mut connection, channel, "q2", b"hi");
    synchronize(&mut connection, channel).await;
    (connection, channel)
}

#[test]
fn everything_is_listed_as_rabbitmqctl_does() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let (connection, _) = populated(&broker).await;
        assert_eq!(
            done(&broker, &["list_queues"]),
            "Timeout: 60.0 seconds ...\nListing queues for vhost / ...\nname\tmessages\nq1\t1\n\
             q2\t1\n"
        );
        let columns = "name durable auto_delete exclusive arguments messages_ready \
                       messages_unacknowledged consumers state type policy memory";
        let columns: Vec<&str> = columns.split_whitespace().collect();
        assert_eq!(
            rows(&broker, &[&["list_queues"], &columns[..]].concat()),
            [
                "q1\ttrue\tfalse\tfalse\t[{\"x-max-length\",10},{\"x-queue-type\",\"classic\"}]\
                 \t1\t0\t0\trunning\tclassic\t\t",
                "q2\tfalse\tfalse\tfalse\t[]\t1\t0\t0\trunning\tclassic\t\t",
            ]
        );
        let exchanges = rows(
            &broker,
            &[
                "list_exchanges",
                "name",
                "type",
                "durable",
                "auto_delete",
                "internal",
                "arguments",
            ],
        );
        assert_eq!(exchanges.len(), 9);
        for row in [
            "\tdirect\ttrue\tfalse\tfalse\t[]",
            "amq.rabbitmq.trace\ttopic\ttrue\tfalse\ttrue\t[]",
            "x1\ttopic\ttrue\tfalse\tfalse\t[{\"alternate-exchange\",\"amq.fanout\"}]",
        ] {
            assert!(exchanges.contains(&row.to_owned()), "{exchanges:?}");
        }
        assert_eq!(
            done(&broker, &["list_bindings"]),
            "Listing bindings for vhost /...\n\
             source_name\tsource_kind\tdestination_name\tdestination_kind\trouting_key\targuments\n\
             \texchange\tq1\tqueue\tq1\t[]\n\
             \texchange\tq2\tqueue\tq2\t[]\n\
             amq.direct\texchange\tx1\texchange\tk\t[]\n\
             x1\texchange\tq1\tqueue\ta.*.b\t[{\"foo\",\"bar\"},{\"n\",5}]\n"
        );
        connection.close().await.expect("close-ok");
    });
}

#[test]
fn consumers_are_listed_while_they_are_there() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = populated(&broker).await;
        connection.qos(channel, 7, false).await.expect("qos-ok");
        let options = ConsumeOptions {
            consumer_tag: "ctag".into(),
            arguments: FieldTable::new().with("x-priority", 5),
            ..ConsumeOptions::default()
        };
        connection
            .consume(channel, "q2", &options)
            .await
            .expect("it");
        let listed = done(&broker, &["list_consumers"]);
        let lines: Vec<&str> = listed.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "Listing consumers in vhost / ...",
                "queue_name\tchannel_pid\tconsumer_tag\tack_required\tprefetch_count\tactive\t\
                 arguments",
            ]
        );
        let columns = [
            "list_consumers",
            "queue_name",
            "consumer_tag",
            "ack_required",
            "prefetch_count",
            "active",
            "activity_status",
            "arguments",
        ];
        assert_eq!(
            rows(&broker, &columns),
            ["q2\tctag\ttrue\t7\ttrue\tup\t[{\"x-priority\",5}]"]
        );
        connection.cancel(channel, "ctag").await.expect("cancel-ok");
        assert_eq!(rows(&broker, &columns), [""; 0]);
        // Those of a queue or of a connection that goes.
        let plain = ConsumeOptions::default();
        connection.consume(channel, "q1", &plain).await.expect("it");
        connection.consume(channel, "q2", &plain).await.expect("it");
        assert_eq!(rows(&broker, &columns).len(), 2);
        done(&broker, &["delete_queue", "q1"]);
        assert_eq!(rows(&broker, &columns).len(), 1);
        drop(connection);
        eventually("no consumers", seconds(5), async || {
            rows(&broker, &columns).is_empty()
        })
        .await;
    });
}

#[test]
fn queues_are_purged_and_deleted() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = populated(&broker).await;
        let consumer = ConsumeOptions::default();
        connection
            .consume(channel, "q2", &consumer)
            .await
            .expect("it");
        refused(
            &broker,
            &["delete_queue", "q1", "--if-empty"],
            64,
            "Deleting queue 'q1' on vhost '/' if queue is empty ...\n",
            "Error:\nQueue is not empty\n",
        );
        refused(
            &broker,
            &["delete_queue", "q2", "--if-unused"],
            64,
            "Deleting queue 'q2' on vhost '/' if queue is unused ...\n",
            "Error:\nQueue is in use\n",
        );
        refused(
            &broker,
            &["delete_queue", "q2", "-u", "-e"],
            64,
            "Deleting queue 'q2' on vhost '/' if queue is empty and if queue is unused ...\n",
            "Error:\nQueue is in use\n",
        );
        assert_eq!(
            done(&broker, &["delete_queue", "q1"]),
            "Deleting queue 'q1' on vhost '/' ...\nQueue was successfully deleted with 1 ready \
             messages\n"
        );
        refused(
            &broker,
            &["delete_queue", "q1"],
            64,
            "Deleting queue 'q1' on vhost '/' ...\n",
            "Error:\nQueue not found\n",
        );
        declare_durable(&mut connection, channel, "q3").await;
        bind(&mut connection, channel, "q3", "amq.direct", "k").await;
        publish(&mut connection, channel, "q3", b"hi");
        synchronize(&mut connection, channel).await;
        assert_eq!(
            done(&broker, &["purge_queue", "q3"]),
            "Purging queue 'q3' in vhost '/' ...\n"
        );
        assert!(rows(&broker, &["list_queues"]).contains(&"q3\t0".to_owned()));
        refused(
            &broker,
            &["purge_queue", "nope"],
            69,
            "Purging queue 'nope' in vhost '/' ...\n",
            "Error:\nnot_found\n",
        );
    });
}

/// How many messages wait for their time is told by the exchange that they were published to.
#[test]
fn exchanges_say_how_many_messages_they_delay() {
    within(seconds(10), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        let options = ExchangeOptions {
            arguments: FieldTable::new().with("x-delayed-type", "fanout"),
            ..ExchangeOptions::default()
        };
        let declared = connection.declare_exchange(channel, "later", "x-delayed-message", &options);
        declared.await.expect("declare-ok");
        for number in 0..3 {
            let headers = FieldTable::new().with("x-delay", 60_000);
            let properties = PropertiesBuilder::default().headers(&headers);
            publish_to(
                &mut connection,
                channel,
                "later",
                "",
                properties,
                &numbered(number, 8),
            );
        }
        synchronize(&mut connection, channel).await;
        let list = ["list_exchanges", "name", "messages_delayed"];
        assert!(rows(&broker, &list).contains(&"later\t3".to_owned()));
    });
}
