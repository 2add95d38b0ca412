//! What clients do, at random.

use broker::Outcome;

use testkit::Random;

use crate::actions::{New, Uncommitted};
use crate::topology::{Binding, Target};
use crate::universe::{EXCHANGES, KEYS, Name, QUEUES, exchange_sort, queue_kind};
use crate::world::World;

/// What clients tend to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    /// Everything.
    Mixed,
    /// Publish, and acknowledge all but a few messages, which stay out for long.
    Stragglers,
}

impl Habit {
    /// That of a run with that seed.
    pub fn of(seed: u64) -> Habit {
        match seed % 3 {
            2 => Habit::Stragglers,
            _ => Habit::Mixed,
        }
    }
}

/// One step of a client, or of the store's threads.
pub fn step(world: &mut World, random: &mut Random, habit: Habit) {
    let drawn = random.below(100);
    world.trace(drawn);
    match habit {
        // As the server does when the disk alarm rings.
        _ if drawn < 31 && world.store.disk_full() => {}
        Habit::Mixed => do_anything(world, random, drawn),
        Habit::Stragglers => leave_stragglers(world, random, drawn),
    }
    if !world.is_over() {
        world.collect();
        world.check_counts();
    }
}

fn do_anything(world: &mut World, random: &mut Random, drawn: usize) {
    match drawn {
        0..25 => publish(world, random),
        25..31 => transact(world, random),
        31..43 => settle(world, random),
        43..49 => {
            let name = any_queue(random);
            world.get(name, random.one_in(2));
        }
        49..53 => consume(world, random),
        53..55 => cancel(world, random),
        55 => world.lose_connection(),
        56..64 => world.send(1 + random.below(30)),
        64 if random.one_in(2) => world.purge(any_queue(random)),
        65 if random.one_in(2) => world.delete_queue(any_queue(random)),
        64..70 => world.declare_queue(any_queue(random)),
        70..73 => world.declare_exchange(random.pick(&EXCHANGES.each_ref()).name),
        73 => world.delete_exchange(random.pick(&EXCHANGES.each_ref()).name),
        74..79 => bind(world, random),
        79 => unbind(world, random),
        _ => world.run_once(),
    }
}

fn leave_stragglers(world: &mut World, random: &mut Random, drawn: usize) {
    match drawn {
        0..43 => publish(world, random),
        43..46 => transact(world, random),
        46..54 => {
            let name = random.pick(&["first", "second", "fleeting"]);
            for _ in 0..60 {
                world.get(name, false);
            }
        }
        54..66 => {
            for _ in 0..world.held.len() * 9 / 10 {
                let from = random.below(world.held.len());
                let chosen = world.choose(from, 1);
                world.settle(&chosen, Outcome::Acknowledge);
            }
        }
        _ => world.run_once(),
    }
}

/// Everything that a client may publish to is there.
pub fn set_up(world: &mut World) {
    QUEUES
        .iter()
        .for_each(|kind| world.declare_queue(kind.name));
    EXCHANGES
        .iter()
        .for_each(|sort| world.declare_exchange(sort.name));
    for name in ["first", "second", "os", "fleeting"] {
        world.bind(Binding {
            source: "fan",
            key: "",
            target: Target::Queue(name),
        });
    }
}

fn any_queue(random: &mut Random) -> Name {
    random.pick(&QUEUES.each_ref()).name
}

fn size(random: &mut Random) -> usize {
    match random.below(40) {
        0 => 100 * 1024 + random.below(60_000),
        1..5 => 4 * 1024 + random.below(9_000),
        5..12 => 900 + random.below(2_000),
        _ => random.below(400),
    }
}

/// An exchange and a key that lead somewhere, perhaps.
fn target(world: &World, random: &mut Random) -> (Name, Name) {
    let exchanges: Vec<Name> = world.live.topology.exchanges.iter().copied().collect();
    if exchanges.is_empty() || random.below(3) > 0 {
        let queues = [
            "first", "first", "second", "third", "os", "leaving", "fleeting",
        ];
        return ("", random.pick(&queues));
    }
    (random.pick(&exchanges), random.pick(&KEYS))
}

/// New messages, so few that they are one run.
fn messages(world: &mut World, random: &mut Random, to: (Name, Name)) -> Vec<New> {
    let mut messages = Vec::new();
    let mut bytes = 0;
    for _ in 0..=random.below(8) {
        let size = size(random);
        bytes += size;
        if bytes > 48 * 1024 && !messages.is_empty() {
            break;
        }
        let persistent = random.below(4) > 0;
        messages.push(world.new_message(to, persistent, size));
    }
    messages
}

fn publish(world: &mut World, random: &mut Random) {
    let to = target(world, random);
    let messages = messages(world, random, to);
    world.publish(to, messages);
}

fn transact(world: &mut World, random: &mut Random) {
    let mut uncommitted = Uncommitted::default();
    for _ in 0..random.below(4) {
        let to = target(world, random);
        for message in messages(world, random, to) {
            world.publish_in(&mut uncommitted, to, message);
        }
    }
    if random.one_in(6) {
        // Never committed.
        return;
    }
    for _ in 0..random.below(12) {
        if world.held.is_empty() {
            break;
        }
        let held = world.held.swap_remove(random.below(world.held.len()));
        let outcome = random.pick(&[Outcome::Acknowledge, Outcome::Discard, Outcome::Requeue]);
        world.settle_in(&mut uncommitted, held, outcome);
    }
    world.commit(uncommitted);
}

fn settle(world: &mut World, random: &mut Random) {
    if world.held.is_empty() {
        return;
    }
    let from = random.below(world.held.len());
    let chosen = world.choose(from, random.pick(&[1, 1, 3, 30]));
    let outcome = random.pick(&[
        Outcome::Acknowledge,
        Outcome::Acknowledge,
        Outcome::Acknowledge,
        Outcome::Discard,
        Outcome::Requeue,
    ]);
    world.settle(&chosen, outcome);
}

fn consume(world: &mut World, random: &mut Random) {
    let name = any_queue(random);
    if world.live.queues.contains_key(name) && world.consumers.len() < 6 {
        let no_ack = random.one_in(4);
        world.consume(name, no_ack, random.pick(&[0, 1, 5, 20]));
    }
}

fn cancel(world: &mut World, random: &mut Random) {
    let handles: Vec<u32> = world.consumers.keys().copied().collect();
    if !handles.is_empty() {
        world.cancel(random.pick(&handles));
    }
}

fn bind(world: &mut World, random: &mut Random) {
    let source = random.pick(&EXCHANGES.each_ref()).name;
    let key = random.pick(&KEYS);
    let target = match random.below(6) {
        0 => Target::Exchange(random.pick(&EXCHANGES.each_ref()).name),
        _ => Target::Queue(any_queue(random)),
    };
    let topology = &world.live.topology;
    let (there, lasting) = match target {
        Target::Queue(name) => {
            let there = world.live.queues.contains_key(name);
            (there, !queue_kind(name).auto_delete)
        }
        Target::Exchange(name) => (topology.exchanges.contains(name), false),
    };
    // What becomes of an exchange that loses its last binding by a restart is another matter.
    let clear = lasting || !exchange_sort(source).auto_delete;
    if there && clear && topology.exchanges.contains(source) {
        world.bind(Binding {
            source,
            key,
            target,
        });
    }
}

fn unbind(world: &mut World, random: &mut Random) {
    let bindings: Vec<Binding> = world.live.topology.bindings.iter().copied().collect();
    if !bindings.is_empty() {
        world.unbind(random.pick(&bindings));
    }
}
