//! A sender: one call after the other, until all numbers are taken. As many senders as calls may be
//! in flight are what the pool of threads was in 2010.

use std::rc::Rc;
use std::time::Instant;

use super::load::{Load, Queue};
use crate::sqs::{Entry, Error};

/// Sends messages to a queue until there are none left.
pub(super) async fn send(load: Rc<Load>, queue: Rc<Queue>) {
    loop {
        let numbers = queue.ledger.borrow_mut().take(load.batch);
        if numbers.is_empty() {
            return;
        }
        let began = Instant::now();
        let results = match load.batch {
            1 => {
                let body = queue.ledger.borrow().body(numbers.start);
                let sent = queue.site.client.send_message(&queue.url, &body).await;
                Ok(vec![sent])
            }
            _ => send_batch(&queue, numbers.clone()).await,
        };
        let took = began.elapsed();
        let mut tally = load.tally.borrow_mut();
        match results {
            Ok(results) => {
                for (number, result) in numbers.zip(results) {
                    match result {
                        Ok(()) => {
                            queue.ledger.borrow_mut().accepted(number);
                            tally.sent(took);
                        }
                        Err(error) => tally.refused(&error, 1),
                    }
                }
            }
            Err(error) => tally.refused(&error, numbers.len() as u64),
        }
    }
}

async fn send_batch(
    queue: &Queue,
    numbers: std::ops::Range<u32>,
) -> Result<Vec<Result<(), Error>>, Error> {
    let entries: Vec<Entry> = {
        let ledger = queue.ledger.borrow();
        let entry = |number: u32| Entry {
            id: number.to_string(),
            body: ledger.body(number),
        };
        numbers.map(entry).collect()
    };
    let client = &queue.site.client;
    client.send_message_batch(&queue.url, &entries).await
}
