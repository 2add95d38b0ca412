use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicNackOptions, BasicQosOptions, BasicRecoverOptions, BasicRejectOptions,
};
use leveret_interop_rust::{
    Session, consume, get, next, numbered, publish_all, ready_count, stays_empty, take, text, texts,
};

#[tokio::test]
async fn nack_with_requeue_redelivers_without_requeue_drops() {
    gives_back(async |message, requeue| {
        let options = BasicNackOptions {
            requeue,
            multiple: false,
        };
        assert!(message.nack(options).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn reject_with_requeue_redelivers_without_requeue_drops() {
    gives_back(async |message, requeue| {
        assert!(
            message
                .reject(BasicRejectOptions { requeue })
                .await
                .unwrap()
        );
    })
    .await;
}

async fn gives_back(give_back: impl AsyncFn(&Delivery, bool)) {
    Session::run(async |session| {
        let channel = session.channel().await;
        let queue = session.queue(&channel).await;
        let mut consumer = consume(&channel, &queue, false).await;
        publish_all(&channel, &queue, &["again".into()]).await;

        let first = next(&mut consumer).await;
        assert!(!first.redelivered);
        give_back(&first, true).await;

        let second = next(&mut consumer).await;
        assert_eq!((text(&second.data), second.delivery_tag), ("again", 2));
        assert!(second.redelivered);
        give_back(&second, false).await;

        stays_empty(&mut consumer).await;
        assert_eq!(ready_count(&channel, &queue).await, 0);
    })
    .await;
}

#[tokio::test]
async fn nack_of_several_puts_them_back_in_their_places() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let queue = session.queue(&channel).await;
        publish_all(&channel, &queue, &numbered(6)).await;
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(get(&channel, &queue, false).await);
        }
        let options = BasicNackOptions {
            requeue: true,
            multiple: true,
        };
        assert!(taken[3].nack(options).await.unwrap());

        for (i, body) in numbered(6).iter().enumerate() {
            let message = get(&channel, &queue, true).await;
            assert_eq!(
                (text(&message.data), message.redelivered),
                (body.as_str(), i < 4)
            );
        }
    })
    .await;
}

#[tokio::test]
async fn prefetch_limits_what_a_consumer_holds() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let queue = session.queue(&channel).await;
        publish_all(&channel, &queue, &numbered(10)).await;
        channel
            .basic_qos(3, BasicQosOptions::default())
            .await
            .unwrap();
        let mut consumer = consume(&channel, &queue, false).await;

        let mut held = take(&mut consumer, 3).await;
        assert_eq!(ready_count(&channel, &queue).await, 7);
        stays_empty(&mut consumer).await;

        assert!(held[0].ack(BasicAckOptions::default()).await.unwrap());
        held.push(next(&mut consumer).await);
        stays_empty(&mut consumer).await;

        assert!(
            held[3]
                .ack(BasicAckOptions { multiple: true })
                .await
                .unwrap()
        );
        held.extend(take(&mut consumer, 3).await);
        assert_eq!(texts(&held), numbered(7));
        stays_empty(&mut consumer).await;
        assert_eq!(ready_count(&channel, &queue).await, 3);
    })
    .await;
}

#[tokio::test]
async fn global_prefetch_is_shared_by_the_consumers_of_the_channel() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let (one, two) = (session.queue(&channel).await, session.queue(&channel).await);
        publish_all(&channel, &one, &numbered(5)).await;
        publish_all(&channel, &two, &numbered(5)).await;
        channel
            .basic_qos(4, BasicQosOptions { global: true })
            .await
            .unwrap();
        let mut first = consume(&channel, &one, false).await;
        let mut second = consume(&channel, &two, false).await;

        // The first consumer has filled the limit before the second one exists.
        assert_eq!(texts(&take(&mut first, 4).await), numbered(4));
        stays_empty(&mut first).await;
        stays_empty(&mut second).await;
        assert_eq!(ready_count(&channel, &two).await, 5);
    })
    .await;
}

#[tokio::test]
async fn recover_redelivers_everything_unacknowledged() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let queue = session.queue(&channel).await;
        publish_all(&channel, &queue, &numbered(3)).await;
        let mut consumer = consume(&channel, &queue, false).await;
        let taken = take(&mut consumer, 3).await;
        assert!(taken[0].ack(BasicAckOptions::default()).await.unwrap());

        channel
            .basic_recover(BasicRecoverOptions { requeue: true })
            .await
            .unwrap();
        let again = take(&mut consumer, 2).await;
        assert_eq!(texts(&again), ["m1", "m2"]);
        assert!(again.iter().all(|message| message.redelivered));
    })
    .await;
}
