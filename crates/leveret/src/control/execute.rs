//! Doing what a request asks for, and saying why not as `rabbitmqctl` does.

use broker::VHostMetadata;
use broker::admin::{Admin, AdminError, PolicyRequest};
use broker::json::table_from;
use broker::policy::Authority;
use serde_json::{Value, json};

use super::Shared;
use super::protocol::{Failure, Request, status};
use super::status as node_status;

mod lists;

type Executed = Result<Value, Failure>;

/// Does it; may take as long as the broker's locks do.
pub(super) fn execute(request: Request, shared: &Shared) -> Executed {
    let admin = shared.broker.admin();
    match request {
        Request::Ping => Ok(Value::Null),
        Request::Status => Ok(node_status::of(shared)),
        Request::Stop => Ok(Value::Null),
        Request::ExportDefinitions => Ok(admin.export_definitions()),
        Request::ImportDefinitions { definitions } => import(admin, &definitions),
        Request::AddUser { .. }
        | Request::DeleteUser { .. }
        | Request::ChangePassword { .. }
        | Request::SetUserTags { .. }
        | Request::AuthenticateUser { .. } => user(request, admin),
        Request::AddVhost { .. }
        | Request::DeleteVhost { .. }
        | Request::SetTracing { .. }
        | Request::SetPermissions { .. }
        | Request::ClearPermissions { .. } => vhost(request, admin),
        Request::SetTopicPermissions { .. } | Request::ClearTopicPermissions { .. } => {
            topic_permission(request, admin)
        }
        Request::SetParameter { .. }
        | Request::ClearParameter { .. }
        | Request::SetGlobalParameter { .. }
        | Request::ClearGlobalParameter { .. } => parameter(request, admin),
        Request::SetPolicy { .. } | Request::ClearPolicy { .. } => policy(request, admin),
        Request::DeleteQueue { .. } | Request::PurgeQueue { .. } => queue(request, admin),
        list => lists::list(list, shared),
    }
}

fn user(request: Request, admin: Admin<'_>) -> Executed {
    match request {
        Request::AddUser { name, password } => admin.add_user(&name, &password),
        Request::DeleteUser { name } => admin.delete_user(&name),
        Request::ChangePassword { name, password } => admin.change_password(&name, &password),
        Request::SetUserTags { name, tags } => admin.set_user_tags(&name, tags),
        Request::AuthenticateUser { name, password } => admin.authenticate_user(&name, &password),
        _ => Ok(()),
    }
    .map(|()| Value::Null)
    .map_err(failure)
}

fn vhost(request: Request, admin: Admin<'_>) -> Executed {
    match request {
        Request::AddVhost {
            name,
            description,
            tags,
            default_queue_type,
        } => {
            let metadata = VHostMetadata {
                description,
                tags,
                default_queue_type,
            };
            admin.add_vhost(&name, metadata)
        }
        Request::DeleteVhost { name } => admin.delete_vhost(&name),
        Request::SetTracing { vhost, traced } => admin.set_tracing(&vhost, traced),
        Request::SetPermissions {
            vhost,
            user,
            configure,
            write,
            read,
        } => admin.set_permissions(&vhost, &user, [&configure, &write, &read]),
        Request::ClearPermissions { vhost, user } => admin.clear_permissions(&vhost, &user),
        _ => Ok(()),
    }
    .map(|()| Value::Null)
    .map_err(failure)
}

fn topic_permission(request: Request, admin: Admin<'_>) -> Executed {
    match request {
        Request::SetTopicPermissions {
            vhost,
            user,
            exchange,
            write,
            read,
        } => admin.set_topic_permissions(&vhost, &user, &exchange, [&write, &read]),
        Request::ClearTopicPermissions {
            vhost,
            user,
            exchange,
        } => admin.clear_topic_permissions(&vhost, &user, exchange.as_deref()),
        _ => Ok(()),
    }
    .map(|()| Value::Null)
    .map_err(failure)
}

fn parameter(request: Request, admin: Admin<'_>) -> Executed {
    match request {
        Request::SetParameter {
            vhost,
            component,
            name,
            value,
        } => admin.set_parameter(&vhost, &component, &name, decoded(&value)?),
        Request::ClearParameter {
            vhost,
            component,
            name,
        } => admin.clear_parameter(&vhost, &component, &name),
        Request::SetGlobalParameter { name, value } => {
            admin.set_global_parameter(&name, decoded(&value)?)
        }
        Request::ClearGlobalParameter { name } => admin.clear_global_parameter(&name),
        _ => Ok(()),
    }
    .map(|()| Value::Null)
    .map_err(failure)
}

fn decoded(text: &str) -> Executed {
    serde_json::from_str(text).map_err(|error| {
        let text = format!("JSON decoding error. Reason: {error}");
        failed(status::UNAVAILABLE, &text)
    })
}

fn policy(request: Request, admin: Admin<'_>) -> Executed {
    match request {
        Request::SetPolicy {
            operator,
            vhost,
            name,
            pattern,
            apply_to,
            priority,
            definition,
        } => {
            let definition = decoded(&definition)?;
            let invalid = |text: &str| {
                let text = format!("Validation failed\n\n{text}\n");
                failed(status::UNAVAILABLE, &text)
            };
            let object = definition.as_object();
            let object = object.ok_or_else(|| invalid("definition should be a JSON object"))?;
            let request = PolicyRequest {
                authority: authority(operator),
                name: &name,
                pattern: &pattern,
                apply_to: &apply_to,
                priority,
                definition: table_from(object).map_err(|text| invalid(&text))?,
            };
            admin.set_policy(&vhost, &request)
        }
        Request::ClearPolicy {
            operator,
            vhost,
            name,
        } => admin.clear_policy(&vhost, authority(operator), &name),
        _ => Ok(()),
    }
    .map(|()| Value::Null)
    .map_err(failure)
}

fn authority(operator: bool) -> Authority {
    match operator {
        true => Authority::Operator,
        false => Authority::User,
    }
}

fn queue(request: Request, admin: Admin<'_>) -> Executed {
    match request {
        Request::DeleteQueue {
            vhost,
            name,
            if_empty,
            if_unused,
        } => {
            let deleted = admin.delete_queue(&vhost, &name, if_empty, if_unused);
            deleted.map(|ready| json!({"messages": ready}))
        }
        Request::PurgeQueue { vhost, name } => match admin.purge_queue(&vhost, &name) {
            // RabbitMQ words and counts these otherwise than for a queue that is to be deleted.
            Err(AdminError::NoSuchQueue) => {
                return Err(failed(status::UNAVAILABLE, "not_found"));
            }
            purged => purged.map(|ready| json!({"messages": ready})),
        },
        _ => Ok(0).map(|_: usize| Value::Null),
    }
    .map_err(failure)
}

fn import(admin: Admin<'_>, definitions: &Value) -> Executed {
    let imported = admin.import_definitions(definitions).map_err(failure)?;
    for warning in &imported.warnings {
        tracing::warn!("{warning}");
    }
    Ok(json!({"entries": imported.entries, "warnings": imported.warnings}))
}

/// As `rabbitmqctl` prints it, with its exit status.
fn failure(error: AdminError) -> Failure {
    let text = error.to_string();
    match &error {
        AdminError::NoSuchVHost(_) => Failure {
            status: status::DATA,
            text,
        },
        AdminError::BadCredentials(name) => failed(
            status::DATA,
            &format!("Error: failed to authenticate user \"{name}\"\n{text}"),
        ),
        AdminError::NoSuchUser(_) => failed(status::NO_USER, &text),
        AdminError::UserExists(_) => failed(status::SOFTWARE, &text),
        AdminError::NoSuchQueue | AdminError::QueueInUse | AdminError::QueueNotEmpty => {
            failed(status::USAGE, &text)
        }
        AdminError::NoSuchParameter
        | AdminError::Invalid(_)
        | AdminError::NotForStreams
        | AdminError::QueueLocked => failed(status::UNAVAILABLE, &text),
    }
}

fn failed(status: u8, text: &str) -> Failure {
    Failure {
        status,
        text: format!("Error:\n{text}"),
    }
}
