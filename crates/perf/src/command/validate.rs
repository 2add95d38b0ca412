//! Options that contradict each other, and options that change nothing beside others. The first
//! are errors; PerfTest tolerates the second, and so do we, with a warning.

use super::given::Given;
use super::keep::Keep;
use super::options;
use crate::Error;
use crate::load::names_producer;
use crate::settings::{Acks, Body, ExitWhen, Queues, Rate, Settings, Verbose};

/// Options of which only one may be given, and why.
const EXCLUSIVE: &[(&str, &str, &str)] = &[
    ("uri", "uris", "the one is a list of the other"),
    ("queue", "queue-pattern", "both name the queues"),
    ("queue", "queue-file", "both name the queues"),
    ("queue-pattern", "queue-file", "both name the queues"),
    ("rate", "variable-rate", "both set the rate"),
    ("rate", "publishing-interval", "both set the rate"),
    ("variable-rate", "publishing-interval", "both set the rate"),
    ("size", "variable-size", "both set the size"),
    ("body", "json-body", "both say what bodies are"),
    (
        "consumer-latency",
        "variable-latency",
        "both set the latency",
    ),
    ("quorum-queue", "stream-queue", "a queue has one type"),
    ("stream-queue", "polling", "streams know no basic.get"),
    ("quiet", "verbose", "nothing cannot be printed in detail"),
    (
        "quiet",
        "verbose-full",
        "nothing cannot be printed in detail",
    ),
    ("against", "uris", "a comparison is of two brokers"),
];

/// Checks what was given, and what became of it.
///
/// # Errors
/// Names two options that contradict each other.
pub fn contradictions(given: &Given, settings: &Settings, keep: &Keep) -> Result<(), Error> {
    for (one, other, why) in EXCLUSIVE {
        if given.has(one) && given.has(other) {
            return Err(exclude(given, one, other, why));
        }
    }
    let csv = (given.text("output-file"), given.text("csv"));
    if let (Some(one), Some(other)) = csv
        && one != other
    {
        return Err(exclude(
            given,
            "output-file",
            "csv",
            "they are the same option",
        ));
    }
    agents(given, settings)?;
    acknowledgements(given, settings)?;
    if settings.verify {
        verify(given, settings)?;
    }
    if given.has("rounds") && keep.against.is_none() {
        return Err(Error::Usage("--rounds goes with --against".into()));
    }
    if keep.against.is_some() && !ends(settings) {
        return Err(Error::Usage(
            "--against needs runs that end: add -z/--time, -C/--pmessages or -D/--cmessages".into(),
        ));
    }
    Ok(())
}

fn exclude(given: &Given, one: &str, other: &str, why: &str) -> Error {
    let (one, other) = (given.name(one), given.name(other));
    Error::Usage(format!(
        "{one} and {other} exclude each other ({why}): drop one of them"
    ))
}

/// Channels of each side, at most: each takes some memory, and so does the broker's end.
const MAX_CHANNELS: u64 = 1_000_000;

fn agents(given: &Given, settings: &Settings) -> Result<(), Error> {
    let (producers, consumers) = (&settings.producers, &settings.consumers);
    if producers.count == 0 && consumers.count == 0 {
        return Err(Error::Usage(
            "-x/--producers 0 and -y/--consumers 0 leave nothing to do: give one of them".into(),
        ));
    }
    for (side, count, channels) in [
        ("-x times -X", producers.count, producers.channels),
        ("-y times -Y", consumers.count, consumers.channels),
    ] {
        let all = u64::from(count) * u64::from(channels);
        if all > MAX_CHANNELS {
            return Err(Error::Usage(format!(
                "{side} is {all} channels; {MAX_CHANNELS} are the most that one process takes"
            )));
        }
    }
    let named = settings.topology.queues != Queues::ServerNamed;
    if settings.topology.predeclared && consumers.count > 0 && !named {
        return Err(Error::Usage(
            "-p/--predeclared leaves consumers without queues: name them with -u, -qp or -qf, or \
             give -y 0"
                .into(),
        ));
    }
    if producers.transaction.is_some() && producers.confirm.is_some() {
        let why = "a channel has transactions or confirms";
        return Err(exclude(given, "ptxsize", "confirm", why));
    }
    if settings.topology.exclusive && consumers.count == 0 {
        return Err(Error::Usage(
            "-E/--exclusive and -y/--consumers 0 exclude each other (exclusive queues are those of \
             consumers): drop one of them"
                .into(),
        ));
    }
    Ok(())
}

/// A consumer that waits for more messages than it may hold waits for ever.
fn acknowledgements(given: &Given, settings: &Settings) -> Result<(), Error> {
    let consumers = &settings.consumers;
    let every = match given.number("multi-ack-every", 0..=i32::MAX as u32)? {
        Some(every @ 1..) => every,
        _ => return Ok(()),
    };
    let automatic = consumers.acks == Acks::Auto;
    let limits = [("qos", consumers.qos), ("global-qos", consumers.global_qos)];
    for (long, limit) in limits.into_iter().filter(|(_, limit)| *limit > 0) {
        if every > u32::from(limit) && !(automatic && long == "global-qos") {
            return Err(Error::Usage(format!(
                "{} {every} is more than {} {limit}: so many messages are never outstanding; \
                 lower the one or raise the other",
                given.name("multi-ack-every"),
                given.name(long)
            )));
        }
    }
    Ok(())
}

fn verify(given: &Given, settings: &Settings) -> Result<(), Error> {
    let none = |long| {
        let name = given.name(long);
        Error::Usage(format!(
            "--verify compares what was sent with what came: {name} 0 leaves out one of them"
        ))
    };
    if settings.producers.count == 0 {
        return Err(none("producers"));
    }
    if settings.consumers.count == 0 {
        return Err(none("consumers"));
    }
    let publishing = settings.producers.count * u32::from(settings.producers.channels);
    if publishing > 1 && !names_producer(&settings.payload.body) {
        return Err(Error::Usage(format!(
            "--verify with {publishing} producers needs bodies that name theirs: give -s 16 or more"
        )));
    }
    if settings.consumers.nack == Some(true) {
        return Err(Error::Usage(format!(
            "--verify and {} exclude each other (rejected messages come again and again): add \
             -re false, or drop one of them",
            given.name("nack")
        )));
    }
    if settings.consumers.limit.is_some() {
        let why = "--verify waits for all that was sent";
        return Err(exclude(given, "verify", "cmessages", why));
    }
    Ok(())
}

fn ends(settings: &Settings) -> bool {
    let limits = &settings.limits;
    limits.time.is_some()
        || limits.exit_when != ExitWhen::Never
        || settings.producers.limit.is_some()
        || settings.consumers.limit.is_some()
}

/// What changes nothing, and what will surprise: a line each.
pub fn warnings(given: &Given, settings: &Settings, keep: &Keep) -> Vec<String> {
    let mut warnings = Vec::new();
    useless(given, settings, keep, &mut warnings);
    surprising(given, settings, &mut warnings);
    warnings
}

fn useless(given: &Given, settings: &Settings, keep: &Keep, warnings: &mut Vec<String>) {
    let (producers, consumers) = (&settings.producers, &settings.consumers);
    let (automatic, body) = (consumers.acks == Acks::Auto, &settings.payload.body);
    let sized = matches!(body, Body::Sized(_) | Body::Varying(_));
    let json = matches!(body, Body::Json { .. });
    let scrapeless = keep.prometheus.is_none();
    let no_end_of_consumers = consumers.count == 0;
    for (long, useless, why) in [
        (
            "multi-ack-every",
            automatic,
            "with -a nothing is acknowledged",
        ),
        (
            "ctxsize",
            automatic,
            "with -a nothing is acknowledged, in a transaction or not",
        ),
        ("nack", automatic, "with -a nothing is rejected"),
        ("requeue", consumers.nack.is_none(), "it goes with -na"),
        (
            "polling-interval",
            consumers.polling.is_none(),
            "it goes with -po",
        ),
        (
            "confirm-timeout",
            producers.confirm.is_none(),
            "it goes with -c",
        ),
        (
            "size",
            matches!(body, Body::Files(_)),
            "files have their own size",
        ),
        (
            "variable-size",
            !sized,
            "it does not apply to bodies of -B and -jb",
        ),
        ("body-field-count", !json, "it goes with -jb"),
        ("body-count", !json, "it goes with -jb"),
        ("pmessages", producers.count == 0, "no producer runs"),
        ("cmessages", no_end_of_consumers, "no consumer runs"),
        ("exit-when", no_end_of_consumers, "no consumer runs"),
        (
            "servers-up-limit",
            settings.wait_for_brokers.is_none(),
            "it goes with -sst",
        ),
        ("metrics-prometheus-port", scrapeless, "it goes with -mpr"),
        (
            "metrics-prometheus-endpoint",
            scrapeless,
            "it goes with -mpr",
        ),
        ("metrics-prefix", scrapeless, "it goes with -mpr"),
        ("metrics-tags", scrapeless, "it goes with -mpr"),
        ("exposed-metrics", scrapeless, "it goes with -mpr"),
        (
            "verbose",
            given.has("verbose-full"),
            "--verbose-full prints all of it",
        ),
        ("plain", settings.output.quiet, "--quiet prints nothing"),
    ] {
        debug_assert!(options::by_long(long).is_some(), "no option --{long}");
        if useless && given.has(long) {
            warnings.push(format!("{} changes nothing: {why}", given.name(long)));
        }
    }
}

fn surprising(given: &Given, settings: &Settings, warnings: &mut Vec<String>) {
    let (topology, consumers) = (&settings.topology, &settings.consumers);
    if given.decimal("rate").ok().flatten() == Some(0.0) {
        let name = given.name("rate");
        warnings.push(format!(
            "{name} 0 sets no limit, as in PerfTest; -x 0 publishes nothing"
        ));
    }
    let named = topology.queues != Queues::ServerNamed || topology.routing_key.is_some();
    let to_queues = named && topology.random_routing_key.is_none();
    if topology.exchange.is_empty() && !to_queues && settings.producers.count > 0 {
        warnings.push(
            "the default exchange routes by the queue's name, and messages get a random key: none \
             reaches a queue unless -k names it"
                .into(),
        );
    }
    if let Some(transaction) = consumers.transaction
        && consumers.acks != Acks::Auto
        && consumers.qos > 0
        && transaction > u32::from(consumers.qos)
    {
        warnings.push(format!(
            "-n/--ctxsize {transaction} is more than -q/--qos {}: consumers may wait for a commit \
             that waits for them",
            consumers.qos
        ));
    }
    if settings.output.verbose != Verbose::Off && settings.producers.rate == Rate::Unlimited {
        warnings.push("printing each message slows the load; -r limits its rate".into());
    }
}
