use lapin::options::BasicAckOptions;
use leveret_interop_rust::{Session, consume, get, numbered, publish_all, ready_count, take, text};

#[tokio::test]
async fn published_messages_appear_at_commit_and_not_before() {
    Session::run(async |session| {
        let (channel, observer) = (session.channel().await, session.channel().await);
        let queue = session.queue(&channel).await;
        channel.tx_select().await.unwrap();
        publish_all(&channel, &queue, &numbered(3)).await;
        assert_eq!(ready_count(&channel, &queue).await, 0);
        channel.tx_commit().await.unwrap();
        assert_eq!(ready_count(&observer, &queue).await, 3);
    })
    .await;
}

#[tokio::test]
async fn rollback_discards_published_messages() {
    Session::run(async |session| {
        let channel = session.channel().await;
        let queue = session.queue(&channel).await;
        channel.tx_select().await.unwrap();
        publish_all(&channel, &queue, &["discarded".into(), "discarded".into()]).await;
        channel.tx_rollback().await.unwrap();
        publish_all(&channel, &queue, &["kept".into()]).await;
        channel.tx_commit().await.unwrap();
        assert_eq!(ready_count(&channel, &queue).await, 1);
        assert_eq!(text(&get(&channel, &queue, false).await.data), "kept");
    })
    .await;
}

#[tokio::test]
async fn acknowledgements_count_only_once_committed() {
    Session::run(async |session| {
        let set_up = session.channel().await;
        let queue = session.queue(&set_up).await;
        publish_all(&set_up, &queue, &numbered(2)).await;

        // Closing a channel gives back what its consumer holds unacknowledged, before close-ok.
        for (commit, left) in [(false, 2), (true, 1)] {
            let channel = session.channel().await;
            channel.tx_select().await.unwrap();
            let messages = take(&mut consume(&channel, &queue, false).await, 2).await;
            assert!(messages[0].ack(BasicAckOptions::default()).await.unwrap());
            if commit {
                channel.tx_commit().await.unwrap();
            } else {
                channel.tx_rollback().await.unwrap();
            }
            channel.close(200, "done".into()).await.unwrap();
            assert_eq!(
                ready_count(&set_up, &queue).await,
                left,
                "committed: {commit}"
            );
        }
    })
    .await;
}
