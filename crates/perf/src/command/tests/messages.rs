//! What is refused, and what is pointed out.

use super::*;

#[test]
fn mistakes_are_refused_in_one_line_that_names_them() {
    for (line, expected) in [
        (
            "-s 4",
            "-s/--size 4: a body begins with 12 bytes of number and time",
        ),
        ("-s 0", "12 or more"),
        ("-s -1", "-s/--size -1: not a whole number"),
        (
            "-s 99999999999",
            "-s/--size 99999999999: not from 0 to 536870912",
        ),
        (
            "-vs 100:1 -vs 4:1",
            "-vs/--variable-size 4: a body begins with 12 bytes",
        ),
        ("-vs 100", "-vs/--variable-size 100: not VALUE:SECONDS"),
        ("-vr 100:0", "-vr/--variable-rate 100:0: not VALUE:SECONDS"),
        ("-vl x:1", "-vl/--variable-latency x:1"),
        (
            "-x a",
            "-x/--producers a: not a whole number from 0 to 100000",
        ),
        ("-x 100001", "-x/--producers 100001: not from 0 to 100000"),
        ("-x ''", "-x/--producers '': not a whole number"),
        ("-X 65536", "-X/--producer-channel-count 65536: not"),
        ("-X 0", "-X/--producer-channel-count 0: not from 1 to 65535"),
        ("-q 65536", "-q/--qos 65536: not"),
        ("-Q -5", "-Q/--global-qos -5: not"),
        ("-c -2", "-c/--confirm -2: not from -1"),
        ("-ct 0", "-ct/--confirm-timeout 0: it would fail at once"),
        ("-r fast", "-r/--rate fast: not a number"),
        ("-r NaN", "-r/--rate NaN: not a number"),
        ("-r 1e10", "more than a billion"),
        ("-P 0.05", "-P/--publishing-interval 0.05: at least 0.1"),
        ("-P -1", "at least 0.1"),
        ("-P 1e300", "too long"),
        (
            "-f persistant",
            "neither persistent nor mandatory; did you mean persistent?",
        ),
        ("-f 2", "-f/--flag 2: neither persistent nor mandatory"),
        ("-ad yes", "-ad/--auto-delete yes: neither true nor false"),
        ("-i 0", "-i/--interval 0: at least a second"),
        ("-i 0.5", "-i/--interval 0.5: not a whole number"),
        (
            "-mf wide",
            "-mf/--metrics-format wide: none of default, compact",
        ),
        ("-ew soon", "none of empty, idle"),
        ("-cal any", "none of random, round-robin"),
        ("-ll here", "none of client-local, balanced"),
        ("-ma 10m", "-ma/--max-age 10m: not a duration"),
        ("-ma PT0S", "-ma/--max-age PT0S: not a duration"),
        ("-mlb 1.5gb", "-mlb/--max-length-bytes 1.5gb: not a size"),
        ("-smssb 4gb", "a segment holds at most 3gb"),
        (
            "-sq -mlb 1gb -smssb 1gb",
            "-mlb/--max-length-bytes must be more than -smssb",
        ),
        (
            "-sco yesterday",
            "-sco/--stream-consumer-offset yesterday: none of first",
        ),
        ("-qa =5", "-qa/--queue-args =5: '=5' has no key"),
        ("-mp priority=high", "priority: not a number from 0 to 255"),
        ("-mp priority=256", "priority: not a number from 0 to 255"),
        ("-mp timestamp=now", "timestamp: not a time"),
        ("-mp headers=x", "headers: each is named by itself"),
        ("-em a=b", "a is given no number"),
        ("-mpr -mpp 0", "-mpp/--metrics-prometheus-port 0: not"),
        (
            "-mpr -mpx 1a",
            "-mpx/--metrics-prefix 1a: no name may begin like this",
        ),
        ("-mt a", "-mt/--metrics-tags a: not KEY=VALUE"),
        (
            "-qp q%d -qpf 1",
            "-qp/--queue-pattern, -qpf/--queue-pattern-from and -qpt",
        ),
        ("-qpt 1", "belong together: give all three"),
        (
            "-qp q%d -qpf 5 -qpt 1",
            "-qpf/--queue-pattern-from 5: more than -qpt",
        ),
        ("-qp q%d -qpf 0 -qpt 2000000000", "more than 1000000 queues"),
        (
            "-qp q%x -qpf 1 -qpt 2",
            "-qp/--queue-pattern q%x: '%x' is not understood",
        ),
        (
            "-qp q -qpf 1 -qpt 2",
            "without %d all queues have the same name",
        ),
        (
            "-qf /nonexistent",
            "-qf/--queue-file /nonexistent: No such file",
        ),
        (
            "-qf /dev/null",
            "-qf/--queue-file /dev/null: names no queue",
        ),
        ("-B /nonexistent", "-B/--body /nonexistent: No such file"),
        ("-B /", "-B/--body /: Is a directory"),
        ("-jb -bc 0", "-bc/--body-count 0: not from 1"),
        (
            "-h http://x",
            "-h/--uri: connection URI: it does not begin with amqp://",
        ),
        ("-h amqps://x", "TLS (amqps) is not supported yet"),
        ("-H ,", "-H/--uris names no broker"),
        (
            "-M 100",
            "-M/--framemax 100: frames hold at least 4096 bytes",
        ),
        ("-b 65536", "-b/--heartbeat 65536: not"),
        (
            "-H amqp://a -sst 1 -sul 2",
            "-sul/--servers-up-limit 2: not from 1 to 1",
        ),
        (
            "-sni x",
            "-sni/--server-name-indication: TLS is not supported yet",
        ),
        ("-o2uri x", "OAuth 2 is not supported yet"),
        (
            "-ei 2",
            "-ei/--expected-instances: runs on several machines",
        ),
        ("--broker-pid 0", "--broker-pid 0: not"),
    ] {
        let error = read(line)
            .err()
            .unwrap_or_else(|| panic!("{line} is accepted"));
        let text = error.to_string();
        assert!(
            text.contains(expected) && !text.contains('\n'),
            "{line}: {text}"
        );
        assert!(matches!(error, Error::Usage(_)), "{line}");
    }
}

#[test]
fn names_must_fit_into_short_strings() {
    let long = "n".repeat(256);
    for option in ["-e", "-t", "-u", "-k", "-T"] {
        let error = read(&format!("{option} {long}")).expect_err("too long");
        assert!(
            error
                .to_string()
                .ends_with("256 bytes where AMQP allows 255"),
            "{error}"
        );
    }
    assert!(read(&format!("-qp {long}%d -qpf 1 -qpt 2")).is_err());
}

#[test]
fn contradictions_name_both_options() {
    for (line, one, other) in [
        ("-m 5 -c 5", "-m/--ptxsize", "-c/--confirm"),
        ("-qq -sq", "-qq/--quorum-queue", "-sq/--stream-queue"),
        (
            "-sq -qa x-queue-type=quorum",
            "-sq/--stream-queue",
            "-qa/--queue-args",
        ),
        ("-x 0 -y 0", "-x/--producers 0", "-y/--consumers 0"),
        ("-E -y 0", "-E/--exclusive", "-y/--consumers 0"),
        ("-h amqp://a -H amqp://b", "-h/--uri", "-H/--uris"),
        (
            "-u q -qp q%d -qpf 1 -qpt 2",
            "-u/--queue",
            "-qp/--queue-pattern",
        ),
        ("-r 5 -vr 5:1", "-r/--rate", "-vr/--variable-rate"),
        ("-r 5 -P 1", "-r/--rate", "-P/--publishing-interval"),
        ("-s 50 -vs 50:1", "-s/--size", "-vs/--variable-size"),
        ("-B /dev/null -jb", "-B/--body", "-jb/--json-body"),
        (
            "-L 5 -vl 5:1",
            "-L/--consumer-latency",
            "-vl/--variable-latency",
        ),
        ("-sq -po", "-sq/--stream-queue", "-po/--polling"),
        ("-A 20 -q 10", "-A/--multi-ack-every 20", "-q/--qos 10"),
        ("-a -A 20 -q 10", "-A/--multi-ack-every 20", "-q/--qos 10"),
        (
            "-A 20 -Q 10",
            "-A/--multi-ack-every 20",
            "-Q/--global-qos 10",
        ),
        ("-sq -A 201", "-A/--multi-ack-every 201", "-q/--qos 200"),
        ("--verify -x 0", "--verify", "-x/--producers 0"),
        ("--verify -y 0", "--verify", "-y/--consumers 0"),
        ("--verify -na", "--verify", "-na/--nack"),
        ("--verify -D 5", "--verify", "-D/--cmessages"),
        ("-o a --csv b", "-o/--output-file", "--csv"),
        ("--quiet --verbose", "--quiet", "--verbose"),
        ("--rounds 2", "--rounds", "--against"),
        ("--against amqp://b", "--against", "-z/--time"),
        (
            "--against amqp://b -H amqp://a -z 1",
            "--against",
            "-H/--uris",
        ),
    ] {
        let error = read(line)
            .err()
            .unwrap_or_else(|| panic!("{line} is accepted"));
        let text = error.to_string();
        assert!(text.contains(one) && text.contains(other), "{line}: {text}");
        assert!(!text.contains('\n'), "{line}: {text}");
    }
}

#[test]
fn what_only_looks_contradictory_is_accepted() {
    for line in [
        "-m 5 -c -1",
        "-qq -qa x-queue-type=quorum",
        "-E -x 0",
        "--verify -na -re false",
        "-o a --csv a",
        "-A 10 -q 10",
        "-A 10",
        "--against amqp://b -C 5",
        "-y 0 -z 1",
        "-n 5 -q 5",
    ] {
        assert_eq!(load(line).warnings, [""; 0], "{line}");
    }
}

#[test]
fn what_changes_nothing_is_pointed_out() {
    for (line, expected) in [
        ("-a -A 5", "-A/--multi-ack-every changes nothing: with -a"),
        ("-a -n 5", "-n/--ctxsize changes nothing: with -a"),
        ("-a -na", "-na/--nack changes nothing"),
        (
            "-re false",
            "-re/--requeue changes nothing: it goes with -na",
        ),
        ("-pi 5", "it goes with -po"),
        ("-ct 5", "it goes with -c"),
        ("-bc 5", "it goes with -jb"),
        ("-B /dev/null -s 50", "files have their own size"),
        ("-x 0 -C 5", "no producer runs"),
        ("-y 0 -D 5", "no consumer runs"),
        ("-sul 1", "it goes with -sst"),
        ("-mpx x_", "it goes with -mpr"),
        (
            "-cri 30-60",
            "-cri/--connection-recovery-interval changes nothing",
        ),
        (
            "-hst 5",
            "-hst/--heartbeat-sender-threads changes nothing: it tunes Java's client",
        ),
        ("-mda", "-mda/--metrics-datadog changes nothing"),
        ("-udsc", "-udsc/--use-default-ssl-context changes nothing"),
        ("-r 0", "-r/--rate 0 sets no limit"),
        ("-x 1 -x 2", "the first, 1, counts"),
        ("-e amq.default", "none reaches a queue unless -k names it"),
        ("-n 20 -q 10", "-n/--ctxsize 20 is more than -q/--qos 10"),
        ("--verbose", "-r limits its rate"),
        ("-autoak", "not as --autoack"),
    ] {
        let warnings = load(line).warnings;
        let [warning] = &warnings[..] else {
            panic!("{line}: {warnings:?}")
        };
        assert!(
            warning.contains(expected) && !warning.contains('\n'),
            "{line}: {warning}"
        );
    }
    for line in ["-dcr", "-e amq.default -u q"] {
        assert!(load(line).warnings.is_empty(), "{line}: that is how it is");
    }
}
