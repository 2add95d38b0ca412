//! Numbers as PerfTest writes them.

use crate::result::Percentiles;

/// What precedes latencies.
pub const LATENCY_HEADER: &str = "min/median/75th/95th/99th/max";

/// Messages per second: whole from ten on, with a decimal or two below.
pub fn rate(rate: f64) -> String {
    match rate {
        0.0 => "0".into(),
        rate if rate < 1.0 => format!("{rate:.2}"),
        rate if rate < 10.0 => format!("{rate:.1}"),
        rate => format!("{}", rate as u64),
    }
}

/// Min, median, 75th, 95th, 99th, max: microseconds, or milliseconds.
pub fn values(latency: Option<&Percentiles>, millis: bool) -> [u64; 6] {
    let unit = if millis { 1_000_000 } else { 1_000 };
    let latency = latency.copied().unwrap_or_default();
    [
        latency.min_ns,
        latency.p50_ns,
        latency.p75_ns,
        latency.p95_ns,
        latency.p99_ns,
        latency.max_ns,
    ]
    .map(|nanos| nanos / unit)
}

/// `min/median/75th/95th/99th/max µs`.
pub fn latency(latency: Option<&Percentiles>, millis: bool) -> String {
    let values = values(latency, millis).map(|value| value.to_string());
    format!("{} {}", values.join("/"), unit(millis))
}

/// The unit of latencies.
pub fn unit(millis: bool) -> &'static str {
    if millis { "ms" } else { "µs" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_perftests() {
        let rates = [0.0, 0.256, 9.96, 10.0, 25_123.9].map(rate);
        assert_eq!(rates, ["0", "0.26", "10.0", "10", "25123"]);
    }

    #[test]
    fn latencies_are_perftests() {
        let percentiles = Percentiles {
            min_ns: 1_999,
            p50_ns: 2_000_000,
            max_ns: 3_000_000,
            ..Percentiles::default()
        };
        assert_eq!(latency(Some(&percentiles), false), "1/2000/0/0/0/3000 µs");
        assert_eq!(latency(Some(&percentiles), true), "0/2/0/0/0/3 ms");
        assert_eq!(latency(None, true), "0/0/0/0/0/0 ms");
    }
}
