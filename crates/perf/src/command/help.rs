//! What `-?`, `-env`, `-mh` and `-v` print: the table of options at a width of 100 columns.

use super::options::{self, Class, Group, Spec, Takes};
use super::table::OPTIONS;

const WIDTH: usize = 100;

/// Where explanations begin.
const COLUMN: usize = 36;

const OPENING: &str = "\
Loads an AMQP broker and says how fast it is, and how late. The options are those of RabbitMQ's
PerfTest, with the same names, defaults and meaning; those that it does not have are marked with *.

Usage: leveret perf [OPTION]...
       leveret perf COMMAND [OPTION]...

Examples:
  leveret perf -x 1 -y 2 -u \"throughput-test\" -s 1024 -z 30
      one publisher and two consumers on one queue, messages of 1 KiB, for half a minute
  leveret perf -x 4 -y 4 -qp perf-%d -qpf 1 -qpt 4 -f persistent -c 1000 -z 60
      four queues with a publisher and a consumer each; persistent messages, confirms
  leveret perf -r 5000 -z 60 --verify --json result.json --html report.html
      latency at a steady rate; fails if a message is lost, doubled or out of order
  leveret perf -c 100 -z 20 --against amqp://other-host
      two brokers by turns, compared

Commands, each of which explains itself with -?:
  w1 w2 w3 w3-sharded w4 w5
               loads that people once published measurements of
  suite        a standard set: throughput, queues, channels, transactions, latency, backlog
  report       results as a page
  compare      results side by side, with ratios
  changes      when did it change: in a history of results, or within a run
";

const ENDING: &str = "\
Options can be given as environment variables, too; -env lists them.
";

const ENVIRONMENT: &str = "\
Environment variables that stand for options of 'leveret perf'; the command line wins. For options
with several values separate them with commas: VARIABLE_RATE=100:60,1000:10. Options without a value
are given by 'true'. With RABBITMQ_PERF_TEST_ENV_PREFIX=X all but those that begin with LEVERET
begin with X_.
";

/// `-?`.
pub fn usage() -> String {
    let mut out = OPENING.to_owned();
    for (group, specs) in OPTIONS {
        let mut specs = specs.iter().filter(|spec| is_acted_on(spec)).peekable();
        if specs.peek().is_some() {
            section(&mut out, group.title(), specs);
        }
    }
    let ignored = options::all().filter(|spec| matches!(spec.class, Class::Ignored(_)));
    names(&mut out, Group::Java.title(), ignored);
    let refused = options::all().filter(|spec| matches!(spec.class, Class::Unsupported(_)));
    names(&mut out, "Refused, as nothing acts on them yet", refused);
    out.push('\n');
    out.push_str(ENDING);
    out
}

/// Short names alone.
fn names(out: &mut String, title: &str, specs: impl Iterator<Item = &'static Spec>) {
    let names: Vec<_> = specs.map(short).collect();
    out.push_str(&format!("\n{title}:\n"));
    fill(out, 2, 2, &names.join(" "));
}

/// `-mh`.
pub fn metrics() -> String {
    let mut out = String::new();
    for (_, specs) in OPTIONS.iter().filter(|(group, _)| *group == Group::Metrics) {
        section(&mut out, Group::Metrics.title(), specs.iter());
    }
    out.trim_start().to_owned()
}

/// `-env`.
pub fn environment() -> String {
    let mut out = ENVIRONMENT.to_owned();
    for (group, specs) in OPTIONS {
        let variables: Vec<_> = specs
            .iter()
            .filter(|spec| matches!(spec.class, Class::Load | Class::Own))
            .filter_map(|spec| Some((spec.variable()?, *spec)))
            .collect();
        if !variables.is_empty() {
            out.push_str(&format!("\n{}:\n", group.title()));
        }
        for (variable, spec) in variables {
            line(&mut out, &format!("  {variable}"), &explanation(&spec));
        }
    }
    out
}

/// `-v`.
pub fn version() -> String {
    format!("leveret perf {}\n", env!("CARGO_PKG_VERSION"))
}

fn is_acted_on(spec: &Spec) -> bool {
    !matches!(spec.class, Class::Ignored(_) | Class::Unsupported(_))
}

fn short(spec: &Spec) -> String {
    format!("-{}", spec.short)
}

fn section<'a>(out: &mut String, title: &str, specs: impl Iterator<Item = &'a Spec>) {
    out.push_str(&format!("\n{title}:\n"));
    for spec in specs {
        let names = match (spec.short, spec.class) {
            ("", Class::Own) => format!("* --{}", spec.long),
            ("", _) => format!("  --{}", spec.long),
            (short, _) => format!("  -{short}, --{}", spec.long),
        };
        let names = match spec.takes {
            Takes::Nothing => names,
            Takes::Number(word) | Takes::Text(word) | Takes::Maybe(word) | Takes::Many(word) => {
                format!("{names} {word}")
            }
        };
        line(out, &names, &explanation(spec));
    }
}

fn explanation(spec: &Spec) -> String {
    match (spec.class, spec.default) {
        (Class::Ignored(reason), _) => format!("accepted, and changes nothing: {reason}"),
        (Class::Unsupported(advice), _) => format!("refused: {advice}"),
        (_, "") => spec.help.to_owned(),
        (_, default) => format!("{} [{default}]", spec.help),
    }
}

/// Names, and the explanation in its column, from the next line on if the names reach into it.
fn line(out: &mut String, names: &str, explanation: &str) {
    out.push_str(names);
    let at = names.chars().count();
    match at + 2 <= COLUMN {
        true => fill(out, COLUMN - at, COLUMN, explanation),
        false => {
            out.push('\n');
            fill(out, COLUMN, COLUMN, explanation);
        }
    }
}

/// Words up to the width, the first line indented by `first` from where it begins, others by
/// `indent`.
fn fill(out: &mut String, first: usize, indent: usize, text: &str) {
    out.push_str(&" ".repeat(first));
    let mut column = indent;
    for (at, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if at > 0 && column + 1 + length > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if at > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_keeps_to_its_width() {
        for text in [usage(), metrics(), environment()] {
            for line in text.lines() {
                assert!(
                    line.chars().count() <= WIDTH && line == line.trim_end(),
                    "{line}"
                );
            }
        }
    }

    #[test]
    fn help_explains_each_option() {
        let usage = usage();
        for spec in options::all() {
            let name = match is_acted_on(spec) {
                true => format!("--{}", spec.long),
                false => short(spec),
            };
            assert!(usage.contains(&name), "{name}");
            assert_eq!(is_acted_on(spec), !spec.help.is_empty(), "{name}");
        }
    }

    #[test]
    fn environment_lists_what_is_read_from_it() {
        let text = environment();
        for variable in [
            "CONFIRM_TIMEOUT",
            "VARIABLE_RATE",
            "LEVERET_PERF_JSON",
            "URI",
        ] {
            assert!(text.contains(&format!("  {variable}")), "{variable}");
        }
        assert!(!text.contains("VERSION") && !text.contains("NETTY"));
    }
}
