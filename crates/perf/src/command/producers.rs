//! Who publishes, and how fast.

use std::time::Duration;

use super::given::Given;
use super::{options, topology, values};
use crate::Error;
use crate::settings::{Producers, Rate};

/// More connections than one machine opens.
pub const MOST_CONNECTIONS: u32 = 100_000;

/// The largest number of seconds that is taken for a time: 68 years, PerfTest's limit.
const MOST_SECONDS: i64 = i32::MAX as i64;

/// The highest rate that is taken for one.
const HIGHEST_RATE: f64 = 1e9;

/// Who publishes.
pub fn producers(given: &Given) -> Result<Producers, Error> {
    let flags = flags(given)?;
    let rate = rate(given)?;
    let limited = ["rate", "variable-rate", "publishing-interval"];
    let limited = limited.iter().any(|long| given.has(long)) && given.text("rate") != Some("-1");
    let start_delay = seconds(given, "producer-random-start-delay")?;
    // Else all channels with a rate would publish at the same moments.
    let default_delay = Duration::from_secs(u64::from(limited));
    Ok(Producers {
        count: given
            .number("producers", 0..=MOST_CONNECTIONS)?
            .unwrap_or(1),
        channels: given
            .number("producer-channel-count", 1..=u16::MAX)?
            .unwrap_or(1),
        rate,
        confirm: confirm(given)?,
        confirm_timeout: confirm_timeout(given)?,
        transaction: count(given, "ptxsize")?,
        persistent: topology::persistent(given),
        mandatory: flags.contains(&"mandatory"),
        limit: limit(given, "pmessages")?,
        start_delay: start_delay.unwrap_or(default_delay),
    })
}

fn flags(given: &Given) -> Result<Vec<&str>, Error> {
    let known = ["persistent", "mandatory"];
    // The environment and PerfTest's older versions have them in one value.
    let flags = given
        .values("flag")
        .iter()
        .flat_map(|flags| flags.split(','));
    let flags: Vec<_> = flags.collect();
    match flags.iter().find(|flag| !known.contains(flag)) {
        None => Ok(flags),
        Some(wrong) => {
            let near = known
                .iter()
                .find(|flag| options::distance(flag, wrong) <= 3);
            let hint = near
                .map(|flag| format!("; did you mean {flag}?"))
                .unwrap_or_default();
            let reason = format!("neither persistent nor mandatory{hint}");
            Err(given.wrong("flag", wrong, reason))
        }
    }
}

/// `-vr`, `-P`, `-r`.
fn rate(given: &Given) -> Result<Rate, Error> {
    let steps = steps(given, "variable-rate")?;
    if !steps.is_empty() {
        let steps = steps
            .into_iter()
            .map(|(rate, time)| (f64::from(rate), time));
        return Ok(Rate::Variable(steps.collect()));
    }
    if let Some(every) = given.decimal("publishing-interval")? {
        let wrong = |reason| {
            let text = given.text("publishing-interval").unwrap_or_default();
            given.wrong("publishing-interval", text, reason)
        };
        if every < 0.1 {
            return Err(wrong("at least 0.1 seconds; -r sets higher rates"));
        }
        if every > MOST_SECONDS as f64 {
            return Err(wrong("too long"));
        }
        return Ok(Rate::Every(Duration::from_secs_f64(every)));
    }
    Ok(match rate_limit(given, "rate")? {
        Some(rate) => Rate::Fixed(rate),
        None => Rate::Unlimited,
    })
}

/// A rate in messages per second; as in PerfTest, 0 and less stand for no limit.
pub fn rate_limit(given: &Given, long: &str) -> Result<Option<f64>, Error> {
    match given.decimal(long)? {
        Some(rate) if rate > HIGHEST_RATE => {
            let text = given.text(long).unwrap_or_default();
            Err(given.wrong(long, text, "more than a billion messages a second"))
        }
        rate => Ok(rate.filter(|rate| *rate > 0.0)),
    }
}

/// `-1`, the default, is off; 0 is on without a limit.
fn confirm(given: &Given) -> Result<Option<u32>, Error> {
    let confirm = given.number("confirm", -1..=i64::from(i32::MAX))?;
    Ok(confirm.and_then(|confirm| u32::try_from(confirm).ok()))
}

/// A negative one, in PerfTest, waits for ever.
fn confirm_timeout(given: &Given) -> Result<Duration, Error> {
    let seconds = given
        .number("confirm-timeout", -1..=MOST_SECONDS)?
        .unwrap_or(30);
    match u64::try_from(seconds) {
        Ok(0) => Err(given.wrong("confirm-timeout", "0", "it would fail at once")),
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => Ok(Duration::from_secs(MOST_SECONDS as u64)),
    }
}

/// A number of messages to do something after; 0 is never.
pub fn count(given: &Given, long: &str) -> Result<Option<u32>, Error> {
    let count = given.number(long, 0..=i32::MAX as u32)?;
    Ok(count.filter(|count| *count > 0))
}

/// A number of messages to stop after; 0 is never.
pub fn limit(given: &Given, long: &str) -> Result<Option<u64>, Error> {
    let limit = given.number(long, 0..=i64::MAX as u64)?;
    Ok(limit.filter(|limit| *limit > 0))
}

/// A time in whole seconds; `-1`, as in PerfTest, stands for none given.
pub fn seconds(given: &Given, long: &str) -> Result<Option<Duration>, Error> {
    let seconds = given.number(long, -1..=MOST_SECONDS)?;
    let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
    Ok(seconds.map(Duration::from_secs))
}

/// All values of an option, as `VALUE:SECONDS`.
pub fn steps(given: &Given, long: &str) -> Result<Vec<(u32, Duration)>, Error> {
    let steps = given.values(long).iter().map(|text| {
        let reason = "not VALUE:SECONDS, two whole numbers, the second at least 1";
        values::step(text).ok_or_else(|| given.wrong(long, text, reason))
    });
    steps.collect()
}
