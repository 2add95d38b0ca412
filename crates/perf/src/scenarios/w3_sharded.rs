//! W3, sharded (2016): producers with random routing keys on one exchange whose messages are spread
//! over shards, with one consumer each. No message may be consumed more than once.

use std::time::Duration;

use crate::Error;
use crate::settings::{
    Body, Consumers, Limits, Output, Payload, Producers, Queues, RandomKeys, Settings, Topology,
};

use super::arguments::seconds;
use super::{Case, Common, Scenario, Target, own};

/// `leveret perf w3-sharded`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Producers, one case each.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 2, 4, 6, 8], value_parser = clap::value_parser!(u32).range(1..=10_000))]
    producers: Vec<u32>,
    /// Shards that the exchange has.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    shards: u32,
    /// The exchange.
    #[arg(long, value_name = "NAME", default_value = "myshard")]
    exchange: String,
    /// Name of the broker's node, which shards are named after [default: rabbit@ and this host's
    /// name].
    #[arg(long, value_name = "NODE")]
    node: Option<String>,
    /// How long each case takes.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    time: Duration,
    /// Messages that may be unconfirmed.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    confirm: u32,
    /// Bytes of body.
    #[arg(long, value_name = "BYTES", default_value_t = 16, value_parser = clap::value_parser!(u32).range(16..=134_217_728))]
    size: u32,
}

/// Messages per second with four shards, at best.
const RABBITMQ_3_3_5_PEAK: (u32, f64) = (4, 46_000.0);

/// One case for each number of producers.
///
/// # Errors
/// The shards are not there: only the broker's administrator can make them.
pub fn scenario(arguments: &Arguments) -> Result<Scenario, Error> {
    let node = arguments.node.clone().unwrap_or_else(|| {
        let name = crate::result::Host::look().name;
        format!("rabbit@{}", name.split('.').next().unwrap_or(&name))
    });
    let shards: Vec<String> = (0..arguments.shards)
        .map(|number| format!("sharding: {} - {node} - {number}", arguments.exchange))
        .collect();
    for target in arguments.common.targets()? {
        own::block_on(prepare(&target, arguments, &shards))?;
    }
    let cases = arguments.producers.iter().map(|count| {
        let name = match count {
            1 => "1 producer".to_owned(),
            count => format!("{count} producers"),
        };
        let case = Case::load(name, settings(arguments, *count, &shards))
            .with("producers", *count)
            .with("shards", arguments.shards)
            .with("confirm", arguments.confirm)
            .with("time", arguments.time.as_secs_f64());
        let (producers, rate) = RABBITMQ_3_3_5_PEAK;
        match *count == producers && arguments.shards == 4 {
            true => case.published("RabbitMQ 3.3.5, received rate", rate),
            false => case,
        }
    });
    Ok(Scenario {
        name: "w3-sharded",
        about: "random routing keys over the shards of one exchange (2016)",
        figures: vec!["received", "p50", "p99", "confirm-p99", "cpu"],
        notes: vec![
            "Published: RabbitMQ 3.3.5 at its best, 4 producers and 4 shards; 3.6.1 reached 15,800 \
             msg/s at its best."
                .into(),
        ],
        cases: cases.collect(),
    })
}

/// Declares the exchange, and makes sure that its shards are there.
async fn prepare(target: &Target, arguments: &Arguments, shards: &[String]) -> Result<(), Error> {
    let mut connection = client::Connection::connect(&target.options).await?;
    let channel = connection.open_channel().await?;
    let durable = client::ExchangeOptions {
        durable: true,
        ..client::ExchangeOptions::default()
    };
    let exchange = &arguments.exchange;
    connection
        .declare_exchange(channel, exchange, "x-modulus-hash", &durable)
        .await?;
    let passive = client::QueueOptions {
        passive: true,
        ..client::QueueOptions::default()
    };
    for shard in shards {
        let declared = connection.declare_queue(channel, shard, &passive).await;
        match declared {
            Ok(_) => {}
            Err(error) if error.reply_code() == Some(404) => {
                return Err(Error::Load(format!(
                    "{} has no queue '{shard}'. Shards come with a policy: leveret ctl set_policy \
                     {exchange}-shard '^{exchange}$' '{{\"shards-per-node\": {}}}' --apply-to \
                     exchanges (in RabbitMQ rabbitmqctl, and the plugin rabbitmq_sharding); --node \
                     names the node if it is not this one",
                    target.options.address(),
                    arguments.shards
                )));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(connection.close().await?)
}

fn settings(arguments: &Arguments, producers: u32, shards: &[String]) -> Settings {
    Settings {
        id: "w3-sharded".into(),
        topology: Topology {
            exchange: arguments.exchange.clone(),
            exchange_type: "x-modulus-hash".into(),
            predeclared: true,
            queues: Queues::InTurn(shards.to_vec()),
            random_routing_key: Some(RandomKeys::Fresh),
            skip_binding: true,
            durable: true,
            ..Topology::default()
        },
        producers: Producers {
            count: producers,
            confirm: Some(arguments.confirm),
            persistent: true,
            ..Producers::default()
        },
        payload: Payload::of(Body::Sized(arguments.size as usize)),
        consumers: Consumers {
            count: shards.len() as u32,
            ..Consumers::default()
        },
        limits: Limits {
            time: Some(arguments.time),
            ..Limits::default()
        },
        output: Output::none(),
        verify: true,
        ..Settings::default()
    }
}
