//! Definitions as the store keeps them: what each key and value says.
//!
//! ```text
//! vhost       v │ name                            description, tags, default queue type
//! user        u │ name                            password hash, tags
//! permission  p │ user │ vhost                    configure, write, read
//! exchange    x │ vhost │ name                    type, flags, arguments
//! queue       q │ vhost │ name                    stream, flags, arguments
//! binding     b │ vhost │ source │ kind │ destination │ routing key │ arguments    {}
//! policy      l │ vhost │ name                    pattern, apply-to, priority, definition
//! operator's  o │ vhost │ name                    the same
//! parameter   r │ vhost │ component │ name        JSON
//! global one  g │ name                            JSON
//! topic perm. t │ user │ vhost │ exchange         write, read
//! ```
//!
//! Parts of a key follow each other behind their lengths as u16, big-endian, so that keys sort by
//! kind, then by vhost. Values are field tables in the encoding of AMQP 0-9-1; an unknown entry is
//! left alone. Other kinds of keys are kept as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use amqp::{FieldTable, FieldValue, Table};
use store::{DefinitionChange, DefinitionMap, StreamId};

use crate::access::{PasswordHash, Permissions, TopicPermission, TopicPermissions, User};
use crate::binding::{BindingKey, DestinationKey};
use crate::exchange::{Exchange, ExchangeKind, ExchangeOptions};
use crate::metadata::VHostMetadata;
use crate::policy::{Authority, Policy};
use crate::queue::{Queue, QueueOptions};

const VHOST: u8 = b'v';
const USER: u8 = b'u';
const PERMISSION: u8 = b'p';
const EXCHANGE: u8 = b'x';
const QUEUE: u8 = b'q';
const BINDING: u8 = b'b';
const POLICY: u8 = b'l';
const OPERATOR_POLICY: u8 = b'o';
const PARAMETER: u8 = b'r';
const GLOBAL_PARAMETER: u8 = b'g';
const TOPIC_PERMISSION: u8 = b't';

/// A definition does not say what its kind must say.
#[derive(Debug, thiserror::Error)]
#[error("the definition {key:?} makes no sense")]
pub struct BadDefinition {
    key: String,
}

fn key(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![kind];
    for part in parts {
        // Names and keys come from short strings; arguments from frames are longer, and last.
        key.extend((part.len() as u16).to_be_bytes());
        key.extend(*part);
    }
    key
}

fn parts(key: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = key.get(1..)?;
    let mut parts = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let (part, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
        parts.push(part);
        rest = after;
    }
    rest.is_empty().then_some(parts)
}

pub(crate) fn vhost_key(name: &str) -> Vec<u8> {
    key(VHOST, &[name.as_bytes()])
}

pub(crate) fn user_key(name: &str) -> Vec<u8> {
    key(USER, &[name.as_bytes()])
}

pub(crate) fn permission_key(user: &str, vhost: &str) -> Vec<u8> {
    key(PERMISSION, &[user.as_bytes(), vhost.as_bytes()])
}

pub(crate) fn exchange_key(vhost: &str, name: &str) -> Vec<u8> {
    key(EXCHANGE, &[vhost.as_bytes(), name.as_bytes()])
}

pub(crate) fn queue_key(vhost: &str, name: &str) -> Vec<u8> {
    key(QUEUE, &[vhost.as_bytes(), name.as_bytes()])
}

pub(crate) fn binding_key(vhost: &str, binding: &BindingKey) -> Vec<u8> {
    let (kind, destination) = match &binding.destination {
        DestinationKey::Queue(name) => (b"q", name),
        DestinationKey::Exchange(name) => (b"e", name),
    };
    let mut key = key(
        BINDING,
        &[
            vhost.as_bytes(),
            binding.source.as_bytes(),
            kind,
            destination.as_bytes(),
            &binding.routing_key,
        ],
    );
    // Arguments may be longer than a part.
    key.extend(binding.arguments.iter());
    key
}

pub(crate) fn policy_key(authority: Authority, vhost: &str, name: &str) -> Vec<u8> {
    let kind = match authority {
        Authority::User => POLICY,
        Authority::Operator => OPERATOR_POLICY,
    };
    key(kind, &[vhost.as_bytes(), name.as_bytes()])
}

pub(crate) fn parameter_key(vhost: &str, component: &str, name: &str) -> Vec<u8> {
    let parts = [vhost, component, name].map(str::as_bytes);
    key(PARAMETER, &parts)
}

pub(crate) fn global_parameter_key(name: &str) -> Vec<u8> {
    key(GLOBAL_PARAMETER, &[name.as_bytes()])
}

pub(crate) fn topic_permission_key(user: &str, vhost: &str, exchange: &str) -> Vec<u8> {
    let parts = [user, vhost, exchange].map(str::as_bytes);
    key(TOPIC_PERMISSION, &parts)
}

pub(crate) fn policy_value(policy: &Policy) -> Vec<u8> {
    FieldTable::new()
        .with("pattern", policy.pattern.as_str())
        .with("apply-to", &*policy.apply_to.to_string())
        .with("priority", policy.priority)
        .with("definition", FieldValue::Bytes(policy.definition.encode()))
        .encode()
}

/// A parameter's value, of which only its component knows the meaning.
pub(crate) fn parameter_value(json: &str) -> Vec<u8> {
    FieldTable::new().with("json", json).encode()
}

pub(crate) fn topic_permission_value(granted: &TopicPermission) -> Vec<u8> {
    let [write, read] = granted.patterns();
    FieldTable::new()
        .with("write", write)
        .with("read", read)
        .encode()
}

pub(crate) fn user_value(user: &User) -> Vec<u8> {
    let tags = user.tags.iter().map(|tag| FieldValue::from(tag.as_str()));
    FieldTable::new()
        .with("password_hash", &*user.password.to_base64())
        .with("tags", FieldValue::Array(tags.collect()))
        .encode()
}

/// A user and all its permissions.
pub(crate) fn define_user(change: &mut DefinitionChange, user: &User) {
    change.define(&user_key(&user.name), &user_value(user));
    for (vhost, permissions) in &user.permissions {
        let key = permission_key(&user.name, vhost);
        change.define(&key, &permission_value(permissions));
    }
}

pub(crate) fn permission_value(permissions: &Permissions) -> Vec<u8> {
    let [configure, write, read] = permissions.patterns();
    FieldTable::new()
        .with("configure", configure)
        .with("write", write)
        .with("read", read)
        .encode()
}

pub(crate) fn exchange_value(exchange: &Exchange) -> Vec<u8> {
    let mut value = FieldTable::new()
        .with("type", &*exchange.kind.to_string())
        .with("auto_delete", exchange.auto_delete)
        .with("internal", exchange.internal)
        .with("arguments", FieldValue::Bytes(exchange.arguments.encode()));
    if let Some(queue) = &exchange.belongings.delayed {
        value.insert("delayed", queue.id as i64);
    }
    if let Some(window) = &exchange.belongings.window {
        value.insert("window", window.stream.0 as i64);
    }
    value.encode()
}

/// `consumed`: it has had a consumer, so that an auto-delete queue goes when there is none.
pub(crate) fn queue_value(queue: &Queue, consumed: bool) -> Vec<u8> {
    FieldTable::new()
        .with("stream", queue.id as i64)
        .with("auto_delete", queue.auto_delete)
        .with("consumed", consumed)
        .with("arguments", FieldValue::Bytes(queue.arguments.encode()))
        .encode()
}

/// An exchange that is to be there again.
pub(crate) struct ExchangeDefinition {
    pub vhost: Arc<str>,
    pub name: Arc<str>,
    /// Where messages wait that are delayed.
    pub delayed: Option<StreamId>,
    /// What has been published lately.
    pub window: Option<StreamId>,
    pub options: ExchangeOptions,
}

/// A queue that is to be there again.
pub(crate) struct QueueDefinition {
    pub vhost: Arc<str>,
    pub name: Arc<str>,
    pub stream: StreamId,
    pub consumed: bool,
    pub options: QueueOptions,
}

impl QueueDefinition {
    /// Its streams: one for each lane.
    pub fn streams(&self) -> impl Iterator<Item = StreamId> + use<> {
        let first = self.stream.0;
        (first..first + self.options.lanes()).map(StreamId)
    }
}

/// A binding that is to be there again.
pub(crate) struct BindingDefinition {
    pub vhost: Arc<str>,
    pub source: Arc<str>,
    pub destination: DestinationKey,
    pub routing_key: Box<[u8]>,
    pub arguments: FieldTable,
}

impl BindingDefinition {
    /// The key that it was found under.
    pub fn key(&self) -> Vec<u8> {
        let key = BindingKey {
            source: self.source.clone(),
            destination: self.destination.clone(),
            routing_key: self.routing_key.clone(),
            arguments: self.arguments.encode().into(),
        };
        binding_key(&self.vhost, &key)
    }
}

/// Everything that was defined.
#[derive(Default)]
pub(crate) struct Definitions {
    pub vhosts: Vec<(Arc<str>, VHostMetadata)>,
    pub users: Vec<User>,
    pub exchanges: Vec<ExchangeDefinition>,
    pub queues: Vec<QueueDefinition>,
    pub bindings: Vec<BindingDefinition>,
    /// With their vhosts.
    pub policies: Vec<(Arc<str>, Authority, Policy)>,
    /// Vhost, component, name and value.
    pub parameters: Vec<([Arc<str>; 3], String)>,
    pub global_parameters: Vec<(Arc<str>, String)>,
    /// User, vhost and exchange; write and read.
    pub topic_permissions: TopicPermissions,
}

impl Definitions {
    pub fn read(map: &DefinitionMap) -> Result<Definitions, BadDefinition> {
        let mut definitions = Definitions::default();
        let mut permissions = Vec::new();
        for (key, value) in map {
            let read = definitions.read_one(key, value, &mut permissions);
            read.ok_or_else(|| BadDefinition {
                key: String::from_utf8_lossy(key).into_owned(),
            })?;
        }
        for (user, vhost, granted) in permissions {
            if let Some(user) = definitions
                .users
                .iter_mut()
                .find(|known| *known.name == *user)
            {
                user.permissions.insert(vhost, Arc::new(granted));
            }
        }
        Ok(definitions)
    }

    fn read_one(
        &mut self,
        key: &[u8],
        value: &[u8],
        permissions: &mut Vec<(Arc<str>, Arc<str>, Permissions)>,
    ) -> Option<()> {
        let kind = *key.first()?;
        if kind == BINDING {
            return self.read_binding(key);
        }
        let names = parts(key)?
            .into_iter()
            .map(|part| std::str::from_utf8(part).ok().map(Arc::from))
            .collect::<Option<Vec<Arc<str>>>>()?;
        let value = Value(Table::from_wire(value).to_owned().ok()?);
        match (kind, &names[..]) {
            (VHOST, [name]) => self.vhosts.push((name.clone(), value.metadata())),
            (USER, [name]) => self.users.push(User {
                name: name.clone(),
                password: PasswordHash::from_base64(value.text("password_hash")?)?,
                tags: value.tags(),
                permissions: Default::default(),
            }),
            (PERMISSION, [user, vhost]) => {
                let pattern = |name| value.text(name);
                let (configure, write) = (pattern("configure")?, pattern("write")?);
                let granted = Permissions::restored(configure, write, pattern("read")?);
                permissions.push((user.clone(), vhost.clone(), granted));
            }
            (EXCHANGE, [vhost, name]) => {
                let options = ExchangeOptions {
                    kind: ExchangeKind::from_name(value.text("type")?)?,
                    durable: true,
                    auto_delete: value.flag("auto_delete"),
                    internal: value.flag("internal"),
                    arguments: value.arguments()?,
                };
                let stream = |name| {
                    let stream = value.0.get(name).and_then(FieldValue::as_i64);
                    stream.map(|stream| StreamId(stream as u64))
                };
                self.exchanges.push(ExchangeDefinition {
                    vhost: vhost.clone(),
                    name: name.clone(),
                    delayed: stream("delayed"),
                    window: stream("window"),
                    options,
                });
            }
            (QUEUE, [vhost, name]) => self.queues.push(QueueDefinition {
                vhost: vhost.clone(),
                name: name.clone(),
                stream: StreamId(value.0.get("stream")?.as_i64()? as u64),
                consumed: value.flag("consumed"),
                options: QueueOptions {
                    durable: true,
                    auto_delete: value.flag("auto_delete"),
                    exclusive: None,
                    arguments: value.arguments()?,
                },
            }),
            _ => return self.read_setting(kind, &names, &value),
        }
        Some(())
    }

    /// Policies, parameters and topic permissions.
    fn read_setting(&mut self, kind: u8, names: &[Arc<str>], value: &Value) -> Option<()> {
        match (kind, names) {
            (POLICY | OPERATOR_POLICY, [vhost, name]) => {
                let authority = match kind {
                    POLICY => Authority::User,
                    _ => Authority::Operator,
                };
                let (pattern, apply_to) = (value.text("pattern")?, value.text("apply-to")?);
                let priority = value.0.get("priority")?.as_i64()?;
                let definition = value.table("definition")?;
                let policy =
                    Policy::new(authority, name, pattern, apply_to, priority, definition).ok()?;
                self.policies.push((vhost.clone(), authority, policy));
            }
            (PARAMETER, [vhost, component, name]) => {
                let key = [vhost, component, name].map(Arc::clone);
                self.parameters.push((key, value.text("json")?.to_owned()));
            }
            (GLOBAL_PARAMETER, [name]) => {
                let json = value.text("json")?.to_owned();
                self.global_parameters.push((name.clone(), json));
            }
            (TOPIC_PERMISSION, [user, vhost, exchange]) => {
                let key = [user, vhost, exchange].map(Arc::clone);
                let patterns = [value.text("write")?, value.text("read")?];
                let granted = TopicPermission::restored(user, vhost, patterns);
                self.topic_permissions.insert(key, Arc::new(granted));
            }
            (VHOST | USER | PERMISSION | EXCHANGE | QUEUE, _) => return None,
            (POLICY | OPERATOR_POLICY | PARAMETER | GLOBAL_PARAMETER | TOPIC_PERMISSION, _) => {
                return None;
            }
            _ => {}
        }
        Some(())
    }

    fn read_binding(&mut self, key: &[u8]) -> Option<()> {
        let mut rest = key.get(1..)?;
        let mut next = || {
            let (length, after) = rest.split_first_chunk()?;
            let (part, after) = after.split_at_checked(u16::from_be_bytes(*length).into())?;
            rest = after;
            Some(part)
        };
        let mut name = || -> Option<Arc<str>> { Some(std::str::from_utf8(next()?).ok()?.into()) };
        let (vhost, source) = (name()?, name()?);
        let destination = match &*name()? {
            "q" => DestinationKey::Queue(name()?),
            "e" => DestinationKey::Exchange(name()?),
            _ => return None,
        };
        let routing_key = next()?.into();
        self.bindings.push(BindingDefinition {
            vhost,
            source,
            destination,
            routing_key,
            arguments: Table::from_wire(rest).to_owned().ok()?,
        });
        Some(())
    }
}

struct Value(FieldTable);

impl Value {
    fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    fn flag(&self, name: &str) -> bool {
        self.0.get(name) == Some(&FieldValue::Bool(true))
    }

    fn tags(&self) -> Vec<String> {
        let Some(FieldValue::Array(tags)) = self.0.get("tags") else {
            return Vec::new();
        };
        tags.iter()
            .filter_map(|tag| tag.as_str().map(str::to_owned))
            .collect()
    }

    fn metadata(&self) -> VHostMetadata {
        let text = |name| self.text(name).map(str::to_owned);
        VHostMetadata {
            description: text("description").unwrap_or_default(),
            tags: self.tags(),
            default_queue_type: text("default_queue_type"),
        }
    }

    fn arguments(&self) -> Option<FieldTable> {
        self.table("arguments")
    }

    fn table(&self, name: &str) -> Option<FieldTable> {
        match self.0.get(name) {
            Some(FieldValue::Bytes(encoded)) => Table::from_wire(encoded).to_owned().ok(),
            _ => None,
        }
    }
}

/// What a map of definitions holds, in short.
#[derive(Debug, Default)]
pub struct DefinitionSummary {
    /// How many vhosts.
    pub vhosts: usize,
    /// How many users.
    pub users: usize,
    /// How many exchanges, besides those that every vhost has.
    pub exchanges: usize,
    /// How many bindings.
    pub bindings: usize,
    /// Vhost and name of each queue, by each of its streams.
    pub queues: BTreeMap<StreamId, (Arc<str>, Arc<str>)>,
}

impl DefinitionSummary {
    /// Reads definitions without acting on them.
    ///
    /// # Errors
    /// One of them makes no sense.
    pub fn read(map: &DefinitionMap) -> Result<Self, BadDefinition> {
        let definitions = Definitions::read(map)?;
        let queues = definitions.queues.into_iter();
        let belongings = definitions.exchanges.iter().flat_map(|exchange| {
            let named = |stream: Option<StreamId>, what: &str| {
                let name: Arc<str> = format!("{what} of {}", exchange.name).into();
                stream.map(|stream| (stream, (exchange.vhost.clone(), name)))
            };
            [
                named(exchange.delayed, "delayed messages"),
                named(exchange.window, "identities"),
            ]
        });
        let belongings: Vec<_> = belongings.flatten().collect();
        Ok(DefinitionSummary {
            vhosts: definitions.vhosts.len(),
            users: definitions.users.len(),
            exchanges: definitions.exchanges.len(),
            bindings: definitions.bindings.len(),
            queues: queues
                .flat_map(|queue| {
                    let name = (queue.vhost.clone(), queue.name.clone());
                    queue.streams().map(move |stream| (stream, name.clone()))
                })
                .chain(belongings)
                .collect(),
        })
    }
}
