//! Which configuration file is read: `--config`, else the one that the environment names, else
//! the system's, else none.

use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::error::ConfigError;
use super::{Flags, options};

/// The file that is read where neither `--config` nor the environment names one, if it exists.
pub const DEFAULT_CONFIG_FILE: &str = "/etc/leveret/leveret.conf";

/// The file to read, which exists, or `None` where there is none.
pub(super) fn config_file(
    flags: &Flags,
    environment: &Environment,
    default: &Path,
) -> Result<Option<PathBuf>, ConfigError> {
    if let Some(path) = &flags.config_file {
        return existing(path)
            .map(Some)
            .ok_or_else(|| not_found(path, "--config"));
    }
    if let Some(value) = environment.variable(options::CONFIG_FILE_VARIABLE) {
        let path = Path::new(value);
        let found = existing(path).or_else(|| existing(&with_conf(path)));
        return found
            .map(Some)
            .ok_or_else(|| not_found(path, options::CONFIG_FILE_VARIABLE));
    }
    Ok(existing(default))
}

/// RabbitMQ lets the variable leave out the file's `.conf`.
fn with_conf(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".conf");
    PathBuf::from(name)
}

/// The path, unless there is certainly nothing there: what else is wrong with it is for the read
/// to tell.
fn existing(path: &Path) -> Option<PathBuf> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        _ => Some(path.to_owned()),
    }
}

fn not_found(path: &Path, named_by: &'static str) -> ConfigError {
    ConfigError::NotFound {
        path: path.to_owned(),
        named_by,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(file: Option<&Path>) -> Flags {
        Flags {
            config_file: file.map(Path::to_owned),
            data_dir: None,
        }
    }

    #[test]
    fn the_flag_wins_over_the_environment_over_the_default() {
        let directory = std::env::temp_dir().join(format!("leveret-locate-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let [flag, variable, default] =
            ["flag.conf", "variable.conf", "default.conf"].map(|name| directory.join(name));
        for file in [&flag, &variable, &default] {
            std::fs::write(file, "").unwrap();
        }
        let without_conf = directory.join("variable");
        let named =
            Environment::for_tests(&[("RABBITMQ_CONFIG_FILE", without_conf.to_str().unwrap())]);
        let plain = Environment::for_tests(&[]);

        let found = |file, environment| config_file(&flags(file), environment, &default).unwrap();
        assert_eq!(found(Some(&flag), &named), Some(flag.clone()));
        assert_eq!(found(None, &named), Some(variable));
        assert_eq!(found(None, &plain), Some(default.clone()));
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(found(None, &plain), None);
    }

    #[test]
    fn a_named_file_that_is_missing_is_an_error() {
        let missing = Path::new("/nonexistent/leveret.conf");
        let error = config_file(&flags(Some(missing)), &Environment::for_tests(&[]), missing);
        assert_eq!(
            error.unwrap_err().to_string(),
            "the configuration file /nonexistent/leveret.conf does not exist (named by --config)"
        );
        let named = Environment::for_tests(&[("RABBITMQ_CONFIG_FILE", "/nonexistent/x")]);
        let error = config_file(&flags(None), &named, missing).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("(named by RABBITMQ_CONFIG_FILE)")
        );
    }
}
