//! From what the user wrote to a [`Config`]: defaults, then the file, then the environment, then
//! the flags, each over the one before.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

use super::draft::Draft;
use super::environment::Environment;
use super::error::{ConfigError, Origin, ProblemKind, Report, Warning};
use super::interpolation::interpolate;
use super::key::Key;
use super::option::{ConfigOption, Entry};
use super::syntax::{self, Setting};
use super::{Config, Flags, options, rabbitmq_keys, value};

/// Resolves the text of a file, which may be empty, with the environment and the flags. `file` is
/// the name that problems are reported under.
pub(super) fn resolve(
    file: &Path,
    text: &[u8],
    flags: &Flags,
    environment: &Environment,
) -> Result<(Config, Vec<Warning>), ConfigError> {
    let mut report = Report::default();
    let mut draft = Draft::built_in();
    let settings = syntax::parse(file, text, &mut report);
    for setting in without_repeats(&settings, &mut report) {
        apply_setting(setting, environment, &mut draft, &mut report);
    }
    apply_default_listener(environment, &mut draft, &mut report);
    apply_variables(environment, &mut draft, &mut report);
    if let Some(directory) = &flags.data_dir {
        draft.data_dir.clone_from(directory);
    }
    let config = draft.finish(environment, &mut report);
    report.sort();
    if report.problems.is_empty() {
        Ok((config, report.warnings))
    } else {
        Err(ConfigError::Invalid(report.problems))
    }
}

/// The settings that count: of several with one key, the last.
fn without_repeats<'a>(settings: &'a [Setting], report: &mut Report) -> Vec<&'a Setting> {
    let last: HashMap<&Key, &Setting> = settings
        .iter()
        .map(|setting| (&setting.key, setting))
        .collect();
    let mut counting = Vec::with_capacity(settings.len());
    for setting in settings {
        match last.get(&setting.key) {
            Some(winner) if winner.origin != setting.origin => report.warn(
                setting.origin.clone(),
                format!(
                    "{}: ignored, it is set again at {}",
                    setting.key, winner.origin
                ),
            ),
            _ => counting.push(setting),
        }
    }
    counting
}

fn apply_setting(
    setting: &Setting,
    environment: &Environment,
    draft: &mut Draft,
    report: &mut Report,
) {
    let Setting { key, value, origin } = setting;
    let option = options::all().find_map(|option| Some((option, key.matches(option.key)?)));
    let Some((option, name)) = option else {
        if rabbitmq_keys::contain(key) {
            report.warn(
                origin.clone(),
                format!("{key}: {}", unused(&key.to_string())),
            );
        } else {
            let nearest = rabbitmq_keys::nearest(key);
            let kind = ProblemKind::UnknownKey {
                key: key.to_string(),
                nearest,
            };
            report.problem(origin.clone(), kind);
        }
        return;
    };
    match interpolate(value, environment) {
        Ok(value) => {
            let entry = Entry {
                name: name.unwrap_or(""),
                value: &value,
                origin: Some(origin),
            };
            if (option.set)(draft, &entry).is_none() {
                let kind = bad_value(key.to_string(), option, &value);
                report.problem(origin.clone(), kind);
            }
        }
        Err(variable) => {
            let kind = ProblemKind::UnsetVariable {
                key: key.to_string(),
                variable,
            };
            report.problem(origin.clone(), kind);
        }
    }
}

/// What to know of a RabbitMQ key that does nothing here. Where it protects or brings something
/// that is missing now, that is said.
fn unused(key: &str) -> &'static str {
    const MISSING: [(&str, &str); 6] = [
        (
            "listeners.ssl",
            "there is no TLS yet; nothing listens there",
        ),
        ("ssl_options", "there is no TLS yet; without effect"),
        (
            "management",
            "there is no management API yet; without effect",
        ),
        ("prometheus", "there are no metrics yet; without effect"),
        ("auth_backends", "users are internal only; without effect"),
        (
            "cluster_formation",
            "there is no clustering yet; this node stands alone",
        ),
    ];
    let found = MISSING.iter().find(|(prefix, _)| {
        key.strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    });
    found.map_or(
        "a RabbitMQ setting that Leveret does not use; ignored",
        |(_, text)| text,
    )
}

fn bad_value(name: String, option: &ConfigOption, value: &str) -> ProblemKind {
    let given = if option.secret {
        "this value".to_owned()
    } else {
        format!("{value:?}")
    };
    ProblemKind::BadValue {
        name,
        given,
        allowed: option.values.to_owned(),
    }
}

/// The variables that stand for one key each.
fn apply_variables(environment: &Environment, draft: &mut Draft, report: &mut Report) {
    for option in options::all() {
        let Some(name) = option.variable else {
            continue;
        };
        let Some(value) = text_of(name, environment, report) else {
            continue;
        };
        let origin = Origin::Variable(name);
        let entry = Entry {
            name: "",
            value,
            origin: Some(&origin),
        };
        if (option.set)(draft, &entry).is_none() {
            let kind = bad_value(option.key.to_owned(), option, value);
            report.problem(origin, kind);
        }
    }
    draft.log_filter = text_of(options::LOG_VARIABLE, environment, report).map(str::to_owned);
}

/// Unlike the other variables, those of the address and the port count less than the file, as in
/// RabbitMQ.
fn apply_default_listener(environment: &Environment, draft: &mut Draft, report: &mut Report) {
    let Some(listener) = draft.listeners.built_in_mut() else {
        return;
    };
    let mut refuse = |name: &'static str, value: &str, allowed: &str| {
        let kind = ProblemKind::BadValue {
            name: "value".to_owned(),
            given: format!("{value:?}"),
            allowed: allowed.to_owned(),
        };
        report.problem(Origin::Variable(name), kind);
    };
    let lossy = |name| {
        environment
            .variable(name)
            .map(|value| value.to_string_lossy())
    };
    if let Some(text) = lossy(options::PORT_VARIABLE) {
        match value::port(&text) {
            Some(port) => listener.set_port(port),
            None => refuse(options::PORT_VARIABLE, &text, "a port from 0 to 65535"),
        }
    }
    if let Some(text) = lossy(options::ADDRESS_VARIABLE).filter(|text| text != "auto") {
        match text.parse::<IpAddr>() {
            Ok(address) => listener.set_ip(address),
            Err(_) => refuse(options::ADDRESS_VARIABLE, &text, "an IP address, or auto"),
        }
    }
}

/// A variable's value, if it is set; one that is not UTF-8 is reported.
fn text_of<'a>(
    name: &'static str,
    environment: &'a Environment,
    report: &mut Report,
) -> Option<&'a str> {
    let value = environment.variable(name)?;
    if value.to_str().is_none() {
        let text = "the value is not UTF-8 text".to_owned();
        report.problem(Origin::Variable(name), ProblemKind::Syntax(text));
    }
    value.to_str()
}
