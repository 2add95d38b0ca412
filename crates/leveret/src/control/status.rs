//! What `leveret ctl status` tells.

use serde_json::{Value, json};

use super::Shared;
use crate::{memory, storage};

pub(super) fn of(shared: &Shared) -> Value {
    let (broker, node) = (&shared.broker, &shared.node);
    let admin = broker.admin();
    let vhosts = admin.list_vhosts();
    let queues: usize = vhosts
        .iter()
        .filter_map(|vhost| broker.vhost(&vhost.name))
        .map(|vhost| vhost.queue_count())
        .sum();
    let listeners: Vec<Value> = node
        .listeners
        .iter()
        .map(|address| {
            json!({
                "interface": address.ip().to_string(),
                "port": address.port(),
                "protocol": "amqp",
                "purpose": "AMQP 0-9-1, 0-9 and 0-8",
            })
        })
        .collect();
    json!({
        "node": node.name,
        "pid": std::process::id(),
        "os": std::env::consts::OS,
        "uptime": node.started.elapsed().as_secs(),
        "leveret_version": env!("CARGO_PKG_VERSION"),
        "rabbitmq_version": broker::admin::definitions::RABBITMQ_VERSION,
        "data_directory": node.data_dir.display().to_string(),
        "config_files": node.config_file.iter().map(|file| file.display().to_string())
            .collect::<Vec<_>>(),
        "alarms": broker.alarms.blocked().into_iter().collect::<Vec<_>>(),
        "memory_used": memory::used(),
        "vm_memory_high_watermark_limit": node.memory_limit,
        "disk_free": storage::free(&node.data_dir),
        "disk_free_limit": node.disk_limit,
        "totals": {
            "connections": broker.connections.count(),
            "queues": queues,
            "virtual_hosts": vhosts.len(),
        },
        "listeners": listeners,
    })
}
