//! Runtime parameters: set, listed and cleared. Those of components have no effect yet.

use crate::running::*;
use crate::support::*;

#[test]
fn parameters_are_set_listed_and_cleared() {
    let mut broker = builder().start().expect("a broker");
    let set = ["set_parameter", "shovel", "s", r#"{"src-queue": "q"}"#];
    let expected = Outcome {
        status: 0,
        out: "Setting runtime parameter \"s\" for component \"shovel\" to \"{\"src-queue\": \
              \"q\"}\" in vhost \"/\" ...\n"
            .to_owned(),
        err: "Warning: parameters of component 'shovel' are kept, but have no effect yet\n"
            .to_owned(),
    };
    assert_eq!(ctl(&broker, &set), expected);
    broker.crash_and_restart().expect("a broker");
    assert_eq!(
        done(&broker, &["list_parameters"]),
        "Listing runtime parameters for vhost \"/\" ...\n\
         component\tname\tvalue\n\
         shovel\ts\t{\"src-queue\":\"q\"}\n"
    );
    let banner = "Clearing runtime parameter \"s\" for component \"shovel\" on vhost \"/\" ...\n";
    let clear = ["clear_parameter", "shovel", "s"];
    assert_eq!(done(&broker, &clear), banner);
    let none = "Error:\nParameter does not exist\n";
    refused(&broker, &clear, 69, banner, none);
    broker.crash_and_restart().expect("a broker");
    assert_eq!(rows(&broker, &["list_parameters"]), [""; 0]);
}

#[test]
fn operator_policies_are_parameters_and_others_are_not() {
    let broker = builder().start().expect("a broker");
    let value = r#"{"pattern":"^q","priority":1,"definition":{"max-length":5}}"#;
    done(&broker, &["set_parameter", "operator_policy", "o", value]);
    let policy = ["/\to\t^q\tall\t{\"max-length\":5}\t1"];
    assert_eq!(rows(&broker, &["list_operator_policies"]), policy);
    let parameter =
        r#"{"apply-to":"all","definition":{"max-length":5},"pattern":"^q","priority":1}"#;
    let parameter = [format!("operator_policy\to\t{parameter}")];
    assert_eq!(rows(&broker, &["list_parameters"]), parameter);
    done(&broker, &["clear_parameter", "operator_policy", "o"]);
    assert_eq!(rows(&broker, &["list_operator_policies"]), [""; 0]);
    for (arguments, done) in [
        (&["set_parameter", "policy", "p", value][..], "set"),
        (&["clear_parameter", "policy", "p"], "cleared"),
    ] {
        let outcome = ctl(&broker, arguments);
        let text = format!("Error:\npolicies may not be {done} using this method\n");
        assert_eq!((outcome.status, outcome.err), (69, text));
    }
    let wrong = ["-q", "set_parameter", "operator_policy", "o", "{}"];
    let text = "Error:\nValidation failed\n\npattern is missing\n\n";
    refused(&broker, &wrong, 69, "", text);
}

#[test]
fn global_parameters_are_set_listed_and_cleared() {
    let mut broker = builder().start().expect("a broker");
    assert_eq!(
        done(&broker, &["set_global_parameter", "g", "[1, 2]"]),
        "Setting global runtime parameter \"g\" to \"[1, 2]\" ...\n"
    );
    broker.crash_and_restart().expect("a broker");
    assert_eq!(
        done(&broker, &["list_global_parameters"]),
        "Listing global runtime parameters ...\nname\tvalue\ng\t[1,2]\n"
    );
    let banner = "Clearing global runtime parameter \"g\" ...\n";
    let clear = ["clear_global_parameter", "g"];
    assert_eq!(done(&broker, &clear), banner);
    let none = "Error:\nParameter does not exist\n";
    refused(&broker, &clear, 69, banner, none);
    for set in [
        &["set_global_parameter", "g", "{"][..],
        &["set_parameter", "shovel", "s", "{"],
    ] {
        let outcome = ctl(&broker, set);
        assert_eq!(outcome.status, 69);
        let start = "Error:\nJSON decoding error. Reason: ";
        assert!(outcome.err.starts_with(start), "{}", outcome.err);
    }
    broker.crash_and_restart().expect("a broker");
    assert_eq!(rows(&broker, &["list_global_parameters"]), [""; 0]);
}
