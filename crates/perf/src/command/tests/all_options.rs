//! The table against PerfTest's, and against anything that may be typed.

use testkit::Random;

use super::*;

#[test]
fn every_option_of_perf_test_is_known() {
    let names = "\
        ? help a autoack A multi-ack-every ad auto-delete b heartbeat B body bc body-count \
        bfc body-field-count c confirm C pmessages ca consumer-args cal connection-allocation \
        cri connection-recovery-interval csd consumer-start-delay ct confirm-timeout \
        ctp consumers-thread-pools d id D cmessages dcr disable-connection-recovery e exchange \
        E exclusive ei expected-instances em exposed-metrics env environment-variables \
        ew exit-when f flag h uri H uris hst heartbeat-sender-threads i interval \
        isn instance-sync-namespace ist instance-sync-timeout jb json-body k routing-key \
        K random-routing-key L consumer-latency ll leader-locator m ptxsize M framemax ma max-age \
        mf metrics-format mh metrics-help mlb max-length-bytes mp message-properties \
        ms use-millis n ctxsize na nack niot nio-threads niotp nio-thread-pool nty netty \
        ntyep netty-epoll ntykq netty-kqueue ntyt netty-threads o output-file \
        o2gr oauth2-grant-type o2id oauth2-client-id o2p oauth2-parameters \
        o2sec oauth2-client-secret o2uri oauth2-token-endpoint p predeclared \
        P publishing-interval pi polling-interval po polling prsd producer-random-start-delay \
        pst producer-scheduler-threads q qos Q global-qos qa queue-args qf queue-file \
        qp queue-pattern qpf queue-pattern-from qpt queue-pattern-to qq quorum-queue r rate \
        R consumer-rate re requeue rkcs routing-key-cache-size s size S slow-start \
        sb skip-binding-queues sco stream-consumer-offset se sasl-external \
        smssb stream-max-segment-size-bytes sni server-name-indication sq stream-queue \
        sst servers-startup-timeout st shutdown-timeout sul servers-up-limit t type \
        T body-content-type tnd tcp-no-delay trbs tcp-receive-buffer-size \
        tsbs tcp-send-buffer-size u queue udsc use-default-ssl-context v version \
        vl variable-latency vr variable-rate vs variable-size x producers \
        X producer-channel-count y consumers Y consumer-channel-count z time \
        mc metrics-client mcl metrics-class-loader mcla metrics-command-line-arguments \
        mda metrics-datadog mdak metrics-datadog-application-key mdd metrics-datadog-descriptions \
        mdh metrics-datadog-host-tag mdk metrics-datadog-api-key mds metrics-datadog-step-size \
        mdu metrics-datadog-uri mjgc metrics-jvm-gc mjm metrics-jvm-memory mjp metrics-processor \
        mjt metrics-jvm-thread mjx metrics-jmx mpe metrics-prometheus-endpoint \
        mpp metrics-prometheus-port mpr metrics-prometheus mpx metrics-prefix mt metrics-tags";
    let names: Vec<_> = names.split_whitespace().collect();
    for pair in names.chunks(2) {
        let spec = options::by_short(pair[0]).expect(pair[0]);
        assert_eq!(spec.long, pair[1]);
        assert_ne!(spec.class, options::Class::Own);
    }
    for long in ["verbose", "verbose-full"] {
        assert_eq!(options::by_long(long).expect(long).short, "");
    }
    let ours = options::all().filter(|spec| spec.class == options::Class::Own);
    assert_eq!(options::all().count(), names.len() / 2 + 2 + ours.count());
}

#[test]
fn any_arguments_are_read_or_refused_in_one_line() {
    let mut words: Vec<String> = [
        "",
        "-",
        "--",
        "---",
        "-=",
        "--=",
        "=",
        "é",
        "-é",
        "-xé",
        "--é=ü",
        "0",
        "1",
        "-1",
        "12",
        "65536",
        "99999999999999999999",
        "1e9",
        "1e400",
        "nan",
        "-inf",
        "true",
        "x=1",
        "=",
        "a=b=c",
        "100:60",
        ":",
        "%d",
        "q%03d",
        "%",
        "amqp://",
        "amqp://u:p@[::1",
        "http://x",
        "first",
        "PT1S",
        "2022-06-03T07:45:54Z",
        "20gb",
        "persistent",
        "two\nlines",
        "/nonexistent/file",
        "\u{0}",
    ]
    .map(str::to_owned)
    .to_vec();
    for spec in options::all() {
        words.push(format!("-{}", spec.short));
        words.push(format!("--{}", spec.long));
        words.push(format!("--{}=1", spec.long));
        words.push(format!("-{}1", spec.short));
    }
    let mut random = Random::new(0x1EFE);
    for _ in 0..4_000 {
        let length = random.below(8);
        let line: Vec<_> = (0..length)
            .map(|_| {
                let word = &words[random.below(words.len())];
                match random.below(8) {
                    // Cut short where it may be, or doubled.
                    0 => word.chars().take(random.below(5)).collect(),
                    1 => format!("{word}{}", words[random.below(words.len())]),
                    _ => word.clone(),
                }
            })
            .collect();
        if let Err(error) = parse(&line, &|_| None) {
            let text = error.to_string();
            assert!(!text.is_empty() && !text.contains('\n'), "{line:?}: {text}");
        }
    }
}
