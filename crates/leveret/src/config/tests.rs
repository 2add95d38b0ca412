//! The configuration as a whole: what a file, an environment and flags come to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;

use super::error::Origin;
use super::options;
use super::resolve::resolve;
use super::*;

fn outcome(text: &str, variables: &[(&str, &str)]) -> Result<(Config, Vec<Warning>), ConfigError> {
    let environment = Environment::for_tests(variables);
    resolve(
        Path::new("leveret.conf"),
        text.as_bytes(),
        &Flags::default(),
        &environment,
    )
}

/// The configuration of a file without faults.
fn config(text: &str) -> Config {
    match outcome(text, &[]) {
        Ok((config, warnings)) => {
            assert_eq!(warnings, [], "{text}");
            config
        }
        Err(error) => panic!("{text}: {error}"),
    }
}

fn config_in(text: &str, variables: &[(&str, &str)]) -> Config {
    outcome(text, variables).unwrap().0
}

fn warnings(text: &str) -> Vec<String> {
    outcome(text, &[])
        .unwrap()
        .1
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn error(text: &str) -> String {
    outcome(text, &[]).unwrap_err().to_string()
}

fn addresses(config: &Config) -> Vec<String> {
    config.listeners.iter().map(ToString::to_string).collect()
}

#[test]
fn without_a_file_the_defaults_are_rabbitmqs() {
    let config = config("");
    assert_eq!(addresses(&config), ["[::]:5672"]);
    assert_eq!(
        config.tcp_listen_options,
        TcpListenOptions {
            backlog: 128,
            nodelay: true
        }
    );
    assert_eq!(config.handshake_timeout, Some(Duration::from_secs(10)));
    assert_eq!(
        (config.default_user.as_str(), config.default_pass.expose()),
        ("guest", "guest")
    );
    assert_eq!(config.default_vhost, "/");
    assert_eq!(config.default_permissions.configure, ".*");
    assert_eq!(config.default_user_tags, ["administrator"]);
    assert_eq!(config.loopback_users, ["guest"]);
    assert_eq!((config.heartbeat, config.channel_max), (60, 2047));
    assert_eq!(
        (config.frame_max, config.initial_frame_max),
        (131_072, 4096)
    );
    assert_eq!(config.max_message_size, 134_217_728);
    assert_eq!(
        config.vm_memory_high_watermark,
        ResourceLimit::Relative(0.4)
    );
    assert_eq!(config.disk_free_limit, ResourceLimit::Absolute(50_000_000));
    assert_eq!(config.data_dir, Path::new("./leveret-data"));
    assert_eq!(config.node_name, "rabbit@burrow");
    assert_eq!(config.cluster_name, "rabbit@burrow");
    assert_eq!(config.worker_threads.get(), 2);
    assert_eq!(
        (config.log.console, config.log.level),
        (true, LogLevel::Info)
    );
}

#[test]
fn a_listener_of_the_users_replaces_the_default_one() {
    assert_eq!(
        addresses(&config("listeners.tcp.default = 5673")),
        ["[::]:5673"]
    );
    let two = "listeners.tcp.b = 127.0.0.1:5672\nlisteners.tcp.a = ::1:5672";
    assert_eq!(addresses(&config(two)), ["127.0.0.1:5672", "[::1]:5672"]);
    assert_eq!(
        addresses(&config("listeners.tcp.a = 1\nlisteners.tcp = none")),
        [""; 0]
    );
}

#[test]
fn the_port_and_address_of_the_environment_count_less_than_the_file() {
    let both = [
        ("RABBITMQ_NODE_PORT", "5700"),
        ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1"),
    ];
    assert_eq!(addresses(&config_in("", &both)), ["127.0.0.1:5700"]);
    assert_eq!(addresses(&config_in("", &both[..1])), ["[::]:5700"]);
    assert_eq!(
        addresses(&config_in("listeners.tcp.x = 1", &both)),
        ["[::]:1"]
    );
    let automatic = [
        ("RABBITMQ_NODE_IP_ADDRESS", "auto"),
        ("RABBITMQ_NODE_PORT", ""),
    ];
    assert_eq!(addresses(&config_in("", &automatic)), ["[::]:5672"]);
}

#[test]
fn the_environment_wins_over_the_file_and_the_flag_over_both() {
    let variables = [
        ("RABBITMQ_DEFAULT_USER", "ann"),
        ("LEVERET_DATA_DIR", "/env"),
    ];
    let text = "default_user = bob\nleveret.data_dir = /file";
    let config = config_in(text, &variables);
    assert_eq!(
        (config.default_user.as_str(), config.data_dir),
        ("ann", PathBuf::from("/env"))
    );

    let flags = Flags {
        config_file: None,
        data_dir: Some("/flag".into()),
    };
    let environment = Environment::for_tests(&variables);
    let (config, _) = resolve(Path::new(""), text.as_bytes(), &flags, &environment).unwrap();
    assert_eq!(config.data_dir, Path::new("/flag"));
}

#[test]
fn the_first_tag_and_loopback_user_replace_the_default_ones() {
    let tags = "default_user_tags.monitoring = true\ndefault_user_tags.policymaker = false";
    assert_eq!(config(tags).default_user_tags, ["monitoring"]);
    assert_eq!(
        config("loopback_users.guest = false").loopback_users,
        [""; 0]
    );
    assert_eq!(config("loopback_users.ann = true").loopback_users, ["ann"]);
    assert_eq!(config("loopback_users = none").loopback_users, [""; 0]);
}

#[test]
fn an_absolute_limit_wins_over_a_relative_one() {
    let relative =
        config("vm_memory_high_watermark.relative = 0.6\ndisk_free_limit.relative = 1.5");
    assert_eq!(
        relative.vm_memory_high_watermark,
        ResourceLimit::Relative(0.6)
    );
    assert_eq!(relative.disk_free_limit, ResourceLimit::Relative(1.5));
    assert_eq!(
        config("vm_memory_high_watermark.absolute = 2GiB").vm_memory_high_watermark,
        ResourceLimit::Absolute(2 << 30)
    );
    assert_eq!(
        warnings("disk_free_limit.absolute = 1GB\ndisk_free_limit.relative = 1.0"),
        ["leveret.conf:2: disk_free_limit.relative: ignored, disk_free_limit.absolute is set too"]
    );
}

#[test]
fn names_and_threads_are_taken_over() {
    let text = "nodename = hare\ncluster_name = warren\nleveret.worker_threads = 7";
    let config = config(text);
    assert_eq!(
        (config.node_name.as_str(), config.cluster_name.as_str()),
        ("hare@burrow", "warren")
    );
    assert_eq!(config.worker_threads.get(), 7);
    let config = config_in("", &[("RABBITMQ_NODENAME", "rabbit@hole")]);
    assert_eq!(config.cluster_name, "rabbit@hole");
}

#[test]
fn log_keys_choose_level_and_form() {
    let log = config("log.console.level = debug\nlog.default.level = error\nlog.file = false").log;
    assert_eq!(log.level, LogLevel::Debug);
    assert_eq!(
        config("log.default.level = critical").log.level,
        LogLevel::Error
    );
    assert_eq!(
        config("log.console.formatter = json").log.format,
        LogFormat::Json
    );
    assert!(!config("log.console = false").log.console);
    assert_eq!(
        warnings("log.file = rabbit.log"),
        ["leveret.conf:1: log.file: Leveret logs to standard error only; ignored"]
    );
    let log = config_in("", &[("LEVERET_LOG", "trace")]).log;
    assert_eq!(log.filter.as_deref(), Some("trace"));
}

#[test]
fn a_key_of_rabbitmqs_that_is_not_used_is_a_warning() {
    assert_eq!(
        warnings("reverse_dns_lookups = true\nnum_acceptors.tcp = 10\nauth_backends.1 = ldap"),
        [
            "leveret.conf:1: reverse_dns_lookups: a RabbitMQ setting that Leveret does not use; ignored",
            "leveret.conf:2: num_acceptors.tcp: a RabbitMQ setting that Leveret does not use; ignored",
            "leveret.conf:3: auth_backends.1: users are internal only; without effect",
        ]
    );
}

#[test]
fn of_a_repeated_key_the_last_counts() {
    let text = "heartbeat = soon\nheartbeat = 10\n";
    assert_eq!(config_in(text, &[]).heartbeat, 10);
    assert_eq!(
        warnings(text),
        ["leveret.conf:1: heartbeat: ignored, it is set again at leveret.conf:2"]
    );
}

#[test]
fn all_errors_are_reported_together_with_line_value_and_remedy() {
    assert_eq!(
        error("hartbeat = 60\n\nheartbeat = 70000\nnonsense\nfrack.my.own = 1\n"),
        "4 problems in the configuration:\
         \n  leveret.conf:1: unknown key `hartbeat`; did you mean `heartbeat`?\
         \n  leveret.conf:3: heartbeat: \"70000\" is not allowed; expected a number of seconds from \
         0 to 65535\
         \n  leveret.conf:4: expected `key = value`, a comment or a blank line\
         \n  leveret.conf:5: unknown key `frack.my.own`"
    );
}

#[test]
fn a_wrong_environment_variable_is_named() {
    let error = outcome("", &[("RABBITMQ_NODE_PORT", "x")])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "environment variable RABBITMQ_NODE_PORT: value: \"x\" is not allowed; expected a \
         port from 0 to 65535"
    );
}

#[test]
fn a_password_is_never_shown() {
    let message = error("default_pass = encrypted:cHNzdA==");
    assert!(
        message.contains("default_pass: this value is not allowed"),
        "{message}"
    );
    let shown = format!("{:?}", config("default_pass = hunter2"));
    assert!(!shown.contains("hunter2"));
}

#[test]
fn a_value_can_come_from_a_variable() {
    let config = config_in("default_pass = $(SECRET)", &[("SECRET", "carrot")]);
    assert_eq!(config.default_pass.expose(), "carrot");
    assert_eq!(
        error("default_pass = $(SECRET)"),
        "leveret.conf:1: default_pass: the environment variable SECRET is not set"
    );
}

/// Built to hit the parsers: real keys, awkward values, broken lines.
fn lines() -> impl Strategy<Value = String> {
    let keys: Vec<&str> = options::all().map(|option| option.key).collect();
    let key = proptest::sample::select(keys).prop_map(|key| key.replace('$', ""));
    let value = prop_oneof![
        ".*",
        "[0-9:.\\[\\]]{0,24}",
        "[0-9]{1,24}[kmgtpKMGTPiB]{0,3}",
        "'.*'?"
    ];
    let line = prop_oneof![
        4 => (key, value).prop_map(|(key, value)| format!("{key} = {value}")),
        1 => ".*",
    ];
    proptest::collection::vec(line, 0..12).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(text in proptest::collection::vec(any::<u8>(), 0..512)) {
        let environment = Environment::for_tests(&[]);
        let _ = resolve(Path::new("f"), &text, &Flags::default(), &environment);
    }

    #[test]
    fn no_lines_make_it_panic(text in lines(), variable in ".*") {
        let _ = outcome(&text, &[("RABBITMQ_NODE_PORT", &variable), ("RABBITMQ_NODENAME", &variable)]);
    }

    #[test]
    fn every_fault_has_a_line_of_the_file(text in lines()) {
        if let Err(ConfigError::Invalid(problems)) = outcome(&text, &[]) {
            let count = text.split('\n').count();
            for problem in problems {
                let Origin::Line { line, .. } = problem.origin else { panic!("{problem}") };
                prop_assert!((1..=count).contains(&line));
            }
        }
    }
}

#[test]
fn definitions_come_from_files_in_the_order_of_rabbitmq() {
    assert!(config("").definitions.is_empty());
    let all = "definitions.local.path = /c\ndefinitions.import_backend = local_filesystem\n\
               management.load_definitions = /b\nload_definitions = /a";
    let paths = ["/a", "/b", "/c"].map(PathBuf::from);
    assert_eq!(config(all).definitions, paths);
    let elsewhere = error("definitions.import_backend = https");
    assert!(
        elsewhere.contains("expected `local_filesystem`"),
        "{elsewhere}"
    );
}
