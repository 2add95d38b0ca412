//! W5, 2010: how many messages a second a client gets into SQS. A queue in each of several regions,
//! N SendMessage calls asynchronously, and the rate once all of them have been answered.
//!
//! `plan` makes cases of the arguments; `load` runs one: `send` and `receive` are its tasks, `ledger`
//! knows each message, `tally` counts. All run on one thread, so nothing is locked; no borrow of a
//! `RefCell` lasts over an `.await`.
//!
//! Every case has a queue of its own for each region. Whatever ends it, an interrupt too, the queue
//! is deleted before the next one begins.

mod ledger;
mod load;
mod plan;
mod published;
mod receive;
mod send;
mod tally;

use tokio::task::LocalSet;

use crate::Error;
use crate::result::Run;
use crate::sqs::{self, Secret, Signature};
use plan::Case;

/// `leveret perf w5`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Where the service is: once for all regions, or once for each; {region} stands for its name
    ///
    /// Amazon's is https://sqs.{region}.amazonaws.com
    #[arg(
        long = "endpoint",
        value_name = "URL",
        default_value = "http://127.0.0.1:9324"
    )]
    pub endpoints: Vec<String>,

    /// A region, may be repeated [default: $AWS_REGION, or the four of 2010]
    #[arg(long = "region", value_name = "NAME", value_delimiter = ',')]
    pub regions: Vec<String>,

    /// How many messages, may be repeated
    #[arg(
        long = "messages",
        value_name = "N",
        value_delimiter = ',',
        default_values_t = [250, 500, 1000, 2500, 5000],
        value_parser = clap::value_parser!(u32).range(1..=10_000_000)
    )]
    pub messages: Vec<u32>,

    /// Calls at once in each region, and so connections; the others wait for one to end
    #[arg(
        long,
        visible_alias = "connections",
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub in_flight: u16,

    /// The Query protocol (XML), AWS JSON 1.0, or one after the other
    #[arg(long, value_enum, default_value_t = Protocols::Both)]
    pub protocol: Protocols,

    /// How Query calls are signed [default: v2]; JSON calls are signed with v4
    #[arg(long, value_enum)]
    pub signature: Option<Signature>,

    /// Bytes of each message
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 32,
        value_parser = clap::value_parser!(u32).range(i64::from(ledger::SHORTEST_BODY)..=262_144)
    )]
    pub body_size: u32,

    /// Send with SendMessageBatch, up to ten messages a call
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        default_value_t = 1,
        default_missing_value = "10",
        value_parser = clap::value_parser!(u8).range(1..=10)
    )]
    pub batch: u8,

    /// Also receive and delete the messages, meanwhile, and check that each comes once
    #[arg(long)]
    pub consume: bool,

    /// How many receive at once in each region
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub receivers: u16,

    /// Load all regions at the same time instead of one after the other
    #[arg(long)]
    pub together: bool,

    /// Do everything so often
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,

    /// Try a call again so often that is throttled, fails in the service or finds no connection
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub retry: u32,

    /// Seconds that an answer may take
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    pub timeout: u64,

    /// Who signs [default: $AWS_ACCESS_KEY_ID, or test for a service on this machine]
    #[arg(long, value_name = "ID", requires = "secret_access_key")]
    pub access_key_id: Option<String>,

    /// [default: $AWS_SECRET_ACCESS_KEY, or test for a service on this machine]
    #[arg(long, value_name = "KEY", requires = "access_key_id")]
    pub secret_access_key: Option<Secret>,

    /// Of temporary credentials [default: $AWS_SESSION_TOKEN]
    #[arg(long, value_name = "TOKEN", requires = "access_key_id")]
    pub session_token: Option<Secret>,
}

/// Which protocols are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Protocols {
    /// The Query protocol, whose answers are XML.
    Query,
    /// AWS JSON 1.0.
    Json,
    /// First the one, then the other.
    Both,
}

/// Runs the scenario; one run for each number of messages, protocol and region, or for all regions
/// if they are loaded together. Must not be called within an asynchronous runtime.
///
/// It is an error if the first queue cannot be created. Later, a run that could not begin has an
/// `error` and is the last; an interrupted run says so in `stopped`, and is the last, too.
pub fn run(arguments: &Arguments) -> Result<Vec<Run>, Error> {
    run_watched(arguments, &mut |_| {})
}

/// As [`run`], and tells each run as soon as it has ended.
pub fn run_watched(arguments: &Arguments, ended: &mut dyn FnMut(&Run)) -> Result<Vec<Run>, Error> {
    let what = "the asynchronous runtime does not start";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::System { what, source })?;
    LocalSet::new().block_on(&runtime, run_all(arguments, ended))
}

async fn run_all(arguments: &Arguments, ended: &mut dyn FnMut(&Run)) -> Result<Vec<Run>, Error> {
    let cases = plan::cases(arguments)?;
    let mut runs: Vec<Run> = Vec::new();
    for case in &cases {
        let mut run = case.blank();
        let begun = load::run(case, &mut run).await;
        if let Err(reason) = begun {
            if runs.is_empty() {
                return Err(Error::Load(reason));
            }
            run.error = Some(reason);
        }
        let is_last = run.stopped.is_empty() || run.stopped.contains_key(load::INTERRUPTED);
        ended(&run);
        runs.push(run);
        if is_last {
            break;
        }
    }
    Ok(runs)
}

/// One line for whoever has to do something about a queue that cannot be created.
fn cannot_begin(case: &Case, site: &plan::Site, error: &sqs::Error) -> String {
    let hint: String = match error {
        sqs::Error::Connect(_) => {
            "start a service there, or say with --endpoint where one is".into()
        }
        sqs::Error::Tls(_) => {
            "http:// is for a service without TLS; SSL_CERT_FILE names a file of certificates to \
             trust"
                .into()
        }
        sqs::Error::Refused { status: 403, .. } => {
            "check the credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".into()
        }
        _ => format!(
            "check that --endpoint is one of SQS that speaks {}",
            case.protocol
        ),
    };
    let (endpoint, region) = (site.client.endpoint(), &site.region);
    format!("cannot create a queue at {endpoint} in {region}: {error}; {hint}")
}
