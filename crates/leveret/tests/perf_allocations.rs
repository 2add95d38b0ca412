//! The load tester allocates nothing for a message once it runs: its allocations in a second are
//! those of the lines, intervals and timers, and do not grow with the rate.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::OsString;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use support::*;

/// Counts this process' allocations.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: all calls go to the system's allocator unchanged; counting touches an atomic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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

/// Allocations that a message may cost: those of an interval, shared by its messages.
const BAR: f64 = 0.01;

/// Allocations for each message received, in the middle of a load.
fn allocations_per_message(options: &[&str]) -> f64 {
    let broker = builder().start().expect("the broker starts");
    let folder = tempfile::tempdir().expect("a folder");
    let result = folder.path().join("result.json");
    let mut arguments: Vec<OsString> = ["-h", broker.uri(), "-s", "16", "-z", "4", "--quiet"]
        .iter()
        .chain(options)
        .map(OsString::from)
        .collect();
    arguments.extend(["--json".into(), result.clone().into_os_string()]);
    let load = thread::spawn(move || perf::run(arguments));
    // Buffers and queues have grown by then.
    thread::sleep(seconds(2));
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    thread::sleep(seconds(1));
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    let status = load.join().expect("the load does not panic");
    assert_eq!(
        format!("{status:?}"),
        format!("{:?}", std::process::ExitCode::SUCCESS)
    );
    let text = fs::read_to_string(result).expect("a result");
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let rate = document["runs"][0]["totals"]["received_rate"].as_f64();
    allocations as f64 / rate.expect("a rate")
}

#[test]
fn messages_cost_no_allocations() {
    // One after the other: the count is the process'.
    for options in [
        &["-a"][..],
        &["-c", "500", "-q", "500"],
        &["-X", "20", "-Y", "20"],
    ] {
        let cost = allocations_per_message(options);
        assert!(cost < BAR, "{options:?}: {cost} allocations a message");
    }
}
