//! The log: lines on standard error, as text or as JSON. Owns the process-wide `tracing`
//! subscriber, which is set once, at start.

use std::io::IsTerminal;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::config::{LogConfig, LogFormat, LogLevel};

/// Why the log could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// `LEVERET_LOG` is not a filter.
    #[error("environment variable LEVERET_LOG: {filter:?} is not a log filter: {source}")]
    Filter {
        /// The variable's value.
        filter: String,
        /// What is wrong with it.
        source: ParseError,
    },
    /// A log has been set up before.
    #[error("the log is set up already: {0}")]
    Repeated(#[from] TryInitError),
}

/// Sets up the log of this process.
///
/// # Errors
/// The filter of the environment is not one, or a log is set up already.
pub fn init(config: &LogConfig) -> Result<(), LoggingError> {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let filter = filter(config)?;
    match config.format {
        LogFormat::Plaintext => text(filter, colour, std::io::stderr).try_init()?,
        LogFormat::Json => json(filter, std::io::stderr).try_init()?,
    }
    Ok(())
}

/// The environment's filter, else the level of the configuration, else nothing.
fn filter(config: &LogConfig) -> Result<EnvFilter, LoggingError> {
    let level = match config.level {
        _ if !config.console => LevelFilter::OFF,
        LogLevel::None => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warning => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let builder = EnvFilter::builder().with_default_directive(level.into());
    let filter = config.filter.as_deref().unwrap_or("");
    builder
        .parse(filter)
        .map_err(|source| LoggingError::Filter {
            filter: filter.to_owned(),
            source,
        })
}

fn text<W>(filter: EnvFilter, colour: bool, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    fmt::fmt()
        .with_env_filter(filter)
        .with_ansi(colour)
        .with_writer(writer)
        .finish()
}

fn json<W>(filter: EnvFilter, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    fmt::fmt()
        .json()
        .flatten_event(true)
        .with_env_filter(filter)
        .with_writer(writer)
        .finish()
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Lines {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn config(level: LogLevel, filter: Option<&str>) -> LogConfig {
        let filter = filter.map(str::to_owned);
        LogConfig {
            console: true,
            level,
            format: LogFormat::Plaintext,
            filter,
        }
    }

    fn logged(config: &LogConfig) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = text(filter(config).unwrap(), false, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::error!("an error");
            tracing::info!(queue = "carrots", "an information");
            tracing::debug!("a detail");
        });
        lines.text()
    }

    #[test]
    fn the_level_decides_what_is_logged() {
        let lines = logged(&config(LogLevel::Info, None));
        assert!(lines.contains("an error") && lines.contains("an information queue=\"carrots\""));
        assert!(!lines.contains("a detail") && !lines.contains('\u{1b}'));
        assert_eq!(logged(&config(LogLevel::None, None)), "");
        assert_eq!(
            logged(&LogConfig {
                console: false,
                ..config(LogLevel::Debug, None)
            }),
            ""
        );
    }

    #[test]
    fn the_environments_filter_takes_the_place_of_the_level() {
        assert!(logged(&config(LogLevel::Error, Some("debug"))).contains("a detail"));
        assert_eq!(logged(&config(LogLevel::Debug, Some("off"))), "");
        let silent = LogConfig {
            console: false,
            ..config(LogLevel::Error, Some("debug"))
        };
        assert!(logged(&silent).contains("a detail"));
        let error = filter(&config(LogLevel::Info, Some("leveret=loud"))).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("environment variable LEVERET_LOG: \"leveret=loud\"")
        );
    }

    #[test]
    fn json_lines_have_level_and_message_at_the_top() {
        let lines = Lines::default();
        let writer = lines.clone();
        let filter = filter(&config(LogLevel::Info, None)).unwrap();
        let subscriber = json(filter, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || tracing::info!(vhost = "/", "started"));
        let line = lines.text();
        assert!(
            line.contains(r#""level":"INFO","message":"started","vhost":"/""#),
            "{line}"
        );
    }
}
