//! Start: broker, listeners, watches; then wait for the end.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amqp_server::{Listener, Options, TcpOptions};
use anyhow::Context;
use broker::{Broker, Settings};

use crate::config::{Config, Loaded};
use crate::{memory, shutdown};

/// No limit, for a handshake.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Runs the node until it is told to stop.
pub fn run(loaded: &Loaded, started: Instant) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(loaded.config.worker_threads.get())
        .thread_name("leveret-worker")
        .on_thread_park(memory::collect_if_called)
        .enable_all()
        .build()
        .context("cannot start worker threads")?;
    runtime.block_on(serve(loaded, started))
}

async fn serve(loaded: &Loaded, started: Instant) -> anyhow::Result<()> {
    let config = &loaded.config;
    // Before the first client can come, so that no signal finds the default action.
    let signals = shutdown::Signals::register().context("cannot handle signals")?;
    let broker = Broker::new(settings(config)).context("default_permissions")?;
    let options = Arc::new(options(config));
    let mut listeners = Vec::new();
    for address in &config.listeners {
        listeners.push(Listener::bind(*address, broker.clone(), options.clone())?);
    }
    announce(loaded, &listeners, started).context("cannot write to standard output")?;
    let accepting: Vec<_> = listeners
        .into_iter()
        .map(|listener| tokio::spawn(listener.run()))
        .collect();
    let watch = tokio::spawn(memory::watch(
        broker.clone(),
        config.vm_memory_high_watermark,
        config.worker_threads.get(),
    ));
    let signal = signals.wait().await;
    tracing::info!(signal, connections = broker.connections.count(), "stopping");
    for task in accepting {
        task.abort();
        // The listener is closed when its task has ended: nobody comes in any more.
        let _ = task.await;
    }
    watch.abort();
    shutdown::close_connections(&broker).await;
    tracing::info!("stopped");
    Ok(())
}

fn settings(config: &Config) -> Settings {
    let permissions = &config.default_permissions;
    Settings {
        default_user: config.default_user.clone(),
        default_password: config.default_pass.expose().to_owned(),
        default_vhost: config.default_vhost.clone(),
        default_tags: config.default_user_tags.clone(),
        default_permissions: [
            permissions.configure.clone(),
            permissions.write.clone(),
            permissions.read.clone(),
        ],
        loopback_users: config.loopback_users.clone(),
        cluster_name: config.cluster_name.clone(),
    }
}

fn options(config: &Config) -> Options {
    Options {
        frame_max: config.frame_max,
        initial_frame_max: config.initial_frame_max,
        channel_max: config.channel_max,
        heartbeat_s: config.heartbeat,
        max_message_size: config.max_message_size,
        handshake_timeout: config.handshake_timeout.unwrap_or(FOREVER),
        tcp: TcpOptions {
            backlog: config.tcp_listen_options.backlog,
            nodelay: config.tcp_listen_options.nodelay,
        },
    }
}

/// A few lines for whoever has just typed the command.
fn announce(loaded: &Loaded, listeners: &[Listener], started: Instant) -> std::io::Result<()> {
    let config = &loaded.config;
    let mut out = std::io::stdout().lock();
    writeln!(out, "Leveret {}", env!("CARGO_PKG_VERSION"))?;
    match &loaded.file {
        Some(file) => writeln!(out, "  configuration  {}", file.display())?,
        None => writeln!(out, "  configuration  defaults (no file)")?,
    }
    writeln!(
        out,
        "  messages       in memory: they end with this process"
    )?;
    for listener in listeners {
        writeln!(out, "  listening      {}", described(listener.address()))?;
    }
    if config.loopback_users.contains(&config.default_user) {
        writeln!(
            out,
            "  user           {}, from this machine only",
            config.default_user
        )?;
    } else {
        writeln!(out, "  user           {}", config.default_user)?;
    }
    writeln!(
        out,
        "ready in {} ms; stop with Ctrl-C",
        started.elapsed().as_millis()
    )?;
    out.flush()
}

fn described(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("amqp://localhost:{} (all interfaces)", address.port())
    } else {
        format!("amqp://{address}")
    }
}
