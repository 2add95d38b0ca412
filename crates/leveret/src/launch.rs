//! Start: broker, listeners, watches; then wait for the end.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use amqp_server::{Listener, Options, TcpOptions};
use anyhow::Context;
use broker::{Broker, Settings};
use store::{DirectoryLock, RealDisk, Recovered, Store};

use crate::config::{Config, Loaded};
use crate::control::{Control, NodeInfo};
use crate::{definitions, memory, shutdown, storage, timer};

/// No limit, for a handshake.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Runs the node until it is told to stop.
pub fn run(loaded: &Loaded, started: Instant) -> anyhow::Result<()> {
    let config = &loaded.config;
    let _lock = DirectoryLock::take(&config.data_dir, &holder())?;
    let (store, recovered) = Store::open(
        Arc::new(RealDisk),
        &config.data_dir,
        storage::budget(config),
        true,
    )?;
    let found = Found::new(&recovered);
    let broker = Broker::new(settings(config), store.clone(), recovered)?;
    definitions::load(&broker, &config.definitions)?;
    let timer = timer::start(&broker).context("cannot start the timer's thread")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(config.worker_threads.get())
        .thread_name("leveret-worker")
        .on_thread_park(memory::collect_if_called)
        .enable_all()
        .build()
        .context("cannot start worker threads")?;
    let result = runtime.block_on(serve(loaded, broker.clone(), found, started));
    // Connections end before the log does: nothing of theirs is lost that could be kept.
    drop(runtime);
    timer.stop();
    store.close();
    // Not before: a checkpoint of queues that are gone from memory would be one without them.
    drop(broker);
    result
}

async fn serve(
    loaded: &Loaded,
    broker: Arc<Broker>,
    found: Found,
    started: Instant,
) -> anyhow::Result<()> {
    let config = &loaded.config;
    // Before the first client can come, so that no signal finds the default action.
    let signals = shutdown::Signals::register().context("cannot handle signals")?;
    let options = Arc::new(options(config));
    let mut listeners = Vec::new();
    for address in &config.listeners {
        listeners.push(Listener::bind(*address, broker.clone(), options.clone())?);
    }
    let control = Control::open(broker.clone(), node_info(loaded, &listeners, started));
    announce(loaded, &found, &listeners, started).context("cannot write to standard output")?;
    let accepting: Vec<_> = listeners
        .into_iter()
        .map(|listener| tokio::spawn(listener.run()))
        .collect();
    let watching_memory = tokio::spawn(memory::watch(
        broker.clone(),
        config.vm_memory_high_watermark,
        config.worker_threads.get(),
    ));
    let failure = storage::watch(&broker, &config.data_dir, config.disk_free_limit);
    let signal = tokio::select! {
        signal = signals.wait() => signal,
        () = control.asked_to_stop() => "leveret ctl stop",
        failure = failure => anyhow::bail!(
            "{failure}. Nothing was confirmed that may be lost; make sure that the disk is sound \
             before you start again"
        ),
    };
    tracing::info!(signal, connections = broker.connections.count(), "stopping");
    for task in accepting {
        task.abort();
        // The listener is closed when its task has ended: nobody comes in any more.
        let _ = task.await;
    }
    watching_memory.abort();
    shutdown::close_connections(&broker).await;
    control.close();
    tracing::info!("stopped");
    Ok(())
}

/// What `leveret ctl status` tells.
fn node_info(loaded: &Loaded, listeners: &[Listener], started: Instant) -> NodeInfo {
    let config = &loaded.config;
    NodeInfo {
        name: config.node_name.clone(),
        data_dir: config.data_dir.clone(),
        config_file: loaded.file.clone(),
        listeners: listeners.iter().map(Listener::address).collect(),
        started,
        memory_limit: memory::watermark(config.vm_memory_high_watermark),
        disk_limit: memory::watermark(config.disk_free_limit),
    }
}

/// Who has the data directory, for a second process that finds it taken.
fn holder() -> String {
    let host = rustix::system::uname();
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    format!(
        "process {} on {} (since {since} s of the Unix epoch)",
        std::process::id(),
        host.nodename().to_string_lossy()
    )
}

/// What was in the data directory.
struct Found {
    definitions: usize,
}

impl Found {
    fn new(recovered: &Recovered) -> Self {
        Found {
            definitions: recovered.definitions.len(),
        }
    }
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
        node_name: config.node_name.clone(),
        consumer_timeout: Some(config.consumer_timeout).filter(|timeout| *timeout > 0),
        durability: config.durability,
        // As in RabbitMQ: what is imported says who may come.
        set_up: config.definitions.is_empty(),
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
fn announce(
    loaded: &Loaded,
    found: &Found,
    listeners: &[Listener],
    started: Instant,
) -> std::io::Result<()> {
    let config = &loaded.config;
    let mut out = std::io::stdout().lock();
    writeln!(out, "Leveret {}", env!("CARGO_PKG_VERSION"))?;
    match &loaded.file {
        Some(file) => writeln!(out, "  configuration  {}", file.display())?,
        None => writeln!(out, "  configuration  defaults (no file)")?,
    }
    let state = match found.definitions {
        0 => "new",
        _ => "recovered",
    };
    writeln!(
        out,
        "  data           {} ({state})",
        config.data_dir.display()
    )?;
    for listener in listeners {
        writeln!(out, "  listening      {}", described(listener.address()))?;
    }
    if let [first, ..] = &config.definitions[..] {
        writeln!(out, "  definitions    {}", first.display())?;
    } else if config.loopback_users.contains(&config.default_user) {
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
