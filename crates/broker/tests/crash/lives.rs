//! Lives of a broker on one disk, one after the other, each with its end.

use std::io::ErrorKind;
use std::path::Path;

use store::{Disk, Durability, Work};
use testkit::{FaultyDisk, Random, Survival};

use crate::model::Model;
use crate::observe::observe;
use crate::workload::{self, Habit};
use crate::world::{BUDGET, DIR, World};

/// Steps of a first life.
pub const STEPS: usize = 300;
/// Steps of a later one.
const FEWER_STEPS: usize = 80;

const SURVIVALS: [Survival; 4] = [
    Survival::Nothing,
    Survival::Everything,
    Survival::Random,
    Survival::Random,
];

/// How a process ends.
#[derive(Debug, Clone, Copy)]
pub enum End {
    Closed,
    Killed,
    /// The machine crashes at this operation.
    Crashed(u64),
    /// This operation fails, with that error.
    Failed(u64, ErrorKind),
}

/// Says how to have a failure again.
pub struct Replay(pub String);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to have it again: {}", self.0);
        }
    }
}

/// A number from the environment.
pub fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let number = value.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={value} is no number")))
}

/// Those that are usual, or the one from the environment.
pub fn seeds(usual: std::ops::Range<u64>) -> std::ops::Range<u64> {
    match from_environment("LEVERET_SEED") {
        Some(seed) => seed..seed + 1,
        None => usual,
    }
}

/// What a life has come to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done {
    pub work: Work,
    /// Files of the log that have been used again.
    pub recycled: u64,
}

/// A process starts, works, and ends somehow.
pub fn live(
    disk: &FaultyDisk,
    model: Model,
    random: &mut Random,
    (habit, steps): (Habit, usize),
    end: End,
) -> (Model, Done) {
    match end {
        End::Crashed(operation) => disk.crash_at(operation),
        End::Failed(operation, error) => disk.fail_at(operation, error),
        End::Closed | End::Killed => {}
    }
    let is_new = model.appended() == 0;
    let mut world = match World::open(disk, model) {
        Ok(world) => world,
        Err(failed) => {
            let (model, error) = *failed;
            let told = !matches!(end, End::Closed | End::Killed);
            assert!(told, "cannot start: {error}");
            disk.crash_now();
            return (model, Done::default());
        }
    };
    if is_new {
        workload::set_up(&mut world);
    }
    for _ in 0..steps {
        if world.is_over() {
            break;
        }
        workload::step(&mut world, random, habit);
    }
    check_end(&mut world, end);
    let done = Done {
        work: world.store.work(),
        recycled: recycled(&world),
    };
    let model = match end {
        End::Closed => world.close(),
        _ => world.kill(),
    };
    (model, done)
}

/// A failure is said; without one the broker goes on.
fn check_end(world: &mut World, end: End) {
    let failure = world.store.failure();
    let has_come = |operation| world.disk.operations() >= operation;
    match end {
        End::Closed | End::Killed => assert_eq!(failure, None),
        End::Failed(operation, ErrorKind::Other) if has_come(operation) => {
            assert!(
                failure.is_some(),
                "nobody says that operation {operation} has failed"
            );
        }
        End::Failed(operation, _) if has_come(operation) && failure.is_none() => {
            for _ in 0..4 {
                world.run_once();
            }
            assert!(!world.store.disk_full(), "there is room, and it stays full");
            assert!(world.model.all_confirmed(), "something is never confirmed");
        }
        End::Failed(..) | End::Crashed(_) => {}
    }
    if failure.is_some() {
        // Whatever is confirmed even now must survive.
        for _ in 0..3 {
            let message = world.new_message(("", "first"), true, 100);
            world.publish(("", "first"), vec![message]);
            world.run_once();
        }
    }
}

fn recycled(world: &World) -> u64 {
    let names = world
        .disk
        .list(&Path::new(DIR).join("wal"))
        .unwrap_or_default();
    let slots = names
        .iter()
        .filter_map(|name| name.file_stem()?.to_str()?.parse::<u64>().ok());
    let written = world.store.reached(Durability::Os).0;
    (written / BUDGET.log_file).saturating_sub(slots.max().unwrap_or(0))
}

/// Starts a broker that nothing keeps from it.
pub fn open(disk: &FaultyDisk, model: Model) -> World {
    let world = World::open(disk, model);
    world.unwrap_or_else(|failed| panic!("cannot start: {}", failed.1))
}

/// What is found must be what the model allows, which knows what is left from then on.
pub fn check(disk: &FaultyDisk, model: &mut Model, survival: Survival, by_consumer: bool) {
    let observed = observe(disk, by_consumer);
    if let Err(differences) = model.restart(&observed, survival) {
        panic!("{differences}");
    }
}

/// Two more lives on the same disk, which end at random.
fn live_on(mut disk: FaultyDisk, mut model: Model, random: &mut Random, so_far: &str) {
    for generation in 2..4 {
        let operation = 1 + random.below(150) as u64;
        let end = match random.below(7) {
            0 => End::Closed,
            1 => End::Killed,
            2 => End::Failed(operation, ErrorKind::Other),
            3 => End::Failed(operation, ErrorKind::StorageFull),
            _ => End::Crashed(operation),
        };
        let survival = random.pick(&SURVIVALS);
        let text = format!("{so_far}, life {generation}: {end:?}, {survival:?}");
        let replay = Replay(text);
        let habit = random.pick(&[Habit::Mixed, Habit::Mixed, Habit::Stragglers]);
        let (left, _) = live(&disk, model, random, (habit, FEWER_STEPS), end);
        model = left;
        disk = disk.restart(survival);
        check(&disk, &mut model, survival, random.one_in(2));
        drop(replay);
    }
}

/// The first life of a disk.
pub fn first_life(seed: u64, end: End) -> (FaultyDisk, Model, Done) {
    let (disk, mut random) = (FaultyDisk::new(seed), Random::new(seed));
    let what = (Habit::of(seed), STEPS);
    let (model, done) = live(&disk, Model::default(), &mut random, what, end);
    (disk, model, done)
}

/// Ends the first life at each of its operations, or with a larger stride at some of them, and
/// goes on from there; `end` says how.
pub fn at_operations(seed: u64, stride: u64, end: impl Fn(u64) -> End) {
    let (whole, ..) = first_life(seed, End::Killed);
    let all = 1 + seed * 17 % stride..=whole.operations();
    let operations: Vec<u64> = match from_environment("LEVERET_OPERATION") {
        Some(operation) => vec![operation],
        None => all.step_by(stride as usize).collect(),
    };
    for operation in operations {
        let again = format!("LEVERET_SEED={seed} LEVERET_OPERATION={operation}");
        let replay = Replay(format!("{again}, first life"));
        let (disk, model, _) = first_life(seed, end(operation));
        drop(replay);
        let mut random = Random::new(seed ^ operation << 32);
        for survival in SURVIVALS {
            let so_far = format!("{again}: {:?}, {survival:?}", end(operation));
            let replay = Replay(so_far.clone());
            let (disk, mut model) = (disk.restart(survival), model.clone());
            check(&disk, &mut model, survival, random.one_in(2));
            drop(replay);
            live_on(disk, model, &mut random, &so_far);
        }
    }
}
