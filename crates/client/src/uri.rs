//! `amqp://` URIs to [`Options`], after RabbitMQ's URI specification and its query parameters.

use std::str::FromStr;
use std::time::Duration;

use amqp::Version;

use crate::{Error, Mechanism, Options};

impl FromStr for Options {
    type Err = Error;

    /// Parses `amqp://user:password@host:port/vhost?key=value&…`. Everything but the scheme may be
    /// left out. Without a path the virtual host is `/`; a path of just `/` names the empty one.
    fn from_str(uri: &str) -> Result<Self, Error> {
        parse(uri).map_err(|reason| Error::InvalidUri { reason })
    }
}

fn parse(uri: &str) -> Result<Options, String> {
    let mut options = Options::default();
    let rest = match uri.split_once("://") {
        Some(("amqp", rest)) => rest,
        Some(("amqps", _)) => return Err("TLS (amqps) is not supported yet".into()),
        _ => return Err("it does not begin with amqp://".into()),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, vhost) = match rest.split_once('/') {
        Some((authority, vhost)) => (authority, Some(vhost)),
        None => (rest, None),
    };
    if let Some(vhost) = vhost {
        if vhost.contains('/') {
            return Err("a '/' inside the virtual host must be written %2F".into());
        }
        options.vhost = decode("virtual host", vhost)?;
    }
    let host = match authority.rsplit_once('@') {
        Some((user_info, host)) => {
            parse_user(&mut options, user_info)?;
            host
        }
        None => authority,
    };
    parse_host(&mut options, host)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        parse_parameter(&mut options, key, &decode(key, value)?)?;
    }
    Ok(options)
}

fn parse_user(options: &mut Options, user_info: &str) -> Result<(), String> {
    let (user, password) = match user_info.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (user_info, None),
    };
    options.user = decode("user", user)?;
    if let Some(password) = password {
        options.password = decode("password", password)?;
    }
    Ok(())
}

fn parse_host(options: &mut Options, host: &str) -> Result<(), String> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest
                .split_once(']')
                .ok_or("']' missing after the IPv6 address")?;
            let port = match port {
                "" => None,
                _ => Some(
                    port.strip_prefix(':')
                        .ok_or("':' expected after the IPv6 address")?,
                ),
            };
            (name, port)
        }
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    if !name.is_empty() {
        options.host = decode("host", name)?;
    }
    if let Some(port) = port {
        options.port = number("port", port)?;
    }
    Ok(())
}

fn parse_parameter(options: &mut Options, key: &str, value: &str) -> Result<(), String> {
    match key {
        "heartbeat" => options.heartbeat = number(key, value)?,
        "frame_max" => options.frame_max = number(key, value)?,
        "channel_max" => options.channel_max = number(key, value)?,
        "connection_timeout" => {
            options.connect_timeout = Duration::from_millis(number(key, value)?);
        }
        "auth_mechanism" => {
            options.mechanism = match value.to_ascii_lowercase().as_str() {
                "plain" => Mechanism::Plain,
                "amqplain" => Mechanism::AmqPlain,
                "external" => Mechanism::External,
                "anonymous" => Mechanism::Anonymous,
                _ => return Err(format!("auth_mechanism '{value}' is unknown")),
            }
        }
        "version" => {
            options.version = match value {
                "0-8" => Version::V0_8,
                "0-9" => Version::V0_9,
                "0-9-1" => Version::V0_9_1,
                _ => return Err(format!("version '{value}' is none of 0-8, 0-9, 0-9-1")),
            }
        }
        _ => {
            return Err(format!(
                "unknown parameter '{key}'; known are heartbeat, frame_max, channel_max, \
                 connection_timeout (ms), auth_mechanism, version"
            ));
        }
    }
    Ok(())
}

fn number<T: FromStr>(what: &str, text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("{what} '{text}' is not a number in range"))
}

/// Undoes percent-encoding.
fn decode(what: &str, text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = rest
            .get(..2)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        let byte = digits
            .filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|pair| u8::from_str_radix(pair, 16).ok())
            .ok_or_else(|| format!("'%' in the {what} is not followed by two hex digits"))?;
        bytes.push(byte);
        rest = &rest[2..];
    }
    String::from_utf8(bytes).map_err(|_| format!("the {what} is not UTF-8 once decoded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(uri: &str) -> Options {
        uri.parse().expect("a valid URI")
    }

    fn reason(uri: &str) -> String {
        uri.parse::<Options>()
            .expect_err("an invalid URI")
            .to_string()
    }

    #[test]
    fn bare_scheme_gives_the_defaults() {
        assert_eq!(options("amqp://"), Options::default());
    }

    #[test]
    fn every_part_is_read_and_decoded() {
        let parsed = options(
            "amqp://us%65r:p%40ss%2Fw%3A@broker.example:10000/v%2Fhost?heartbeat=5&frame_max=8192\
             &channel_max=9&connection_timeout=250&auth_mechanism=amqplain&version=0-8",
        );
        let expected = Options {
            host: "broker.example".into(),
            port: 10000,
            user: "user".into(),
            password: "p@ss/w:".into(),
            vhost: "v/host".into(),
            mechanism: Mechanism::AmqPlain,
            version: Version::V0_8,
            heartbeat: 5,
            frame_max: 8192,
            channel_max: 9,
            connect_timeout: Duration::from_millis(250),
            ..Options::default()
        };
        assert_eq!(parsed, expected);
    }

    #[test]
    fn vhost_is_slash_without_path_and_empty_after_a_bare_slash() {
        assert_eq!(options("amqp://host").vhost, "/");
        assert_eq!(options("amqp://host?heartbeat=1").vhost, "/");
        assert_eq!(options("amqp://host/%2f").vhost, "/");
        assert_eq!(options("amqp://host/").vhost, "");
    }

    #[test]
    fn ipv6_addresses_stand_in_brackets() {
        assert_eq!(options("amqp://[::1]").address(), "[::1]:5672");
        assert_eq!(options("amqp://[::1]:99").address(), "[::1]:99");
        assert!(reason("amqp://[::1").contains("']' missing"));
    }

    #[test]
    fn mistakes_are_named_without_the_password() {
        assert!(reason("http://host").contains("amqp://"));
        assert!(reason("amqps://host").contains("TLS"));
        assert!(reason("amqp://host:70000").contains("port '70000'"));
        assert!(reason("amqp://host/a/b").contains("%2F"));
        assert!(reason("amqp://host?hartbeat=1").contains("'hartbeat'"));
        let broken = reason("amqp://u:secret%zz@host");
        assert!(broken.contains("password") && !broken.contains("secret"));
        assert!(reason("amqp://h%+1").contains("two hex digits"));
    }
}
