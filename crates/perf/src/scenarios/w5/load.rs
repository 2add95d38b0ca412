//! One case from the creation of its queues to their deletion.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use super::ledger::Ledger;
use super::plan::{Case, Site};
use super::tally::Tally;
use super::{cannot_begin, receive, send};
use crate::interrupt::interrupted;
use crate::result::{Checks, Run};
use crate::sqs;

/// Why a run stopped that somebody stopped.
pub(super) const INTERRUPTED: &str = "Interrupted";
/// Why a run stopped that nobody stopped.
const SENT: &str = "all sent";
/// One entry of the series.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long the deletion of a queue may take, repetitions included.
const DELETION_TIMEOUT: Duration = Duration::from_secs(15);

/// What the tasks of a case share.
pub(super) struct Load {
    pub(super) batch: u8,
    pub(super) body_size: u32,
    /// Senders that have not ended.
    pub(super) sending: Cell<usize>,
    pub(super) tally: RefCell<Tally>,
}

/// A queue in a region, and what was sent to it.
pub(super) struct Queue {
    pub(super) site: Rc<Site>,
    name: String,
    pub(super) url: String,
    pub(super) ledger: RefCell<Ledger>,
}

/// Runs a case and fills in `run`. An error is why it could not begin.
pub(super) async fn run(case: &Case, run: &mut Run) -> Result<(), String> {
    let mut queues = Vec::new();
    let created = create_all(case, &mut queues).await;
    if created.is_ok() {
        load(case, &queues, run).await;
    }
    for queue in &queues {
        delete(queue, run).await;
    }
    created
}

async fn create_all(case: &Case, queues: &mut Vec<Rc<Queue>>) -> Result<(), String> {
    for site in &case.sites {
        let random = getrandom::u64().map_err(|error| error.to_string())?;
        let name = format!("leveret-perf-w5-{}-{random:016x}", site.region);
        let url = match site.client.create_queue(&name).await {
            Ok(url) => url,
            Err(error) => {
                delete_if_created(site, &name, &error).await;
                return Err(cannot_begin(case, site, &error));
            }
        };
        // Errors up to here are no errors of the load.
        site.client.take_failures();
        queues.push(Rc::new(Queue {
            site: Rc::clone(site),
            name,
            url,
            ledger: RefCell::new(Ledger::new(case.messages, case.body_size)),
        }));
    }
    Ok(())
}

/// A service that did not say that it created a queue may have done so.
async fn delete_if_created(site: &Site, name: &str, error: &sqs::Error) {
    if !error.is_ambiguous() {
        return;
    }
    let deleting = async {
        let url = site.client.get_queue_url(name).await?;
        site.client.delete_queue(&url).await
    };
    let _ = timeout(DELETION_TIMEOUT, deleting).await;
}

async fn load(case: &Case, queues: &[Rc<Queue>], run: &mut Run) {
    let senders_each = usize::from(case.in_flight).min(case.messages as usize);
    let load = Rc::new(Load {
        batch: case.batch,
        body_size: case.body_size,
        sending: Cell::new(senders_each * queues.len()),
        tally: RefCell::new(Tally::begin()),
    });
    let (mut senders, mut receivers) = (JoinSet::new(), JoinSet::new());
    for queue in queues {
        for _ in 0..senders_each {
            senders.spawn_local(send::send(Rc::clone(&load), Rc::clone(queue)));
        }
        for _ in 0..case.receivers {
            receivers.spawn_local(receive::receive(Rc::clone(&load), Rc::clone(queue)));
        }
    }
    let mut looks = interval_at(Instant::now() + INTERVAL, INTERVAL);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut stopped = SENT;
    while !(senders.is_empty() && receivers.is_empty()) {
        tokio::select! {
            () = interrupted() => {
                stopped = INTERRUPTED;
                break;
            }
            _ = looks.tick() => load.tally.borrow_mut().look(),
            Some(ended) = senders.join_next() => {
                rethrow(ended);
                load.sending.set(senders.len());
                if senders.is_empty() {
                    load.tally.borrow_mut().all_sent();
                }
            }
            Some(ended) = receivers.join_next() => rethrow(ended),
        }
    }
    // Both sets abort what is left of them; a call in flight is given up with its connection.
    drop((senders, receivers));
    run.stopped.insert(stopped.into(), 1);
    load.tally.borrow_mut().finish(run);
    add_failures(case, run);
    if case.receivers > 0 {
        add_checks(queues, run);
    }
}

/// A defect of a task is one of the whole.
fn rethrow(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

fn add_failures(case: &Case, run: &mut Run) {
    let (mut all, mut retries) = (0, 0);
    for site in &case.sites {
        let (errors, retried) = site.client.take_failures();
        retries += retried;
        for (code, count) in errors {
            all += count;
            *run.figures.entry(format!("errors, {code}")).or_default() += count as f64;
        }
    }
    run.figures.insert("errors".into(), all as f64);
    run.figures.insert("retries".into(), retries as f64);
}

fn add_checks(queues: &[Rc<Queue>], run: &mut Run) {
    let mut checks = Checks::default();
    for queue in queues {
        queue.ledger.borrow().add_to(&mut checks, &queue.name);
    }
    run.checks = Some(checks);
}

/// Deletes a queue, whatever has ended the load.
async fn delete(queue: &Queue, run: &mut Run) {
    let client = &queue.site.client;
    let deleted = match timeout(DELETION_TIMEOUT, client.delete_queue(&queue.url)).await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer in time".to_owned(),
    };
    let (name, endpoint) = (&queue.name, client.endpoint());
    let left = format!("the queue {name} is left at {endpoint}: {deleted}");
    let error = run.error.take().map(|error| format!("{error}; {left}"));
    run.error = Some(error.unwrap_or(left));
}
