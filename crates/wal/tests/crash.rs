//! The machine or the process ends at every operation of a run, and starts again, several times on
//! the same disk. Each time the log is compared with a model: everything that was durable is
//! there, unaltered and in order; beyond that there is a part of what was appended, without a gap.

mod support;

use std::io::ErrorKind;
use std::sync::Arc;

use testkit::{FaultyDisk, Survival};
use wal::{Lsn, Wal};

use support::*;

/// What must and may be found.
#[derive(Clone, Default)]
struct Model {
    /// Records after `start` that were appended, in order.
    records: Vec<Kept>,
    /// The log is needed from there on: what a manifest would say.
    start: u64,
    /// Positions that were seen to be reached.
    durable: u64,
    written: u64,
    /// No two records are the same.
    next_tag: u64,
}

/// How a process ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Closed,
    Killed,
    /// At this operation.
    Crashed(u64),
    /// This operation fails, whereupon the process ends.
    Failed(u64),
}

impl Model {
    /// Compares what is on the disk with the model, which from then on knows what is left.
    fn check(&mut self, disk: &FaultyDisk, survival: Survival, context: &str) {
        let found = read(disk, self.start);
        let (scan, found) = found.unwrap_or_else(|error| panic!("{context}: {error}"));
        let count = found.len().min(self.records.len());
        for (index, (one, other)) in found.iter().zip(&self.records).enumerate() {
            assert!(
                one == other,
                "{context}: record {index} is {one:?}, not {other:?}"
            );
        }
        assert!(
            found.len() == count,
            "{context}: {:?} from nowhere",
            found[count]
        );
        let end = found.last().map_or(self.start, |last| last.lsn);
        assert_eq!(scan.end.0, end, "{context}");
        assert!(
            end >= self.durable,
            "{context}: {} was durable, {end} is left",
            self.durable
        );
        if survival == Survival::Everything {
            assert!(
                end >= self.written,
                "{context}: {} was written",
                self.written
            );
        }
        self.records.truncate(count);
        self.durable = self.durable.max(self.start);
        self.written = end;
    }

    fn look(&mut self, wal: &Wal) {
        self.durable = self.durable.max(durable(wal));
        self.written = self.written.max(written(wal));
    }

    /// A process starts, works, and ends somehow.
    fn live(&mut self, disk: &FaultyDisk, random: &mut Random, end: End) {
        match end {
            End::Crashed(operation) => disk.crash_at(operation),
            End::Failed(operation) => disk.fail_at(operation, ErrorKind::Other),
            End::Closed | End::Killed => {}
        }
        let Ok((scan, _)) = read(disk, self.start) else {
            return assert!(disk.has_crashed());
        };
        let Ok(wal) = Wal::open(Arc::new(disk.clone()), options(FILE / 2), scan) else {
            return disk.crash_now();
        };
        self.look(&wal);
        for _ in 0..10 + random.below(15) {
            self.step(&wal, random);
            if wal.failure().is_some() {
                break;
            }
        }
        match end {
            End::Closed => {
                wal.close();
                self.look(&wal);
                assert_eq!(
                    self.durable,
                    self.records.last().map_or(self.durable, |last| last.lsn)
                );
            }
            _ => kill(disk, wal),
        }
    }

    fn step(&mut self, wal: &Wal, random: &mut Random) {
        for _ in 0..random.below(4) {
            let urgency = random.pick(&[LAZY, OS, OS, FSYNC]);
            let length = random.pick(&[0, 1, 50, 500, 4_052, 5_000, 14_000, 40_000]);
            let record = append(wal, urgency, self.next_tag, length);
            self.next_tag += 1;
            if record.lsn != u64::MAX {
                self.records.push(record);
            }
        }
        if random.below(4) > 0 {
            let _ = wal.run_once();
        }
        self.look(wal);
        if random.below(4) == 0 {
            let durable = self.durable;
            let reached = self
                .records
                .iter()
                .take_while(|record| record.lsn <= durable);
            let count = random.below(reached.count() as u64 + 1) as usize;
            if let Some(last) = self.records.drain(..count).next_back() {
                // First it is noted, then the files go.
                self.start = last.lsn;
                let _ = wal.release(Lsn(self.start));
            }
        }
    }
}

const SURVIVALS: [Survival; 4] = [
    Survival::Nothing,
    Survival::Random,
    Survival::Random,
    Survival::Everything,
];

/// Two more lives on the same disk, which end at random, and a last look.
fn live_on(disk: &FaultyDisk, model: &Model, random: &mut Random, context: &str) {
    let (mut disk, mut model) = (disk.restart(Survival::Everything), model.clone());
    for generation in 2..4 {
        let operation = 1 + random.below(60);
        let end = match random.below(5) {
            0 => End::Closed,
            1 => End::Killed,
            2 => End::Failed(operation),
            _ => End::Crashed(operation),
        };
        model.live(&disk, random, end);
        let survival = random.pick(&SURVIVALS);
        disk = disk.restart(survival);
        let context = format!("{context}, generation {generation}: {end:?}, {survival:?}");
        model.check(&disk, survival, &context);
    }
}

/// Ends the first life at each of its operations; `end` says how.
fn at_every_operation(seed: u64, end: impl Fn(u64) -> End) {
    let first_life = |end| {
        let (disk, mut model) = (FaultyDisk::new(seed), Model::default());
        model.live(&disk, &mut Random(seed), end);
        (disk, model)
    };
    let (whole, _) = first_life(End::Closed);
    for operation in 1..=whole.operations() {
        let (disk, model) = first_life(end(operation));
        let mut random = Random(seed ^ operation << 32);
        for survival in SURVIVALS {
            let context = format!("seed {seed}: {:?}, {survival:?}", end(operation));
            let (disk, mut model) = (disk.restart(survival), model.clone());
            model.check(&disk, survival, &context);
            live_on(&disk, &model, &mut random, &context);
        }
    }
}

#[test]
fn crash_at_any_operation_loses_nothing_that_was_durable() {
    for seed in 0..4 {
        at_every_operation(seed, End::Crashed);
    }
}

#[test]
fn failure_of_any_operation_loses_nothing_that_was_durable() {
    for seed in 100..103 {
        at_every_operation(seed, End::Failed);
    }
}

#[test]
fn many_lives_on_one_disk_lose_nothing_that_was_durable() {
    for seed in 200..230 {
        let (mut disk, mut model) = (FaultyDisk::new(seed), Model::default());
        let mut random = Random(seed);
        for generation in 0..12 {
            let operation = 1 + random.below(100);
            let end = match random.below(6) {
                0 => End::Closed,
                1 | 2 => End::Killed,
                3 => End::Failed(operation),
                _ => End::Crashed(operation),
            };
            model.live(&disk, &mut random, end);
            let survival = random.pick(&SURVIVALS);
            disk = disk.restart(survival);
            let context = format!("seed {seed}, generation {generation}: {end:?}, {survival:?}");
            model.check(&disk, survival, &context);
        }
    }
}
