//! W2 (2011), after Haigha's stress test: C channels on one connection, each with its own queue and
//! one message under way; each delivery publishes the next. Does the rate hold as channels grow?

use std::time::Duration;

use client::method::tx;
use client::{
    Connection, ConsumeOptions, Event, ExchangeOptions, FieldTable, Method, Output, Properties,
    PublishFlags, QueueOptions,
};

use crate::load::random::Random;
use crate::result::Run;
use crate::sync::lock;
use crate::{Error, clock};

use super::arguments::seconds;
use super::own::{self, Hand};
use super::w1::unexpected;
use super::{Case, Common, Scenario, Target};

/// Size of the set of exchanges.
const EXCHANGES: u64 = 10;
const BODY: &[u8] = b"hello world";
/// Frames of a published, and of a delivered, message: method, header, body.
const FRAMES: f64 = 3.0;

/// `leveret perf w2`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Channels, one case each.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 10, 50, 500], value_parser = clap::value_parser!(u16).range(1..))]
    channels: Vec<u16>,
    /// How long each case takes.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    time: Duration,
    /// Each publish is a transaction of its own; what is delivered publishes nothing.
    #[arg(long)]
    tx: bool,
}

/// One case for each number of channels.
pub fn scenario(arguments: &Arguments) -> Scenario {
    let cases = arguments.channels.iter().map(|channels| {
        let (channels, time, tx) = (*channels, arguments.time, arguments.tx);
        let name = match channels {
            1 => "1 channel".to_owned(),
            channels => format!("{channels} channels"),
        };
        Case::own(name, move |target| run(channels, time, tx, target))
            .with("channels", channels)
            .with("time", time.as_secs_f64())
            .with("tx", tx)
    });
    Scenario {
        name: "w2",
        about: "ping-pong on many channels of one connection (2011)",
        figures: vec![
            "sent",
            "p50",
            "p99",
            "cpu",
            "frames read/s",
            "frames written/s",
        ],
        notes: vec![
            "The complaint of 2011 was that the rate fell as channels grew; no figures were \
             published. Here the rate at 500 channels should not be below the rate at 10."
                .into(),
        ],
        cases: cases.collect(),
    }
}

fn run(channels: u16, time: Duration, tx: bool, target: &Target) -> Run {
    let mut options = target.options.clone();
    options.channel_max = options.channel_max.max(channels);
    let mut run = own::measure(target, Some(time), move |hand| async move {
        let mut connection = Connection::connect(&options).await?;
        let mut game = Game::set_up(&mut connection, channels, tx).await?;
        hand.begin();
        game.serve(connection.output())?;
        while !hand.stopped() {
            tokio::time::timeout(Duration::from_millis(500), connection.ready())
                .await
                .unwrap_or(Ok(()))?;
            game.play(&mut connection, &hand)?;
        }
        Ok(connection.close().await?)
    });
    // With transactions a commit goes out and commit-ok comes back for each message.
    let extra = if tx { 1.0 } else { 0.0 };
    let totals = &run.totals;
    let frames = |rate: f64| rate * FRAMES + extra * totals.sent_rate;
    let (read, written) = (frames(totals.received_rate), frames(totals.sent_rate));
    run.figures.insert("frames read/s".into(), read);
    run.figures.insert("frames written/s".into(), written);
    run
}

/// The channels' routes, and when each one's message left.
struct Game {
    /// By channel number, from 1.
    routes: Vec<(String, String)>,
    left: Vec<i64>,
    tx: bool,
}

impl Game {
    async fn set_up(connection: &mut Connection, channels: u16, tx: bool) -> Result<Game, Error> {
        let mut game = Game {
            routes: vec![(String::new(), String::new())],
            left: vec![0; usize::from(channels) + 1],
            tx,
        };
        // The same in each run.
        let mut random = Random::new(1);
        for _ in 0..channels {
            let exchange = format!("publish-{}", random.below(EXCHANGES));
            game.routes.push(open(connection, exchange, tx).await?);
        }
        Ok(game)
    }

    /// Each channel's first message.
    fn serve(&mut self, output: &mut Output) -> Result<(), Error> {
        let now = clock::nanos();
        (1..self.routes.len() as u16).try_for_each(|channel| self.publish(output, channel, now))
    }

    /// When a channel's message left.
    fn left(&self, channel: u16) -> i64 {
        self.left.get(usize::from(channel)).copied().unwrap_or(0)
    }

    fn publish(&mut self, output: &mut Output, channel: u16, now: i64) -> Result<(), Error> {
        let Some((exchange, key)) = self.routes.get(usize::from(channel)) else {
            let reason =
                format!("the broker sent something on channel {channel}, which is not open");
            return Err(Error::Load(reason));
        };
        let none = Properties::default();
        output.publish(channel, exchange, key, PublishFlags::NONE, none, BODY)?;
        if self.tx {
            output.send(channel, tx::Commit::default());
        }
        self.left[usize::from(channel)] = now;
        Ok(())
    }

    /// Answers all that has arrived.
    fn play(&mut self, connection: &mut Connection, hand: &Hand) -> Result<(), Error> {
        let mut meter = lock(&hand.meter);
        let now = clock::nanos();
        while let Some((event, output)) = connection.try_next_and_output()? {
            let channel = match event {
                Event::Delivery(delivery) => {
                    meter.counts.received += 1;
                    if !self.tx {
                        meter.received_after(now - self.left(delivery.channel));
                    }
                    delivery.channel
                }
                Event::Reply {
                    channel,
                    method: Method::TxCommitOk(_),
                } => {
                    meter.confirmed_after(now - self.left(channel));
                    meter.counts.sent += 1;
                    self.publish(output, channel, now)?;
                    continue;
                }
                event => return Err(unexpected(&event)),
            };
            if !self.tx {
                meter.counts.sent += 1;
                self.publish(output, channel, now)?;
            }
        }
        Ok(())
    }
}

/// Opens a channel with its queue, bound to `exchange`, and its consumer.
async fn open(
    connection: &mut Connection,
    exchange: String,
    tx: bool,
) -> Result<(String, String), Error> {
    let channel = connection.open_channel().await?;
    let key = format!("leveret-perf-w2-{channel}");
    let auto_delete = ExchangeOptions {
        auto_delete: true,
        ..ExchangeOptions::default()
    };
    connection
        .declare_exchange(channel, &exchange, "direct", &auto_delete)
        .await?;
    let auto_delete = QueueOptions {
        auto_delete: true,
        ..QueueOptions::default()
    };
    connection
        .declare_queue(channel, &key, &auto_delete)
        .await?;
    let none = FieldTable::new();
    connection
        .bind(channel, &key, &exchange, &key, &none)
        .await?;
    let no_ack = ConsumeOptions::no_ack();
    connection.consume(channel, &key, &no_ack).await?;
    if tx {
        connection.tx_select(channel).await?;
    }
    Ok((exchange, key))
}
