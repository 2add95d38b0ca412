//! Exchange, queues, bindings, and the arguments of queues.

use std::fs;
use std::path::Path;

use client::{FieldTable, FieldValue};

use super::given::Given;
use super::{dates, values};
use crate::Error;
use crate::settings::{Queues, RandomKeys, Topology};

/// More queues than any broker holds.
const MOST_QUEUES: u32 = 1_000_000;

/// What a stream gets unless told otherwise, as in PerfTest.
const STREAM_MAX_LENGTH: i64 = 20_000_000_000;
const STREAM_SEGMENT: i64 = 500_000_000;
/// The largest segment that RabbitMQ allows.
const LARGEST_SEGMENT: i64 = 3_000_000_000;

/// Exchange, queues and bindings.
pub fn topology(given: &Given) -> Result<Topology, Error> {
    let exchange_type = given.short_string("type")?.unwrap_or("direct").to_owned();
    // Both survive a restart by nature, and so do their messages.
    let replicated = given.has("quorum-queue") || given.has("stream-queue");
    Ok(Topology {
        exchange: exchange(given, &exchange_type)?,
        exchange_type,
        predeclared: given.has("predeclared"),
        queues: queues(given)?,
        routing_key: given.short_string("routing-key")?.map(str::to_owned),
        random_routing_key: random_keys(given)?,
        skip_binding: given.has("skip-binding-queues"),
        auto_delete: given.switch("auto-delete")?.unwrap_or(true) && !replicated,
        exclusive: given.has("exclusive"),
        durable: persistent(given),
        arguments: arguments(given)?,
    })
}

/// Whether messages and queues are to survive a restart.
pub fn persistent(given: &Given) -> bool {
    let asked = given.values("flag").iter().any(|flag| flag == "persistent");
    asked || given.has("quorum-queue") || given.has("stream-queue")
}

/// Without `-e`, and with `-e` alone, the exchange is named after its type.
fn exchange(given: &Given, exchange_type: &str) -> Result<String, Error> {
    Ok(match given.short_string("exchange")? {
        None => exchange_type.to_owned(),
        Some("amq.default") => String::new(),
        Some(name) => name.to_owned(),
    })
}

/// `-rkcs` alone asks for random keys, too.
fn random_keys(given: &Given) -> Result<Option<RandomKeys>, Error> {
    let cached = given.number("routing-key-cache-size", 0..=10_000_000usize)?;
    Ok(match cached {
        Some(keys @ 1..) => Some(RandomKeys::Cached(keys)),
        _ if given.has("random-routing-key") => Some(RandomKeys::Fresh),
        _ => None,
    })
}

fn queues(given: &Given) -> Result<Queues, Error> {
    if let Some(names) = pattern(given)? {
        return Ok(Queues::InTurn(names));
    }
    if let Some(file) = given.text("queue-file") {
        return Ok(Queues::InTurn(from_file(given, Path::new(file))?));
    }
    let names = given.text("queue").unwrap_or_default().split(',');
    let names: Vec<_> = names
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    names
        .iter()
        .try_for_each(|name| given.check_short("queue", name))?;
    Ok(match names.is_empty() {
        true => Queues::ServerNamed,
        false => Queues::Shared(names),
    })
}

/// `-qp`, `-qpf`, `-qpt`: all or none.
fn pattern(given: &Given) -> Result<Option<Vec<String>>, Error> {
    let from = given.number("queue-pattern-from", 0..=i32::MAX as u32)?;
    let to = given.number("queue-pattern-to", 0..=i32::MAX as u32)?;
    let (pattern, from, to) = match (given.text("queue-pattern"), from, to) {
        (None, None, None) => return Ok(None),
        (Some(pattern), Some(from), Some(to)) => (pattern, from, to),
        _ => {
            return Err(Error::Usage(
                "-qp/--queue-pattern, -qpf/--queue-pattern-from and -qpt/--queue-pattern-to \
                 belong together: give all three"
                    .into(),
            ));
        }
    };
    if from > to {
        let reason = format!("more than -qpt/--queue-pattern-to {to}");
        return Err(given.wrong("queue-pattern-from", &from.to_string(), reason));
    }
    if to - from >= MOST_QUEUES {
        let reason = format!("more than {MOST_QUEUES} queues from {from} on");
        return Err(given.wrong("queue-pattern-to", &to.to_string(), reason));
    }
    let names = values::names(pattern, from..=to);
    let names = names.map_err(|reason| given.wrong("queue-pattern", pattern, reason))?;
    names
        .iter()
        .try_for_each(|name| given.check_short("queue-pattern", name))?;
    Ok(Some(names))
}

fn from_file(given: &Given, path: &Path) -> Result<Vec<String>, Error> {
    let shown = path.display().to_string();
    let wrong = |reason: &str| given.wrong("queue-file", &shown, reason);
    let text = fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
    let names = text.lines().map(str::trim).filter(|name| !name.is_empty());
    let names: Vec<_> = names.map(str::to_owned).collect();
    names
        .iter()
        .try_for_each(|name| given.check_short("queue-file", name))?;
    match names.is_empty() {
        true => Err(wrong("names no queue")),
        false => Ok(names),
    }
}

/// `-qa`, and what stands for one of them.
fn arguments(given: &Given) -> Result<FieldTable, Error> {
    let texts = given.values("queue-args");
    let wrong = |reason| given.wrong("queue-args", &texts.join(" "), reason);
    let pairs = values::pairs(texts).map_err(wrong)?;
    let pairs = pairs
        .into_iter()
        .map(|(key, value)| (key.into_boxed_str(), value));
    let mut table: FieldTable = pairs.collect();
    queue_type(given, &mut table)?;
    sizes(given, &mut table)?;
    if let Some(text) = given.text("max-age") {
        let seconds = dates::duration(text).filter(|seconds| *seconds > 0);
        let reason = "not a duration of a second or more; PT10M30S is 10 minutes, 30 seconds";
        let seconds = seconds.ok_or_else(|| given.wrong("max-age", text, reason))?;
        table.insert("x-max-age", format!("{seconds}s").as_str());
    }
    let places = [("client-local", "client-local"), ("balanced", "balanced")];
    if let Some(place) = given.choice("leader-locator", &places)? {
        table.insert("x-queue-leader-locator", place);
    }
    Ok(table)
}

fn queue_type(given: &Given, table: &mut FieldTable) -> Result<(), Error> {
    let (long, name) = match (given.has("quorum-queue"), given.has("stream-queue")) {
        (false, false) => return Ok(()),
        (true, _) => ("quorum-queue", "quorum"),
        (false, true) => ("stream-queue", "stream"),
    };
    match table.get("x-queue-type") {
        Some(other) if *other != FieldValue::from(name) => Err(Error::Usage(format!(
            "{} and the x-queue-type of {} exclude each other; drop one of them",
            given.name(long),
            given.name("queue-args")
        ))),
        _ => {
            table.insert("x-queue-type", name);
            Ok(())
        }
    }
}

fn sizes(given: &Given, table: &mut FieldTable) -> Result<(), Error> {
    let stream = given.has("stream-queue");
    let length = size(given, "max-length-bytes")?;
    let segment = size(given, "stream-max-segment-size-bytes")?;
    if let Some(segment) = segment.filter(|segment| *segment > LARGEST_SEGMENT) {
        let reason = format!("a segment holds at most 3gb, {LARGEST_SEGMENT} bytes");
        return Err(given.wrong(
            "stream-max-segment-size-bytes",
            &segment.to_string(),
            reason,
        ));
    }
    let limit = length
        .or(stream.then_some(STREAM_MAX_LENGTH))
        .filter(|limit| *limit > 0);
    if let (Some(limit), Some(segment)) = (limit, segment)
        && limit <= segment
    {
        let length = given.name("max-length-bytes");
        let segment = given.name("stream-max-segment-size-bytes");
        return Err(Error::Usage(format!(
            "{length} must be more than {segment}"
        )));
    }
    let mut set = |name: &str, given: Option<i64>, default: i64| match given {
        // No limit, whatever -qa says.
        Some(0) => {
            let kept = table.iter().filter(|(key, _)| *key != name);
            *table = kept
                .map(|(key, value)| (key.into(), value.clone()))
                .collect();
        }
        Some(bytes) => table.insert(name, bytes),
        None if stream && table.get(name).is_none() => table.insert(name, default),
        None => {}
    };
    set("x-max-length-bytes", length, STREAM_MAX_LENGTH);
    set("x-stream-max-segment-size-bytes", segment, STREAM_SEGMENT);
    Ok(())
}

fn size(given: &Given, long: &str) -> Result<Option<i64>, Error> {
    let Some(text) = given.text(long) else {
        return Ok(None);
    };
    let reason = "not a size; 500mb and 20gb are some";
    let size = values::byte_size(text).ok_or_else(|| given.wrong(long, text, reason))?;
    Ok(Some(size))
}
