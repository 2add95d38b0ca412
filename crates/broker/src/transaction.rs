//! A channel's transaction: publishes and settlements that happen together or not at all.

use std::sync::Arc;

use store::{MAX_TRANSACTION, Message, Record, Store, TransactionRecord};

use crate::error::Error;
use crate::queue::{LeaseId, Logged, Outcome, Queue, State, Wakes};
use crate::routing::Route;
use parking_lot::MutexGuard;

/// What has been done since tx.select or the last commit or rollback. Nothing of it is visible.
#[derive(Debug, Default)]
pub struct Transaction {
    publishes: Vec<(Arc<Route>, Message)>,
    settlements: Vec<(Arc<Queue>, LeaseId, Outcome)>,
    /// What its record may take, at most.
    bytes: usize,
}

/// What a record needs for each message or acknowledgement of a queue, besides the message.
const OVERHEAD: usize = 64;

impl Transaction {
    /// Adds a publish. Fails with 406 where the transaction would become too large for a record
    /// of the log.
    pub fn publish(&mut self, route: Arc<Route>, message: Message) -> Result<(), Error> {
        self.grow((message.stored_len() + OVERHEAD) * route.queues.len())?;
        self.publishes.push((route, message));
        Ok(())
    }

    /// Adds the end of a lease. Fails as [`Transaction::publish`] does.
    pub fn settle(
        &mut self,
        queue: Arc<Queue>,
        lease: LeaseId,
        outcome: Outcome,
    ) -> Result<(), Error> {
        self.grow(OVERHEAD)?;
        self.settlements.push((queue, lease, outcome));
        Ok(())
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        self.bytes += bytes;
        match self.bytes > MAX_TRANSACTION {
            true => Err(Error::precondition(format!(
                "transaction is larger than {MAX_TRANSACTION} bytes"
            ))),
            false => Ok(()),
        }
    }

    /// Makes everything visible at once: all queues are locked, in order of id, before the first
    /// is changed, and one record of the log says all of it. Returns what the answer must wait
    /// for, if anything.
    pub fn commit(&mut self, store: &Store) -> Option<Logged> {
        self.bytes = 0;
        let publishes = std::mem::take(&mut self.publishes);
        let runs = in_runs(std::mem::take(&mut self.settlements));
        let mut queues: Vec<&Arc<Queue>> = publishes
            .iter()
            .flat_map(|(route, _)| &route.queues)
            .chain(runs.iter().map(|(queue, ..)| queue))
            .collect();
        queues.sort_unstable_by_key(|queue| queue.id);
        queues.dedup_by_key(|queue| queue.id);
        let messages = by_queue(&queues, &publishes);
        let mut locked: Vec<(u64, MutexGuard<'_, State>)> = queues
            .iter()
            .map(|queue| (queue.id, queue.lock()))
            .collect();
        let mut record = TransactionRecord::default();
        for (queue, outcome, leases) in &runs {
            if let Ok(index) = locked.binary_search_by_key(&queue.id, |(id, _)| *id) {
                let record = &mut Record::Shared(&mut record);
                locked[index].1.settle_in(leases, *outcome, record);
            }
        }
        for ((_, state), messages) in locked.iter_mut().zip(messages) {
            state.append(messages.into_iter(), &mut Record::Shared(&mut record));
        }
        let logged = store.commit(&record);
        if let Some((lsn, _)) = logged {
            for (_, state) in &mut locked {
                state.transaction_logged(lsn);
            }
        }
        let mut wakes = Wakes::default();
        // From the last to the first: bumping releases a lock and takes it again, which keeps to
        // the order only while none of a higher id is held.
        while let Some((_, mut state)) = locked.pop() {
            while state.dispatch(&mut wakes) {
                MutexGuard::bump(&mut state);
            }
            state.settle_down();
        }
        wakes.wake();
        logged
    }
}

/// Each queue's messages, in the order in which they were published.
fn by_queue(queues: &[&Arc<Queue>], publishes: &[(Arc<Route>, Message)]) -> Vec<Vec<Message>> {
    let mut messages = vec![Vec::new(); queues.len()];
    for (route, message) in publishes {
        for queue in &route.queues {
            if let Ok(index) = queues.binary_search_by_key(&queue.id, |queue| queue.id) {
                messages[index].push(message.clone());
            }
        }
    }
    messages
}

type Run = (Arc<Queue>, Outcome, Vec<LeaseId>);

/// Settlements of one queue and outcome together, each queue's in their order.
fn in_runs(mut settlements: Vec<(Arc<Queue>, LeaseId, Outcome)>) -> Vec<Run> {
    settlements.sort_by_key(|(queue, _, outcome)| (queue.id, *outcome as u8));
    let mut runs: Vec<Run> = Vec::new();
    for (queue, lease, outcome) in settlements {
        match runs.last_mut() {
            Some((last, same, leases)) if last.id == queue.id && *same == outcome => {
                leases.push(lease);
            }
            _ => runs.push((queue, outcome, vec![lease])),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::{Duration, Instant};

    use store::MessageHead;

    use super::*;
    use crate::outbox::{ConsumerHandle, Outbox};
    use crate::prefetch::ChannelPrefetch;
    use crate::queue::ConsumerOptions;
    use crate::test_support;

    fn message() -> Message {
        let head = MessageHead {
            exchange: b"",
            routing_key: b"q",
            properties: &[0, 0],
            persistent: false,
            priority: 0,
        };
        Message::new(&head, b"x")
    }

    fn route(queues: &[&Arc<Queue>]) -> Arc<Route> {
        let queues = queues.iter().map(|queue| Arc::clone(queue)).collect();
        Arc::new(Route {
            queues,
            reusable: true,
            logged: false,
        })
    }

    /// Commits over several queues used to release and take again the lock of a lower one.
    #[test]
    fn commits_over_the_same_queues_do_not_block_each_other() {
        let store = test_support::store();
        let first = test_support::queue(&store, "first");
        let second = test_support::queue(&store, "second");
        let outbox = Arc::new(Outbox::default());
        let options = ConsumerOptions {
            no_ack: true,
            exclusive: false,
            prefetch: 0,
            channel: Arc::new(ChannelPrefetch::default()),
            outbox: outbox.clone(),
            handle: ConsumerHandle(0),
            priority: 0,
        };
        let consumer = first.add_consumer(options).expect("nothing is exclusive");
        let stop = Arc::new(AtomicBool::new(false));
        let committing: Vec<_> = (0..3)
            .map(|_| {
                let (to_first, to_second) = (route(&[&first]), route(&[&second]));
                let store = store.clone();
                thread::spawn(move || {
                    for _ in 0..200 {
                        let mut transaction = Transaction::default();
                        for _ in 0..500 {
                            transaction
                                .publish(to_first.clone(), message())
                                .expect("it is small");
                        }
                        transaction
                            .publish(to_second.clone(), message())
                            .expect("it is small");
                        transaction.commit(&store);
                    }
                })
            })
            .collect();
        let draining = {
            let (stop, first) = (stop.clone(), first.clone());
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    outbox.drain(&mut Vec::new(), &mut Vec::new());
                    first.resume(consumer);
                }
            })
        };
        let deadline = Instant::now() + Duration::from_secs(60);
        for thread in committing {
            while !thread.is_finished() {
                assert!(Instant::now() < deadline, "commits wait for each other");
                thread::sleep(Duration::from_millis(1));
            }
        }
        stop.store(true, Ordering::Relaxed);
        draining.join().expect("the consumer ends");
        assert_eq!(second.counts().ready, 600);
    }
}
