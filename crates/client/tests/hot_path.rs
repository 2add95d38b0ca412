//! Sending and receiving allocate nothing in steady state. Prints the CPU time per message too:
//! `cargo test --release -p client --test hot_path -- --nocapture`.

mod peer;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use client::{Connection, Event, Options, Properties, PublishFlags};
use rustix::time::{ClockId, clock_gettime};

/// Counts the calling thread's allocations.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls go to the system's allocator unchanged; counting touches a thread-local cell
// without destructor, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's duties are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's duties are the same.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Messages before counting begins, and counted.
const WARM_UP: u64 = 250_000;
const COUNTED: u64 = if cfg!(debug_assertions) {
    250_000
} else {
    1_000_000
};

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Counts allocations and CPU time of `COUNTED` messages, after `WARM_UP`.
struct Meter {
    messages: u64,
    allocations: u64,
    cpu: Duration,
}

impl Meter {
    async fn start() -> Self {
        // The runtime allocates its list of yielded tasks at the first yield: have it over with.
        tokio::task::yield_now().await;
        Meter {
            messages: 0,
            allocations: 0,
            cpu: Duration::ZERO,
        }
    }

    /// True once all has been counted.
    fn add(&mut self, messages: u64) -> bool {
        let before = self.messages;
        self.messages += messages;
        if before < WARM_UP && self.messages >= WARM_UP {
            self.allocations = ALLOCATIONS.with(Cell::get);
            self.cpu = thread_cpu();
        }
        self.messages >= WARM_UP + COUNTED
    }

    fn finish(self, what: &str) {
        let cpu = thread_cpu() - self.cpu;
        let allocations = ALLOCATIONS.with(Cell::get) - self.allocations;
        let each = cpu.as_secs_f64() * 1e9 / COUNTED as f64;
        eprintln!("{what}: {each:.0} ns and {allocations} allocations for {COUNTED} messages");
        assert_eq!(allocations, 0, "{what}");
    }
}

#[tokio::test]
async fn publishing_allocates_nothing() {
    let (options, _broker) = peer::start_open(peer::Peer::read_forever);
    let mut connection = Connection::connect(&options)
        .await
        .expect("an open connection");
    let mut meter = Meter::start().await;
    loop {
        let mut sent = 0;
        while connection.pending() < 64 << 10 {
            let none = Properties::default();
            connection
                .publish(1, "", "queue", PublishFlags::NONE, none, &[0; 16])
                .expect("short");
            sent += 1;
        }
        connection.flush().await.expect("a listening broker");
        if meter.add(sent) {
            return meter.finish("publishing 16 bytes");
        }
    }
}

async fn receive(options: &Options, what: &str) {
    let mut connection = Connection::connect(options)
        .await
        .expect("an open connection");
    let mut meter = Meter::start().await;
    loop {
        connection.ready().await.expect("a sending broker");
        let mut received = 0;
        while let Some(event) = connection.try_next().expect("well-formed frames") {
            assert!(matches!(event, Event::Delivery(delivery) if delivery.delivery_tag == 7));
            received += 1;
        }
        if meter.add(received) {
            return meter.finish(what);
        }
    }
}

#[tokio::test]
async fn receiving_allocates_nothing() {
    let (options, _broker) = peer::start_open(|peer| {
        peer.write_forever(&peer::delivery(1, 7, &[0; 16]).concat().repeat(2000));
    });
    receive(&options, "receiving 16 bytes").await;
}

#[tokio::test]
async fn assembling_allocates_nothing() {
    // Two channels' contents interleaved, so that none lies in one piece.
    let (options, _broker) = peer::start_open(|peer| {
        let (one, two) = (
            peer::delivery(1, 7, &[0; 16]),
            peer::delivery(2, 7, &[0; 16]),
        );
        let mixed: Vec<u8> = one
            .into_iter()
            .zip(two)
            .flat_map(|(a, b)| [a, b].concat())
            .collect();
        peer.write_forever(&mixed.repeat(1000));
    });
    receive(&options, "receiving 16 bytes in pieces").await;
}
