use lapin::options::{
    BasicConsumeOptions, ConfirmSelectOptions, ExchangeDeclareOptions, QueueBindOptions,
    QueueDeclareOptions,
};
use lapin::{ExchangeKind, types::FieldTable};
use leveret_interop_rust::{Session, broker_error, connect, next, publish, text, unique_name};

#[tokio::test]
async fn wrong_password_is_refused_with_403() {
    let error = connect("wrong")
        .await
        .expect_err("the login must be refused");
    let (code, message) = broker_error(&error);
    assert_eq!(code, 403);
    assert!(message.starts_with("ACCESS_REFUSED"), "{message}");
}

#[tokio::test]
async fn negotiated_limits_are_usable() {
    Session::run(async |session| {
        let limits = session.connection.configuration();
        assert!(
            limits.frame_max() >= 4096,
            "frame_max {}",
            limits.frame_max()
        );
        let wanted = 16;
        assert!(
            limits.channel_max() >= wanted,
            "channel_max {}",
            limits.channel_max()
        );
        let mut open = Vec::new();
        for _ in 0..wanted {
            open.push(session.channel().await);
        }
        for channel in open {
            channel.close(200, "done".into()).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn declarations_without_waiting_take_effect_in_order() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let (queue, exchange) = (unique_name("queue"), unique_name("exchange"));
        let none = FieldTable::default;

        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .unwrap();
        let options = ExchangeDeclareOptions {
            nowait: true,
            auto_delete: true,
            ..Default::default()
        };
        let kind = ExchangeKind::Direct;
        channel
            .exchange_declare(exchange.clone(), kind, options, none())
            .await
            .unwrap();
        let options = QueueDeclareOptions {
            nowait: true,
            ..QueueDeclareOptions::exclusive()
        };
        channel
            .queue_declare(queue.clone(), options, none())
            .await
            .unwrap();
        let (key, options) = ("key".into(), QueueBindOptions { nowait: true });
        channel
            .queue_bind(queue.clone(), exchange.clone(), key, options, none())
            .await
            .unwrap();
        let options = BasicConsumeOptions {
            nowait: true,
            no_ack: true,
            ..Default::default()
        };
        let consumed = channel
            .basic_consume(queue, "no-wait".into(), options, none())
            .await;

        publish(&channel, &exchange, &"key".into(), "delivered").await;
        assert_eq!(text(&next(&mut consumed.unwrap()).await.data), "delivered");
        channel.wait_for_confirms().await.unwrap();
    })
    .await;
}
