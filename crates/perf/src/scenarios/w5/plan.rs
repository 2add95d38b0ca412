//! What the arguments amount to: the cases, in the order in which they run.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::published::published;
use super::{Arguments, Protocols};
use crate::result::{Broker, Run};
use crate::sqs::{Client, Credentials, Endpoint, Options, Protocol, Signature};
use crate::{Error, clock};

/// The regions that SQS had in 2010.
const REGIONS: [&str; 4] = ["us-east-1", "us-west-1", "eu-west-1", "ap-southeast-1"];

/// One region of a service.
pub(super) struct Site {
    pub(super) region: String,
    pub(super) client: Client,
}

/// One run.
pub(super) struct Case {
    pub(super) round: u32,
    pub(super) protocol: Protocol,
    pub(super) messages: u32,
    /// One, or all of them together.
    pub(super) sites: Vec<Rc<Site>>,
    pub(super) in_flight: u16,
    pub(super) batch: u8,
    pub(super) body_size: u32,
    /// 0 unless messages are consumed.
    pub(super) receivers: u16,
    parameters: BTreeMap<String, Value>,
}

impl Case {
    /// A run of it in which nothing has happened.
    pub(super) fn blank(&self) -> Run {
        let address = self.sites.first().map(|site| site.client.endpoint());
        Run {
            name: self.name(),
            started: clock::timestamp(),
            round: self.round,
            broker: Broker {
                address: address.map(ToString::to_string).unwrap_or_default(),
                product: "SQS".into(),
                ..Broker::default()
            },
            parameters: self.parameters.clone(),
            published: published(),
            ..Run::default()
        }
    }

    fn name(&self) -> String {
        let place = match self.sites.as_slice() {
            [site] => site.region.clone(),
            sites => format!("{} regions", sites.len()),
        };
        let batch = match self.batch {
            1 => String::new(),
            batch => format!(", batch {batch}"),
        };
        format!("{}, N={}{batch}, {place}", self.protocol, self.messages)
    }
}

/// The cases: rounds of protocols of numbers of messages of regions.
pub(super) fn cases(arguments: &Arguments) -> Result<Vec<Case>, Error> {
    let regions = regions(arguments)?;
    let mut sites_by_protocol = Vec::new();
    for protocol in protocols(arguments)? {
        let endpoints = endpoints(arguments, &regions)?;
        let pairs = regions.iter().zip(endpoints);
        let sites: Result<Vec<_>, Error> = pairs
            .map(|(region, endpoint)| site(arguments, protocol, region, endpoint))
            .collect();
        sites_by_protocol.push((protocol, sites?));
    }
    let mut cases = Vec::new();
    for round in 1..=arguments.rounds {
        for (protocol, sites) in &sites_by_protocol {
            let together = if arguments.together { sites.len() } else { 1 };
            for &messages in &arguments.messages {
                for sites in sites.chunks(together) {
                    cases.push(case(arguments, round, *protocol, messages, sites));
                }
            }
        }
    }
    Ok(cases)
}

fn case(
    arguments: &Arguments,
    round: u32,
    protocol: Protocol,
    messages: u32,
    sites: &[Rc<Site>],
) -> Case {
    let names: Vec<&str> = sites.iter().map(|site| site.region.as_str()).collect();
    let parameters = [
        ("protocol", json!(protocol.to_string())),
        ("messages", json!(messages)),
        ("regions", json!(names)),
        ("in-flight", json!(arguments.in_flight)),
        ("body-size", json!(arguments.body_size)),
        ("batch", json!(arguments.batch)),
        ("consume", json!(arguments.consume)),
        ("retry", json!(arguments.retry)),
    ];
    Case {
        round,
        protocol,
        messages,
        sites: sites.to_vec(),
        in_flight: arguments.in_flight,
        batch: arguments.batch,
        body_size: arguments.body_size,
        receivers: if arguments.consume {
            arguments.receivers
        } else {
            0
        },
        parameters: parameters
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
    }
}

fn site(
    arguments: &Arguments,
    protocol: Protocol,
    region: &str,
    endpoint: Endpoint,
) -> Result<Rc<Site>, Error> {
    let credentials = match (&arguments.access_key_id, &arguments.secret_access_key) {
        (Some(access_key_id), Some(secret_access_key)) => Ok(Credentials {
            access_key_id: access_key_id.clone(),
            secret_access_key: secret_access_key.clone(),
            session_token: arguments.session_token.clone(),
        }),
        _ => Credentials::from_environment(&endpoint),
    };
    let client = credentials.and_then(|credentials| {
        Client::new(Options {
            endpoint,
            region: region.to_owned(),
            credentials,
            protocol,
            timeout: Duration::from_secs(arguments.timeout),
            retries: arguments.retry,
        })
    });
    Ok(Rc::new(Site {
        region: region.to_owned(),
        client: client.map_err(|error| Error::Usage(error.to_string()))?,
    }))
}

fn protocols(arguments: &Arguments) -> Result<Vec<Protocol>, Error> {
    let query = Protocol::Query(arguments.signature.unwrap_or(Signature::V2));
    match (arguments.protocol, arguments.signature) {
        (Protocols::Json, Some(Signature::V2)) => Err(Error::Usage(
            "--signature v2 is for --protocol query: JSON calls are signed with v4".into(),
        )),
        (Protocols::Json, _) => Ok(vec![Protocol::Json]),
        (Protocols::Query, _) => Ok(vec![query]),
        (Protocols::Both, _) => Ok(vec![query, Protocol::Json]),
    }
}

fn regions(arguments: &Arguments) -> Result<Vec<String>, Error> {
    let mut regions = arguments.regions.clone();
    if regions.is_empty() {
        let region = std::env::var("AWS_REGION").ok();
        regions.extend(region.filter(|region| !region.is_empty()));
    }
    if regions.is_empty() {
        regions.extend(REGIONS.map(str::to_owned));
    }
    // A region is part of a host's name, of what is signed and of a queue's name.
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_name = |name: &str| (1..=32).contains(&name.len()) && name.chars().all(is_letter);
    if let Some(region) = regions.iter().find(|region| !is_name(region)) {
        return Err(Error::Usage(format!(
            "{region:?} is no name of a region; one looks like us-east-1"
        )));
    }
    if regions.iter().collect::<BTreeSet<_>>().len() < regions.len() {
        return Err(Error::Usage("--region names a region twice".into()));
    }
    Ok(regions)
}

fn endpoints(arguments: &Arguments, regions: &[String]) -> Result<Vec<Endpoint>, Error> {
    let given = &arguments.endpoints;
    if given.is_empty() || given.len() > 1 && given.len() != regions.len() {
        return Err(Error::Usage(format!(
            "{} endpoints for {} regions: give --endpoint once, or once for each --region",
            given.len(),
            regions.len()
        )));
    }
    let of_region = given.iter().cycle().zip(regions);
    of_region
        .map(|(endpoint, region)| endpoint.replace("{region}", region).parse())
        .collect::<Result<_, crate::sqs::Error>>()
        .map_err(|error| Error::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn plan(arguments: &[&str]) -> Result<Vec<Case>, Error> {
        let words = ["w5"].iter().chain(arguments);
        cases(&Command::try_parse_from(words).expect("arguments").arguments)
    }

    fn names(arguments: &[&str]) -> Vec<String> {
        plan(arguments)
            .expect("plan")
            .iter()
            .map(Case::name)
            .collect()
    }

    fn refusal(arguments: &[&str]) -> String {
        plan(arguments).err().expect("refused").to_string()
    }

    #[test]
    fn without_arguments_it_is_the_workload_of_2010_in_both_protocols() {
        let names = names(&["--region", &REGIONS.join(",")]);
        assert_eq!(names.len(), 2 * 5 * 4);
        assert_eq!(names[0], "query v2, N=250, us-east-1");
        assert_eq!(names[39], "json, N=5000, ap-southeast-1");
    }

    #[test]
    fn rounds_repeat_all_and_together_is_one_run_for_all_regions() {
        let arguments = "--region a,b --messages 7 --protocol query --signature v4 --rounds 2";
        let mut words: Vec<&str> = arguments.split(' ').collect();
        words.extend(["--together", "--batch"]);
        assert_eq!(names(&words), ["query v4, N=7, batch 10, 2 regions"; 2]);
    }

    #[test]
    fn an_endpoint_is_for_all_regions_or_for_one() {
        let endpoint = |arguments: &[&str]| -> Vec<String> {
            let cases = plan(arguments).expect("plan");
            let first = cases.iter().map(|case| &case.sites[0]);
            first
                .map(|site| site.client.endpoint().to_string())
                .collect()
        };
        let one = ["--messages=1", "--protocol=json", "--region=a,b"];
        let template = [
            &one[..],
            &[
                "--endpoint=http://{region}.localhost:1",
                "--access-key-id=id",
                "--secret-access-key=key",
            ],
        ]
        .concat();
        assert_eq!(
            endpoint(&template),
            ["http://a.localhost:1", "http://b.localhost:1"]
        );
        let each = ["--endpoint=http://[::1]:1", "--endpoint=http://[::1]:2"];
        assert_eq!(
            endpoint(&[&one[..], &each].concat()),
            ["http://[::1]:1", "http://[::1]:2"]
        );
        assert!(refusal(&[&each[..], &["--region=a,b,c"]].concat()).contains("2 endpoints"));
    }

    #[test]
    fn arguments_that_contradict_each_other_are_refused() {
        assert!(refusal(&["--protocol=json", "--signature=v2"]).contains("v4"));
        assert!(refusal(&["--region=a,a"]).contains("twice"));
        assert!(refusal(&["--region=a/b"]).contains("a/b"));
        assert!(refusal(&["--endpoint=localhost"]).contains("localhost"));
    }
}
