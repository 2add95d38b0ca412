//! What of a result is looked at: its name, its unit, and whether more of it is better.

use crate::result::{Interval, Latency, Percentiles, Run};

/// Percentiles and the like, as names end in them.
const STATISTICS: [&str; 9] = [
    "min", "mean", "p50", "p75", "p90", "p95", "p99", "p999", "max",
];
const CONSUMER: &str = "consumer-latency-";
const CONFIRM: &str = "confirm-latency-";

/// One figure of a run or of an interval of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Metric {
    Received,
    Sent,
    Confirmed,
    /// One of [`STATISTICS`].
    ConsumerLatency(&'static str),
    /// One of [`STATISTICS`].
    ConfirmLatency(&'static str),
    BrokerCpu,
    BrokerRss,
    /// A scenario's own, by its name.
    Figure(String),
}

impl Metric {
    /// By its name on the command line; what is no other metric is a scenario's figure.
    pub fn named(name: &str) -> Metric {
        let known = Metric::known()
            .into_iter()
            .find(|metric| metric.name() == name);
        known.unwrap_or_else(|| Metric::Figure(name.to_owned()))
    }

    /// Those that any load may have.
    pub fn known() -> Vec<Metric> {
        let mut known = vec![Metric::Received, Metric::Sent, Metric::Confirmed];
        known.extend(STATISTICS.map(Metric::ConsumerLatency));
        known.extend(STATISTICS.map(Metric::ConfirmLatency));
        known.extend([Metric::BrokerCpu, Metric::BrokerRss]);
        known
    }

    pub fn name(&self) -> String {
        match self {
            Metric::Received => "received".into(),
            Metric::Sent => "sent".into(),
            Metric::Confirmed => "confirmed".into(),
            Metric::ConsumerLatency(statistic) => format!("{CONSUMER}{statistic}"),
            Metric::ConfirmLatency(statistic) => format!("{CONFIRM}{statistic}"),
            Metric::BrokerCpu => "broker-cpu-us".into(),
            Metric::BrokerRss => "broker-rss".into(),
            Metric::Figure(name) => name.clone(),
        }
    }

    /// Of the values of [`Metric::of_run`] and [`Metric::of_interval`].
    pub fn unit(&self) -> String {
        match self {
            Metric::Received | Metric::Sent | Metric::Confirmed => "msg/s".into(),
            Metric::ConsumerLatency(_) | Metric::ConfirmLatency(_) => "ms".into(),
            Metric::BrokerCpu => "µs/msg".into(),
            Metric::BrokerRss => "MiB".into(),
            // `longest commit (ms)`.
            Metric::Figure(name) => name
                .rsplit_once('(')
                .and_then(|(_, unit)| unit.strip_suffix(')'))
                .unwrap_or_default()
                .to_owned(),
        }
    }

    /// Whether a larger value is the better one. Figures are times and sizes unless their unit is
    /// something per second.
    pub fn more_is_better(&self) -> bool {
        match self {
            Metric::Received | Metric::Sent | Metric::Confirmed => true,
            Metric::Figure(_) => self.unit().ends_with("/s"),
            _ => false,
        }
    }

    /// Of a run as a whole; `None` if it does not have it.
    pub fn of_run(&self, run: &Run) -> Option<f64> {
        let totals = &run.totals;
        let value = match self {
            Metric::Received => totals.received_rate,
            Metric::Sent => totals.sent_rate,
            Metric::Confirmed if totals.confirmed == 0 => return None,
            Metric::Confirmed => totals.confirmed as f64 / totals.seconds,
            Metric::ConsumerLatency(name) => of_latency(run.consumer_latency.as_ref(), name)?,
            Metric::ConfirmLatency(name) => of_latency(run.confirm_latency.as_ref(), name)?,
            Metric::BrokerCpu => totals.broker_cpu_us_per_message?,
            Metric::BrokerRss => mebibytes(totals.broker_rss_bytes?),
            Metric::Figure(name) => *run.figures.get(name)?,
        };
        value.is_finite().then_some(value)
    }

    /// Of an interval that lasted so many seconds; `None` if it does not have it.
    pub fn of_interval(&self, interval: &Interval, seconds: f64) -> Option<f64> {
        let value = match self {
            Metric::Received => interval.received_rate,
            Metric::Sent => interval.sent_rate,
            Metric::Confirmed => interval.confirmed_rate,
            Metric::ConsumerLatency(name) => statistic(&interval.consumer_latency?, name)?,
            Metric::ConfirmLatency(name) => statistic(&interval.confirm_latency?, name)?,
            Metric::BrokerCpu => {
                let rate = match interval.received_rate > 0.0 {
                    true => interval.received_rate,
                    false => interval.sent_rate,
                };
                interval.broker_cpu_seconds? * 1e6 / (rate * seconds)
            }
            Metric::BrokerRss => mebibytes(interval.broker_rss_bytes?),
            Metric::Figure(_) => return None,
        };
        value.is_finite().then_some(value)
    }
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

fn of_latency(latency: Option<&Latency>, name: &str) -> Option<f64> {
    statistic(&latency?.percentiles, name)
}

/// In milliseconds.
fn statistic(percentiles: &Percentiles, name: &str) -> Option<f64> {
    let nanos = match name {
        "min" => percentiles.min_ns,
        "mean" => percentiles.mean_ns,
        "p50" => percentiles.p50_ns,
        "p75" => percentiles.p75_ns,
        "p90" => percentiles.p90_ns,
        "p95" => percentiles.p95_ns,
        "p99" => percentiles.p99_ns,
        "p999" => percentiles.p999_ns,
        "max" => percentiles.max_ns,
        _ => return None,
    };
    (percentiles.count > 0).then_some(nanos as f64 / 1e6)
}
