use std::collections::HashSet;

use lapin::ExchangeKind;
use lapin::options::{
    ExchangeBindOptions, ExchangeUnbindOptions, QueueBindOptions, QueueDeclareOptions,
    QueueDeleteOptions, QueuePurgeOptions,
};
use lapin::types::{FieldTable, ShortString};
use leveret_interop_rust::{
    Session, consume, get, next, numbered, publish, publish_all, stays_empty, take, text, texts,
};

#[tokio::test]
async fn exchange_bound_to_an_exchange_passes_messages_on_until_unbound() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let source = session.exchange(&channel, ExchangeKind::Topic).await;
        let destination = session.exchange(&channel, ExchangeKind::Fanout).await;
        let queue = session.queue(&channel).await;
        let pattern = ShortString::from("news.#");
        let (options, none) = (ExchangeBindOptions::default(), FieldTable::default);
        let (from, to) = (source.clone(), destination.clone());
        channel
            .exchange_bind(to, from, pattern.clone(), options, none())
            .await
            .unwrap();
        bind_queue(&channel, &queue, &destination, "").await;
        let mut consumer = consume(&channel, &queue, true).await;

        let key = ShortString::from("news.today");
        publish(&channel, &source, &"sport.today".into(), "unmatched").await;
        publish(&channel, &source, &key, "matched").await;
        let message = next(&mut consumer).await;
        assert_eq!(text(&message.data), "matched");
        assert_eq!((&message.exchange, &message.routing_key), (&source, &key));

        let (options, from) = (ExchangeUnbindOptions::default(), source.clone());
        channel
            .exchange_unbind(destination, from, pattern, options, none())
            .await
            .unwrap();
        publish(&channel, &source, &key, "unbound").await;
        stays_empty(&mut consumer).await;
    })
    .await;
}

#[tokio::test]
async fn queue_declared_without_a_name_gets_one_from_the_server() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let mut names = HashSet::new();
        for _ in 0..2 {
            let options = QueueDeclareOptions::exclusive();
            let queue = channel
                .queue_declare("".into(), options, FieldTable::default())
                .await;
            let name = queue.unwrap().name().clone();
            assert!(name.as_str().starts_with("amq.gen-"), "{name}");
            publish_all(&channel, &name, &["to the generated name".into()]).await;
            assert_eq!(
                text(&get(&channel, &name, true).await.data),
                "to the generated name"
            );
            names.insert(name.to_string());
        }
        assert_eq!(names.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn topic_bindings_select_by_word() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let exchange = session.exchange(&channel, ExchangeKind::Topic).await;
        let queue = session.queue(&channel).await;
        bind_queue(&channel, &queue, &exchange, "*.orange.#").await;

        let matched = [
            "quick.orange",
            "quick.orange.male.rabbit",
            "lazy.orange.elephant",
        ];
        for key in ["orange", "a.b.orange"].into_iter().chain(matched) {
            publish(&channel, &exchange, &key.into(), key).await;
        }
        let mut consumer = consume(&channel, &queue, true).await;
        assert_eq!(texts(&take(&mut consumer, 3).await), matched);
        stays_empty(&mut consumer).await;
    })
    .await;
}

#[tokio::test]
async fn purge_and_delete_report_how_many_messages_went() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let queue = session.queue(&channel).await;
        publish_all(&channel, &queue, &numbered(5)).await;
        let purged = channel
            .queue_purge(queue.clone(), QueuePurgeOptions::default())
            .await;
        assert_eq!(purged.unwrap(), 5);
        publish_all(&channel, &queue, &numbered(1)).await;
        let deleted = channel
            .queue_delete(queue, QueueDeleteOptions::default())
            .await;
        assert_eq!(deleted.unwrap(), 1);
    })
    .await;
}

async fn bind_queue(
    channel: &lapin::Channel,
    queue: &ShortString,
    exchange: &ShortString,
    key: &str,
) {
    let options = QueueBindOptions::default();
    let (queue, exchange) = (queue.clone(), exchange.clone());
    let bound = channel.queue_bind(queue, exchange, key.into(), options, FieldTable::default());
    bound.await.expect("queue.bind");
}
