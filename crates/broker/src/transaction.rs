//! A channel's transaction: publishes and settlements that happen together or not at all.

use std::sync::Arc;

use store::Message;

use crate::queue::{LeaseId, Outcome, Queue, State, Wakes};
use crate::routing::Route;
use parking_lot::MutexGuard;

/// What has been done since tx.select or the last commit or rollback. Nothing of it is visible.
#[derive(Debug, Default)]
pub struct Transaction {
    publishes: Vec<(Arc<Route>, Message)>,
    settlements: Vec<(Arc<Queue>, LeaseId, Outcome)>,
}

impl Transaction {
    /// Adds a publish.
    pub fn publish(&mut self, route: Arc<Route>, message: Message) {
        self.publishes.push((route, message));
    }

    /// Adds the end of a lease.
    pub fn settle(&mut self, queue: Arc<Queue>, lease: LeaseId, outcome: Outcome) {
        self.settlements.push((queue, lease, outcome));
    }

    /// Makes everything visible at once: all queues are locked, in order of id, before the first
    /// is changed.
    pub fn commit(&mut self) {
        let publishes = std::mem::take(&mut self.publishes);
        let runs = in_runs(std::mem::take(&mut self.settlements));
        let mut queues: Vec<&Arc<Queue>> = publishes
            .iter()
            .flat_map(|(route, _)| &route.queues)
            .chain(runs.iter().map(|(queue, ..)| queue))
            .collect();
        queues.sort_unstable_by_key(|queue| queue.id);
        queues.dedup_by_key(|queue| queue.id);
        let mut locked: Vec<(u64, MutexGuard<'_, State>)> = queues
            .iter()
            .map(|queue| (queue.id, queue.lock()))
            .collect();
        for (queue, outcome, leases) in &runs {
            if let Some(state) = state_of(&mut locked, queue) {
                state.settle(leases, *outcome);
            }
        }
        for (route, message) in &publishes {
            for queue in &route.queues {
                if let Some(state) = state_of(&mut locked, queue) {
                    state.append(std::iter::once(message.clone()));
                }
            }
        }
        let mut wakes = Wakes::default();
        // From the last to the first: bumping releases a lock and takes it again, which keeps to
        // the order only while none of a higher id is held.
        while let Some((_, mut state)) = locked.pop() {
            while state.dispatch(&mut wakes) {
                MutexGuard::bump(&mut state);
            }
        }
        wakes.wake();
    }
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

fn state_of<'s>(
    locked: &'s mut [(u64, MutexGuard<'_, State>)],
    queue: &Queue,
) -> Option<&'s mut State> {
    let index = locked.binary_search_by_key(&queue.id, |(id, _)| *id).ok()?;
    locked.get_mut(index).map(|(_, state)| &mut **state)
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
    use crate::queue::{ConsumerOptions, QueueOptions};

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

    fn queue(name: &str) -> Arc<Queue> {
        Arc::new(Queue::new(name.into(), "/".into(), QueueOptions::default()))
    }

    fn route(queues: &[&Arc<Queue>]) -> Arc<Route> {
        let queues = queues.iter().map(|queue| Arc::clone(queue)).collect();
        Arc::new(Route {
            queues,
            reusable: true,
        })
    }

    /// Commits over several queues used to release and take again the lock of a lower one.
    #[test]
    fn commits_over_the_same_queues_do_not_block_each_other() {
        let (first, second) = (queue("first"), queue("second"));
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
                thread::spawn(move || {
                    for _ in 0..200 {
                        let mut transaction = Transaction::default();
                        for _ in 0..500 {
                            transaction.publish(to_first.clone(), message());
                        }
                        transaction.publish(to_second.clone(), message());
                        transaction.commit();
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
