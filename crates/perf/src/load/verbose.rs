//! `--verbose`: a line for each message. Only for slow rates, as the option's text says.

use std::io::Write;

use client::{Confirm, Delivery, Properties};

use super::mark::Mark;
use crate::settings::{self, Settings};

/// Prints what happens to messages, or nothing.
#[derive(Debug, Clone, Copy)]
pub struct Verbose(settings::Verbose);

impl Verbose {
    /// As the settings say.
    pub fn new(settings: &Settings) -> Verbose {
        Verbose(settings.output.verbose)
    }

    /// A message was published.
    #[inline]
    pub fn published(&self, producer: u32, mark: &Mark, properties: Properties<'_>, body: &[u8]) {
        if self.0 != settings::Verbose::Off {
            self.line(
                format_args!(
                    "publisher {producer}: message published, sequence {}, timestamp {}",
                    mark.sequence, mark.time
                ),
                properties,
                body,
            );
        }
    }

    /// A message was received.
    #[inline]
    pub fn received(&self, consumer: u32, delivery: &Delivery<'_>) {
        if self.0 != settings::Verbose::Off {
            self.line(
                format_args!(
                    "consumer {consumer}: message received, delivery tag {}, redelivered {}, \
                     exchange '{}', routing key '{}'",
                    delivery.delivery_tag,
                    delivery.redelivered,
                    delivery.exchange.lossy(),
                    delivery.routing_key.lossy()
                ),
                delivery.properties,
                delivery.body,
            );
        }
    }

    /// A confirm came.
    #[inline]
    pub fn confirmed(&self, confirm: &Confirm) {
        if self.0 != settings::Verbose::Off {
            let what = if confirm.acked { "confirmed" } else { "nacked" };
            let multiple = if confirm.multiple { ", multiple" } else { "" };
            print(format_args!(
                "channel {}: {what} {}{multiple}",
                confirm.channel, confirm.delivery_tag
            ));
        }
    }

    fn line(&self, what: std::fmt::Arguments<'_>, properties: Properties<'_>, body: &[u8]) {
        if self.0 != settings::Verbose::Full {
            return print(what);
        }
        let properties = match properties.summarize() {
            Ok(summary) => format!("{summary:?}"),
            Err(error) => error.to_string(),
        };
        let text = String::from_utf8_lossy(body);
        print(format_args!(
            "{what}, properties {properties}, body {} bytes {:?}",
            body.len(),
            text.chars().take(200).collect::<String>()
        ));
    }
}

fn print(line: std::fmt::Arguments<'_>) {
    // Nobody reads any more: the load itself goes on.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
