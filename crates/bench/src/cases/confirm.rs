//! How long a producer waits who has one persistent message outstanding, beside a bare loop that
//! writes and syncs: in turns, so that both meet the same disk.

use std::time::{Duration, Instant};

use client::Options;

use super::bare_loop::BareLoop;
use crate::args::Args;
use crate::error::Error;
use crate::load::queues::{self, QUEUE};
use crate::load::{DRAIN, Message, Producer};
use crate::measure::{WARM_UP, run_local};
use crate::reading::Reading;
use crate::samples::Samples;
use crate::target::Target;

const BODY: usize = 1024;
/// Length of a turn.
const SLICE: Duration = Duration::from_millis(500);

/// One round.
pub fn round(args: &Args, target: &Target) -> Result<Vec<Reading>, Error> {
    let names = [QUEUE.to_owned()];
    queues::make(&target.options, &names, true)?;
    let mut bare = target
        .data_dir()
        .map(|data| BareLoop::prepare(&data))
        .transpose()?;
    let times = run_local(async {
        let limit = WARM_UP + args.round + DRAIN;
        let running = run(&target.options, args.round, bare.as_mut());
        let stuck = Error::Stuck {
            role: "producer",
            limit,
        };
        tokio::time::timeout(limit, running)
            .await
            .unwrap_or(Err(stuck))
    })?;
    queues::remove(&target.options, &names)?;
    Ok(readings(times))
}

/// Times of one round.
#[derive(Default)]
struct Times {
    confirms: Samples,
    bare: Samples,
}

async fn run(
    options: &Options,
    round: Duration,
    mut bare: Option<&mut BareLoop>,
) -> Result<Times, Error> {
    let mut producer = Producer::connect(options, Message::to_queue(QUEUE, BODY, true)).await?;
    producer.confirm_within(1).await?;
    turn(&mut producer, WARM_UP, &mut Samples::default()).await?;
    let turns = (round.as_secs_f64() / SLICE.as_secs_f64() / 2.0).ceil();
    let slice = round.div_f64(turns * 2.0);
    let mut times = Times::default();
    for _ in 0..turns as u32 {
        turn(&mut producer, slice, &mut times.confirms).await?;
        if let Some(bare) = &mut bare {
            bare.run(slice, &mut times.bare)?;
        }
    }
    producer.close().await?;
    Ok(times)
}

/// Publishes message after message, each once the one before is confirmed.
async fn turn(producer: &mut Producer, time: Duration, samples: &mut Samples) -> Result<(), Error> {
    let end = Instant::now() + time;
    let mut began = Instant::now();
    while began < end {
        producer.publish()?;
        producer.settle().await?;
        samples.push(began.elapsed());
        began = Instant::now();
    }
    producer.connection.purge(producer.channel, QUEUE).await?;
    Ok(())
}

fn readings(times: Times) -> Vec<Reading> {
    let measured_bare = times.bare.len() > 0;
    let (confirms, bare) = (times.confirms.sorted(), times.bare.sorted());
    let mut readings = vec![
        Reading::new("confirm, median", confirms.millis(0.5), "ms"),
        Reading::new("confirm, p99", confirms.millis(0.99), "ms"),
    ];
    if measured_bare {
        let ratio = confirms.millis(0.5) / bare.millis(0.5);
        readings.extend([
            Reading::new("bare loop, median", bare.millis(0.5), "ms"),
            Reading::new("bare loop, p99", bare.millis(0.99), "ms"),
            Reading::new("confirm / bare loop, medians", ratio, "").at_most(1.4),
        ]);
    }
    readings
}
