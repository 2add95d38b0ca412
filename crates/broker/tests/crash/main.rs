//! The machine or the process ends at any operation on the disk, and starts again, several times
//! over. Each time everything that the broker holds is compared with a model: what was confirmed
//! is there, once and in order, and whatever else is there is what some part of the log says.
//!
//! A failure says how to have it again, on its own: `LEVERET_SEED=… LEVERET_OPERATION=…`.

mod actions;
mod durable;
mod live;
mod model;
mod observe;
mod random;
mod regressions;
mod topology;
mod universe;
mod workload;
mod world;

use std::io::ErrorKind;

use store::Work;
use testkit::{FaultyDisk, Survival};

use model::Model;
use observe::observe;
use random::Random;
use workload::Habit;
use world::World;

/// How a process ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Closed,
    Killed,
    /// The machine crashes at this operation.
    Crashed(u64),
    /// This operation fails, whereupon the process ends.
    Failed(u64),
}

const SURVIVALS: [Survival; 4] = [
    Survival::Nothing,
    Survival::Everything,
    Survival::Random,
    Survival::Random,
];

/// Says how to have a failure again.
struct Replay(String);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to have it again: {}", self.0);
        }
    }
}

/// A number from the environment.
fn from_environment(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name}={value} is no number")),
    )
}

/// A process starts, works, and ends somehow.
fn live(
    disk: &FaultyDisk,
    model: Model,
    random: &mut Random,
    (habit, steps): (Habit, usize),
    end: End,
) -> (Model, Work) {
    match end {
        End::Crashed(operation) => disk.crash_at(operation),
        End::Failed(operation) => disk.fail_at(operation, ErrorKind::Other),
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
            return (model, Work::default());
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
    let work = world.store.work();
    if matches!(end, End::Closed | End::Killed) {
        assert_eq!(world.store.failure(), None);
    }
    let model = match end {
        End::Closed => world.close(),
        _ => world.kill(),
    };
    (model, work)
}

/// Starts a broker that nothing keeps from it.
fn open(disk: &FaultyDisk, model: Model) -> World {
    let world = World::open(disk, model);
    world.unwrap_or_else(|failed| panic!("cannot start: {}", failed.1))
}

/// What is found must be what the model allows, which knows what is left from then on.
fn check(disk: &FaultyDisk, model: &mut Model, survival: Survival, by_consumer: bool) {
    let observed = observe(disk, by_consumer);
    if let Err(differences) = model.restart(&observed, survival) {
        panic!("{differences}");
    }
}

/// Two more lives on the same disk, which end at random.
fn live_on(mut disk: FaultyDisk, mut model: Model, random: &mut Random, so_far: &str) {
    for generation in 2..4 {
        let operation = 1 + random.below(150) as u64;
        let end = match random.below(6) {
            0 => End::Closed,
            1 => End::Killed,
            2 => End::Failed(operation),
            _ => End::Crashed(operation),
        };
        let survival = random.pick(&SURVIVALS);
        let replay = Replay(format!(
            "{so_far}, life {generation}: {end:?}, {survival:?}"
        ));
        let habit = random.pick(&[Habit::Mixed, Habit::Mixed, Habit::Stragglers]);
        let (left, _) = live(&disk, model, random, (habit, 80), end);
        model = left;
        disk = disk.restart(survival);
        check(&disk, &mut model, survival, random.one_in(2));
        drop(replay);
    }
}

const STEPS: usize = 300;

fn first_life(seed: u64, habit: Habit, end: End) -> (FaultyDisk, Model, Work) {
    let disk = FaultyDisk::new(seed);
    let (model, work) = live(
        &disk,
        Model::default(),
        &mut Random::new(seed),
        (habit, STEPS),
        end,
    );
    (disk, model, work)
}

/// Ends the first life at some of its operations; `end` says how.
fn at_operations(seed: u64, habit: Habit, stride: u64, end: impl Fn(u64) -> End) {
    let (whole, ..) = first_life(seed, habit, End::Killed);
    let only = from_environment("LEVERET_OPERATION");
    let operations: Vec<u64> = match only {
        Some(operation) => vec![operation],
        None => (1 + seed % stride..=whole.operations())
            .step_by(stride as usize)
            .collect(),
    };
    for operation in operations {
        let again = format!("LEVERET_SEED={seed} LEVERET_OPERATION={operation}");
        let replay = Replay(format!("{again}, first life"));
        let (disk, model, _) = first_life(seed, habit, end(operation));
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

fn seeds(usual: std::ops::Range<u64>) -> std::ops::Range<u64> {
    match from_environment("LEVERET_SEED") {
        Some(seed) => seed..seed + 1,
        None => usual,
    }
}

#[test]
fn crash_at_any_operation_loses_nothing_that_was_confirmed() {
    for seed in seeds(0..4) {
        at_operations(seed, Habit::of(seed), 61, End::Crashed);
    }
}

#[test]
#[ignore = "takes minutes: run it with --release after changes to the store"]
fn crash_at_every_operation_loses_nothing_that_was_confirmed() {
    for seed in seeds(1_000..1_003) {
        at_operations(seed, Habit::of(seed), 1, End::Crashed);
    }
}

#[test]
fn failure_of_any_operation_loses_nothing_that_was_confirmed() {
    for seed in seeds(100..102) {
        at_operations(seed, Habit::of(seed), 97, End::Failed);
    }
}

/// The disk becomes full, and after a while there is room again.
#[test]
fn full_disk_loses_nothing_and_the_broker_goes_on_when_there_is_room() {
    let mut times_full = 0;
    for seed in seeds(200..212) {
        let replay = Replay(format!("LEVERET_SEED={seed}"));
        let (disk, mut random) = (FaultyDisk::new(seed), Random::new(seed));
        let mut world = open(&disk, Model::default());
        workload::set_up(&mut world);
        disk.set_capacity(1_400_000);
        let mut full = 0;
        for _ in 0..STEPS {
            workload::step(&mut world, &mut random, Habit::Mixed);
            full += usize::from(world.store.disk_full());
            if full > 60 {
                break;
            }
        }
        times_full += usize::from(full > 0);
        disk.set_capacity(u64::MAX);
        for _ in 0..100 {
            workload::step(&mut world, &mut random, Habit::Mixed);
        }
        for _ in 0..3 {
            world.run_once();
        }
        assert_eq!(world.store.failure(), None);
        assert!(!world.store.disk_full(), "there is room, and it stays full");
        assert!(world.model.all_confirmed(), "something is never confirmed");
        let mut model = world.kill();
        let disk = disk.restart(Survival::Nothing);
        check(&disk, &mut model, Survival::Nothing, true);
        drop(replay);
    }
    assert!(times_full > 3 || from_environment("LEVERET_SEED").is_some());
}

#[test]
fn zz_coverage() {
    for seed in 0..10 {
        let begun = std::time::Instant::now();
        let (disk, _, work) = first_life(seed, Habit::of(seed), End::Killed);
        eprintln!(
            "{seed}: {} operations, {work:?} {:?}",
            disk.operations(),
            begun.elapsed()
        );
    }
}
