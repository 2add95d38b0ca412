//! All definitions as JSON, each sort in the order of names.

use amqp::FieldTable;
use serde_json::{Value, json};

use super::RABBITMQ_VERSION;
use crate::admin::Admin;
use crate::admin::parameters::settings;
use crate::binding::Destination;
use crate::json::table_to;
use crate::policy::Authority;
use crate::topology::Topology;
use crate::vhost::VHost;

pub(super) fn all(admin: &Admin<'_>) -> Value {
    let mut vhosts = admin.all_vhosts();
    vhosts.sort_by(|a, b| a.name.cmp(&b.name));
    let each = |export: fn(&str, &Topology) -> Vec<Value>| -> Vec<Value> {
        let of_vhosts = vhosts.iter().flat_map(|vhost| {
            let mut exported = export(&vhost.name, &vhost.read());
            exported.sort_by_cached_key(Value::to_string);
            exported
        });
        of_vhosts.collect()
    };
    json!({
        "rabbit_version": RABBITMQ_VERSION,
        "rabbitmq_version": RABBITMQ_VERSION,
        "product_name": "Leveret",
        "product_version": env!("CARGO_PKG_VERSION"),
        "users": users(admin),
        "vhosts": vhosts.iter().map(|vhost| described(vhost)).collect::<Vec<_>>(),
        "permissions": permissions(admin),
        "topic_permissions": topic_permissions(admin),
        "parameters": parameters(admin, each(operator_policies)),
        "global_parameters": global_parameters(admin),
        "policies": each(policies),
        "queues": each(queues),
        "exchanges": each(exchanges),
        "bindings": each(bindings),
    })
}

fn users(admin: &Admin<'_>) -> Vec<Value> {
    let users = admin.broker.users.list().into_iter();
    let users = users.map(|user| {
        json!({
            "name": &*user.name,
            "password_hash": user.password.to_base64(),
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            "tags": user.tags,
            "limits": {},
        })
    });
    users.collect()
}

fn described(vhost: &VHost) -> Value {
    let metadata = vhost.metadata();
    let mut said = json!({"description": metadata.description, "tags": metadata.tags});
    if let Some(default) = metadata.default_queue_type {
        said["default_queue_type"] = default.into();
    }
    json!({"name": &*vhost.name, "limits": [], "metadata": said})
}

fn permissions(admin: &Admin<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    for user in admin.broker.users.list() {
        let mut granted: Vec<_> = user.permissions.iter().collect();
        granted.sort_by_key(|(vhost, _)| *vhost);
        for (vhost, permissions) in granted {
            let [configure, write, read] = permissions.patterns();
            all.push(json!({
                "user": &*user.name,
                "vhost": &**vhost,
                "configure": configure,
                "write": write,
                "read": read,
            }));
        }
    }
    all
}

fn topic_permissions(admin: &Admin<'_>) -> Vec<Value> {
    admin.broker.users.change_topic(|topic| {
        let all = topic.iter().map(|([user, vhost, exchange], granted)| {
            let [write, read] = granted.patterns();
            json!({
                "user": &**user,
                "vhost": &**vhost,
                "exchange": &**exchange,
                "write": write,
                "read": read,
            })
        });
        all.collect()
    })
}

/// Operator policies travel as parameters, as in RabbitMQ.
fn parameters(admin: &Admin<'_>, mut all: Vec<Value>) -> Vec<Value> {
    all.extend(admin.list_parameters().into_iter().map(|parameter| {
        json!({
            "vhost": &*parameter.vhost,
            "component": &*parameter.component,
            "name": &*parameter.name,
            "value": parameter.value,
        })
    }));
    all
}

fn global_parameters(admin: &Admin<'_>) -> Vec<Value> {
    let all = admin.list_global_parameters().into_iter();
    all.map(|(name, value)| json!({"name": &*name, "value": value}))
        .collect()
}

fn policies(vhost: &str, topology: &Topology) -> Vec<Value> {
    let all = topology.policies(Authority::User).map(|policy| {
        let mut exported = settings(policy);
        exported["vhost"] = vhost.into();
        exported["name"] = (&*policy.name).into();
        exported
    });
    all.collect()
}

fn operator_policies(vhost: &str, topology: &Topology) -> Vec<Value> {
    let all = topology.policies(Authority::Operator).map(|policy| {
        json!({
            "vhost": vhost,
            "component": "operator_policy",
            "name": &*policy.name,
            "value": settings(policy),
        })
    });
    all.collect()
}

/// Without exclusive queues, which end with their connections.
fn queues(vhost: &str, topology: &Topology) -> Vec<Value> {
    let lasting = topology.queues.values();
    let lasting = lasting.filter(|queue| queue.exclusive_owner.is_none());
    let all = lasting.map(|queue| {
        json!({
            "vhost": vhost,
            "name": &*queue.name,
            "type": queue.type_name(),
            "durable": queue.durable,
            "auto_delete": queue.auto_delete,
            "arguments": arguments(&queue.arguments),
        })
    });
    all.collect()
}

/// Without those that every vhost has, and internal ones, which plugins make.
fn exchanges(vhost: &str, topology: &Topology) -> Vec<Value> {
    let own = topology.exchanges.values();
    let own = own.filter(|exchange| is_own(&exchange.name) && !exchange.internal);
    let all = own.map(|exchange| {
        json!({
            "vhost": vhost,
            "name": &*exchange.name,
            "type": exchange.kind.to_string(),
            "durable": exchange.durable,
            "auto_delete": exchange.auto_delete,
            "arguments": arguments(&exchange.arguments),
        })
    });
    all.collect()
}

/// Those whose ends are exported.
fn bindings(vhost: &str, topology: &Topology) -> Vec<Value> {
    let internal = |name: &str| {
        let exchange = topology.exchanges.get(name);
        exchange.is_some_and(|exchange| exchange.internal && is_own(name))
    };
    let all = topology
        .exchanges
        .values()
        .flat_map(|exchange| exchange.bindings());
    let lasting = all.filter(|binding| match &binding.destination {
        Destination::Queue(queue) => queue.exclusive_owner.is_none() && !internal(&binding.source),
        Destination::Exchange(name) => !internal(name) && !internal(&binding.source),
    });
    let all = lasting.map(|binding| {
        let kind = match binding.destination {
            Destination::Queue(_) => "queue",
            Destination::Exchange(_) => "exchange",
        };
        json!({
            "vhost": vhost,
            "source": &*binding.source,
            "destination": &**binding.destination.name(),
            "destination_type": kind,
            "routing_key": String::from_utf8_lossy(&binding.routing_key),
            "arguments": arguments(&binding.arguments),
        })
    });
    all.collect()
}

/// Whether somebody has declared it.
pub(super) fn is_own(exchange: &str) -> bool {
    !exchange.is_empty() && !exchange.starts_with("amq.")
}

fn arguments(table: &FieldTable) -> Value {
    table_to(table)
}
