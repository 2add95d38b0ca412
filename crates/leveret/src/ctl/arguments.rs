//! The command line as rabbitmqctl reads it: options may stand anywhere, before the command too.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::command::{Command, CommandOption, Failed, flag, value};

/// What was given, sorted.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// Everything, as it was given.
    pub given: Vec<String>,
    /// What follows the command's name, without options.
    pub positional: Vec<String>,
    pub vhost: String,
    pub quiet: bool,
    pub silent: bool,
    pub no_table_headers: bool,
    pub formatter: Option<String>,
    /// How long to wait for the server.
    pub timeout: Option<Duration>,
    pub data_dir: Option<PathBuf>,
    pub config: Option<PathBuf>,
    pub socket: Option<PathBuf>,
    /// The command's own options; those without a value are there or not.
    own: BTreeMap<&'static str, String>,
}

/// Options of every command.
const COMMON: &[CommandOption] = &[
    CommandOption {
        long: "--node",
        short: "-n",
        takes_value: true,
    },
    CommandOption {
        long: "--vhost",
        short: "-p",
        takes_value: true,
    },
    CommandOption {
        long: "--timeout",
        short: "-t",
        takes_value: true,
    },
    flag("--quiet", "-q"),
    flag("--silent", "-s"),
    flag("--longnames", "-l"),
    flag("--no-table-headers", ""),
    value("--formatter"),
    value("--data-dir"),
    CommandOption {
        long: "--config",
        short: "-c",
        takes_value: true,
    },
    value("--socket"),
];

const HELP: [&str; 3] = ["--help", "-h", "-?"];

impl Arguments {
    /// The first word that is no option: the command.
    pub fn command_name(given: &[String]) -> Option<&str> {
        let mut words = given.iter();
        while let Some(word) = words.next() {
            if !is_option(word) {
                return Some(word);
            }
            let (name, attached) = split(word);
            let option = COMMON.iter().find(|option| is(option, name));
            if option.is_some_and(|option| option.takes_value) && attached.is_none() {
                words.next();
            }
        }
        None
    }

    pub fn asks_for_help(given: &[String]) -> bool {
        let before = given.iter().take_while(|word| *word != "--");
        before.into_iter().any(|word| HELP.contains(&word.as_str()))
    }

    /// Reads the arguments of a command.
    ///
    /// # Errors
    /// There are too many or too few, or an option makes no sense.
    pub fn parse(command: &'static Command, given: &[String]) -> Result<Arguments, Failed> {
        let refuse = |text: &str| Failed::arguments(command, given, text);
        let mut arguments = Arguments {
            given: given.to_vec(),
            vhost: "/".to_owned(),
            ..Arguments::default()
        };
        let mut words = given.iter();
        let mut named = false;
        while let Some(word) = words.next() {
            if word == "--" {
                arguments.positional.extend(words.by_ref().cloned());
                break;
            }
            if !is_option(word) {
                match named {
                    true => arguments.positional.push(word.clone()),
                    false => named = true,
                }
                continue;
            }
            let (name, attached) = split(word);
            let mut options = command.options.iter().chain(COMMON);
            let option = options
                .find(|option| is(option, name))
                .ok_or_else(|| refuse(&format!("Invalid options for this command:\n{word}")))?;
            let value = match (option.takes_value, attached) {
                (true, Some(value)) => value.to_owned(),
                (true, None) => words
                    .next()
                    .cloned()
                    .ok_or_else(|| refuse(&format!("{name} needs a value")))?,
                (false, None) => String::new(),
                (false, Some(_)) => return Err(refuse(&format!("{name} takes no value"))),
            };
            arguments
                .set(option.long, value)
                .map_err(|text| refuse(&text))?;
        }
        match arguments.positional.len() {
            count if count < *command.positional.start() => Err(refuse("not enough arguments.")),
            count if count > *command.positional.end() => Err(refuse("too many arguments.")),
            _ => Ok(arguments),
        }
    }

    fn set(&mut self, long: &'static str, value: String) -> Result<(), String> {
        match long {
            "--vhost" => self.vhost = value,
            "--quiet" => self.quiet = true,
            "--silent" => self.silent = true,
            // The data directory says which server is meant.
            "--node" | "--longnames" => {}
            "--no-table-headers" => self.no_table_headers = true,
            "--formatter" => self.formatter = Some(value),
            "--data-dir" => self.data_dir = Some(value.into()),
            "--config" => self.config = Some(value.into()),
            "--socket" => self.socket = Some(value.into()),
            "--timeout" if value == "infinity" => self.timeout = None,
            "--timeout" => {
                let seconds: u32 = value.parse().map_err(|_| {
                    format!("Invalid options for this command:\n--timeout : {value}")
                })?;
                self.timeout = Some(Duration::from_secs(seconds.into()));
            }
            own => {
                self.own.insert(own, value);
            }
        }
        Ok(())
    }

    /// A value of the command's own.
    pub fn own(&self, long: &str) -> Option<&str> {
        self.own.get(long).map(String::as_str)
    }

    /// A flag of the command's own.
    pub fn has(&self, long: &str) -> bool {
        self.own.contains_key(long)
    }

    /// The columns of a list, which may also be given with commas.
    pub fn columns(&self) -> Vec<&str> {
        let words = self.positional.iter().flat_map(|word| word.split(','));
        words.filter(|word| !word.is_empty()).collect()
    }
}

/// A lone hyphen stands for standard input or output.
fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// `--name=value` in two.
fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once('=') {
        Some((name, value)) if word.starts_with("--") => (name, Some(value)),
        _ => (word, None),
    }
}

fn is(option: &CommandOption, name: &str) -> bool {
    option.long == name || (!option.short.is_empty() && option.short == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ctl::find;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|word| (*word).to_owned()).collect()
    }

    fn parsed(text: &[&str]) -> Result<Arguments, String> {
        let given = words(text);
        let name = Arguments::command_name(&given).expect("a command");
        let command = find(name).expect("a known command");
        Arguments::parse(command, &given).map_err(|failed| failed.text)
    }

    #[test]
    fn options_may_stand_anywhere() {
        for given in [
            &[
                "-q",
                "-p",
                "v",
                "set_policy",
                "--priority",
                "3",
                "n",
                "^q",
                "{}",
            ][..],
            &[
                "set_policy",
                "n",
                "^q",
                "{}",
                "--priority=3",
                "--vhost",
                "v",
                "--quiet",
            ],
        ] {
            let arguments = parsed(given).expect("right");
            assert_eq!(arguments.positional, ["n", "^q", "{}"]);
            assert_eq!(arguments.own("--priority"), Some("3"));
            assert!(arguments.quiet && arguments.vhost == "v");
        }
    }

    #[test]
    fn after_two_hyphens_nothing_is_an_option() {
        let arguments = parsed(&["add_user", "--", "-bob", "--pw"]).expect("right");
        assert_eq!(arguments.positional, ["-bob", "--pw"]);
        let empty = parsed(&["set_permissions", "bob", "", "", ""]).expect("right");
        assert_eq!(empty.positional, ["bob", "", "", ""]);
    }

    #[test]
    fn mistakes_are_told_in_rabbitmqctls_words() {
        let text = parsed(&["clear_policy"]).expect_err("a name is missing");
        assert_eq!(
            text,
            "Error (argument validation): not enough arguments.\nArguments given:\n\t\
             clear_policy\n\nUsage\n\nleveret ctl clear_policy [--vhost <vhost>] <name>"
        );
        let text = parsed(&["list_users", "extra"]).expect_err("one too many");
        assert!(text.contains("too many arguments."), "{text}");
        let text = parsed(&["list_users", "--foo"]).expect_err("no such option");
        assert!(
            text.contains("Invalid options for this command:\n--foo"),
            "{text}"
        );
    }
}
