//! ISO 8601: durations for `-ma`, moments for `-sco` and for the property `timestamp`.

/// Whole seconds of a duration in days and smaller units, such as `PT10M30S` and `P5DT8H`.
/// Fractions are dropped. Months and years have no fixed length, and are not understood.
pub fn duration(text: &str) -> Option<u64> {
    let upper = text.to_ascii_uppercase();
    let rest = upper.strip_prefix('P')?;
    let (date, time) = match rest.split_once('T') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None => (rest, ""),
    };
    if date.is_empty() && time.is_empty() {
        return None;
    }
    let days = units(date, &[('D', 86_400)])?;
    days.checked_add(units(time, &[('H', 3600), ('M', 60), ('S', 1)])?)
}

/// Seconds of numbers that each end in their unit; units come in this order.
fn units(text: &str, units: &[(char, u64)]) -> Option<u64> {
    let mut rest = text;
    let mut total = 0u64;
    for (unit, seconds) in units {
        let Some((number, after)) = rest.split_once(*unit) else {
            continue;
        };
        let whole = match (unit, number.split_once('.')) {
            ('S', Some((whole, fraction))) if is_number(fraction) => whole,
            _ => number,
        };
        let whole: u64 = is_number(whole).then(|| whole.parse().ok())??;
        total = total.checked_add(whole.checked_mul(*seconds)?)?;
        rest = after;
    }
    rest.is_empty().then_some(total)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Seconds since 1970 of a moment with its offset, such as `2022-06-03T07:45:54Z` and
/// `2022-06-03T09:45+02:00`. Fractions are dropped.
pub fn timestamp(text: &str) -> Option<u64> {
    let upper = text.to_ascii_uppercase();
    let (date, time) = upper.split_once('T')?;
    let mut date = date.split('-').map(digits);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    if date.next().is_some() || !(1..=12).contains(&month) || !(1970..=9999).contains(&year) {
        return None;
    }
    if !(1..=days_of_month(year, month)).contains(&day) {
        return None;
    }
    let (time, offset) = match time.strip_suffix('Z') {
        Some(time) => (time, 0),
        None => {
            let at = time.rfind(['+', '-'])?;
            let (time, offset) = time.split_at(at);
            let sign = if offset.starts_with('-') { -1 } else { 1 };
            (time, sign * time_of_day(&offset[1..])?)
        }
    };
    let second = days_since_1970(year, month, day) * 86_400 + time_of_day(time)? - offset;
    u64::try_from(second).ok()
}

/// Seconds of `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fraction`.
fn time_of_day(text: &str) -> Option<i64> {
    let whole = match text.split_once('.') {
        Some((whole, fraction)) if is_number(fraction) && whole.len() == 8 => whole,
        Some(_) => return None,
        None => text,
    };
    let mut parts = whole.split(':').map(digits);
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = parts.next().unwrap_or(Some(0))?;
    let valid = parts.next().is_none() && hour < 24 && minute < 60 && second < 60;
    valid.then_some(hour * 3600 + minute * 60 + second)
}

/// Two digits or four.
fn digits(text: &str) -> Option<i64> {
    let valid = is_number(text) && matches!(text.len(), 2 | 4);
    valid.then(|| text.parse().ok())?
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Howard Hinnant's `days_from_civil`, for years after 0.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last of one.
    let (year, month) = match month <= 2 {
        true => (year - 1, month + 9),
        false => (year, month - 3),
    };
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_iso_8601_are_read() {
        for (text, seconds) in [
            ("PT10M30S", 630),
            ("P5DT8H", 5 * 86_400 + 8 * 3600),
            ("P1D", 86_400),
            ("pt1h", 3600),
            ("PT1.9S", 1),
            ("PT0S", 0),
        ] {
            assert_eq!(duration(text), Some(seconds), "{text}");
        }
        for wrong in [
            "",
            "P",
            "PT",
            "P1DT",
            "10m",
            "P1M",
            "P1Y",
            "PT1S1M",
            "PT-1S",
            "P1.5D",
            "PT1.S",
            "PTS",
            "PT1",
            "P99999999999999999999D",
            "P999999999999999999D",
        ] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn moments_of_iso_8601_are_read() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2022-06-03T07:45:54Z", 1_654_242_354),
            ("2022-06-03T09:45:54+02:00", 1_654_242_354),
            ("2022-06-03T07:45:54.123456Z", 1_654_242_354),
            ("2000-02-29T00:00Z", 951_782_400),
            ("2024-12-31t23:59:59z", 1_735_689_599),
        ] {
            assert_eq!(timestamp(text), Some(seconds), "{text}");
        }
        for wrong in [
            "",
            "2022-06-03",
            "2022-06-03T07:45:54",
            "2022-13-03T07:45:54Z",
            "2023-02-29T00:00Z",
            "2022-06-03T24:00:00Z",
            "2022-06-03T07Z",
            "1969-12-31T00:00:00Z",
            "2022-06-03TéZ",
            "1970-01-01T00:00+01:00",
            "22-6-3T07:45Z",
        ] {
            assert_eq!(timestamp(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn moments_are_what_the_clock_prints() {
        for seconds in (0..4_000_000_000).step_by(86_399 * 101) {
            assert_eq!(timestamp(&crate::clock::format_utc(seconds)), Some(seconds));
        }
    }
}
