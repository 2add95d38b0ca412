//! What clients and the operator see when the broker is told to stop.

mod support;

use std::time::{Duration, Instant};

use client::{ConsumeOptions, Error, Event, RawConnection};
use tokio::net::TcpStream;

use support::*;

/// How long clients are waited for, as the broker's documentation of SIGTERM has it.
const GRACE: Duration = seconds(10);

fn assert_forced(error: &Error) {
    match error {
        Error::ConnectionClosed {
            code: 320,
            text,
            class: 0,
            method: 0,
        } => {
            let expected =
                "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'";
            assert_eq!(text, expected);
        }
        other => panic!("connection.close 320 expected, got {other}"),
    }
}

/// Takes events up to the broker's close.
async fn closed_by_broker(connection: &mut client::Connection) -> Error {
    loop {
        if let Err(error) = connection.next().await {
            return error;
        }
    }
}

#[test]
fn every_client_is_told_and_the_exit_status_is_0() {
    within(seconds(10), async {
        let broker = builder().start().expect("a broker");
        let mut connections = Vec::new();
        for index in 0..20 {
            let (mut connection, channel) = open(&broker).await;
            match index % 3 {
                0 => {}
                1 => publish(&mut connection, channel, "nowhere", b"x"),
                _ => {
                    declare(&mut connection, channel, "shared").await;
                    let options = ConsumeOptions::default();
                    let consuming = connection.consume(channel, "shared", &options);
                    consuming.await.expect("a consumer");
                }
            }
            synchronize(&mut connection, channel).await;
            connections.push(connection);
        }
        broker.terminate().expect("a running broker");
        let asked = Instant::now();
        for connection in &mut connections {
            assert_forced(&closed_by_broker(connection).await);
        }
        let (status, log) = end_of(broker, GRACE).await;
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(
            asked.elapsed() < seconds(5),
            "all answered, yet it took {:?}",
            asked.elapsed()
        );
        assert!(log.contains("connections=20"), "{log}");
    });
}

#[test]
fn nobody_is_let_in_while_clients_are_waited_for() {
    within(seconds(10), async {
        let broker = builder().start().expect("a broker");
        let options = options(&broker);
        // Does not answer for a moment, so that the broker has to wait.
        let mut raw = RawConnection::open(&options).await.expect("a connection");
        raw.handshake(&options).await.expect("a handshake");
        broker.terminate().expect("a running broker");
        let close = raw.next_method().await.expect("a method");
        assert!(matches!(
            close,
            Some((0, client::Method::ConnectionClose(_)))
        ));
        let refused = TcpStream::connect(options.address()).await;
        let kind = refused.expect_err("the listener is closed").kind();
        assert_eq!(kind, std::io::ErrorKind::ConnectionRefused);
        raw.send(0, client::method::connection::CloseOk::default());
        raw.flush().await;
        let (status, log) = end_of(broker, GRACE).await;
        assert_eq!(status.code(), Some(0), "{log}");
    });
}

/// Of those who do not take leave: one never answers, one never reads, one never finished its
/// handshake, one is blocked in the middle of a message.
#[test]
fn clients_that_never_answer_hold_it_up_for_the_grace_period_at_most() {
    within(seconds(20), async {
        let broker = builder().start().expect("a broker");
        let options = options(&broker);
        let mut mute = RawConnection::open(&options).await.expect("a connection");
        mute.handshake(&options).await.expect("a handshake");
        let (mut deaf, channel) = open(&broker).await;
        fill_socket(&mut deaf, channel, "deaf").await;
        let unfinished = TcpStream::connect(options.address()).await;
        let (mut midway, channel) = open(&broker).await;
        let publish = client::method::basic::Publish::default();
        midway.send(channel, publish);
        midway.flush().await.expect("a publish without content");

        broker.terminate().expect("a running broker");
        let asked = Instant::now();
        assert_forced(&closed_by_broker(&mut midway).await);
        let (status, log) = end_of(broker, GRACE + seconds(3)).await;
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(asked.elapsed() > seconds(1), "they had no time to answer");
        assert!(!log.contains("panicked"), "{log}");
        drop((mute, deaf, unfinished));
    });
}

/// Makes the broker send more than the socket takes: what follows waits in the broker.
async fn fill_socket(connection: &mut client::Connection, channel: u16, queue: &str) {
    declare(connection, channel, queue).await;
    for _ in 0..1_000 {
        publish(connection, channel, queue, &[7; 32 * 1024]);
    }
    synchronize(connection, channel).await;
    let consume = client::method::basic::Consume {
        queue: queue.try_into().expect("a short name"),
        no_ack: true,
        ..Default::default()
    };
    connection.send(channel, consume);
    connection.flush().await.expect("a consumer");
    tokio::time::sleep(millis(300)).await;
}

#[test]
fn unread_output_comes_whole_before_the_close() {
    within(seconds(15), async {
        let broker = builder().start().expect("a broker");
        let (mut connection, channel) = open(&broker).await;
        fill_socket(&mut connection, channel, "late").await;
        broker.terminate().expect("a running broker");
        tokio::time::sleep(millis(300)).await;
        let mut deliveries = 0;
        let error = loop {
            match connection.next().await {
                Ok(Event::Delivery(delivery)) => {
                    assert_eq!(delivery.body, [7; 32 * 1024]);
                    deliveries += 1;
                }
                Ok(Event::Reply { .. }) => {}
                Ok(other) => panic!("a delivery expected, got {other:?}"),
                Err(error) => break error,
            }
        };
        assert_forced(&error);
        assert!(
            (1..1_000).contains(&deliveries),
            "{deliveries} were under way"
        );
        let (status, log) = end_of(broker, GRACE).await;
        assert_eq!(status.code(), Some(0), "{log}");
    });
}

#[test]
fn second_signal_ends_it_at_once() {
    within(seconds(10), async {
        let broker = builder().start().expect("a broker");
        let options = options(&broker);
        let mut mute = RawConnection::open(&options).await.expect("a connection");
        mute.handshake(&options).await.expect("a handshake");
        broker.terminate().expect("a running broker");
        let close = mute.next_method().await.expect("a method");
        assert!(close.is_some());
        broker.terminate().expect("a running broker");
        let (status, log) = end_of(broker, seconds(3)).await;
        assert_eq!(status.code(), Some(1), "{log}");
    });
}
