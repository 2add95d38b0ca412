use lapin::options::{ConfirmSelectOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, Error};
use leveret_interop_rust::{Session, broker_error, get, publish_all, text, unique_name};

#[tokio::test]
async fn passive_declare_of_a_missing_queue_closes_the_channel_with_404() {
    Session::run(async |session| {
        let (failing, bystander) = (session.channel().await, session.channel().await);
        let options = QueueDeclareOptions::default().passive();
        let missing = unique_name("missing");
        let declared = failing
            .queue_declare(missing.clone(), options, FieldTable::default())
            .await;

        let wanted = format!("NOT_FOUND - no queue '{missing}' in vhost '/'");
        closed_with(session, &failing, &declared.unwrap_err(), 404, &wanted).await;
        usable(session, &bystander).await;
    })
    .await;
}

#[tokio::test]
async fn redeclaring_a_queue_with_other_arguments_closes_the_channel_with_406() {
    Session::run(async |session| {
        let (owner, failing) = (session.channel().await, session.channel().await);
        let queue = session.queue(&owner).await;
        let mut arguments = FieldTable::default();
        arguments.insert("x-message-ttl".into(), AMQPValue::LongInt(60_000));
        let options = QueueDeclareOptions::exclusive();
        let declared = failing.queue_declare(queue, options, arguments).await;

        let wanted = "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl'";
        closed_with(session, &failing, &declared.unwrap_err(), 406, wanted).await;
        usable(session, &owner).await;
    })
    .await;
}

#[tokio::test]
async fn publishing_to_a_missing_exchange_closes_the_channel_with_404() {
    Session::run(async |session| {
        let failing = session.channel().await;
        failing
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .unwrap();
        let missing = unique_name("missing");
        let (exchange, key, options) = (missing.clone(), "key".into(), Default::default());
        let sent = failing.basic_publish(exchange, key, options, b"body", Default::default());
        let error = sent.await.unwrap().await.unwrap_err();

        let wanted = format!("NOT_FOUND - no exchange '{missing}' in vhost '/'");
        closed_with(session, &failing, &error, 404, &wanted).await;
    })
    .await;
}

/// Checks the error, and that the connection still gives a working channel.
async fn closed_with(session: &Session, failed: &Channel, error: &Error, code: u16, text: &str) {
    let (sent_code, sent_text) = broker_error(error);
    assert_eq!(sent_code, code);
    assert!(sent_text.starts_with(text), "{sent_text}");
    assert!(!failed.status().connected());
    usable(session, &session.channel().await).await;
}

async fn usable(session: &Session, channel: &Channel) {
    let queue = session.queue(channel).await;
    publish_all(channel, &queue, &["still here".into()]).await;
    assert_eq!(text(&get(channel, &queue, true).await.data), "still here");
}
