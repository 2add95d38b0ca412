use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation, PublisherConfirm};
use leveret_interop_rust::{Session, numbered, ready_count, text, unique_name};

#[tokio::test]
async fn single_publish_is_confirmed() {
    Session::run(async |session| {
        let channel = confirm_channel(session).await;
        let queue = session.queue(&channel).await;
        let confirmation = publish(&channel, &queue, false, "only")
            .await
            .await
            .unwrap();
        assert_eq!(confirmation, Confirmation::Ack(None));
        assert_eq!(ready_count(&channel, &queue).await, 1);
    })
    .await;
}

#[tokio::test]
async fn thousand_outstanding_publishes_are_each_confirmed() {
    Session::run(async |session| {
        let channel = confirm_channel(session).await;
        let queue = session.queue(&channel).await;
        let mut outstanding = Vec::new();
        for body in numbered(1000) {
            outstanding.push(publish(&channel, &queue, false, &body).await);
        }
        for confirm in outstanding {
            assert_eq!(confirm.await.unwrap(), Confirmation::Ack(None));
        }
        assert_eq!(ready_count(&channel, &queue).await, 1000);
    })
    .await;
}

/// lapin hands a returned message over with its confirm, and only if it came first.
#[tokio::test]
async fn unroutable_mandatory_message_is_returned_before_its_confirm() {
    Session::run(async |session| {
        let channel = confirm_channel(session).await;
        let nowhere = unique_name("missing");
        let confirmation = publish(&channel, &nowhere, true, "lost")
            .await
            .await
            .unwrap();
        let Confirmation::Ack(Some(returned)) = confirmation else {
            panic!("expected an ack with a returned message, got {confirmation:?}");
        };
        assert_eq!(
            (returned.reply_code, returned.reply_text.as_str()),
            (312, "NO_ROUTE")
        );
        assert_eq!(returned.delivery.exchange.as_str(), "");
        assert_eq!(returned.delivery.routing_key, nowhere);
        assert_eq!(text(&returned.delivery.data), "lost");
    })
    .await;
}

#[tokio::test]
async fn routed_mandatory_and_unroutable_optional_messages_are_not_returned() {
    Session::run(async |session| {
        let channel = confirm_channel(session).await;
        let queue = session.queue(&channel).await;
        let kept = publish(&channel, &queue, true, "kept").await.await.unwrap();
        assert_eq!(kept, Confirmation::Ack(None));
        let missing = unique_name("missing");
        let dropped = publish(&channel, &missing, false, "dropped")
            .await
            .await
            .unwrap();
        assert_eq!(dropped, Confirmation::Ack(None));
        assert_eq!(ready_count(&channel, &queue).await, 1);
    })
    .await;
}

async fn confirm_channel(session: &Session) -> Channel {
    let channel = session.channel().await;
    channel
        .confirm_select(ConfirmSelectOptions::default())
        .await
        .unwrap();
    channel
}

async fn publish(
    channel: &Channel,
    key: &ShortString,
    mandatory: bool,
    body: &str,
) -> PublisherConfirm {
    let options = BasicPublishOptions {
        mandatory,
        immediate: false,
    };
    let persistent = BasicProperties::default().with_delivery_mode(2);
    let sent = channel.basic_publish("".into(), key.clone(), options, body.as_bytes(), persistent);
    sent.await.unwrap()
}
