//! `-h`, `-H`, `--against`: URIs to connection options, and both without their passwords.

use std::time::Duration;

use client::{Mechanism, Options};

use super::given::Given;
use crate::Error;
use crate::settings::Allocation;

/// Where PerfTest, too, looks for a broker.
const DEFAULT_URI: &str = "amqp://localhost";

/// The smallest `frame_max` that AMQP allows.
const FRAME_MIN: u32 = 4096;

/// The brokers to load. `channels` is how many one connection opens.
pub fn brokers(given: &Given, channels: u16) -> Result<Vec<Options>, Error> {
    let read = |long, uri| options(given, long, uri, channels);
    match given.text("uris") {
        Some(uris) => {
            let uris = uris.split(',').map(str::trim).filter(|uri| !uri.is_empty());
            let brokers = uris
                .map(|uri| read("uris", uri))
                .collect::<Result<Vec<_>, _>>()?;
            match brokers.is_empty() {
                true => Err(Error::Usage(format!(
                    "{} names no broker",
                    given.name("uris")
                ))),
                false => Ok(brokers),
            }
        }
        None => {
            let uri = given.text("uri").unwrap_or(DEFAULT_URI);
            Ok(vec![read("uri", uri)?])
        }
    }
}

/// The broker to compare with.
pub fn against(given: &Given, channels: u16) -> Result<Option<Options>, Error> {
    let uri = given.text("against");
    uri.map(|uri| options(given, "against", uri, channels))
        .transpose()
}

fn options(given: &Given, long: &str, uri: &str, channels: u16) -> Result<Options, Error> {
    let parsed = uri.parse::<Options>();
    // The error names no password; the URI might.
    let mut options =
        parsed.map_err(|error| Error::Usage(format!("{}: {error}", given.name(long))))?;
    if let Some(frame_max @ 1..) = given.number("framemax", 0..=i32::MAX as u32)? {
        options.frame_max = match frame_max >= FRAME_MIN {
            true => frame_max,
            false => {
                let reason = format!("frames hold at least {FRAME_MIN} bytes; 0 sets no limit");
                return Err(given.wrong("framemax", &frame_max.to_string(), reason));
            }
        };
    }
    if let Some(heartbeat @ 1..) = given.number("heartbeat", 0..=u16::MAX)? {
        options.heartbeat = heartbeat;
    }
    if given.has("sasl-external") {
        options.mechanism = Mechanism::External;
    }
    // Whether the broker allows as many is for it to say.
    options.channel_max = options.channel_max.max(channels.saturating_add(1));
    Ok(options)
}

/// `-cal`.
pub fn allocation(given: &Given) -> Result<Allocation, Error> {
    let words = [
        ("random", Allocation::Random),
        ("round-robin", Allocation::RoundRobin),
    ];
    Ok(given
        .choice("connection-allocation", &words)?
        .unwrap_or_default())
}

/// `-sst`, `-sul`.
pub fn wait_for_brokers(given: &Given, brokers: usize) -> Result<Option<(Duration, usize)>, Error> {
    let seconds = given.number("servers-startup-timeout", -1..=i64::from(i32::MAX))?;
    let up = match given.text("servers-up-limit") {
        Some("-1") | None => brokers,
        Some(_) => given
            .number("servers-up-limit", 1..=brokers)?
            .unwrap_or(brokers),
    };
    let seconds = seconds
        .and_then(|seconds| u64::try_from(seconds).ok())
        .filter(|s| *s > 0);
    Ok(seconds.map(|seconds| (Duration::from_secs(seconds), up)))
}

/// A URI for people to read: without user and password.
pub fn shown(uri: &str) -> String {
    let Ok(options) = uri.parse::<Options>() else {
        return without_password(uri);
    };
    let vhost = options.vhost.replace('%', "%25").replace('/', "%2F");
    match options.vhost.as_str() {
        "/" => format!("amqp://{}", options.address()),
        _ => format!("amqp://{}/{vhost}", options.address()),
    }
}

/// Arguments as they may be kept: passwords in URIs are replaced by `***`.
pub fn without_passwords(arguments: &[String]) -> Vec<String> {
    arguments
        .iter()
        .map(|argument| without_password(argument))
        .collect()
}

/// Everything between the `:` after `scheme://user` and the last `@` before the next scheme: it may
/// be more than a password, never less.
fn without_password(text: &str) -> String {
    let mut parts = text.split("://");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str("://");
        match part.rsplit_once('@') {
            Some((user, rest)) => match user.split_once(':') {
                Some((user, _)) => shown.push_str(&format!("{user}:***@{rest}")),
                None => shown.push_str(part),
            },
            None => shown.push_str(part),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (argument, expected) in [
            ("amqp://localhost", "amqp://localhost"),
            ("amqp://u:p@h:1/v", "amqp://u:***@h:1/v"),
            ("--uri=amqp://u:p@ss/w@h", "--uri=amqp://u:***@h"),
            ("amqp://a:b@c,amqp://d:e@f", "amqp://a:***@c,amqp://d:***@f"),
            ("amqp://u@h", "amqp://u@h"),
            ("amqp://:p@h", "amqp://:***@h"),
            ("user:x@y", "user:x@y"),
        ] {
            assert_eq!(without_passwords(&[argument.to_owned()]), [expected]);
        }
        assert_eq!(shown("amqp://u:secret@h/v%2Fw"), "amqp://h:5672/v%2Fw");
        assert_eq!(shown("amqp://u:secret@h:99"), "amqp://h:99");
        assert_eq!(shown("amqps://u:secret@h"), "amqps://u:***@h");
    }
}
