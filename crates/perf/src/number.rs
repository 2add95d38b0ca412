//! Numbers as people read them: three significant digits or more, thousands apart, a unit that fits.
//!
//! What is not a finite number is a dash everywhere.

/// In place of a number that there is none of.
pub const NONE: &str = "–";

/// With thousands apart, and at least three significant digits: `81,234`, `12.3`, `0.0214`.
pub fn grouped(value: f64) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let decimals = decimals(value, 3);
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut grouped = String::new();
    if value < 0.0 && text.bytes().any(|digit| matches!(digit, b'1'..=b'9')) {
        grouped.push('−');
    }
    grouped.push_str(&apart(whole));
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

/// Digits with a comma before each third from the end.
fn apart(digits: &str) -> String {
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A whole number with thousands apart.
pub fn count(value: u64) -> String {
    apart(&value.to_string())
}

/// Nanoseconds with three significant digits in the unit that fits: `850 ns`, `12.3 µs`, `1.24 ms`.
pub fn duration(nanoseconds: f64) -> String {
    scaled(nanoseconds, 1000.0, &["ns", "µs", "ms", "s"])
}

/// Bytes with three significant digits in the unit that fits: `1.21 KiB`, `312 MiB`.
pub fn bytes(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// How many times as much: `1.24`, `0.031`, `130`.
pub fn ratio(ratio: f64) -> String {
    match ratio.is_finite() {
        true if (0.1..100.0).contains(&ratio) => format!("{ratio:.2}"),
        true => grouped(ratio),
        false => NONE.into(),
    }
}

/// How much more or less, with its sign: `+12.4 %`.
pub fn percent(share: f64) -> String {
    match share.is_finite() {
        true if share > 0.0 => format!("+{} %", grouped(share * 100.0)),
        true => format!("{} %", grouped(share * 100.0)),
        false => NONE.into(),
    }
}

/// For an axis, as short as it goes: `0`, `250`, `80 k`, `1.5 M`.
pub fn compact(value: f64) -> String {
    let (divisor, suffix) = match value.abs() {
        size if size >= 1e9 => (1e9, " G"),
        size if size >= 1e6 => (1e6, " M"),
        size if size >= 1e4 => (1e3, " k"),
        _ => (1.0, ""),
    };
    format!("{}{suffix}", trimmed(value / divisor))
}

/// Nanoseconds for an axis: `1 ms`, not `1.00 ms`.
pub fn compact_duration(nanoseconds: f64) -> String {
    let text = duration(nanoseconds);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            let number = number.trim_end_matches('0').trim_end_matches('.');
            format!("{number} {unit}")
        }
        _ => text,
    }
}

/// Grouped, without zeros at the end of its fraction.
pub fn trimmed(value: f64) -> String {
    let text = grouped(value);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// Three significant digits of `value` in the largest unit of which it is at least one.
fn scaled(value: f64, step: f64, units: &[&str]) -> String {
    let mut value = value;
    let mut unit = 0;
    // Half a unit of the third digit: 999.6 ns are 1.00 µs, not 1,000 ns.
    while value.abs() >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    match units.get(unit) {
        Some(name) if value.is_finite() && unit == 0 => format!("{} {name}", trimmed(value)),
        Some(name) if value.is_finite() => format!("{} {name}", grouped(value)),
        _ => NONE.into(),
    }
}

/// Digits after the point that leave so many significant ones; none needed for 0.
fn decimals(value: f64, significant: i32) -> usize {
    if value == 0.0 {
        return 0;
    }
    let magnitude = value.abs().log10().floor() as i32;
    // 9.996 has four digits before rounding, three after: 10.0.
    let place = 10_f64.powi(significant - 1 - magnitude);
    let rounded = (value.abs() * place).round() / place;
    let magnitude = rounded.log10().floor() as i32;
    // Beyond nanounits nobody reads digits.
    (significant - 1 - magnitude).clamp(0, 9) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(grouped(0.0), "0");
        assert_eq!(grouped(-0.0), "0");
        assert_eq!(grouped(1_234_567.8), "1,234,568");
        assert_eq!(grouped(-81_234.0), "−81,234");
        assert_eq!(grouped(12.345), "12.3");
        assert_eq!(grouped(9.996), "10.0");
        assert_eq!(grouped(0.02144), "0.0214");
        assert_eq!(grouped(1e-300), "0.000000000");
        assert_eq!(count(2), "2");
        assert_eq!(count(1_002), "1,002");
    }

    #[test]
    fn durations_and_bytes_choose_their_unit() {
        assert_eq!(duration(0.0), "0 ns");
        assert_eq!(duration(850.0), "850 ns");
        assert_eq!(duration(999.6), "1.00 µs");
        assert_eq!(duration(12_340.0), "12.3 µs");
        assert_eq!(duration(999_499.0), "999 µs");
        assert_eq!(duration(3_600e9), "3,600 s");
        assert_eq!(bytes(1_240.0), "1.21 KiB");
        assert_eq!(bytes(12.0), "12 B");
        assert_eq!(compact_duration(1_000_000.0), "1 ms");
        assert_eq!(compact_duration(200_000_000.0), "200 ms");
    }

    #[test]
    fn axes_and_ratios_are_short() {
        assert_eq!(compact(0.0), "0");
        assert_eq!(compact(80_000.0), "80 k");
        assert_eq!(compact(1_500_000.0), "1.5 M");
        assert_eq!(compact(2_500.0), "2,500");
        assert_eq!(compact(0.25), "0.25");
        assert_eq!(ratio(1.0), "1.00");
        assert_eq!(ratio(0.0312), "0.0312");
        assert_eq!(ratio(130.4), "130");
        assert_eq!(percent(0.124), "+12.4 %");
        assert_eq!(percent(-0.5), "−50.0 %");
    }

    #[test]
    fn no_number_is_a_dash() {
        for text in [
            grouped(f64::NAN),
            duration(f64::INFINITY),
            bytes(f64::NAN),
            ratio(f64::NEG_INFINITY),
            percent(f64::NAN),
            compact(f64::NAN),
        ] {
            assert_eq!(text, NONE);
        }
    }
}
