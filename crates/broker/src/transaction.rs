//! A channel's transaction: publishes and settlements that happen together or not at all.

use std::sync::Arc;

use store::{MAX_TRANSACTION, Message, Record, Store, Times, TransactionRecord};

use crate::burial;
use crate::error::Error;
use crate::locked::LockedQueues;
use crate::queue::{LeaseId, Logged, Outcome, Queue};
use crate::routing::Route;

/// What has been done since tx.select or the last commit or rollback. Nothing of it is visible.
#[derive(Debug, Default)]
pub struct Transaction {
    publishes: Vec<(Arc<Route>, Message)>,
    settlements: Vec<(Arc<Queue>, LeaseId, Outcome)>,
    /// What its record may take, at most.
    bytes: usize,
    /// Committed messages that histories are still to keep.
    passed: Vec<(Arc<Route>, Message)>,
}

/// What a record needs for each message or acknowledgement of a queue, besides the message.
const OVERHEAD: usize = 64;

impl Transaction {
    /// Adds a publish. Fails with 406 where the transaction would become too large for a record
    /// of the log.
    pub fn publish(&mut self, route: Arc<Route>, message: Message) -> Result<(), Error> {
        self.grow((message.stored_len() + OVERHEAD) * route.queues.len().max(1))?;
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
    ///
    /// # Errors
    /// A queue has no room and refuses a message: then nothing of it has happened, and the
    /// settlements are as they were before.
    pub fn commit(&mut self, store: &Store) -> Result<Option<Logged>, Error> {
        self.bytes = 0;
        let publishes = from_now_on(std::mem::take(&mut self.publishes));
        let runs = in_runs(std::mem::take(&mut self.settlements));
        let targets = publishes.iter().flat_map(|(route, _)| &route.queues);
        let settled = runs.iter().map(|(queue, ..)| queue);
        let mut locked = LockedQueues::lock(targets.chain(settled));
        let all = publishes.iter().collect::<Vec<_>>();
        let messages = by_queue(&all);
        for (queue, messages) in &messages {
            if locked
                .get(queue.id)
                .is_some_and(|state| state.refuses_any(messages))
            {
                return Err(Error::precondition(format!(
                    "transaction refused: {} is full",
                    queue.resource()
                )));
            }
        }
        // Only now: what is refused may come again.
        let new = |(route, message): &&(Arc<Route>, Message)| route.admits(message);
        let messages = by_queue(&publishes.iter().filter(new).collect::<Vec<_>>());
        let mut record = TransactionRecord::default();
        for (queue, outcome, leases) in &runs {
            if let Some(state) = locked.get_mut(queue.id) {
                state.settle_in(leases, *outcome, &mut Record::Shared(&mut record));
            }
        }
        for (queue, messages) in messages {
            if let Some(state) = locked.get_mut(queue.id) {
                state.append(messages.into_iter(), &mut Record::Shared(&mut record));
            }
        }
        let logged = locked.commit(store, &record);
        burial::bury(locked.release());
        for (route, _) in &publishes {
            route.keep_admitted();
        }
        let passes = |(route, _): &(Arc<Route>, Message)| route.is_remembered();
        self.passed = publishes.into_iter().filter(passes).collect();
        Ok(logged)
    }

    /// What the last commit has published through exchanges that remember it, for the caller to have
    /// it remembered.
    pub fn take_passed(&mut self) -> Vec<(Arc<Route>, Message)> {
        std::mem::take(&mut self.passed)
    }
}

/// Only now do the messages come, and wait for as long as they are told to.
fn from_now_on(mut publishes: Vec<(Arc<Route>, Message)>) -> Vec<(Arc<Route>, Message)> {
    let mut now = None;
    for (route, message) in &mut publishes {
        if let (Some(times), Some(queue)) = (message.times(), route.queues.first()) {
            let arrival = *now.get_or_insert_with(|| queue.now());
            *message = message.with_times(Some(Times { arrival, ..times }));
        }
    }
    publishes
}

/// Each queue's messages, in the order in which they were published; the queues in order of id.
fn by_queue<'p>(publishes: &[&'p (Arc<Route>, Message)]) -> Vec<(&'p Arc<Queue>, Vec<Message>)> {
    let queues = publishes.iter().flat_map(|(route, _)| &route.queues);
    let mut all: Vec<(&Arc<Queue>, Vec<Message>)> =
        queues.map(|queue| (queue, Vec::new())).collect();
    all.sort_unstable_by_key(|(queue, _)| queue.id);
    all.dedup_by_key(|(queue, _)| queue.id);
    for (route, message) in publishes {
        for queue in &route.queues {
            if let Ok(index) = all.binary_search_by_key(&queue.id, |(queue, _)| queue.id) {
                all[index].1.push(message.clone());
            }
        }
    }
    all
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
            times: None,
            has_bcc: false,
        };
        Message::new(&head, b"x")
    }

    fn route(queues: &[&Arc<Queue>]) -> Arc<Route> {
        let queues = queues.iter().map(|queue| Arc::clone(queue)).collect();
        Arc::new(Route {
            queues,
            reusable: true,
            ..Route::default()
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
            timeout: None,
            stream: None,
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
                        transaction.commit(&store).expect("there is room");
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
