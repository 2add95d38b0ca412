//! What arrives becomes events, in order: contents whole and in pieces, replies among deliveries,
//! closes in their several ways.

mod peer;

use amqp::method::{basic, channel, connection, queue, tx};
use amqp::{Method, frame};
use client::{Connection, Error, Event, Options, Properties, PublishFlags, QueueOptions};

async fn open(options: &Options) -> Connection {
    Connection::connect(options)
        .await
        .expect("an open connection")
}

/// Tag and body of the next event, which must be a delivery.
async fn next_delivery(connection: &mut Connection) -> (u64, Vec<u8>) {
    match connection.next().await.expect("an event") {
        Event::Delivery(delivery) => (delivery.delivery_tag, delivery.body.to_vec()),
        other => panic!("delivery expected, got {other:?}"),
    }
}

#[tokio::test]
async fn bodies_of_any_size_arrive_whole() {
    const SIZES: [usize; 7] = [0, 1, 4088, 4089, 8176, 100_000, 3_000_000];
    let body = |size: usize| (0..size).map(|i| (i * 31 % 251) as u8).collect::<Vec<u8>>();
    let (options, _broker) = peer::start_open(move |peer| {
        for (tag, size) in (1..).zip(SIZES) {
            peer.write_bytes(&peer::delivery(1, tag, &body(size)).concat());
        }
        peer.read_forever();
    });
    let mut connection = open(&options).await;
    for (tag, size) in (1..).zip(SIZES) {
        assert!(
            next_delivery(&mut connection).await == (tag, body(size)),
            "size {size}"
        );
    }
}

#[tokio::test]
async fn contents_of_several_channels_may_interleave() {
    let (options, _broker) = peer::start_open(|peer| {
        let (one, two) = (
            peer::delivery(1, 1, &[1; 9000]),
            peer::delivery(2, 2, &[2; 5000]),
        );
        let mut mixed = Vec::new();
        for (index, frame) in one.iter().enumerate() {
            mixed.extend_from_slice(frame);
            mixed.extend_from_slice(&frame::HEARTBEAT);
            mixed.extend_from_slice(two.get(index).map_or(&[], Vec::as_slice));
        }
        peer.write_bytes(&mixed);
        peer.read_forever();
    });
    let mut connection = open(&options).await;
    assert_eq!(next_delivery(&mut connection).await, (2, vec![2; 5000]));
    assert_eq!(next_delivery(&mut connection).await, (1, vec![1; 9000]));
}

#[tokio::test]
async fn frames_may_arrive_byte_by_byte() {
    let (options, _broker) = peer::start_open(|peer| {
        for byte in peer::delivery(1, 1, b"slow").concat() {
            peer.write_bytes(&[byte]);
        }
        peer.read_forever();
    });
    let mut connection = open(&options).await;
    assert_eq!(next_delivery(&mut connection).await, (1, b"slow".to_vec()));
}

#[tokio::test]
async fn events_before_a_reply_wait_in_order() {
    let (options, _broker) = peer::start_open(|peer| {
        // A stray reply from before the request must not be taken for its answer.
        peer.write(
            1,
            queue::DeclareOk {
                queue: peer::name("stray"),
                ..Default::default()
            },
        );
        for tag in 1..=500 {
            peer.write_bytes(&peer::delivery(1, tag, &[tag as u8; 300]).concat());
        }
        peer.write(
            2,
            basic::Ack {
                delivery_tag: 9,
                multiple: true,
            },
        );
        assert!(matches!(peer.read(), (1, Method::QueueDeclare(_))));
        let message_count = 4;
        let queue = peer::name("real");
        peer.write(
            1,
            queue::DeclareOk {
                queue,
                message_count,
                consumer_count: 0,
            },
        );
        peer.write_bytes(&peer::delivery(1, 501, b"last").concat());
        peer.read_forever();
    });
    let mut connection = open(&options).await;
    // Have it all in the buffer before asking.
    connection.ready().await.expect("a stray reply");
    let declared = connection
        .declare_queue(1, "real", &QueueOptions::default())
        .await;
    let declared = declared.expect("a reply");
    assert_eq!((declared.name.as_str(), declared.messages), ("real", 4));
    assert!(matches!(
        connection.next().await,
        Ok(Event::Reply { channel: 1, method: Method::QueueDeclareOk(ok) })
            if ok.queue == peer::name("stray")
    ));
    for tag in 1..=500 {
        assert_eq!(
            next_delivery(&mut connection).await,
            (tag, vec![tag as u8; 300])
        );
    }
    match connection.next().await {
        Ok(Event::Confirm(confirm)) => {
            assert!(confirm.acked && confirm.multiple);
            assert_eq!((confirm.channel, confirm.delivery_tag), (2, 9));
        }
        other => panic!("confirm expected, got {other:?}"),
    }
    assert_eq!(
        next_delivery(&mut connection).await,
        (501, b"last".to_vec())
    );
}

#[tokio::test]
async fn get_takes_its_message_from_among_deliveries() {
    let (options, _broker) = peer::start_open(|peer| {
        assert!(matches!(peer.read(), (1, Method::BasicGet(_))));
        peer.write_bytes(&peer::delivery(1, 1, b"before").concat());
        let mut frames = peer::delivery(1, 2, &[5; 6000]);
        let mut get_ok = Vec::new();
        let method = basic::GetOk {
            delivery_tag: 2,
            message_count: 3,
            ..Default::default()
        };
        frame::write_method(&mut get_ok, 1, peer.version, &method.into());
        frames[0] = get_ok;
        peer.write_bytes(&frames.concat());
        peer.write_bytes(&peer::delivery(1, 3, b"after").concat());
        assert!(matches!(peer.read(), (1, Method::BasicGet(_))));
        peer.write(1, basic::GetEmpty::default());
        peer.read_forever();
    });
    let mut connection = open(&options).await;
    let message = connection
        .get(1, "q", true)
        .await
        .expect("an answer")
        .expect("a message");
    assert_eq!((message.delivery_tag, message.message_count), (2, 3));
    assert_eq!(message.body, [5; 6000]);
    assert_eq!(connection.get(1, "q", true).await.expect("an answer"), None);
    assert_eq!(
        next_delivery(&mut connection).await,
        (1, b"before".to_vec())
    );
    assert_eq!(next_delivery(&mut connection).await, (3, b"after".to_vec()));
}

#[tokio::test]
async fn channel_close_answers_a_call_and_frees_the_number() {
    let (options, _broker) = peer::start_open(|peer| {
        assert!(matches!(peer.read(), (1, Method::ChannelOpen(_))));
        peer.write(1, channel::OpenOk::default());
        assert!(matches!(peer.read(), (1, Method::TxCommit(_))));
        peer.write(1, channel_close());
        assert!(matches!(peer.read(), (1, Method::ChannelCloseOk(_))));
        assert!(matches!(peer.read(), (1, Method::ChannelOpen(_))));
        peer.write(1, channel::OpenOk::default());
        peer.read_forever();
    });
    let mut connection = open(&options).await;
    assert_eq!(connection.open_channel().await.ok(), Some(1));
    let error = connection
        .tx_commit(1)
        .await
        .expect_err("the channel closes");
    assert!(matches!(
        &error,
        Error::ChannelClosed {
            channel: 1,
            class: 90,
            method: 20,
            ..
        }
    ));
    assert_eq!(error.reply_code(), Some(406));
    assert_eq!(connection.open_channel().await.ok(), Some(1));
}

fn channel_close() -> channel::Close<'static> {
    channel::Close {
        reply_code: 406,
        reply_text: peer::name("PRECONDITION_FAILED"),
        class_id: 90,
        method_id: 20,
    }
}

/// The broker ignores everything on a channel that it has closed, so a call there must not wait.
#[tokio::test]
async fn call_on_a_channel_closed_meanwhile_fails_at_once() {
    let (options, _broker) = peer::start_open(|peer| {
        peer.write(1, channel_close());
        peer.read_forever();
    });
    let mut connection = open(&options).await;
    connection.ready().await.expect("a close in the buffer");
    let result = connection.tx_commit(1).await;
    assert!(matches!(
        result,
        Err(Error::ChannelClosed { channel: 1, .. })
    ));
}

#[tokio::test]
async fn closes_and_cancels_are_answered_before_the_owner_sees_them() {
    let (options, broker) = peer::start_open(|peer| {
        peer.write(
            1,
            basic::Cancel {
                consumer_tag: peer::name("c"),
                no_wait: true,
            },
        );
        peer.write(3, channel_close());
        assert!(matches!(peer.read(), (3, Method::ChannelCloseOk(_))));
        let close = connection::Close {
            reply_code: 320,
            reply_text: peer::name("CONNECTION_FORCED - bye"),
            ..Default::default()
        };
        peer.write(0, close);
        assert!(matches!(peer.read(), (0, Method::ConnectionCloseOk(_))));
    });
    let mut connection = open(&options).await;
    assert!(matches!(
        connection.next().await,
        Ok(Event::Cancel { channel: 1, consumer_tag }) if consumer_tag == peer::name("c")
    ));
    assert!(matches!(
        connection.next().await,
        Ok(Event::ChannelClosed(closed)) if closed.channel == 3 && closed.code == 406
    ));
    let error = connection.next().await.expect_err("the connection closes");
    assert!(matches!(error, Error::ConnectionClosed { code: 320, .. }));
    broker.join().expect("the script ran to its end");
    assert!(matches!(
        connection.next().await,
        Err(Error::Disconnected { .. })
    ));
}

/// The reason must not be lost to a failed write.
#[tokio::test]
async fn reason_for_a_close_is_read_though_writing_fails() {
    let (options, broker) = peer::start_open(|peer| {
        peer.write(
            0,
            connection::Close {
                reply_code: 541,
                ..Default::default()
            },
        );
    });
    let mut connection = open(&options).await;
    broker.join().expect("the script ran to its end");
    let body = vec![0; 100_000];
    let error = loop {
        let none = Properties::default();
        connection
            .publish(1, "", "q", PublishFlags::NONE, none, &body)
            .expect("short names");
        match connection.next().await {
            Ok(_) => continue,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, Error::ConnectionClosed { code: 541, .. }),
        "{error}"
    );
}

/// Whoever only ever flushes must learn that the broker is gone, and why.
#[tokio::test]
async fn flush_fails_with_the_reason_once_the_broker_is_gone() {
    for said_why in [true, false] {
        let (options, broker) = peer::start_open(move |peer| {
            if said_why {
                peer.write(
                    0,
                    connection::Close {
                        reply_code: 541,
                        ..Default::default()
                    },
                );
            }
        });
        let mut connection = open(&options).await;
        broker.join().expect("the script ran to its end");
        let error = loop {
            let (flags, none) = (PublishFlags::NONE, Properties::default());
            connection
                .publish(1, "", "q", flags, none, &[0; 100_000])
                .expect("short names");
            match connection.flush().await {
                Ok(()) => continue,
                Err(error) => break error,
            }
        };
        match said_why {
            true => assert!(
                matches!(error, Error::ConnectionClosed { code: 541, .. }),
                "{error}"
            ),
            false => assert!(matches!(error, Error::Disconnected { .. }), "{error}"),
        }
    }
}

#[tokio::test]
async fn both_sides_may_write_first() {
    // Far more than the socket buffers hold in either direction; the broker reads only afterwards.
    let (options, broker) = peer::start_open(|peer| {
        let messages = peer::delivery(1, 1, &[0; 4000]).concat().repeat(4000);
        peer.write_bytes(&messages);
        while !matches!(peer.read(), (1, Method::TxCommit(_))) {}
        peer.write(1, tx::CommitOk::default());
        peer.read_forever();
    });
    let mut connection = open(&options).await;
    for _ in 0..4000 {
        let none = Properties::default();
        connection
            .publish(1, "", "q", PublishFlags::NONE, none, &[0; 4000])
            .expect("short");
    }
    connection
        .flush()
        .await
        .expect("progress in both directions");
    connection.tx_commit(1).await.expect("a reply");
    for _ in 0..4000 {
        assert_eq!(next_delivery(&mut connection).await.1.len(), 4000);
    }
    drop(connection);
    broker.join().expect("the script ran to its end");
}

#[tokio::test]
async fn backlog_before_a_reply_is_bounded() {
    let (options, _broker) = peer::start_open(|peer| {
        peer.write_forever(&peer::delivery(1, 1, &[0; 4000]).concat().repeat(100));
    });
    let options = Options {
        backlog_limit: 1 << 20,
        ..options
    };
    let mut connection = open(&options).await;
    let error = connection.tx_commit(1).await.expect_err("no reply comes");
    assert!(matches!(
        error,
        Error::BacklogFull {
            request: "tx.commit",
            limit: 1_048_576
        }
    ));
    next_delivery(&mut connection).await;
}

/// What calls have dealt with is not held back: an owner who only makes calls takes no events.
#[tokio::test]
async fn calls_alone_fill_no_backlog() {
    const CALLS: usize = 5_000;
    let (options, broker) = peer::start_open(|peer| {
        for _ in 0..CALLS {
            assert!(matches!(peer.read(), (1, Method::TxCommit(_))));
            peer.write(1, tx::CommitOk::default());
        }
        peer.write_bytes(&peer::delivery(1, 1, b"x").concat());
        assert!(matches!(peer.read(), (1, Method::TxCommit(_))));
        peer.write(1, tx::CommitOk::default());
        peer.read_forever();
    });
    let options = Options {
        // Raised to what three frames take: less than the replies.
        backlog_limit: 0,
        frame_max: 4096,
        ..options
    };
    let mut connection = open(&options).await;
    for _ in 0..=CALLS {
        connection.tx_commit(1).await.expect("a reply");
    }
    next_delivery(&mut connection).await;
    drop(connection);
    broker.join().expect("the script ran to its end");
}

#[tokio::test]
async fn call_given_up_leaves_its_reply_as_an_event() {
    let (options, _broker) = peer::start_open(|peer| {
        assert!(matches!(peer.read(), (1, Method::TxCommit(_))));
        peer.write_bytes(&peer::delivery(1, 1, b"x").concat());
        std::thread::sleep(std::time::Duration::from_millis(100));
        peer.write(1, tx::CommitOk::default());
        peer.read_forever();
    });
    let mut connection = open(&options).await;
    let limit = std::time::Duration::from_millis(20);
    assert!(
        tokio::time::timeout(limit, connection.tx_commit(1))
            .await
            .is_err()
    );
    next_delivery(&mut connection).await;
    assert!(matches!(
        connection.next().await,
        Ok(Event::Reply {
            channel: 1,
            method: Method::TxCommitOk(_)
        })
    ));
}

#[tokio::test]
async fn nonsense_from_the_peer_is_an_error() {
    let cases: [&[u8]; 5] = [
        b"\x07\x00\x01\x00\x00\x00\x00\xCE",     // unknown type
        b"\x01\x00\x01\x00\x00\x00\x01\x00\xCE", // method without ids
        b"\x01\x00\x01\x00\x00\x00\x04\x00\x3C\x00\x63\xCE", // unknown method
        b"\x03\x00\x01\x00\x00\x00\x01\x00\xCE", // body out of place
        b"\x01\x00\x01\x00\x01\x00\x00",         // larger than negotiated
    ];
    for bytes in cases {
        let (options, _broker) = peer::start_open(|peer| {
            peer.write_bytes(bytes);
            peer.read_forever();
        });
        let error = open(&options).await.next().await.expect_err("nonsense");
        assert!(
            matches!(error, Error::Protocol(_) | Error::Decode(_)),
            "{error}"
        );
    }
}
