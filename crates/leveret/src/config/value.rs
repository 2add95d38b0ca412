//! Values as they are written: numbers, sizes, shares, addresses. Each function gives `None` for
//! what is not allowed.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

use store::Durability;

use super::{LogFormat, LogLevel};

/// A whole number in decimal digits.
pub(super) fn whole<T: TryFrom<u64>>(text: &str, allowed: RangeInclusive<u64>) -> Option<T> {
    let number = digits(text)?;
    if allowed.contains(&number) {
        number.try_into().ok()
    } else {
        None
    }
}

/// `true` or `false`.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Text that is not empty.
pub(super) fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Text that is neither empty nor a value encrypted for RabbitMQ, which would otherwise become a
/// password that nobody knows.
pub(super) fn password(text: &str) -> Option<String> {
    filled(text).filter(|text| !text.starts_with("encrypted:"))
}

/// A number from 0 to `most`, like `0.4`.
pub(super) fn share(text: &str, most: f64) -> Option<f64> {
    let plain = text
        .chars()
        .all(|character| character.is_ascii_digit() || character == '.');
    let number: f64 = text.parse().ok()?;
    (plain && number <= most).then_some(number)
}

/// A size in bytes as RabbitMQ's `bytesize` type reads it: `KB`, `MB` and `GB` are powers of 1024.
pub(super) fn byte_size(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let factor = match unit {
        "" => 1,
        "KB" | "kb" => 1 << 10,
        "MB" | "mb" => 1 << 20,
        "GB" | "gb" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// A size in bytes as RabbitMQ reads its limits since 3.13: `MB` is a power of 1000, `MiB` of 1024.
pub(super) fn information_unit(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let unit = unit.to_ascii_lowercase();
    let prefix = unit.strip_suffix('b').unwrap_or(&unit);
    if prefix.is_empty() && !unit.is_empty() {
        return None;
    }
    let (base, prefix) = match prefix.strip_suffix('i') {
        Some(prefix) => (1024_u64, prefix),
        None => (1000, prefix),
    };
    let power = match prefix {
        "" if base == 1000 => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    number.checked_mul(base.pow(power))
}

/// `PORT` for all interfaces, or `ADDRESS:PORT`; an IPv6 address may stand in brackets.
pub(super) fn listener(text: &str) -> Option<SocketAddr> {
    match text.rsplit_once(':') {
        None => Some(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port(text)?)),
        Some((address, number)) => {
            let bracketed = address
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            let address: IpAddr = match bracketed {
                Some(inner) => inner.parse::<Ipv6Addr>().ok()?.into(),
                None => address.parse().ok()?,
            };
            Some(SocketAddr::new(address, port(number)?))
        }
    }
}

/// A TCP port; 0 lets the operating system choose.
pub(super) fn port(text: &str) -> Option<u16> {
    whole(text, 0..=65535)
}

/// A node name, with or without its host.
pub(super) fn node_name(text: &str) -> Option<String> {
    let (name, host) = text.split_once('@').unwrap_or((text, "localhost"));
    let fits = |part: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        !part.is_empty() && part.chars().all(fits)
    };
    (fits(name) && fits(host)).then(|| text.to_owned())
}

/// One of RabbitMQ's log levels, folded into those that Leveret has.
pub(super) fn log_level(text: &str) -> Option<LogLevel> {
    match text {
        "debug" => Some(LogLevel::Debug),
        "info" | "notice" => Some(LogLevel::Info),
        "warning" => Some(LogLevel::Warning),
        "error" | "critical" | "alert" | "emergency" => Some(LogLevel::Error),
        "none" => Some(LogLevel::None),
        _ => None,
    }
}

/// What a confirm waits for.
pub(super) fn durability(text: &str) -> Option<Durability> {
    Durability::from_name(text)
}

/// The form of a log line.
pub(super) fn log_format(text: &str) -> Option<LogFormat> {
    match text {
        "plaintext" => Some(LogFormat::Plaintext),
        "json" => Some(LogFormat::Json),
        _ => None,
    }
}

fn digits(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    }
}

/// The number that the text starts with, and the unit after it.
fn split_unit(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((digits(number)?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_use_decimal_and_binary_units_and_frame_sizes_binary_ones() {
        let sizes = [
            ("0", 0),
            ("50MB", 50_000_000),
            ("2GB", 2_000_000_000),
            ("1k", 1000),
            ("1KiB", 1024),
            ("3mi", 3 << 20),
            ("3MiB", 3 << 20),
            ("1PIB", 1 << 50),
        ];
        for (text, bytes) in sizes {
            assert_eq!(information_unit(text), Some(bytes), "{text}");
        }
        assert_eq!(byte_size("128KB"), Some(131_072));
        assert_eq!(byte_size("131072"), Some(131_072));
    }

    #[test]
    fn sizes_that_are_none_are_refused() {
        for text in [
            "", "MB", "-1", "+1", "1.5GB", "1 GB", "1B", "1iB", "1EB", "1gbb", "１",
        ] {
            assert_eq!(information_unit(text), None, "{text}");
            assert_eq!(byte_size(text), None, "{text}");
        }
        assert_eq!(information_unit("99999999999PiB"), None);
        assert_eq!(byte_size("1Kb"), None);
    }

    #[test]
    fn a_bare_port_listens_on_all_interfaces() {
        let address = |text| listener(text).map(|address| address.to_string());
        assert_eq!(address("5672").as_deref(), Some("[::]:5672"));
        assert_eq!(address("127.0.0.1:5672").as_deref(), Some("127.0.0.1:5672"));
        assert_eq!(address("0.0.0.0:0").as_deref(), Some("0.0.0.0:0"));
        assert_eq!(address("::1:5672").as_deref(), Some("[::1]:5672"));
        assert_eq!(address("[::1]:5672").as_deref(), Some("[::1]:5672"));
        for text in [
            "",
            "65536",
            "localhost:5672",
            "127.0.0.1:",
            ":5672",
            "[127.0.0.1]:1",
            "[::1]",
        ] {
            assert_eq!(listener(text), None, "{text}");
        }
    }

    #[test]
    fn shares_are_plain_numbers() {
        assert_eq!(share("0.4", 1.0), Some(0.4));
        assert_eq!(share("1", 1.0), Some(1.0));
        for text in ["", ".", "1.1", "-0.1", "nan", "inf", "1e-1", "40%"] {
            assert_eq!(share(text, 1.0), None, "{text}");
        }
    }

    #[test]
    fn a_password_encrypted_for_rabbitmq_is_refused() {
        assert_eq!(password("encrypted:ABC="), None);
        assert_eq!(password("secret"), Some("secret".to_owned()));
    }
}
