//! Opening a connection: what is sent and agreed on, and each way to be refused.

mod peer;

use std::net::TcpListener;
use std::time::Duration;

use amqp::Method;
use amqp::method::connection;
use client::{Connection, Error, Event, Mechanism, Options, Version};

async fn failure(options: &Options) -> Error {
    match Connection::connect(options).await {
        Ok(_) => panic!("the connection must be refused"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn lower_limits_win_and_both_sides_learn_them() {
    let (options, broker) = peer::start(|peer| {
        peer.read_header();
        peer.start();
        match peer.read() {
            (0, Method::ConnectionStartOk(ok)) => {
                assert_eq!(ok.mechanism, peer::name("PLAIN"));
                assert_eq!(ok.response, b"\0guest\0guest");
            }
            other => panic!("start-ok expected, got {other:?}"),
        }
        peer.write(
            0,
            connection::Tune {
                channel_max: 0,
                frame_max: 8192,
                heartbeat: 600,
            },
        );
        let tune_ok = connection::TuneOk {
            channel_max: 2047,
            frame_max: 8192,
            heartbeat: 60,
        };
        assert_eq!(peer.read(), (0, Method::ConnectionTuneOk(tune_ok)));
        match peer.read() {
            (0, Method::ConnectionOpen(open)) => assert_eq!(open.virtual_host, peer::name("/")),
            other => panic!("open expected, got {other:?}"),
        }
        peer.write(0, connection::OpenOk::default());
        assert!(matches!(peer.read(), (0, Method::ConnectionClose(_))));
        peer.write(0, connection::CloseOk::default());
    });
    let connection = Connection::connect(&options)
        .await
        .expect("an open connection");
    let tuned = connection.tuned();
    assert_eq!(
        (tuned.channel_max, tuned.frame_max, tuned.heartbeat),
        (2047, 8192, 60)
    );
    let properties = connection.server_properties().expect("well-formed");
    assert_eq!(
        properties.get("product").and_then(|v| v.as_str()),
        Some("scripted")
    );
    connection.close().await.expect("an orderly close");
    broker.join().expect("the script ran to its end");
}

#[tokio::test]
async fn old_versions_open_with_their_own_header() {
    for version in [Version::V0_8, Version::V0_9] {
        let (options, broker) = peer::start(move |peer| {
            peer.handshake();
            assert_eq!(peer.version, version);
            assert!(matches!(peer.read(), (0, Method::ConnectionClose(_))));
            peer.write(0, connection::CloseOk::default());
        });
        let options = Options {
            version,
            mechanism: Mechanism::AmqPlain,
            ..options
        };
        let connection = Connection::connect(&options)
            .await
            .expect("an open connection");
        connection.close().await.expect("an orderly close");
        broker.join().expect("the script ran to its end");
    }
}

#[tokio::test]
async fn other_protocol_header_is_version_refused() {
    let (options, _broker) = peer::start(|peer| {
        peer.read_header();
        peer.write_bytes(b"AMQP\x00\x00\x09\x01");
    });
    let error = failure(&Options {
        version: Version::V0_8,
        ..options
    })
    .await;
    assert!(matches!(
        error,
        Error::VersionRefused {
            offered: [b'A', _, _, _, 0, 0, 9, 1],
            ..
        }
    ));
}

#[tokio::test]
async fn refused_login_is_told_from_a_refused_vhost() {
    let close = |reply_code, text: &'static str| connection::Close {
        reply_code,
        reply_text: peer::name(text),
        ..Default::default()
    };
    let (options, _broker) = peer::start(move |peer| {
        peer.read_header();
        peer.start();
        peer.read();
        peer.write(0, close(403, "ACCESS_REFUSED - wrong password"));
        peer.read_forever();
    });
    let error = failure(&options).await;
    assert!(matches!(&error, Error::LoginRefused { user, text, .. }
        if user == "guest" && text.contains("wrong password")));

    let (options, _broker) = peer::start(move |peer| {
        peer.read_header();
        peer.start();
        peer.read();
        peer.write(
            0,
            connection::Tune {
                channel_max: 9,
                frame_max: 0,
                heartbeat: 0,
            },
        );
        peer.read();
        peer.read();
        peer.write(0, close(530, "NOT_ALLOWED - vhost none not found"));
        assert!(matches!(peer.read(), (0, Method::ConnectionCloseOk(_))));
    });
    let error = failure(&Options {
        vhost: "none".into(),
        ..options
    })
    .await;
    assert!(matches!(&error, Error::VhostRefused { vhost, .. } if vhost == "none"));
}

#[tokio::test]
async fn hanging_up_after_the_password_is_a_refused_login() {
    let (options, _broker) = peer::start(|peer| {
        peer.read_header();
        peer.start();
        peer.read();
    });
    assert!(matches!(
        failure(&options).await,
        Error::LoginRefused { .. }
    ));
}

#[tokio::test]
async fn silent_port_times_out() {
    let (options, _broker) = peer::start(peer::Peer::read_forever);
    let options = Options {
        connect_timeout: Duration::from_millis(50),
        ..options
    };
    assert!(matches!(
        failure(&options).await,
        Error::HandshakeTimeout { .. }
    ));
}

#[tokio::test]
async fn closed_port_is_unreachable_and_named() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    drop(listener);
    let options = Options {
        host: "127.0.0.1".into(),
        port,
        ..Options::default()
    };
    let error = failure(&options).await;
    assert!(matches!(error, Error::Unreachable { .. }));
    assert!(error.to_string().contains(&format!("127.0.0.1:{port}")));
}

#[tokio::test]
async fn heartbeats_go_out_when_nothing_else_does() {
    let (options, broker) = peer::start_open(|peer| {
        peer.write_bytes(&amqp::frame::HEARTBEAT);
        assert_eq!(peer.read_frame(), Some((8, 0, &[][..])));
        peer.write(0, connection::Unblocked::default());
    });
    let mut connection = Connection::connect(&options)
        .await
        .expect("an open connection");
    assert!(matches!(connection.next().await, Ok(Event::Unblocked)));
    broker.join().expect("the script ran to its end");
}

#[tokio::test]
async fn silent_peer_is_given_up_after_two_intervals() {
    let (options, _broker) = peer::start_open(peer::Peer::read_forever);
    let mut connection = Connection::connect(&options)
        .await
        .expect("an open connection");
    let waited = tokio::time::timeout(Duration::from_secs(10), connection.next()).await;
    assert!(matches!(waited, Ok(Err(Error::HeartbeatMissed { .. }))));
}
