//! The command line: what can be said, how it is explained, and the exit statuses. Turns the
//! arguments into an [`Invocation`] and starts nothing.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::{self, Flags};

/// Exit status of a run that failed after it had started.
pub const EXIT_FAILURE: u8 = 1;
/// Exit status for wrong arguments or a wrong configuration; nothing was started.
pub const EXIT_USAGE: u8 = 2;
/// Exit status of `leveret check` for a damaged data directory.
pub const EXIT_DAMAGED: u8 = 3;

/// What the user asked for.
#[derive(Debug)]
pub enum Invocation {
    /// Run the server.
    Server(ServerArguments),
    /// Print the reference of the configuration; see [`print_configuration_reference`].
    Config,
    /// Look at a data directory.
    Check(CheckArguments),
    /// Load a broker; the arguments are the load tester's.
    Perf(Vec<OsString>),
    /// Administer a running server; the arguments are rabbitmqctl's.
    Ctl(Vec<OsString>),
}

/// Reads the arguments, of which the first is the program's name.
///
/// # Errors
/// The arguments make no sense, or ask for the help or the version; `clap::Error::exit` prints
/// the right text and exits with the right status.
pub fn parse(
    arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>,
) -> Result<Invocation, clap::Error> {
    let leveret = Leveret::try_parse_from(arguments)?;
    Ok(match leveret.command {
        Some(Command::Server(arguments)) => Invocation::Server(arguments),
        Some(Command::Config) => Invocation::Config,
        Some(Command::Check(arguments)) => Invocation::Check(arguments),
        Some(Command::Perf(arguments)) => Invocation::Perf(arguments.arguments),
        Some(Command::Ctl(arguments)) => Invocation::Ctl(arguments.arguments),
        None => Invocation::Server(leveret.server),
    })
}

/// Prints the reference of the configuration to standard output.
///
/// # Errors
/// Standard output cannot be written to, as when a pager is left early.
pub fn print_configuration_reference() -> io::Result<()> {
    io::stdout().write_all(config::document::reference_page().as_bytes())
}

/// A message broker for AMQP 0-9-1, 0-9 and 0-8 clients, compatible with RabbitMQ.
///
/// Without a command, leveret runs the server.
#[derive(Debug, Parser)]
#[command(
    name = "leveret",
    version,
    args_conflicts_with_subcommands = true,
    after_help = EXAMPLES,
    after_long_help = server_details()
)]
struct Leveret {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    server: ServerArguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server (the default).
    ///
    /// Runs until it is told to stop with SIGTERM or SIGINT. Without a configuration file it
    /// listens on port 5672 and lets the user guest in from this machine only.
    #[command(verbatim_doc_comment, after_help = EXAMPLES, after_long_help = server_details())]
    Server(ServerArguments),
    /// Print the keys of the configuration file and the environment variables, in Markdown.
    Config,
    /// Look at a data directory that no server uses: what is in it, and whether it is sound.
    ///
    /// Reads everything: definitions, the log, and every message of every queue.
    #[command(verbatim_doc_comment, after_help = CHECK_STATUS)]
    Check(CheckArguments),
    /// Load a broker: how fast is it, how late, and since when. `leveret perf -?` explains.
    ///
    /// Takes the options of RabbitMQ's PerfTest, and commands of its own.
    #[command(verbatim_doc_comment, disable_help_flag = true)]
    Perf(PassedOn),
    /// Administer the server that uses a data directory. `leveret ctl help` explains.
    ///
    /// Takes the commands and options of rabbitmqctl.
    #[command(verbatim_doc_comment, disable_help_flag = true)]
    Ctl(PassedOn),
}

/// The arguments of commands that are not clap's to judge: PerfTest's `-h` is a URI, and
/// rabbitmqctl takes options anywhere.
#[derive(Debug, Args)]
pub struct PassedOn {
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    arguments: Vec<OsString>,
}

/// The arguments of `leveret check`.
#[derive(Debug, Args)]
pub struct CheckArguments {
    /// The data directory.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Cut out what is damaged, so that a server can start with the rest, and say what was cut.
    /// What is cut is lost: keep a copy of the directory.
    #[arg(long, verbatim_doc_comment)]
    pub repair: bool,
}

const CHECK_STATUS: &str = "\
Exit status:
  0  The directory is sound, or was repaired
  1  It cannot be checked: not there, in use, unreadable, of another version
  2  The arguments are wrong
  3  Something is damaged";

/// The arguments of `leveret server`.
#[derive(Debug, Default, Args)]
pub struct ServerArguments {
    /// Read the configuration from this file, in the syntax of rabbitmq.conf.
    ///
    /// Without it, the file named by RABBITMQ_CONFIG_FILE is read, else
    /// /etc/leveret/leveret.conf if there is one.
    #[arg(short, long, verbatim_doc_comment, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Keep messages and definitions in this directory, which is made if needed.
    ///
    /// Takes precedence over LEVERET_DATA_DIR and over leveret.data_dir in the configuration file.
    #[arg(long, verbatim_doc_comment, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl ServerArguments {
    /// What the arguments say about the configuration.
    pub fn flags(&self) -> Flags {
        Flags {
            config_file: self.config.clone(),
            data_dir: self.data_dir.clone(),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  leveret
          Start with the defaults: port 5672, user guest from this machine only
  leveret server --config /etc/rabbitmq/rabbitmq.conf
          Start with the configuration of a RabbitMQ node
  RABBITMQ_DEFAULT_USER=app RABBITMQ_DEFAULT_PASS=secret leveret
          Start with a user of your own, who may connect from anywhere";

const EXIT_STATUS: &str = "
Exit status:
  0  The server has stopped in good order
  1  The server failed
  2  The arguments or the configuration are wrong; nothing was started

The keys of the configuration file: leveret config";

fn server_details() -> String {
    let mut details = format!("{EXAMPLES}\n\nEnvironment variables:\n");
    for (name, meaning) in config::document::variables() {
        // Writing to a string cannot fail.
        let _ = writeln!(details, "  {name}\n          {}", meaning.replace('`', ""));
    }
    details.push_str(EXIT_STATUS);
    details
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn flags(arguments: &[&str]) -> Flags {
        match parse(arguments).unwrap() {
            Invocation::Server(server) => server.flags(),
            other => panic!("{arguments:?} do not run the server but {other:?}"),
        }
    }

    fn error(arguments: &[&str]) -> clap::Error {
        parse(arguments).unwrap_err()
    }

    #[test]
    fn the_definition_is_sound() {
        Leveret::command().debug_assert();
    }

    #[test]
    fn without_a_command_the_server_is_meant() {
        for arguments in [
            &["leveret", "-c", "x.conf", "--data-dir", "d"][..],
            &["leveret", "server", "--config", "x.conf", "--data-dir=d"],
        ] {
            let flags = flags(arguments);
            assert_eq!(flags.config_file.as_deref(), Some(Path::new("x.conf")));
            assert_eq!(flags.data_dir.as_deref(), Some(Path::new("d")));
        }
        assert_eq!(flags(&["leveret"]).config_file, None);
    }

    #[test]
    fn the_load_tester_gets_its_arguments_as_they_are() {
        for given in [
            &["-h", "amqp://x", "-x1"][..],
            &["--help"],
            &["w1", "--", "-V"],
            &[],
        ] {
            let mut arguments = vec!["leveret", "perf"];
            arguments.extend(given);
            match parse(&arguments).unwrap() {
                Invocation::Perf(passed) => assert_eq!(passed, given),
                other => panic!("{arguments:?} is {other:?}"),
            }
        }
    }

    #[test]
    fn ctl_gets_its_arguments_as_they_are() {
        for given in [&["-q", "list_queues", "-p", "v"][..], &["--help"], &[]] {
            let mut arguments = vec!["leveret", "ctl"];
            arguments.extend(given);
            match parse(&arguments).unwrap() {
                Invocation::Ctl(passed) => assert_eq!(passed, given),
                other => panic!("{arguments:?} is {other:?}"),
            }
        }
    }

    #[test]
    fn config_takes_no_arguments() {
        assert!(matches!(
            parse(["leveret", "config"]),
            Ok(Invocation::Config)
        ));
        assert_eq!(
            error(&["leveret", "config", "--data-dir", "d"]).exit_code(),
            2
        );
    }

    #[test]
    fn wrong_arguments_exit_with_status_2_and_a_suggestion() {
        let error = error(&["leveret", "server", "--confg", "x"]);
        assert_eq!(error.exit_code(), i32::from(EXIT_USAGE));
        assert!(error.to_string().contains("'--config'"), "{error}");
    }

    #[test]
    fn help_shows_examples_and_variables_and_exits_with_status_0() {
        let help = error(&["leveret", "server", "--help"]);
        assert_eq!((help.kind(), help.exit_code()), (ErrorKind::DisplayHelp, 0));
        let text = help.to_string();
        for part in [
            "Examples:",
            "--data-dir <DIR>",
            "RABBITMQ_DEFAULT_PASS",
            "LEVERET_LOG",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn version_is_the_programs_own() {
        let version = error(&["leveret", "-V"]);
        assert_eq!(
            version.to_string(),
            concat!("leveret ", env!("CARGO_PKG_VERSION"), "\n")
        );
    }
}
