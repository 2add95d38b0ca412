use lapin::options::{BasicAckOptions, BasicCancelOptions, QueueDeleteOptions};
use leveret_interop_rust::{
    Session, consume, get, get_or_empty, next_or_end, numbered, publish_all, ready_count, take,
    text, texts,
};

#[tokio::test]
async fn messages_are_delivered_in_order_and_acknowledged_ones_are_gone() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let queue = session.queue(&channel).await;
        publish_all(&channel, &queue, &numbered(200)).await;

        let messages = take(&mut consume(&channel, &queue, false).await, 200).await;
        assert_eq!(texts(&messages), numbered(200));
        for (message, tag) in messages.iter().zip(1..) {
            assert_eq!(message.delivery_tag, tag);
            assert!(!message.redelivered);
        }

        // 0..9 one by one, the rest but the last in one stroke: closing gives the last one back.
        for message in &messages[..10] {
            assert!(message.ack(BasicAckOptions::default()).await.unwrap());
        }
        assert!(
            messages[198]
                .ack(BasicAckOptions { multiple: true })
                .await
                .unwrap()
        );
        channel.close(200, "done".into()).await.unwrap();

        let after = session.channel().await;
        assert_eq!(ready_count(&after, &queue).await, 1);
        let left = get(&after, &queue, true).await;
        assert_eq!((text(&left.data), left.redelivered), ("m199", true));
    })
    .await;
}

#[tokio::test]
async fn consumer_without_acknowledgements_leaves_nothing_behind() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let queue = session.queue(&channel).await;
        let mut consumer = consume(&channel, &queue, true).await;
        publish_all(&channel, &queue, &numbered(50)).await;
        assert_eq!(texts(&take(&mut consumer, 50).await), numbered(50));
        channel.close(200, "done".into()).await.unwrap();
        assert_eq!(ready_count(&session.channel().await, &queue).await, 0);
    })
    .await;
}

#[tokio::test]
async fn get_takes_one_message_counts_the_rest_and_says_when_empty() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let queue = session.queue(&channel).await;
        publish_all(&channel, &queue, &numbered(2)).await;

        let first = get(&channel, &queue, false).await;
        assert_eq!((text(&first.data), first.message_count), ("m0", 1));
        assert_eq!((first.exchange.as_str(), &first.routing_key), ("", &queue));
        assert!(first.ack(BasicAckOptions::default()).await.unwrap());

        let second = get(&channel, &queue, true).await;
        assert_eq!((text(&second.data), second.message_count), ("m1", 0));
        assert_eq!(get_or_empty(&channel, &queue, false).await, None);
    })
    .await;
}

#[tokio::test]
async fn cancelled_consumer_gets_no_more_messages() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let queue = session.queue(&channel).await;
        let mut consumer = consume(&channel, &queue, false).await;
        channel
            .basic_cancel(consumer.tag(), BasicCancelOptions::default())
            .await
            .unwrap();
        assert_eq!(next_or_end(&mut consumer).await, None);
        publish_all(&channel, &queue, &["unclaimed".into()]).await;
        assert_eq!(text(&get(&channel, &queue, true).await.data), "unclaimed");
    })
    .await;
}

#[tokio::test]
async fn deleting_a_queue_cancels_its_consumers() {
    Session::run(async |session| {
        let (consuming, deleting) = (session.channel().await, session.channel().await);
        let queue = session.queue(&consuming).await;
        let mut consumer = consume(&consuming, &queue, false).await;
        publish_all(&deleting, &queue, &numbered(2)).await;
        assert_eq!(texts(&take(&mut consumer, 2).await), numbered(2));

        deleting
            .queue_delete(queue, QueueDeleteOptions::default())
            .await
            .unwrap();
        assert_eq!(next_or_end(&mut consumer).await, None);
        assert!(
            consuming.status().connected(),
            "only the consumer goes, not its channel"
        );
    })
    .await;
}
