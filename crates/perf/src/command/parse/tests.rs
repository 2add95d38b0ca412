use super::*;

/// `x[1] K[]`, the form in which the expectations are written.
fn read(line: &str) -> String {
    let arguments: Vec<_> = line.split('|').map(str::to_owned).collect();
    match parse(&arguments) {
        Ok(parsed) => {
            let shown = parsed.occurrences.iter().map(|one| match one.spec.short {
                "" => format!("{}[{}]", one.spec.long, one.values.join(",")),
                short => format!("{short}[{}]", one.values.join(",")),
            });
            shown.collect::<Vec<_>>().join(" ")
        }
        Err(error) => format!("ERR {error}"),
    }
}

#[test]
fn lines_are_read_as_perf_test_reads_them() {
    // Each was given to Commons CLI 1.9 with PerfTest's options.
    for (line, expected) in [
        ("-x1|-y0|-K", "x[1] y[0] K[]"),
        ("-x|1", "x[1]"),
        ("-x=1", "x[1]"),
        ("--producers=1", "x[1]"),
        ("--producers|1", "x[1]"),
        ("-producers|1", "x[1]"),
        ("-producers=1", "x[1]"),
        ("-c|-1", "c[-1]"),
        ("-c-1", "c[-1]"),
        ("-c|-1.5e3", "c[-1.5e3]"),
        ("-qpf|1", "qpf[1]"),
        ("-qp|foo", "qp[foo]"),
        ("-f|persistent|mandatory", "f[persistent,mandatory]"),
        ("-f|persistent|-f|mandatory", "f[persistent] f[mandatory]"),
        ("-fpersistent", "f[persistent]"),
        ("-f=persistent", "f[persistent]"),
        ("-vr|100:60|-vr|1000:10", "vr[100:60] vr[1000:10]"),
        ("-vr|100:60|1000:10", "vr[100:60,1000:10]"),
        ("-e", "e[]"),
        ("-e|foo", "e[foo]"),
        ("-e|", "e[]"),
        ("-e|-t|topic", "e[] t[topic]"),
        ("-efoo", "e[foo]"),
        ("-aK", "a[] K[]"),
        ("-aKx1", "a[] K[] x[1]"),
        ("-ax|1", "a[] x[1]"),
        ("-ad|false", "ad[false]"),
        ("-adfalse", "a[] d[false]"),
        ("-qa|x-max-length=10|x-b=1", "qa[x-max-length=10,x-b=1]"),
        ("-x|-", "x[-]"),
        ("--verbose", "verbose[]"),
        ("-verbose", "verbose[]"),
        ("-s|\"12\"", "s[12]"),
        ("--uri=amqp://a:b@h?x=y", "h[amqp://a:b@h?x=y]"),
        ("-h=amqp://a:b@h?x=y", "h[amqp://a:b@h?x=y]"),
        ("-hamqp://localhost", "h[amqp://localhost]"),
        ("-uqueue", "u[queue]"),
        ("-unknown", "u[nknown]"),
        ("--queue=q", "u[q]"),
        ("-queue=q", "u[q]"),
        ("-rate|1", "r[1]"),
        ("-qos|5", "q[5]"),
        ("-qos=5", "q[5]"),
        ("-id|x", "d[x]"),
        ("-idfoo", "d[foo]"),
        ("-u|-Infinity", "u[-Infinity]"),
        ("-k|-1", "k[-1]"),
        ("-k|-Wfoo", "k[-Wfoo]"),
        ("-k|--foo", "k[--foo]"),
        ("-x|1|-x|2", "x[1] x[2]"),
        ("-s=12=3", "s[12=3]"),
        ("-xfoo", "x[foo]"),
        ("-consumers22", "y[22]"),
        ("--predecl", "p[]"),
        ("-x|1|--", "x[1]"),
    ] {
        assert_eq!(read(line), expected, "{line}");
    }
}

#[test]
fn more_is_understood_where_perf_test_only_fails() {
    for (line, expected) in [
        ("-qpf=1", "qpf[1]"),
        ("-ad=false", "ad[false]"),
        ("-qa=x-max-length=10", "qa[x-max-length=10]"),
    ] {
        assert_eq!(read(line), expected, "{line}");
    }
}

#[test]
fn mistakes_are_named_in_one_line() {
    for (line, expected) in [
        ("--unknown", "unknown option --unknown; -? lists all"),
        ("--prodcers|1", "did you mean --producers?"),
        ("--prodcers=1", "did you mean --producers?"),
        ("--x|1", "did you mean -x?"),
        ("-1", "unknown option -1"),
        ("-jbx1", "unknown option -jbx1"),
        (
            "-qpf1",
            "-qpf1: a name of several letters stands apart from its value: -qpf 1",
        ),
        (
            "-vr5",
            "-vr5: a name of several letters stands apart from its value: -vr 5",
        ),
        ("-exposd-metrics=a=b", "did you mean --exposed-metrics?"),
        ("-ua=b", "unknown option -ua=b"),
        ("-predclared", "did you mean --predeclared?"),
        (
            "--prod|1",
            "option --prod could be any of --producers, --producer-channel-count",
        ),
        ("-con|5", "could be any of"),
        ("-u|-x", "-u/--queue needs a value"),
        ("-u|-foo", "-u/--queue needs a value"),
        ("-x|--|1", "-x/--producers needs a value"),
        ("-f|-x|1", "-f/--flag needs a value"),
        ("-h", "-h/--uri needs a value (for help, ask with -?)"),
        ("-K=true", "-K/--random-routing-key takes no value"),
        ("--nack=true", "-na/--nack takes no value"),
        ("stray", "'stray' belongs to no option"),
        ("-x|1|stray", "'stray' belongs to no option"),
        ("-x|1|--|a", "'a' belongs to no option"),
        ("-", "'-' belongs to no option"),
        ("", "'' belongs to no option"),
    ] {
        let said = read(line);
        assert!(
            said.starts_with("ERR ") && said.contains(expected),
            "{line}: {said}"
        );
        assert!(!said.contains('\n'));
    }
}

#[test]
fn letters_that_were_hardly_meant_are_pointed_out() {
    let parsed = parse(&["-autoak".to_owned()]).expect("a flag and a queue");
    assert_eq!(
        parsed.warnings,
        ["-autoak is understood as -u toak, not as --autoack"]
    );
}
