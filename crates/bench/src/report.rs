//! The report as text: one row a case, printed as soon as it is known.

use crate::args::Args;
use crate::case::{Case, Outcome};
use crate::machine::Machine;
use crate::measure::Figures;

pub const LEGEND: &str = "\
msg/s      messages received per second, median round (lowest to highest)
broker µs  the broker's CPU time per message, user and system
load µs    this program's CPU time per message, for sending and receiving it
RSS        the broker's memory at the end";

/// What is measured where, and the head of the table.
pub fn heading(server: &str, machine: &Machine, args: &Args) -> String {
    format!(
        "{server} on {} cores ({}), Linux {}; {} rounds of {} s\n\n{:<12} {:>11} {:>23} {:>10} {:>9} {:>10}",
        machine.cores,
        machine.cpu,
        machine.kernel,
        args.rounds,
        args.round.as_secs_f64(),
        "case",
        "msg/s",
        "",
        "broker µs",
        "load µs",
        "RSS"
    )
}

/// A case's row.
pub fn row(case: &Case, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Rounds(rounds) => {
            let figures = median(rounds);
            let rates = || rounds.iter().map(|figures| figures.rate);
            let spread = format!(
                "({} to {})",
                thousands(rates().fold(f64::INFINITY, f64::min)),
                thousands(rates().fold(0.0, f64::max))
            );
            format!(
                "{:<12} {:>11} {spread:>23} {:>10} {:>9.2} {:>10}",
                case.name,
                thousands(figures.rate),
                figures
                    .broker_cpu
                    .map_or("-".into(), |micros| format!("{micros:.2}")),
                figures.load_cpu,
                mebibytes(figures.rss)
            )
        }
        Outcome::Start(start) => format!(
            "{:<12} accepts connections {:.0} ms after exec {:>36}",
            case.name,
            start.time.as_secs_f64() * 1e3,
            mebibytes(Some(start.rss))
        ),
        Outcome::Connections(figures) => {
            let each = figures
                .rss_each
                .map_or("-".into(), |bytes| format!("{:.1} KiB", bytes / 1024.0));
            let head = format!(
                "{:<12} {} idle: {each} each; opened at {} per second",
                case.name,
                thousands(figures.count as f64),
                thousands(figures.opened_per_second)
            );
            format!("{head:<69} {:>11}", mebibytes(figures.rss))
        }
    }
}

/// The round with the median rate.
pub fn median(rounds: &[Figures]) -> Figures {
    let mut sorted = rounds.to_vec();
    sorted.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    sorted[sorted.len() / 2]
}

fn mebibytes(bytes: Option<u64>) -> String {
    bytes.map_or("-".into(), |bytes| {
        format!("{:.1} MiB", bytes as f64 / 1048576.0)
    })
}

/// A whole number with its thousands apart.
fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let texts = [0.4, 12.0, 999.6, 1234567.0].map(thousands);
        assert_eq!(texts, ["0", "12", "1,000", "1,234,567"]);
    }

    #[test]
    fn median_is_the_middle_round() {
        let figures = |rate| Figures {
            rate,
            broker_cpu: None,
            load_cpu: 0.0,
            rss: None,
        };
        assert_eq!(
            median(&[figures(3.0), figures(1.0), figures(2.0)]).rate,
            2.0
        );
    }
}
