//! A receiver: receives and deletes until all that was sent has come, and the queue has been found
//! empty once more, which is when a message that comes twice would show.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::load::{Load, Queue};

/// How long nothing may come after the last message was sent: longer than a queue's visibility
/// timeout by default, so that a message comes again that was lost with an answer.
const PATIENCE: Duration = Duration::from_secs(35);
/// Seconds that the service waits for a first message.
const WAIT_SECONDS: u8 = 1;
/// Before trying again what failed.
const PAUSE: Duration = Duration::from_millis(100);
/// Bytes of bodies that one answer may have; more would not be read.
const LARGEST_ANSWER: u32 = 768 << 10;

/// Receives messages of a queue until there are none left.
pub(super) async fn receive(load: Rc<Load>, queue: Rc<Queue>) {
    let client = &queue.site.client;
    let max = (LARGEST_ANSWER / load.body_size).clamp(1, 10) as u8;
    let mut last = Instant::now();
    loop {
        let is_sent = load.sending.get() == 0;
        let is_complete = is_sent && queue.ledger.borrow().is_complete();
        let wait_seconds = if is_complete { 0 } else { WAIT_SECONDS };
        let received = client.receive_message(&queue.url, max, wait_seconds).await;
        let messages = match received {
            Ok(messages) => messages,
            Err(_) if is_complete => return,
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                Vec::new()
            }
        };
        if !is_sent || !messages.is_empty() {
            last = Instant::now();
        } else if is_complete || last.elapsed() > PATIENCE {
            return;
        }
        for message in &messages {
            let latency = queue.ledger.borrow_mut().arrived(message);
            load.tally.borrow_mut().received(latency);
        }
        for message in &messages {
            // Counted by the client. The message comes again, and is deleted then.
            let _ = client
                .delete_message(&queue.url, &message.receipt_handle)
                .await;
        }
    }
}
