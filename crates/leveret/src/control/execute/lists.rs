//! Lists: all that is known of each entry, under the names of `rabbitmqctl`'s columns.

use broker::admin::{
    Admin, BindingInfo, ConsumerInfo, ExchangeInfo, ParameterInfo, QueueInfo, TopicPermissionInfo,
};
use broker::json::{entries_to, table_to};
use broker::policy::Policy;
use serde_json::{Value, json};

use super::{Executed, authority, failure};
use crate::control::Shared;
use crate::control::protocol::Request;

pub(super) fn list(request: Request, shared: &Shared) -> Executed {
    let admin = shared.broker.admin();
    let rows: Vec<Value> = match request {
        Request::ListUsers => users(admin),
        Request::ListVhosts => vhosts(admin),
        Request::ListPermissions { vhost } => {
            let granted = admin.list_permissions(&vhost).map_err(failure)?.into_iter();
            granted
                .map(|info| permission("user", &info.user, &info.patterns))
                .collect()
        }
        Request::ListUserPermissions { user } => {
            let granted = admin.list_user_permissions(&user).map_err(failure)?;
            granted
                .iter()
                .map(|info| permission("vhost", &info.vhost, &info.patterns))
                .collect()
        }
        Request::ListTopicPermissions { vhost } => {
            let granted = admin.list_topic_permissions(&vhost).map_err(failure)?;
            granted.iter().map(topic_permission).collect()
        }
        Request::ListUserTopicPermissions { user } => {
            let granted = admin.list_user_topic_permissions(&user).map_err(failure)?;
            granted.iter().map(topic_permission).collect()
        }
        Request::ListParameters { vhost } => {
            let all = admin.list_vhost_parameters(&vhost).map_err(failure)?;
            all.iter().map(parameter).collect()
        }
        Request::ListGlobalParameters => {
            let all = admin.list_global_parameters().into_iter();
            all.map(|(name, value)| json!({"name": &*name, "value": value.to_string()}))
                .collect()
        }
        Request::ListPolicies { operator, vhost } => {
            let policies = admin.list_policies(&vhost, authority(operator));
            let policies = policies.map_err(failure)?.into_iter();
            policies.map(|it| policy(&vhost, &it)).collect()
        }
        Request::ListQueues { vhost } => {
            let queues = admin.list_queues(&vhost).map_err(failure)?;
            queues.iter().map(queue).collect()
        }
        Request::ListExchanges { vhost } => {
            let exchanges = admin.list_exchanges(&vhost).map_err(failure)?;
            exchanges.iter().map(exchange).collect()
        }
        Request::ListBindings { vhost } => {
            let bindings = admin.list_bindings(&vhost).map_err(failure)?;
            bindings.iter().map(binding).collect()
        }
        Request::ListConsumers { vhost } => {
            let consumers = admin.list_consumers(&vhost).map_err(failure)?;
            consumers.iter().map(consumer).collect()
        }
        _ => Vec::new(),
    };
    Ok(Value::Array(rows))
}

fn users(admin: Admin<'_>) -> Vec<Value> {
    let users = admin.list_users().into_iter();
    users
        .map(|user| json!({"user": &*user.name, "tags": user.tags}))
        .collect()
}

fn vhosts(admin: Admin<'_>) -> Vec<Value> {
    let vhosts = admin.list_vhosts().into_iter();
    let rows = vhosts.map(|vhost| {
        let default = vhost.metadata.default_queue_type;
        json!({
            "name": &*vhost.name,
            "tracing": vhost.traced,
            "description": vhost.metadata.description,
            "tags": vhost.metadata.tags,
            // What RabbitMQ shows where there is none.
            "default_queue_type": default.unwrap_or_else(|| "undefined".to_owned()),
        })
    });
    rows.collect()
}

fn permission(of: &str, name: &str, patterns: &[String; 3]) -> Value {
    let [configure, write, read] = patterns;
    json!({of: name, "configure": configure, "write": write, "read": read})
}

fn topic_permission(info: &TopicPermissionInfo) -> Value {
    let [write, read] = &info.patterns;
    json!({
        "vhost": &*info.vhost,
        "user": &*info.user,
        "exchange": &*info.exchange,
        "write": write,
        "read": read,
    })
}

fn parameter(parameter: &ParameterInfo) -> Value {
    json!({
        "component": &*parameter.component,
        "name": &*parameter.name,
        // Text, also among JSON: as rabbitmqctl shows it.
        "value": parameter.value.to_string(),
    })
}

fn policy(vhost: &str, policy: &Policy) -> Value {
    json!({
        "vhost": vhost,
        "name": &*policy.name,
        "pattern": policy.pattern.as_str(),
        "apply-to": policy.apply_to.to_string(),
        // Text, also among JSON: as rabbitmqctl shows it.
        "definition": table_to(&policy.definition).to_string(),
        "priority": policy.priority,
    })
}

fn queue(queue: &QueueInfo) -> Value {
    let owner = queue.owner.map(|connection| format!("<{}>", connection.0));
    json!({
        "name": &*queue.name,
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "exclusive": queue.owner.is_some(),
        "owner_pid": owner.unwrap_or_default(),
        "arguments": entries_to(&queue.arguments),
        "policy": queue.policy.as_deref().unwrap_or_default(),
        "operator_policy": queue.operator_policy.as_deref().unwrap_or_default(),
        "effective_policy_definition": table_to(&queue.effective_policy),
        "messages_ready": queue.messages_ready,
        "messages_unacknowledged": queue.messages_unacknowledged,
        "messages": queue.messages_ready + queue.messages_unacknowledged,
        "consumers": queue.consumers,
        "state": "running",
        "type": queue.type_name,
    })
}

fn exchange(exchange: &ExchangeInfo) -> Value {
    json!({
        "name": &*exchange.name,
        "type": exchange.kind.to_string(),
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": entries_to(&exchange.arguments),
        "policy": exchange.policy.as_deref().unwrap_or_default(),
        "messages_delayed": exchange.messages_delayed,
    })
}

fn binding(binding: &BindingInfo) -> Value {
    json!({
        "source_name": &*binding.source,
        "source_kind": "exchange",
        "destination_name": &*binding.destination,
        "destination_kind": if binding.to_queue { "queue" } else { "exchange" },
        "routing_key": binding.routing_key,
        "arguments": entries_to(&binding.arguments),
    })
}

fn consumer(consumer: &ConsumerInfo) -> Value {
    json!({
        "queue_name": &*consumer.queue,
        "channel_pid": format!("<{}.{}>", consumer.connection.0, consumer.channel),
        "consumer_tag": consumer.tag,
        "ack_required": consumer.ack_required,
        "prefetch_count": consumer.prefetch,
        "active": true,
        "activity_status": "up",
        "arguments": entries_to(&consumer.arguments),
    })
}
