//! The report as text: one row a case, printed as soon as it is known.

use crate::args::Args;
use crate::case::{Case, Outcome, Row};
use crate::machine::Machine;
use crate::measure::Figures;
use crate::reading::{Bar, Reading};

const INDENT: &str = "             ";

pub const LEGEND: &str = "\
msg/s      messages received per second, median round (lowest to highest)
broker µs  the broker's CPU time per message, user and system
load µs    this program's CPU time per message, for sending and receiving it
RSS        the broker's memory at the end
bar, aim   what the figure has to be, and what it should be";

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

/// A case's lines: its row in the table, its readings, its notes.
pub fn lines(case: &Case, outcome: &Outcome) -> String {
    let mut lines = vec![row(case, &outcome.row)];
    lines.extend(outcome.readings.iter().map(reading));
    lines.extend(outcome.notes.iter().map(|note| format!("{INDENT}{note}")));
    lines.join("\n")
}

fn row(case: &Case, row: &Row) -> String {
    match row {
        Row::Rounds(rounds) => {
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
        Row::Start(start) => format!(
            "{:<12} accepts connections {:.0} ms after exec {:>36}",
            case.name,
            start.time.as_secs_f64() * 1e3,
            mebibytes(Some(start.rss))
        ),
        Row::Connections(figures) => {
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
        Row::Heading => format!("{:<12} {}", case.name, case.about),
    }
}

/// `  confirm / bare loop, medians   1.29   ≤ 1.4: met`
fn reading(reading: &Reading) -> String {
    let value = number(reading.value);
    let line = format!(
        "{INDENT}{:<32} {value:>11} {:<10}",
        reading.name, reading.unit
    );
    match reading.bar {
        None => line.trim_end().to_owned(),
        Some(bar) => format!("{line} {}", verdict(reading, bar)),
    }
}

fn verdict(reading: &Reading, bar: Bar) -> String {
    let sign = bar.sense.sign();
    let limit = bar
        .limit
        .map(|limit| format!("bar {sign} {}", number(limit)));
    let aim = bar.aim.map(|aim| format!("aim {sign} {}", number(aim)));
    let asked: Vec<String> = limit.into_iter().chain(aim).collect();
    let found = match (reading.met(), reading.aim_reached()) {
        (Some(false), _) => "MISSED",
        (Some(true), Some(true)) => "met, and the aim",
        (Some(true), _) => "met",
        (None, Some(true)) => "reached",
        (None, _) => "not reached",
    };
    format!("{}: {found}", asked.join(", "))
}

/// A note about what the broker has logged.
pub fn complaints(lines: &[String]) -> Option<String> {
    let first = lines.first()?;
    Some(format!("broker's log, {} such: {first}", lines.len()))
}

/// How many bars were cleared, and which were not.
pub fn summary(results: &[(&Case, Outcome)]) -> Option<String> {
    let judged = results
        .iter()
        .flat_map(|(case, outcome)| outcome.readings.iter().map(move |r| (case, r)))
        .filter_map(|(case, reading)| reading.met().map(|met| (case, reading, met)));
    let (mut met, mut missed) = (0, Vec::new());
    for (case, reading, is_met) in judged {
        match is_met {
            true => met += 1,
            false => missed.push(format!("{}: {}", case.name, reading.name)),
        }
    }
    match (met, missed.len()) {
        (0, 0) => None,
        (_, 0) => Some(format!("All {met} bars are met.")),
        (_, count) => Some(format!(
            "{met} bars are met, {count} missed ({}).",
            missed.join("; ")
        )),
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

/// As many digits as say something.
fn number(number: f64) -> String {
    match number.abs() {
        size if size >= 1_000.0 || number == number.trunc() => thousands(number),
        size if size >= 100.0 => format!("{number:.1}"),
        size if size >= 1.0 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
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
    fn numbers_have_the_digits_that_say_something() {
        let texts = [0.18123, 1.2942, 399.96, 250_000.0, 1.0].map(number);
        assert_eq!(texts, ["0.181", "1.29", "400.0", "250,000", "1"]);
    }

    #[test]
    fn readings_say_whether_they_clear_their_bar() {
        let line = |value| reading(&Reading::new("CPU", value, "µs").at_most(2.5).aim(2.0));
        assert!(line(2.75).ends_with("2.75 µs         bar ≤ 2.50, aim ≤ 2: MISSED"));
        assert!(line(2.25).ends_with(": met"));
        assert!(line(1.5).ends_with(": met, and the aim"));
        let plain = reading(&Reading::new("rate", 12_345.0, "msg/s"));
        assert!(plain.ends_with("12,345 msg/s"), "{plain}");
    }

    #[test]
    fn median_is_the_middle_round() {
        let figures = |rate| Figures {
            rate,
            broker_cpu: None,
            load_cpu: 0.0,
            disk: None,
            rss: None,
        };
        assert_eq!(
            median(&[figures(3.0), figures(1.0), figures(2.0)]).rate,
            2.0
        );
    }
}
