//! Values with a syntax of their own: `KEY=VALUE,…`, sizes in bytes, `VALUE:SECONDS`.

use std::time::Duration;

use client::FieldValue;

/// `KEY=VALUE,KEY=VALUE` of all texts, the later of two with one key winning. `true` and `false`
/// are truth values, whole numbers are 64-bit numbers, anything else is text, as in PerfTest.
///
/// # Errors
/// Says what is wrong.
pub fn pairs(texts: &[String]) -> Result<Vec<(String, FieldValue)>, String> {
    let mut pairs: Vec<(String, FieldValue)> = Vec::new();
    for entry in texts.iter().flat_map(|text| text.split(',')) {
        if entry.trim().is_empty() {
            continue;
        }
        let (key, value) = entry.split_once('=').unwrap_or((entry, ""));
        match key.len() {
            0 => return Err(format!("'{entry}' has no key; expected KEY=VALUE")),
            1..=255 => {}
            bytes => return Err(format!("a key of {bytes} bytes, where AMQP allows 255")),
        }
        pairs.retain(|(other, _)| other != key);
        pairs.push((key.to_owned(), field_value(key, value)));
    }
    Ok(pairs)
}

fn field_value(key: &str, value: &str) -> FieldValue {
    match (key, value) {
        // RabbitMQ wants a truth value there, and whatever is not true is false.
        ("x-single-active-consumer", _) => FieldValue::Bool(value.eq_ignore_ascii_case("true")),
        // The default exchange, whose true name no shell shows.
        ("x-dead-letter-exchange", "amq.default") => FieldValue::from(""),
        (_, "true") => FieldValue::Bool(true),
        (_, "false") => FieldValue::Bool(false),
        _ => match value.parse::<i64>() {
            Ok(number) => FieldValue::I64(number),
            Err(_) => FieldValue::from(value),
        },
    }
}

/// `1000`, `500kb`, `50mb`, `20gb`, `1tb`: powers of 1000, as in PerfTest.
pub fn byte_size(text: &str) -> Option<i64> {
    let lower = text.to_ascii_lowercase();
    let units = [("kb", 1), ("mb", 2), ("gb", 3), ("tb", 4)];
    let (digits, power) = units
        .iter()
        .find_map(|(unit, power)| Some((lower.strip_suffix(unit)?, *power)))
        .unwrap_or((&lower, 0));
    let unsigned = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: i64 = digits.parse().ok().filter(|_| unsigned)?;
    number.checked_mul(1000i64.pow(power))
}

/// `VALUE:SECONDS`: a whole number, and for how long, at least a second.
pub fn step(text: &str) -> Option<(u32, Duration)> {
    let (value, seconds) = text.split_once(':')?;
    let value: i32 = value.parse().ok()?;
    let seconds: i32 = seconds.parse().ok().filter(|seconds| *seconds > 0)?;
    let seconds = u64::try_from(seconds).ok()?;
    Some((u32::try_from(value).ok()?, Duration::from_secs(seconds)))
}

/// The names that a pattern like `perf-%03d` gives to these numbers. A `%` is followed by a width,
/// if any, with or without a 0 before it, and `d`; `%%` is a percent sign.
///
/// # Errors
/// Says what is wrong with the pattern.
pub fn names(pattern: &str, numbers: std::ops::RangeInclusive<u32>) -> Result<Vec<String>, String> {
    let parts = parts(pattern)?;
    let many = numbers.start() != numbers.end();
    if many && !parts.iter().any(|part| matches!(part, Part::Number { .. })) {
        return Err("without %d all queues have the same name".into());
    }
    let name = |number: u32| {
        let filled = parts.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Number { width, zeros: true } => format!("{number:0width$}"),
            Part::Number {
                width,
                zeros: false,
            } => format!("{number:width$}"),
        });
        filled.collect()
    };
    Ok(numbers.map(name).collect())
}

enum Part {
    Text(String),
    Number { width: usize, zeros: bool },
}

fn parts(pattern: &str) -> Result<Vec<Part>, String> {
    let mut pieces = pattern.split('%');
    let mut parts = vec![Part::Text(pieces.next().unwrap_or_default().to_owned())];
    while let Some(piece) = pieces.next() {
        if piece.is_empty() {
            // The second of two percent signs begins the text after them.
            match pieces.next() {
                Some(text) => parts.push(Part::Text(format!("%{text}"))),
                None => return Err("'%' at its end; a percent sign is written %%".into()),
            }
            continue;
        }
        let digits = piece.len() - piece.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (digits, rest) = piece.split_at(digits);
        let rest = rest.strip_prefix(['d', 's']).ok_or_else(|| {
            let shown: String = piece.chars().take(digits.len() + 1).collect();
            format!("'%{shown}' is not understood; use %d, or %03d for three digits")
        })?;
        let width = match digits {
            "" => 0,
            _ => digits
                .parse()
                .ok()
                .filter(|width| *width <= 200)
                .ok_or("its number is too wide")?,
        };
        parts.push(Part::Number {
            width,
            zeros: digits.starts_with('0'),
        });
        parts.push(Part::Text(rest.to_owned()));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(texts: &[&str]) -> Result<Vec<(String, FieldValue)>, String> {
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        pairs(&texts)
    }

    #[test]
    fn pairs_get_the_types_that_perf_test_gives_them() {
        let read = read(&[
            "x-max-length=10,x-a=true,x-b=false,,x-c=TRUE,x-d=-5",
            "x-dead-letter-exchange=amq.default,x-single-active-consumer=True,x-e,x-f=a=b,x-d=6",
        ]);
        let expected = [
            ("x-max-length", FieldValue::I64(10)),
            ("x-a", FieldValue::Bool(true)),
            ("x-b", FieldValue::Bool(false)),
            ("x-c", FieldValue::from("TRUE")),
            ("x-dead-letter-exchange", FieldValue::from("")),
            ("x-single-active-consumer", FieldValue::Bool(true)),
            ("x-e", FieldValue::from("")),
            ("x-f", FieldValue::from("a=b")),
            ("x-d", FieldValue::I64(6)),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value));
        assert_eq!(read.expect("valid pairs"), expected);
    }

    #[test]
    fn pairs_need_keys() {
        assert!(read(&["=5"]).is_err());
        assert!(read(&[&format!("{}=1", "k".repeat(256))]).is_err());
    }

    #[test]
    fn byte_sizes_are_powers_of_a_thousand() {
        for (text, bytes) in [
            ("0", Some(0)),
            ("1000", Some(1000)),
            ("5KB", Some(5_000)),
            ("500mb", Some(500_000_000)),
            ("20gb", Some(20_000_000_000)),
            ("1tb", Some(1_000_000_000_000)),
            ("gb", None),
            ("", None),
            ("-1gb", None),
            ("+1gb", None),
            ("1.5gb", None),
            ("1pb", None),
            ("9223372036854775807kb", None),
        ] {
            assert_eq!(byte_size(text), bytes, "{text}");
        }
    }

    #[test]
    fn steps_have_a_value_and_a_time() {
        assert_eq!(step("100:60"), Some((100, Duration::from_secs(60))));
        assert_eq!(step("0:1"), Some((0, Duration::from_secs(1))));
        for wrong in [
            "", ":", "1", "1:", ":1", "1:0", "-1:5", "1:-5", "1:2:3", "a:1", "1.5:1",
        ] {
            assert_eq!(step(wrong), None, "{wrong}");
        }
        assert_eq!(step("99999999999:1"), None);
    }

    #[test]
    fn patterns_number_names() {
        for (pattern, expected) in [
            ("q%d", ["q9", "q10"]),
            ("perf-%03d", ["perf-009", "perf-010"]),
            ("%4d.", ["   9.", "  10."]),
            ("100%%-%d-%s", ["100%-9-9", "100%-10-10"]),
            ("%%d%d", ["%d9", "%d10"]),
        ] {
            assert_eq!(names(pattern, 9..=10).expect(pattern), expected);
        }
        assert_eq!(names("same", 3..=3).expect("one"), ["same"]);
        for wrong in ["same", "%", "q%", "q%x", "q%5", "%999999999999d", "%é"] {
            assert!(names(wrong, 1..=2).is_err(), "{wrong}");
        }
    }
}
