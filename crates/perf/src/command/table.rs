//! The table of all options: names and defaults are PerfTest's, the rest is ours.

use super::options::{Class, Group, Spec, Takes};

const JAVA: &str = "it tunes Java's client; --threads sets how many threads carry the load";
const METERS: &str = "results are exposed to Prometheus alone (-mpr), and Java has no part in them";
const NO_OAUTH: &str = "OAuth 2 is not supported yet; give a user and a password in the URI";
const NO_SYNC: &str =
    "runs on several machines are not synchronized; start them together, and use -ms";
const NO_TLS: &str = "TLS is not supported yet; use an amqp:// URI";

const fn option(short: &'static str, long: &'static str, takes: Takes) -> Spec {
    let (default, class, help) = ("", Class::Load, "");
    Spec {
        short,
        long,
        takes,
        default,
        class,
        help,
    }
}

const fn flag(short: &'static str, long: &'static str, help: &'static str) -> Spec {
    option(short, long, Takes::Nothing).help(help)
}

const fn number(short: &'static str, long: &'static str, word: &'static str) -> Spec {
    option(short, long, Takes::Number(word))
}

const fn text(short: &'static str, long: &'static str, word: &'static str) -> Spec {
    option(short, long, Takes::Text(word))
}

const fn many(short: &'static str, long: &'static str, word: &'static str) -> Spec {
    option(short, long, Takes::Many(word))
}

impl Spec {
    const fn default(self, default: &'static str) -> Spec {
        Spec { default, ..self }
    }

    const fn help(self, help: &'static str) -> Spec {
        Spec { help, ..self }
    }

    const fn class(self, class: Class) -> Spec {
        Spec { class, ..self }
    }

    const fn own(self) -> Spec {
        self.class(Class::Own)
    }

    const fn ignored(self, reason: &'static str) -> Spec {
        self.class(Class::Ignored(reason))
    }

    const fn unsupported(self, advice: &'static str) -> Spec {
        self.class(Class::Unsupported(advice))
    }
}

/// All options, by group, in the order of the help.
#[rustfmt::skip]
pub static OPTIONS: &[(Group, &[Spec])] = &[
    (Group::Connections, &[
        text("h", "uri", "URI").default("amqp://localhost")
            .help("where to connect: amqp://user:password@host:port/vhost"),
        text("H", "uris", "URI,URI,...")
            .help("several nodes, over which the connections are spread"),
        text("cal", "connection-allocation", "random|round-robin").default("random")
            .help("how connections are spread over them"),
        number("sst", "servers-startup-timeout", "SECONDS")
            .help("wait so long at first for brokers that are not up yet; without it, fail at once"),
        number("sul", "servers-up-limit", "N")
            .help("with -sst: begin once so many of them accept connections, instead of all"),
        number("M", "framemax", "BYTES").default("0")
            .help("largest frame; 0 leaves it to the broker"),
        number("b", "heartbeat", "SECONDS").default("0")
            .help("heartbeat interval; 0 leaves it to the broker"),
        flag("se", "sasl-external", "log in with SASL EXTERNAL"),
        flag("dcr", "disable-connection-recovery", "a run always ends when a connection is lost"),
        text("cri", "connection-recovery-interval", "SECONDS|MIN-MAX")
            .ignored("a run ends when a connection is lost"),
        number("tsbs", "tcp-send-buffer-size", "BYTES")
            .ignored("the operating system sizes the buffers of a connection"),
        number("trbs", "tcp-receive-buffer-size", "BYTES")
            .ignored("the operating system sizes the buffers of a connection"),
        text("tnd", "tcp-no-delay", "true|false").default("true")
            .ignored("connections always send without delay (TCP_NODELAY)"),
        text("sni", "server-name-indication", "NAME,NAME,...").unsupported(NO_TLS),
        text("o2uri", "oauth2-token-endpoint", "URI").unsupported(NO_OAUTH),
        text("o2id", "oauth2-client-id", "ID").unsupported(NO_OAUTH),
        text("o2sec", "oauth2-client-secret", "SECRET").unsupported(NO_OAUTH),
        text("o2gr", "oauth2-grant-type", "TYPE").unsupported(NO_OAUTH),
        many("o2p", "oauth2-parameters", "KEY=VALUE...").unsupported(NO_OAUTH),
    ]),
    (Group::Topology, &[
        option("e", "exchange", Takes::Maybe("[NAME]"))
            .help("exchange; named after -t without it; amq.default or '' is the default exchange"),
        text("t", "type", "TYPE").default("direct")
            .help("exchange type"),
        text("u", "queue", "NAME,NAME,...")
            .help("queues that each consumer consumes from; without it each has a queue of its own, \
                   which the broker names"),
        text("qp", "queue-pattern", "PATTERN")
            .help("queues that producers and consumers take in turn, such as perf-%03d"),
        number("qpf", "queue-pattern-from", "N")
            .help("number of the first of them"),
        number("qpt", "queue-pattern-to", "N")
            .help("number of the last of them"),
        text("qf", "queue-file", "FILE")
            .help("the same with names from a file, one a line"),
        text("k", "routing-key", "KEY")
            .help("key to bind and publish with; random without it, or the queue's name with \
                   -qp and -qf"),
        flag("K", "random-routing-key", "a random routing key for each message"),
        number("rkcs", "routing-key-cache-size", "N").default("0")
            .help("with -K: make so many keys beforehand and use them in turn"),
        flag("sb", "skip-binding-queues", "do not bind queues to the exchange"),
        flag("p", "predeclared", "declare no exchange and no queue: they exist, or it is an error"),
        text("ad", "auto-delete", "true|false").default("true")
            .help("whether queues go away with their last consumer"),
        flag("E", "exclusive", "queues belong to the connections that declare them"),
        many("qa", "queue-args", "KEY=VALUE,...")
            .help("queue arguments, such as x-max-length=10"),
        flag("qq", "quorum-queue", "quorum queues; implies -f persistent, -ad false"),
        flag("sq", "stream-queue", "streams; implies -f persistent, -ad false, -q 200, -mlb 20gb, \
                                    -smssb 500mb"),
        text("mlb", "max-length-bytes", "SIZE")
            .help("largest size of a queue, such as 20gb; 0 for no limit"),
        text("smssb", "stream-max-segment-size-bytes", "SIZE")
            .help("largest size of a stream's segment, such as 500mb"),
        text("ma", "max-age", "DURATION")
            .help("largest age of a stream's segment in ISO 8601: PT10M30S, P5DT8H"),
        text("ll", "leader-locator", "client-local|balanced")
            .help("where leaders of quorum queues and streams are placed"),
    ]),
    (Group::Producers, &[
        number("x", "producers", "N").default("1")
            .help("connections that publish"),
        number("X", "producer-channel-count", "N").default("1")
            .help("channels of each, which publish independently"),
        number("r", "rate", "N")
            .help("messages a second of each channel; as fast as possible without it"),
        many("vr", "variable-rate", "N:SECONDS...")
            .help("so many messages a second for so long, then the next such rate, over and over"),
        number("P", "publishing-interval", "SECONDS")
            .help("one message each time, instead of a rate; at least 0.1"),
        number("prsd", "producer-random-start-delay", "SECONDS")
            .help("start each channel at a random moment within this time; 1 with a rate, else 0"),
        number("c", "confirm", "N").default("-1")
            .help("ask for publisher confirms, with at most N messages unconfirmed; 0 sets no limit"),
        number("ct", "confirm-timeout", "SECONDS").default("30")
            .help("fail if none comes for so long"),
        number("m", "ptxsize", "N").default("0")
            .help("messages per transaction; 0 for none"),
        number("C", "pmessages", "N").default("0")
            .help("messages of each channel, after which it stops; 0 for no limit"),
        many("f", "flag", "persistent|mandatory...")
            .help("publish persistent messages, mandatory ones, or both"),
    ]),
    (Group::Messages, &[
        number("s", "size", "BYTES").default("12")
            .help("size of a body, of which the first 12 bytes are number and time"),
        many("vs", "variable-size", "BYTES:SECONDS...")
            .help("such a size for so long, then the next, over and over"),
        text("B", "body", "FILE,FILE,...")
            .help("bodies from files, in turn; number and time travel in headers"),
        text("T", "body-content-type", "TYPE")
            .help("content type of the messages"),
        flag("jb", "json-body", "bodies are random JSON documents of about -s bytes"),
        number("bfc", "body-field-count", "N").default("1000")
            .help("with -jb: fields and values to choose from"),
        number("bc", "body-count", "N").default("100")
            .help("with -jb: documents made beforehand"),
        text("mp", "message-properties", "KEY=VALUE,...")
            .help("properties such as priority=5; those that AMQP has none of become headers"),
        flag("ms", "use-millis", "messages carry the wall clock's milliseconds: for producers and \
                                  consumers on different machines"),
    ]),
    (Group::Consumers, &[
        number("y", "consumers", "N").default("1")
            .help("connections that consume"),
        number("Y", "consumer-channel-count", "N").default("1")
            .help("channels of each, which consume independently"),
        number("q", "qos", "N").default("0")
            .help("prefetch of each consumer; 0 for no limit"),
        number("Q", "global-qos", "N").default("0")
            .help("prefetch of each channel; 0 for no limit"),
        flag("a", "autoack", "messages count as acknowledged when they are delivered"),
        number("A", "multi-ack-every", "N").default("0")
            .help("acknowledge so many messages together; 0 for one by one"),
        number("n", "ctxsize", "N").default("0")
            .help("acknowledgements per transaction; 0 for none"),
        flag("na", "nack", "reject messages instead of acknowledging them"),
        text("re", "requeue", "true|false").default("true")
            .help("with -na: whether they go back to the queue"),
        number("R", "consumer-rate", "N")
            .help("messages a second of each channel; as fast as possible without it"),
        number("L", "consumer-latency", "MICROSECONDS").default("0")
            .help("pretend that each message takes so long"),
        many("vl", "variable-latency", "MICROSECONDS:SECONDS...")
            .help("such a time for so long, then the next, over and over"),
        number("D", "cmessages", "N").default("0")
            .help("messages of each channel, after which it stops; 0 for no limit"),
        text("ca", "consumer-args", "KEY=VALUE,...")
            .help("consumer arguments, such as x-priority=10"),
        text("sco", "stream-consumer-offset", "OFFSET")
            .help("where in a stream to begin: first, last, next, a number, or a time such as \
                   2022-06-03T07:45:54Z"),
        flag("po", "polling", "ask for each message with basic.get"),
        number("pi", "polling-interval", "MILLISECONDS").default("0")
            .help("with -po: pause between two"),
        flag("S", "slow-start", "start a consumer a second"),
        number("csd", "consumer-start-delay", "SECONDS").default("0")
            .help("start consumers so much later than producers"),
    ]),
    (Group::Run, &[
        text("d", "id", "TEXT").default("test-HHmmss-SSS")
            .help("what each line of output begins with"),
        number("z", "time", "SECONDS").default("0")
            .help("how long; 0 for no limit"),
        text("ew", "exit-when", "empty|idle")
            .help("stop when queues are empty, or consumers idle, for a second"),
        number("st", "shutdown-timeout", "SECONDS").default("5")
            .help("how long closing may take at the end"),
        flag("", "verify", "fail if a message is missing, doubled or out of order; consumers go on \
                            until all that was sent has come").own(),
        flag("", "steady", "take rates and latencies from where the run has become steady").own(),
        text("", "against", "URI")
            .help("load this broker, too, by turns, and compare the two").own(),
        number("", "rounds", "N").default("3")
            .help("with --against: how many times each").own(),
        number("", "threads", "N").default("0")
            .help("threads that carry the connections; 0 for as many as there are cores").own(),
        number("", "broker-pid", "PID")
            .help("also watch CPU, memory and writes of this process").own(),
        number("ei", "expected-instances", "N").unsupported(NO_SYNC),
        text("isn", "instance-sync-namespace", "NAME").unsupported(NO_SYNC),
        number("ist", "instance-sync-timeout", "SECONDS").unsupported(NO_SYNC),
    ]),
    (Group::Output, &[
        number("i", "interval", "SECONDS").default("1")
            .help("time between two lines"),
        text("mf", "metrics-format", "default|compact").default("default")
            .help("figures with their names, or a table"),
        flag("", "plain", "lines instead of a live display, on a terminal too").own(),
        flag("", "quiet", "print nothing but errors").own(),
        flag("", "verbose", "print each message that is sent, received or confirmed"),
        flag("", "verbose-full", "the same with headers and bodies"),
        text("o", "output-file", "FILE")
            .help("write the lines as CSV, too"),
        text("", "csv", "FILE")
            .help("the same as -o").own(),
        text("", "json", "FILE")
            .help("write the result, which 'leveret perf report' and 'compare' read").own(),
        text("", "html", "FILE")
            .help("write a report after the run").own(),
        text("", "history", "FILE")
            .help("add the result to this file, which 'leveret perf changes' reads").own(),
        text("", "label", "TEXT")
            .help("what to call the result: a release, a commit").own(),
    ]),
    (Group::Help, &[
        flag("?", "help", "this").class(Class::Print),
        flag("env", "environment-variables", "the options as environment variables")
            .class(Class::Print),
        flag("mh", "metrics-help", "the options about metrics").class(Class::Print),
        flag("v", "version", "the version").class(Class::Print),
    ]),
    (Group::Metrics, &[
        flag("mpr", "metrics-prometheus", "let Prometheus read the figures while the load runs"),
        number("mpp", "metrics-prometheus-port", "PORT").default("8080")
            .help("port to read them from"),
        text("mpe", "metrics-prometheus-endpoint", "PATH").default("/metrics")
            .help("path to read them from"),
        text("mpx", "metrics-prefix", "TEXT").default("perftest_")
            .help("what their names begin with"),
        text("mt", "metrics-tags", "KEY=VALUE,...")
            .help("labels of all of them"),
        text("em", "exposed-metrics", "NAME=NUMBER,...")
            .help("constants among them, such as expected_published=50000"),
        flag("mcla", "metrics-command-line-arguments", "").ignored("results hold the command line"),
        flag("mc", "metrics-client", "").ignored(METERS),
        flag("mcl", "metrics-class-loader", "").ignored(METERS),
        flag("mjm", "metrics-jvm-memory", "").ignored(METERS),
        flag("mjgc", "metrics-jvm-gc", "").ignored(METERS),
        flag("mjp", "metrics-processor", "").ignored(METERS),
        flag("mjt", "metrics-jvm-thread", "").ignored(METERS),
        flag("mjx", "metrics-jmx", "").ignored(METERS),
        flag("mda", "metrics-datadog", "").ignored(METERS),
        text("mdk", "metrics-datadog-api-key", "KEY").ignored(METERS),
        text("mdak", "metrics-datadog-application-key", "KEY").ignored(METERS),
        text("mdh", "metrics-datadog-host-tag", "TAG").ignored(METERS),
        flag("mdd", "metrics-datadog-descriptions", "").ignored(METERS),
        number("mds", "metrics-datadog-step-size", "SECONDS").ignored(METERS),
        text("mdu", "metrics-datadog-uri", "URI").ignored(METERS),
    ]),
    (Group::Java, &[
        number("niot", "nio-threads", "N").ignored(JAVA),
        number("niotp", "nio-thread-pool", "N").ignored(JAVA),
        flag("nty", "netty", "").ignored(JAVA),
        number("ntyt", "netty-threads", "N").ignored(JAVA),
        flag("ntyep", "netty-epoll", "").ignored(JAVA),
        flag("ntykq", "netty-kqueue", "").ignored(JAVA),
        number("hst", "heartbeat-sender-threads", "N").ignored(JAVA),
        number("ctp", "consumers-thread-pools", "N").ignored(JAVA),
        number("pst", "producer-scheduler-threads", "N").ignored(JAVA),
        flag("udsc", "use-default-ssl-context", "").ignored(NO_TLS),
    ]),
];
