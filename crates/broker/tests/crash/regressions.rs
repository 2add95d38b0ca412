//! Faults that the tests of crashes and of full disks have shown, each on its own.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use broker::Outcome;
use store::{Disk, Durability, Store};
use testkit::{FaultyDisk, Survival};

use crate::lives::{check, open};
use crate::model::Model;
use crate::topology::{Binding, Target};
use crate::universe::{Name, id, message, queue_kind};
use crate::workload::set_up;
use crate::world::{BUDGET, DIR, World};

/// A broker on a new disk, with queues and exchanges.
fn new_world(seed: u64) -> World {
    let mut world = open(&FaultyDisk::new(seed), Model::default());
    set_up(&mut world);
    world
}

/// Publishes messages of about 1 KB, a few at a time.
fn publish(world: &mut World, queue: Name, count: usize) {
    for _ in 0..count {
        let message = world.new_message(("", queue), true, 1_000);
        world.publish(("", queue), vec![message]);
    }
}

fn run(world: &mut World, times: usize) {
    for _ in 0..times {
        world.run_once();
        world.check_counts();
    }
}

/// More than a queue keeps in memory: most of it lies in segments.
fn backlog(world: &mut World, queue: Name, count: usize) {
    for _ in 0..count / 20 {
        publish(world, queue, 20);
        run(world, 1);
    }
    run(world, 2);
    assert!(world.store.work().flushes > 0);
}

/// Ends leases of messages by their number.
fn settle(world: &mut World, outcome: Outcome, mut which: impl FnMut(u64) -> bool) {
    let mut at = 0;
    while at < world.held.len() {
        if which(world.held[at].place) {
            let chosen = world.held.remove(at);
            world.settle(&[chosen], outcome);
        } else {
            at += 1;
        }
    }
}

/// Kills the process and the machine; what must survive must be there.
fn check_after_crash(world: World) {
    let disk = world.disk.clone();
    let mut model = world.kill();
    for survival in [Survival::Nothing, Survival::Everything] {
        check(&disk.restart(survival), &mut model.clone(), survival, false);
    }
    check(
        &disk.restart(Survival::Nothing),
        &mut model,
        Survival::Nothing,
        true,
    );
}

/// The reader found a file missing, and that was the end of the process.
#[test]
fn segment_that_goes_before_it_was_read_ahead_is_no_failure() {
    let mut world = new_world(1);
    backlog(&mut world, "first", 80);
    world.consume("first", false, 5);
    world.purge("first");
    run(&mut world, 3);
    assert_eq!(world.store.failure(), None);
    let before = world.inbox.len();
    assert!(before < 5);
    publish(&mut world, "first", 1);
    world.collect();
    assert_eq!(world.inbox.len(), before + 1, "the consumer is stuck");
    check_after_crash(world);
}

/// It was dropped as if it should have been among what was read.
#[test]
fn message_that_comes_back_while_others_are_read_is_not_lost() {
    let mut world = new_world(1);
    backlog(&mut world, "first", 80);
    world.consume("first", false, 30);
    run(&mut world, 1);
    world.send(100);
    // The consumer gets all that is in memory, and the next ones are asked for.
    settle(&mut world, Outcome::Acknowledge, |place| place % 2 == 0);
    world.send(100);
    world.lose_connection();
    run(&mut world, 2);
    check_after_crash(world);
}

/// Its number was given to the next new queue, since only the definition had it.
#[test]
fn queue_that_never_had_a_message_keeps_its_stream() {
    let world = new_world(1);
    let disk = world.disk.clone();
    let model = world.close();
    let mut world = open(&disk, model);
    world.declare_queue("fleeting");
    world.bind(Binding {
        source: "fan",
        key: "",
        target: Target::Queue("fleeting"),
    });
    let to = ("fan", "");
    let message = world.new_message(to, true, 100);
    world.publish(to, vec![message]);
    let [first, fleeting] =
        ["first", "fleeting"].map(|name| world.session.queue(name).expect("there"));
    assert_ne!(first.id, fleeting.id);
    check_after_crash(world);
}

/// The place was below what lies in segments, so it was looked for there.
#[test]
fn message_that_was_taken_and_comes_back_needs_no_segment() {
    let mut world = new_world(1);
    let (to, consumer) = (("", "fleeting"), world.consume("fleeting", true, 0));
    for _ in 0..8 {
        let message = world.new_message(to, false, 120 * 1024);
        world.publish(to, vec![message]);
    }
    // Some are in the outbox, and those for which it has no room are written to a segment.
    run(&mut world, 2);
    world.cancel(consumer);
    backlog(&mut world, "fleeting", 40);
    while world.live.queues["fleeting"].ready() > 0 {
        world.get("fleeting", false);
    }
    settle(&mut world, Outcome::Requeue, |_| true);
    while world.live.queues["fleeting"].ready() > 0 {
        world.get("fleeting", true);
    }
    world.check_counts();
}

/// What was left of two segments became one chunk over the places of a third.
#[test]
fn compaction_keeps_places_of_other_segments_apart() {
    let mut world = new_world(1);
    backlog(&mut world, "first", 240);
    while world.live.queues["first"].ready() > 0 {
        world.get("first", false);
    }
    let before = world.store.work().compactions;
    // Of the first and the third hundred little is left, of the second most.
    settle(&mut world, Outcome::Acknowledge, |place| {
        !(60..140).contains(&place) && place % 20 != 0
    });
    for _ in 0..6 {
        backlog(&mut world, "second", 100);
        world.purge("second");
        publish(&mut world, "first", 20);
        run(&mut world, 3);
        while world.live.queues["first"].ready() > 0 {
            world.get("first", false);
        }
        let newest = world.held.iter().map(|held| held.place).max().unwrap_or(0);
        settle(&mut world, Outcome::Acknowledge, |place| {
            place >= 240 && place + 3 < newest && place % 20 != 0
        });
    }
    assert!(world.store.work().compactions > before + 2);
    settle(&mut world, Outcome::Requeue, |_| true);
    run(&mut world, 2);
    check_after_crash(world);
}

/// They went while the deletion was not durable; then the queue was back without its messages.
#[test]
fn files_of_a_deleted_queue_stay_until_the_log_says_so() {
    let mut world = new_world(1);
    backlog(&mut world, "first", 80);
    let disk = world.disk.clone();
    let model = world.close();
    for ahead in 1..12 {
        let disk = disk.restart(Survival::Everything);
        let mut world = open(&disk, model.clone());
        world.delete_queue("first");
        disk.fail_at(disk.operations() + ahead, ErrorKind::Other);
        for _ in 0..3 {
            world.run_once();
        }
        check_after_crash(world);
    }
}

/// It was tried once, and until it had succeeded nothing was written to segments.
#[test]
fn cleaning_up_after_a_start_is_tried_until_the_disk_has_room() {
    let mut world = new_world(1);
    backlog(&mut world, "first", 80);
    let disk = world.disk.clone();
    let model = world.close();
    let mut survived = 0;
    for ahead in 1..16 {
        let disk = disk.restart(Survival::Everything);
        let mut world = open(&disk, model.clone());
        world.delete_queue("first");
        disk.fail_at(disk.operations() + ahead, ErrorKind::StorageFull);
        run(&mut world, 3);
        if !world.is_over() {
            survived += 1;
            assert!(!world.store.disk_full(), "operation {ahead} failed");
            backlog(&mut world, "second", 40);
            check_after_crash(world);
        }
    }
    assert!(survived > 5);
}

/// The second start relied on files whose names or contents were in the page cache only.
#[test]
fn start_after_one_that_was_killed_can_be_killed_as_well() {
    let first_life = |crash_at| {
        let disk = FaultyDisk::new(1);
        disk.crash_at(crash_at);
        if let Ok(mut world) = World::open(&disk, Model::default()) {
            publish_one_definition(&mut world);
        }
        disk.crash_now();
        disk.restart(Survival::Everything)
    };
    for first in 1..20 {
        for second in 1..40 {
            let disk = first_life(first);
            disk.crash_at(second);
            if let Ok(mut world) = World::open(&disk, Model::default()) {
                publish_one_definition(&mut world);
                world.kill();
            }
            for survival in [Survival::Nothing, Survival::Random] {
                let disk = disk.restart(survival);
                let opened = World::open(&disk, Model::default());
                assert!(opened.is_ok(), "killed at {first}, then at {second}");
            }
        }
    }
}

/// Without a model: earlier lives may have left some.
fn publish_one_definition(world: &mut World) {
    for _ in 0..3 {
        let _ = world
            .session
            .declare_queue("first", queue_kind("first").options());
        world.store.run_once();
    }
}

/// The manifest that was found was in the page cache only, and the other one was written over.
#[test]
fn manifest_that_was_never_synced_is_durable_after_a_start() {
    let (disk, model) = (FaultyDisk::new(1), Model::default());
    let first = around_checkpoint(&disk.restart(Survival::Everything), &model);
    for crash in first {
        let disk = disk.restart(Survival::Everything);
        disk.crash_at(crash);
        let mut model = up_to_checkpoint(&disk, &model).0;
        let disk = disk.restart(Survival::Everything);
        check(&disk, &mut model, Survival::Everything, false);
        let second = around_checkpoint(&disk.restart(Survival::Everything), &model);
        for crash in second {
            let disk = disk.restart(Survival::Everything);
            disk.crash_at(crash);
            let (mut model, _) = up_to_checkpoint(&disk, &model);
            for survival in [Survival::Nothing, Survival::Random] {
                check(&disk.restart(survival), &mut model.clone(), survival, false);
            }
            check(
                &disk.restart(Survival::Nothing),
                &mut model,
                Survival::Nothing,
                false,
            );
        }
    }
}

/// The operations of a run that has one.
fn around_checkpoint(disk: &FaultyDisk, model: &Model) -> std::ops::Range<u64> {
    up_to_checkpoint(disk, model).1
}

/// Lets a broker work until it has written a manifest; says which operations that took.
fn up_to_checkpoint(disk: &FaultyDisk, model: &Model) -> (Model, std::ops::Range<u64>) {
    let is_new = model.appended() == 0;
    let mut world = match World::open(disk, model.clone()) {
        Ok(world) => world,
        Err(failed) => return (failed.0, 0..0),
    };
    if is_new {
        set_up(&mut world);
    }
    while !world.is_over() {
        publish(&mut world, "second", 20);
        world.purge("second");
        let before = disk.operations();
        world.run_once();
        if world.store.work().checkpoints > 0 {
            let range = before + 1..disk.operations() + 1;
            return (world.kill(), range);
        }
    }
    (world.kill(), 0..0)
}

/// Each try left a file behind, so that a full disk became fuller.
#[test]
fn flush_on_a_full_disk_leaves_no_file_behind() {
    let segments = |world: &World| -> usize {
        let queues = Path::new(DIR).join("queues");
        let list = |path: &Path| world.disk.list(path).expect("it can be read");
        list(&queues)
            .iter()
            .map(|dir| list(&queues.join(dir)).len())
            .sum()
    };
    let mut survived = 0;
    for ahead in 1..16 {
        let mut world = new_world(1);
        run(&mut world, 2);
        publish(&mut world, "first", 20);
        world
            .disk
            .fail_at(world.disk.operations() + ahead, ErrorKind::StorageFull);
        for _ in 0..4 {
            world.run_once();
        }
        if !world.is_over() {
            survived += 1;
            assert_eq!(segments(&world), 1, "operation {ahead} failed");
        }
    }
    assert!(survived > 5);
}

/// Nothing of it was left to be written, and only what was written then was forgotten.
#[test]
fn messages_that_come_back_leave_memory_if_they_lie_in_segments() {
    let mut world = new_world(1);
    world.consume("first", false, 0);
    publish(&mut world, "first", 100);
    run(&mut world, 1);
    world.send(100);
    while world.store.work().flushes == 0 {
        // Until the log is too long.
        publish(&mut world, "third", 20);
        world.purge("third");
        run(&mut world, 1);
    }
    world.lose_connection();
    assert_eq!(world.live.queues["first"].ready(), 100);
    run(&mut world, 2);
    let queue = world.session.queue("first").expect("it is there");
    assert!(
        queue.resident_bytes() <= BUDGET.queue,
        "{} bytes",
        queue.resident_bytes()
    );
    check_after_crash(world);
}

/// Everything that is ready comes to whoever asks for it, wherever it lies.
#[test]
fn backlog_is_consumed_to_its_end() {
    for no_ack in [false, true] {
        let mut world = new_world(1);
        for queue in ["first", "os", "fleeting"] {
            backlog(&mut world, queue, 120);
            world.consume(queue, no_ack, 20);
        }
        for _ in 0..200 {
            run(&mut world, 1);
            world.send(1_000);
            settle(&mut world, Outcome::Acknowledge, |_| true);
        }
        for (name, queue) in &world.live.queues {
            assert_eq!(queue.entries.len(), 0, "{name:?} is stuck");
        }
        run(&mut world, 3);
        assert!(world.model.all_confirmed());
        assert!(world.store.reached(Durability::Fsync).0 > 0);
        check_after_crash(world);
    }
}

/// Each queue's last segment was open, until the process had no more files.
#[test]
fn more_queues_than_open_files_keep_their_messages() {
    const QUEUES: u64 = 100;
    let world = new_world(1);
    let names: Vec<String> = (0..QUEUES)
        .map(|number| format!("queue {number}"))
        .collect();
    let options = queue_kind("first").options();
    for name in &names {
        let declared = world.session.declare_queue(name, options.clone());
        let queue = declared.expect("it may").queue;
        assert!(queue.logged);
    }
    for round in 0..3 {
        for (number, name) in (0..).zip(&names) {
            let queue = world.session.queue(name).expect("it is there");
            let ids = (0..10).map(|at| number * 100 + round * 10 + at);
            queue.publish(ids.map(|id| message(id, "", "first", true, 1_000)));
        }
        world.store.run_once();
    }
    for _ in 0..3 {
        world.store.run_once();
    }
    assert!(world.store.work().flushes > 2 * QUEUES);
    let disk = world.disk.clone();
    world.kill();
    let world = open(&disk.restart(Survival::Nothing), Model::default());
    for (number, name) in (0..).zip(&names) {
        let get = || world.session.get(name, true).expect("it can be read").1;
        let found: Vec<u64> = std::iter::from_fn(get)
            .map(|got| id(&got.message))
            .collect();
        let expected: Vec<u64> = (number * 100..number * 100 + 30).collect();
        assert_eq!(found, expected, "in {name:?}");
    }
}

/// At an orderly stop the last checkpoint was made after the queues had been dropped, and was one
/// without them.
#[test]
fn queues_that_went_from_memory_are_not_forgotten() {
    fn without_broker(world: World) -> (FaultyDisk, Arc<Store>, Model) {
        let World {
            disk, store, model, ..
        } = world;
        (disk, store, model)
    }
    let mut world = new_world(1);
    backlog(&mut world, "first", 80);
    backlog(&mut world, "second", 80);
    world.purge("second");
    let checkpoints = world.store.work().checkpoints;
    let (disk, store, mut model) = without_broker(world);
    // There are segments to remove, and on a low disk that is worth a checkpoint.
    store.note_disk_low(true);
    store.run_once();
    assert_eq!(store.work().checkpoints, checkpoints);
    store.close();
    let survival = Survival::Everything;
    check(&disk.restart(survival), &mut model, survival, false);
}
