//! The machine or the process ends at any operation on the disk, and starts again, several times
//! over. Each time everything that the broker holds is compared with a model: what was confirmed
//! is there, once and in order, and whatever else is there is what some part of the log says.
//!
//! A failure says how to have it again, on its own: `LEVERET_SEED=… LEVERET_OPERATION=…`. With
//! `LEVERET_TRACE=1` each step is printed.

mod actions;
mod busy;
mod durable;
mod live;
mod lives;
mod model;
mod observe;
mod regressions;
mod topology;
mod universe;
mod workload;
mod world;

use std::io::ErrorKind;

use testkit::{FaultyDisk, Random, Survival};

use lives::{End, Replay, STEPS, at_operations, check, first_life, from_environment, open, seeds};
use model::Model;
use workload::Habit;

#[test]
fn crash_at_any_operation_loses_nothing_that_was_confirmed() {
    for seed in seeds(0..6) {
        at_operations(seed, 61, End::Crashed);
    }
}

#[test]
fn failure_of_any_operation_loses_nothing_that_was_confirmed() {
    for seed in seeds(100..103) {
        at_operations(seed, 97, |operation| {
            End::Failed(operation, ErrorKind::Other)
        });
    }
}

/// It may be the end of the process where the disk cannot be full, such as in a sync.
#[test]
fn disk_that_is_full_for_a_moment_loses_nothing_that_was_confirmed() {
    for seed in seeds(200..203) {
        at_operations(seed, 97, |operation| {
            End::Failed(operation, ErrorKind::StorageFull)
        });
    }
}

#[test]
#[ignore = "takes minutes: run it with --release after changes to the store"]
fn crash_at_every_operation_loses_nothing_that_was_confirmed() {
    for seed in seeds(1_000..1_012) {
        at_operations(seed, 1, End::Crashed);
    }
}

#[test]
#[ignore = "takes minutes: run it with --release after changes to the store"]
fn failure_of_every_operation_loses_nothing_that_was_confirmed() {
    for seed in seeds(2_000..2_006) {
        at_operations(seed, 2, |operation| {
            End::Failed(operation, ErrorKind::Other)
        });
        at_operations(seed, 2, |operation| {
            End::Failed(operation, ErrorKind::StorageFull)
        });
    }
}

/// The disk becomes full, and after a while there is room again.
#[test]
fn full_disk_loses_nothing_and_the_broker_goes_on_when_there_is_room() {
    let mut times_full = 0;
    for seed in seeds(300..310) {
        let replay = Replay(format!("LEVERET_SEED={seed}"));
        let (disk, mut random) = (FaultyDisk::new(seed), Random::new(seed));
        let mut world = open(&disk, Model::default());
        workload::set_up(&mut world);
        disk.set_capacity(1_400_000);
        let mut full = 0;
        for _ in 0..STEPS {
            workload::step(&mut world, &mut random, Habit::of(seed));
            full += usize::from(world.store.disk_full());
            if full > 60 {
                break;
            }
        }
        times_full += usize::from(full > 0);
        disk.set_capacity(u64::MAX);
        for _ in 0..100 {
            workload::step(&mut world, &mut random, Habit::of(seed));
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

/// Otherwise the other tests would not test it.
#[test]
fn runs_come_to_everything_that_the_store_does() {
    let (mut compactions, mut recycled) = (0, 0);
    for seed in 0..6 {
        let (disk, _, done) = first_life(seed, End::Killed);
        assert!(disk.operations() > 200, "{} operations", disk.operations());
        assert!(
            done.work.flushes > 10 && done.work.checkpoints > 1,
            "{:?}",
            done.work
        );
        compactions += done.work.compactions;
        recycled += done.recycled;
    }
    assert!(compactions > 2, "{compactions} compactions");
    assert!(recycled > 10, "{recycled} files of the log were used again");
}

/// A failure can only be had again if it is so.
#[test]
fn one_seed_has_one_course_of_events() {
    for seed in 0..3 {
        let [one, other] = [0, 1].map(|_| first_life(seed, End::Killed));
        assert_eq!(one.0.operations(), other.0.operations());
        assert_eq!(one.2.work, other.2.work);
    }
}
