//! `leveret perf` as people run it: the real program against a real broker, and against one that
//! follows a script where a broker would not do the odd thing.
//!
//! What it did is looked at from outside: what is in the queues, what went over the wire (`wire`),
//! its exit status, what it printed, and the result that it wrote.

#[path = "../support/mod.rs"]
mod support;

mod alarm;
mod checks;
mod comparison;
mod consumers;
mod failures;
mod load;
mod omission;
mod output;
mod payload;
mod producers;
mod queues;
mod scale;
mod scripted;
mod topology;
mod wire;
