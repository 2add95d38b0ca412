//! What is said on the control socket: a frame is a length (u32, big-endian) and that many bytes of
//! JSON. A request gets one response; then comes the next request, or the end.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Bytes of a request; the largest ones bring definitions.
pub const MAX_REQUEST: u32 = 256 * 1024 * 1024;
/// Bytes of a response; the largest ones are lists.
pub const MAX_RESPONSE: u32 = 1024 * 1024 * 1024;

/// What to do. The names are `rabbitmqctl`'s.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Request {
    /// Are you there?
    Ping,
    /// How are you?
    Status,
    /// Stop; the connection stays open until the process has ended.
    Stop,
    AddUser {
        name: String,
        password: String,
    },
    DeleteUser {
        name: String,
    },
    ListUsers,
    ChangePassword {
        name: String,
        password: String,
    },
    SetUserTags {
        name: String,
        tags: Vec<String>,
    },
    AuthenticateUser {
        name: String,
        password: String,
    },
    AddVhost {
        name: String,
        description: String,
        tags: Vec<String>,
        default_queue_type: Option<String>,
    },
    DeleteVhost {
        name: String,
    },
    ListVhosts,
    SetTracing {
        vhost: String,
        traced: bool,
    },
    SetPermissions {
        vhost: String,
        user: String,
        configure: String,
        write: String,
        read: String,
    },
    ClearPermissions {
        vhost: String,
        user: String,
    },
    ListPermissions {
        vhost: String,
    },
    ListUserPermissions {
        user: String,
    },
    SetTopicPermissions {
        vhost: String,
        user: String,
        exchange: String,
        write: String,
        read: String,
    },
    ClearTopicPermissions {
        vhost: String,
        user: String,
        /// All of them, where none is named.
        exchange: Option<String>,
    },
    ListTopicPermissions {
        vhost: String,
    },
    ListUserTopicPermissions {
        user: String,
    },
    SetParameter {
        vhost: String,
        component: String,
        name: String,
        /// JSON, as in a policy.
        value: String,
    },
    ClearParameter {
        vhost: String,
        component: String,
        name: String,
    },
    ListParameters {
        vhost: String,
    },
    SetGlobalParameter {
        name: String,
        /// JSON, as in a policy.
        value: String,
    },
    ClearGlobalParameter {
        name: String,
    },
    ListGlobalParameters,
    SetPolicy {
        operator: bool,
        vhost: String,
        name: String,
        pattern: String,
        apply_to: String,
        priority: i64,
        /// JSON, which the server reads: what is wrong with it is told as RabbitMQ tells it.
        definition: String,
    },
    ClearPolicy {
        operator: bool,
        vhost: String,
        name: String,
    },
    ListPolicies {
        operator: bool,
        vhost: String,
    },
    ListQueues {
        vhost: String,
    },
    ListExchanges {
        vhost: String,
    },
    ListBindings {
        vhost: String,
    },
    ListConsumers {
        vhost: String,
    },
    DeleteQueue {
        vhost: String,
        name: String,
        if_empty: bool,
        if_unused: bool,
    },
    PurgeQueue {
        vhost: String,
        name: String,
    },
    ExportDefinitions,
    ImportDefinitions {
        definitions: Value,
    },
}

/// How it went.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// Done, and durable; what there is to tell.
    Done(Value),
    /// Not done.
    Failed(Failure),
}

/// Why something was not done.
#[derive(Debug, Serialize, Deserialize)]
pub struct Failure {
    /// The exit status of `leveret ctl`; `rabbitmqctl`'s for the same.
    pub status: u8,
    /// What it prints.
    pub text: String,
}

/// Exit statuses, after sysexits.h.
pub mod status {
    /// The arguments are wrong.
    pub const USAGE: u8 = 64;
    /// What the arguments name does not exist, or is not readable.
    pub const DATA: u8 = 65;
    /// There is no such user.
    pub const NO_USER: u8 = 67;
    /// The server cannot be reached, or refuses.
    pub const UNAVAILABLE: u8 = 69;
    /// Something went wrong inside.
    pub const SOFTWARE: u8 = 70;
}
