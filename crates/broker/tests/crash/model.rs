//! What was asked of the log, how much of it must be there, and whether what is found agrees.

use std::collections::{BTreeMap, VecDeque};

use broker::LogPositions;
use store::Store;
use testkit::Survival;

use crate::durable::{Contents, Durable, Record};
use crate::universe::Name;

#[derive(Debug, Clone, Default)]
pub struct Model {
    /// What the first `settled` records say.
    pub durable: Durable,
    /// Those after them.
    records: VecDeque<Record>,
    /// So many records are known to be durable.
    settled: u64,
    /// So many have been given to the operating system.
    written: u64,
    /// Positions that were asked about, and how many records they stand for.
    waiting: Vec<(LogPositions, u64)>,
    /// So many records after those lead to what the last restart has found.
    found: usize,
    /// What it has found to be marked as redelivered.
    redelivered: BTreeMap<Name, Vec<bool>>,
    next_message: u64,
    next_queue: u32,
}

/// What a broker was found to hold, and which of its messages it calls redelivered.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    pub contents: Contents,
    pub redelivered: BTreeMap<Name, Vec<bool>>,
}

impl Model {
    pub fn log(&mut self, record: Record) {
        self.records.push_back(record);
    }

    /// How many records there have been.
    pub fn appended(&self) -> u64 {
        self.settled + self.records.len() as u64
    }

    /// Once these are reached, that many records are durable.
    pub fn wait(&mut self, positions: LogPositions, records: u64) {
        self.waiting.push((positions, records));
    }

    pub fn number_message(&mut self) -> u64 {
        self.next_message += 1;
        self.next_message
    }

    pub fn number_queue(&mut self) -> u32 {
        self.next_queue += 1;
        self.next_queue
    }

    /// The operating system has everything so far.
    pub fn all_written(&mut self) {
        self.written = self.appended();
    }

    /// The disk has.
    pub fn all_settled(&mut self) {
        self.settle(self.appended());
    }

    /// Looks what has been confirmed.
    pub fn look(&mut self, store: &Store) {
        let mut settled = self.settled;
        self.waiting.retain(|(positions, records)| {
            let reached = positions.reached(store);
            if reached {
                settled = settled.max(*records);
            }
            !reached
        });
        self.settle(settled);
    }

    /// True if nobody waits for anything.
    pub fn all_confirmed(&self) -> bool {
        self.waiting.is_empty()
    }

    fn settle(&mut self, settled: u64) {
        while self.settled < settled {
            let Some(record) = self.records.pop_front() else {
                return;
            };
            self.durable.apply(&record);
            self.settled += 1;
        }
        self.written = self.written.max(self.settled);
    }

    /// The machine has started again: what is found must be what some number of records say.
    pub fn restart(&mut self, observed: &Observed, survival: Survival) -> Result<(), String> {
        let sure = match survival {
            Survival::Everything => (self.written - self.settled) as usize,
            Survival::Nothing | Survival::Random => 0,
        };
        let mut state = self.durable.clone();
        self.records
            .iter()
            .take(sure)
            .for_each(|record| state.apply(record));
        let least = state.clone();
        let rest: Vec<&Record> = self.records.iter().skip(sure).collect();
        let mut more = 0;
        while state.restarted().contents() != observed.contents {
            let Some(record) = rest.get(more) else {
                return Err(differences(&least, &rest, observed));
            };
            state.apply(record);
            more += 1;
        }
        check_redelivered(&least, &state, &rest[more..], observed)?;
        self.found = sure + more;
        self.written = self.settled + self.found as u64;
        self.waiting.clear();
        self.redelivered.clone_from(&observed.redelivered);
        if survival != Survival::Everything {
            self.adopt();
        }
        Ok(())
    }

    /// What was found is durable.
    fn adopt(&mut self) {
        self.records.truncate(self.found);
        self.found = 0;
        self.all_settled();
        for (name, redelivered) in &self.redelivered {
            if let Some(queue) = self.durable.queues.get_mut(name) {
                let marked = queue.messages.keys().zip(redelivered);
                let marked = marked.filter(|(_, redelivered)| **redelivered);
                let places = marked.map(|(place, _)| place + 1);
                queue.delivered = places.max().unwrap_or(0);
            }
        }
    }

    /// A broker has started with what was found: from now on that is durable.
    pub fn opened(&mut self) {
        self.adopt();
        self.durable = self.durable.restarted();
        self.redelivered.clear();
    }
}

/// Whatever is known to have been out is marked, and nothing that never was.
fn check_redelivered(
    least: &Durable,
    state: &Durable,
    rest: &[&Record],
    observed: &Observed,
) -> Result<(), String> {
    let mut most = state.clone();
    let delivered = |record: &&&Record| matches!(record, Record::Delivered { .. });
    rest.iter()
        .filter(delivered)
        .for_each(|record| most.apply(record));
    for (name, queue) in &state.restarted().queues {
        let same = least
            .queues
            .get(name)
            .filter(|same| same.number == queue.number);
        let must = same.map_or(0, |same| same.delivered);
        let may = most.queues[name].delivered;
        for ((place, id), redelivered) in queue.messages.iter().zip(&observed.redelivered[name]) {
            if (*place < must && !redelivered) || (*place >= may && *redelivered) {
                return Err(format!(
                    "message {id} in {name:?} is redelivered: {redelivered}; its place is {place}, \
                     surely out were those before {must}, perhaps those before {may}"
                ));
            }
        }
    }
    Ok(())
}

/// For whoever has to find out what went wrong.
fn differences(least: &Durable, rest: &[&Record], observed: &Observed) -> String {
    let mut most = least.clone();
    rest.iter().for_each(|record| most.apply(record));
    let (least, most) = (least.restarted().contents(), most.restarted().contents());
    let mut text = format!(
        "no number of records from 0 to {} of those not known to be durable leads to what is \
         found:\n",
        rest.len()
    );
    let found = &observed.contents;
    let names = least
        .queues
        .keys()
        .chain(most.queues.keys())
        .chain(found.queues.keys());
    let names: std::collections::BTreeSet<&Name> = names.collect();
    for name in names {
        let [least, most, found] = [&least, &most, found].map(|contents| contents.queues.get(name));
        if found != least || found != most {
            text += &format!(
                "{name:?}:\n at least {least:?}\n at most  {most:?}\n found    {found:?}\n"
            );
        }
    }
    for (what, contents) in [("at least", &least), ("at most", &most), ("found", found)] {
        text += &format!(
            "{what}: {:?} {:?}\n",
            contents.definitions, contents.exchanges
        );
        text += &format!(" routes {:?}\n", contents.routes);
    }
    text += "records:\n";
    for (index, record) in rest.iter().enumerate() {
        match record {
            Record::Define {
                new,
                gone,
                consumed,
                ..
            } => {
                text +=
                    &format!(" {index}: define {new:?}, {gone:?} gone, {consumed:?} consumed\n");
            }
            other => text += &format!(" {index}: {other:?}\n"),
        }
    }
    text
}
