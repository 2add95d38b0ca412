//! What an option is, and how one is found by what somebody typed. The options themselves are in
//! [`super::table`].

use super::table::OPTIONS;

/// One option of the command line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spec {
    /// After one dash; empty where there is none.
    pub short: &'static str,
    /// After two dashes.
    pub long: &'static str,
    /// Its value.
    pub takes: Takes,
    /// What holds without it; empty where that goes without saying.
    pub default: &'static str,
    /// What is done about it.
    pub class: Class,
    /// For the help.
    pub help: &'static str,
}

/// What follows an option, with the word that stands for it in the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Nothing.
    Nothing,
    /// A number.
    Number(&'static str),
    /// Anything.
    Text(&'static str),
    /// Anything, or nothing.
    Maybe(&'static str),
    /// One value or more.
    Many(&'static str),
}

/// What is done about an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It is acted on.
    Load,
    /// It prints something instead of running a load.
    Print,
    /// It is acted on, and PerfTest does not know it.
    Own,
    /// It is accepted, and changes nothing for this reason.
    Ignored(&'static str),
    /// It is refused, with this advice.
    Unsupported(&'static str),
}

/// The sections of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the titles say it")]
pub enum Group {
    Connections,
    Topology,
    Producers,
    Messages,
    Consumers,
    Run,
    Output,
    Help,
    Metrics,
    Java,
}

impl Group {
    /// Its heading.
    pub fn title(self) -> &'static str {
        match self {
            Group::Connections => "Connections",
            Group::Topology => "Exchange and queues",
            Group::Producers => "Producers",
            Group::Messages => "Messages",
            Group::Consumers => "Consumers",
            Group::Run => "The run",
            Group::Output => "Output",
            Group::Help => "Help",
            Group::Metrics => "Metrics",
            Group::Java => "Accepted, so that PerfTest's command lines run; they change nothing",
        }
    }
}

impl Spec {
    /// `-s/--size`, as messages name it.
    pub fn name(&self) -> String {
        match self.short {
            "" => format!("--{}", self.long),
            short => format!("-{short}/--{}", self.long),
        }
    }

    /// The environment variable that sets it, without the prefix that
    /// `RABBITMQ_PERF_TEST_ENV_PREFIX` may demand. Our own options carry one of ours: names like
    /// `LABEL` are set in many environments for other reasons. PerfTest, too, reads none for what
    /// it prints and for the options without a short name.
    pub fn variable(&self) -> Option<String> {
        let name = self.long.replace('-', "_").to_ascii_uppercase();
        match self.class {
            Class::Own => Some(format!("LEVERET_PERF_{name}")),
            Class::Print => None,
            _ if self.short.is_empty() => None,
            _ => Some(name),
        }
    }

    /// Whether a value may follow.
    pub fn takes_value(&self) -> bool {
        self.takes != Takes::Nothing
    }

    /// Whether a value must follow.
    pub fn needs_value(&self) -> bool {
        !matches!(self.takes, Takes::Nothing | Takes::Maybe(_))
    }
}

/// All options, in the order of the help.
pub fn all() -> impl Iterator<Item = &'static Spec> {
    OPTIONS.iter().flat_map(|(_, options)| options.iter())
}

/// The option of that short name.
pub fn by_short(name: &str) -> Option<&'static Spec> {
    all().find(|spec| !name.is_empty() && spec.short == name)
}

/// The option of that long name.
pub fn by_long(name: &str) -> Option<&'static Spec> {
    all().find(|spec| spec.long == name)
}

/// The options whose long names begin like this; one alone if it is that name. PerfTest's come
/// first: an abbreviation that it understands must not become ambiguous by our additions.
pub fn by_prefix(prefix: &str) -> Vec<&'static Spec> {
    if prefix.is_empty() {
        return Vec::new();
    }
    if let Some(exact) = by_long(prefix) {
        return vec![exact];
    }
    let beginning = || all().filter(|spec| spec.long.starts_with(prefix));
    let theirs: Vec<_> = beginning()
        .filter(|spec| spec.class != Class::Own)
        .collect();
    match theirs.is_empty() {
        true => beginning().collect(),
        false => theirs,
    }
}

/// The group of an option.
pub fn group_of(spec: &Spec) -> Option<Group> {
    let holds = |(_, options): &&(Group, &[Spec])| options.iter().any(|one| one.long == spec.long);
    OPTIONS.iter().find(holds).map(|(group, _)| *group)
}

/// The option whose name, long or short, is the most like this one, written with its dashes; none
/// if all are too far off to be meant.
pub fn nearest(typed: &str) -> Option<String> {
    let name = typed.trim_start_matches('-');
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    // A short name is as near as a third of it; else every other word is near to all of them.
    let allowed = (name.chars().count() / 3).max(1);
    let long = all().map(|spec| (distance(name, spec.long), format!("--{}", spec.long)));
    let short = all()
        .filter(|spec| !spec.short.is_empty() && name.len() <= 4)
        .map(|spec| (distance(name, spec.short), format!("-{}", spec.short)));
    let (found, option) = long.chain(short).min_by_key(|(distance, _)| *distance)?;
    (found <= allowed).then_some(option)
}

/// Letters to change, add, drop or swap to make one name of the other, whatever their case.
pub fn distance(one: &str, other: &str) -> usize {
    strsim::damerau_levenshtein(&one.to_lowercase(), &other.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_not_mistaken_for_each_other() {
        let specs: Vec<_> = all().collect();
        for (at, spec) in specs.iter().enumerate() {
            for other in &specs[at + 1..] {
                assert_ne!(spec.long, other.long);
                assert!(
                    spec.short.is_empty() || spec.short != other.short,
                    "{spec:?}"
                );
                assert!(spec.short != other.long && spec.long != other.short);
            }
        }
    }

    #[test]
    fn mistyped_names_find_their_option() {
        for (typed, meant) in [
            ("--prodcers", "--producers"),
            ("--consumer", "--consumers"),
            ("--queue_args", "--queue-args"),
            ("--routingkey=x", "--routing-key"),
            ("-qpx", "-qp"),
            ("--JSON", "--json"),
        ] {
            assert_eq!(nearest(typed).as_deref(), Some(meant), "{typed}");
        }
        assert_eq!(nearest("--completely-different"), None);
    }

    #[test]
    fn abbreviations_of_perf_test_keep_their_meaning() {
        assert_eq!(by_prefix("json-").len(), 1);
        assert_eq!(by_prefix("verb").len(), 2, "--verify is not meant");
        assert_eq!(by_prefix("veri")[0].long, "verify");
        assert_eq!(by_prefix("consumers")[0].short, "y");
        assert!(by_prefix("").is_empty());
    }

    #[test]
    fn variables_are_long_names_in_capitals() {
        let variable = |long| by_long(long).and_then(Spec::variable);
        assert_eq!(
            variable("confirm-timeout").as_deref(),
            Some("CONFIRM_TIMEOUT")
        );
        assert_eq!(variable("json").as_deref(), Some("LEVERET_PERF_JSON"));
        assert_eq!(variable("verbose"), None);
        assert_eq!(variable("version"), None);
    }
}
