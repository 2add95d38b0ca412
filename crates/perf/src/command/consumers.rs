//! Who consumes, how fast, and how deliveries are acknowledged.

use std::time::Duration;

use client::{FieldTable, FieldValue};

use super::given::Given;
use super::producers::{MOST_CONNECTIONS, count, limit, rate_limit, seconds, steps};
use super::{dates, values};
use crate::Error;
use crate::settings::{Acks, Consumers};

/// The prefetch of a stream's consumer, which must have one.
const STREAM_QOS: u16 = 200;

/// How long the only latency there is holds.
const ALWAYS: Duration = Duration::from_secs(i32::MAX as u64);

/// Who consumes.
pub fn consumers(given: &Given) -> Result<Consumers, Error> {
    let qos = given.number("qos", 0..=u16::MAX)?.unwrap_or(0);
    let qos = match qos {
        0 if given.has("stream-queue") => STREAM_QOS,
        qos => qos,
    };
    let requeue = given.switch("requeue")?.unwrap_or(true);
    Ok(Consumers {
        count: given
            .number("consumers", 0..=MOST_CONNECTIONS)?
            .unwrap_or(1),
        channels: given
            .number("consumer-channel-count", 1..=u16::MAX)?
            .unwrap_or(1),
        acks: acks(given)?,
        nack: given.has("nack").then_some(requeue),
        qos,
        global_qos: given.number("global-qos", 0..=u16::MAX)?.unwrap_or(0),
        rate: rate_limit(given, "consumer-rate")?,
        latency: latency(given)?,
        transaction: count(given, "ctxsize")?,
        limit: limit(given, "cmessages")?,
        polling: polling(given)?,
        arguments: arguments(given)?,
        slow_start: given.has("slow-start"),
        start_delay: seconds(given, "consumer-start-delay")?.unwrap_or(Duration::ZERO),
    })
}

fn acks(given: &Given) -> Result<Acks, Error> {
    let every = count(given, "multi-ack-every")?;
    Ok(match (given.has("autoack"), every) {
        (true, _) => Acks::Auto,
        (false, Some(every)) => Acks::Every(every),
        (false, None) => Acks::Each,
    })
}

/// `-vl`, or `-L` as its only entry.
fn latency(given: &Given) -> Result<Vec<(Duration, Duration)>, Error> {
    let steps = steps(given, "variable-latency")?;
    if !steps.is_empty() {
        let micros = |(micros, time)| (Duration::from_micros(u64::from(micros)), time);
        return Ok(steps.into_iter().map(micros).collect());
    }
    let micros = given.number("consumer-latency", 0..=i32::MAX as u32)?;
    let micros = micros.filter(|micros| *micros > 0);
    let micros = micros.map(|micros| (Duration::from_micros(u64::from(micros)), ALWAYS));
    Ok(micros.into_iter().collect())
}

fn polling(given: &Given) -> Result<Option<Duration>, Error> {
    let pause = given
        .number("polling-interval", -1..=i64::from(i32::MAX))?
        .unwrap_or(0);
    let pause = Duration::from_millis(u64::try_from(pause).unwrap_or(0));
    Ok(given.has("polling").then_some(pause))
}

fn arguments(given: &Given) -> Result<FieldTable, Error> {
    let texts = given.values("consumer-args");
    let wrong = |reason| given.wrong("consumer-args", &texts.join(" "), reason);
    let pairs = values::pairs(texts).map_err(wrong)?;
    let pairs = pairs
        .into_iter()
        .map(|(key, value)| (key.into_boxed_str(), value));
    let mut table: FieldTable = pairs.collect();
    if let Some(text) = given.text("stream-consumer-offset") {
        let reason = "none of first, last, next, a number, or a time like 2022-06-03T07:45:54Z";
        let offset = offset(text);
        let offset = offset.ok_or_else(|| given.wrong("stream-consumer-offset", text, reason))?;
        table.insert("x-stream-offset", offset);
    }
    Ok(table)
}

/// A word, an offset, or a moment: three types to the broker.
fn offset(text: &str) -> Option<FieldValue> {
    let lower = text.to_ascii_lowercase();
    if ["first", "last", "next"].contains(&lower.as_str()) {
        return Some(FieldValue::from(lower.as_str()));
    }
    if let Ok(number) = text.parse::<u64>() {
        return i64::try_from(number).ok().map(FieldValue::I64);
    }
    dates::timestamp(text).map(FieldValue::Timestamp)
}
