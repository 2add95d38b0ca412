//! Many idle connections, each with one open channel: what does one cost the broker?

use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use client::{Connection, Options};

use crate::args::Args;
use crate::case::ConnectionFigures;
use crate::error::Error;
use crate::measure::run_local;
use crate::target::Target;

/// Files of this process beside the connections.
const SPARE_FILES: u64 = 100;
/// Connections per loopback source address; an address has some 28,000 ports.
const PER_ADDRESS: usize = 5_000;
/// Connections opened and closed before the first look, so that what the broker sets up once is
/// not counted.
const WARM_UP: usize = 50;
/// Lets the broker come to rest before a look.
const REST: Duration = Duration::from_secs(2);

pub fn measure(args: &Args, target: &Target) -> Result<ConnectionFigures, Error> {
    let wanted = args.connections as u64 + SPARE_FILES;
    let allowed = testkit::raise_open_files(wanted);
    if allowed < wanted {
        return Err(Error::TooFewFiles { allowed, wanted });
    }
    target.allows_connections(args.connections)?;
    run_local(async {
        for connection in open(&target.options, WARM_UP).await? {
            connection.close().await?;
        }
        tokio::time::sleep(REST).await;
        let before = target.usage()?;
        let started = Instant::now();
        let connections = open(&target.options, args.connections).await?;
        let taken = started.elapsed().as_secs_f64();
        tokio::time::sleep(REST).await;
        let after = target.usage()?;
        let growth = before
            .zip(after)
            .map(|(before, after)| after.rss as f64 - before.rss as f64);
        drop(connections);
        Ok(ConnectionFigures {
            count: args.connections,
            opened_per_second: args.connections as f64 / taken,
            rss: after.map(|usage| usage.rss),
            rss_each: growth.map(|bytes| bytes / args.connections as f64),
        })
    })
}

async fn open(options: &Options, count: usize) -> Result<Vec<Connection>, Error> {
    let loopback = matches!(options.host.as_str(), "localhost" | "127.0.0.1");
    let mut options = Options {
        heartbeat: 0,
        ..options.clone()
    };
    let mut connections = Vec::with_capacity(count);
    for index in 0..count {
        if loopback {
            options.host = "127.0.0.1".into();
            let last = 1 + (index / PER_ADDRESS) as u8;
            options.local_address = Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)));
        }
        let mut connection = Connection::connect(&options).await?;
        connection.open_channel().await?;
        connections.push(connection);
    }
    Ok(connections)
}
