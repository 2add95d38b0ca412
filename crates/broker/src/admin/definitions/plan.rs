//! What an import will do: every entry read and checked, before anything is changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use amqp::FieldTable;
use serde_json::Value;

use super::entry::{Entry, entries, tags};
use super::export::is_own;
use crate::access::{PasswordHash, Permissions, TopicPermission};
use crate::admin::users::check_tags;
use crate::admin::vhosts::check_vhost;
use crate::admin::{Admin, AdminError, PolicyRequest, check_name};
use crate::binding::DestinationKey;
use crate::error::Resource;
use crate::events;
use crate::exchange::{ExchangeKind, ExchangeOptions};
use crate::metadata::VHostMetadata;
use crate::policy::{Authority, Policy};
use crate::queue::QueueOptions;

const HASHING: &str = "rabbit_password_hashing_sha256";

/// A checked import.
#[derive(Default)]
pub(super) struct Plan {
    /// With password and tags.
    pub users: Vec<(String, PasswordHash, Vec<String>)>,
    /// With what is said about them, where anything is.
    pub vhosts: Vec<(String, Option<VHostMetadata>)>,
    /// Vhost, user, patterns.
    pub permissions: Vec<(String, String, [String; 3])>,
    /// User, vhost, exchange; write and read.
    pub topic_permissions: Vec<([Arc<str>; 3], TopicPermission)>,
    pub parameters: Vec<([Arc<str>; 3], Value)>,
    pub global_parameters: Vec<(Arc<str>, Value)>,
    /// By vhost.
    pub topologies: BTreeMap<Arc<str>, TopologyPlan>,
    pub entries: usize,
    pub warnings: Vec<String>,
    /// All users that there will be.
    known_users: BTreeSet<Arc<str>>,
}

/// What comes into one vhost.
#[derive(Default)]
pub(super) struct TopologyPlan {
    pub policies: Vec<(Authority, Policy)>,
    pub exchanges: Vec<(Arc<str>, ExchangeOptions)>,
    pub queues: Vec<(Arc<str>, QueueOptions)>,
    pub bindings: Vec<BindingPlan>,
    /// All exchanges that there will be, with the types that they route as.
    known_exchanges: BTreeMap<Arc<str>, ExchangeKind>,
    /// All queues that there will be.
    known_queues: BTreeSet<Arc<str>>,
}

/// A binding to make.
pub(super) struct BindingPlan {
    pub source: Arc<str>,
    pub destination: DestinationKey,
    pub routing_key: String,
    pub arguments: FieldTable,
}

impl Plan {
    /// Reads and checks a file of definitions.
    ///
    /// # Errors
    /// What is wrong, and with which entry.
    pub fn new(admin: &Admin<'_>, all: &Value) -> Result<Plan, String> {
        if !all.is_object() {
            return Err("definitions have to be a JSON object".to_owned());
        }
        let mut plan = Plan::default();
        plan.each(all, "vhosts", |plan, entry| plan.vhost(entry))?;
        plan.learn(admin);
        plan.each(all, "users", |plan, entry| plan.user(entry))?;
        plan.each(all, "permissions", |plan, entry| plan.permission(entry))?;
        plan.each(all, "topic_permissions", |plan, entry| {
            plan.topic_permission(entry)
        })?;
        plan.each(all, "global_parameters", |plan, entry| {
            plan.global_parameter(entry)
        })?;
        plan.each(all, "policies", |plan, entry| plan.policy(entry))?;
        plan.each(all, "parameters", |plan, entry| plan.parameter(entry))?;
        plan.each(all, "exchanges", |plan, entry| plan.exchange(entry))?;
        plan.each(all, "queues", |plan, entry| plan.queue(admin, entry))?;
        plan.each(all, "bindings", |plan, entry| plan.binding(entry))?;
        plan.warn_of_components();
        Ok(plan)
    }

    fn each(
        &mut self,
        all: &Value,
        list: &'static str,
        read: impl Fn(&mut Plan, &Entry<'_>) -> Result<(), String>,
    ) -> Result<(), String> {
        for entry in entries(all, list)? {
            read(self, &entry)?;
            self.entries += 1;
        }
        Ok(())
    }

    /// What is there already, in the vhosts that there will be.
    fn learn(&mut self, admin: &Admin<'_>) {
        let users = admin.broker.users.list();
        self.known_users = users.iter().map(|user| user.name.clone()).collect();
        for (name, _) in &self.vhosts {
            self.topologies.entry(name.as_str().into()).or_default();
        }
        for vhost in admin.all_vhosts() {
            let topology = vhost.read();
            let known = self.topologies.entry(vhost.name.clone()).or_default();
            let exchanges = topology.exchanges.values();
            known.known_exchanges = exchanges.map(|x| (x.name.clone(), x.routed_as())).collect();
            known.known_queues = topology.queues.keys().cloned().collect();
        }
        let every = crate::vhost::PREDECLARED;
        for known in self.topologies.values_mut() {
            let missing = every.iter().map(|(name, kind)| (Arc::from(*name), *kind));
            known.known_exchanges.extend(missing);
        }
        if let Some(known) = self.topologies.get_mut(&*admin.broker.default_vhost) {
            let events = Arc::from(events::EXCHANGE);
            known.known_exchanges.insert(events, ExchangeKind::Topic);
        }
    }

    fn vhost(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let name = entry.name("name")?;
        let said = entry.value("metadata").and_then(Value::as_object);
        // At the top in some releases, below `metadata` in others.
        let value = |key| entry.value(key).or_else(|| said?.get(key));
        let text = |key| value(key).and_then(Value::as_str).map(str::to_owned);
        let described = ["description", "tags", "default_queue_type"];
        let metadata = described.into_iter().any(|key| value(key).is_some());
        let metadata = metadata.then(|| VHostMetadata {
            description: text("description").unwrap_or_default(),
            tags: value("tags").and_then(tags).unwrap_or_default(),
            default_queue_type: text("default_queue_type").filter(|name| name != "undefined"),
        });
        check_vhost(name, &metadata.clone().unwrap_or_default())
            .map_err(|error| entry.error(error))?;
        self.warn_of_limits(entry);
        self.vhosts.push((name.to_owned(), metadata));
        Ok(())
    }

    fn user(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let name = entry.name("name")?;
        let hashing = entry.optional_text("hashing_algorithm")?.unwrap_or(HASHING);
        let hash = entry.optional_text("password_hash")?;
        let password = match (hash, entry.optional_text("password")?) {
            (Some(""), _) => PasswordHash::none(),
            (Some(_), _) if hashing != HASHING => {
                let text = format!(
                    "passwords hashed with {hashing} are not supported, only {HASHING}: \
                     set the password anew"
                );
                return Err(entry.error(text));
            }
            (Some(hash), _) => PasswordHash::from_base64(hash)
                .ok_or_else(|| entry.error(format!("password_hash is none of {HASHING}")))?,
            (None, Some(password)) => PasswordHash::new(password),
            (None, None) => PasswordHash::none(),
        };
        let tags = entry.tags("tags")?;
        check_name("user", name)
            .and_then(|()| check_tags(&tags))
            .map_err(|error| entry.error(error))?;
        self.warn_of_limits(entry);
        self.known_users.insert(name.into());
        self.users.push((name.to_owned(), password, tags));
        Ok(())
    }

    fn warn_of_limits(&mut self, entry: &Entry<'_>) {
        if entry.has("limits") {
            self.warnings.push(entry.error("limits have no effect yet"));
        }
    }

    fn permission(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let (user, vhost) = self.user_in_vhost(entry)?;
        let patterns = [
            entry.text("configure")?,
            entry.text("write")?,
            entry.text("read")?,
        ];
        let [configure, write, read] = patterns;
        Permissions::new(configure, write, read).map_err(|error| entry.error(error.text))?;
        let patterns = patterns.map(str::to_owned);
        let (vhost, user) = (vhost.to_owned(), user.to_owned());
        self.permissions.push((vhost, user, patterns));
        Ok(())
    }

    fn topic_permission(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let (user, vhost) = self.user_in_vhost(entry)?;
        let key = [user, vhost, entry.name("exchange")?].map(Arc::from);
        let patterns = [entry.text("write")?, entry.text("read")?];
        let granted = TopicPermission::new(user, vhost, patterns);
        let granted = granted.map_err(|text| entry.error(text))?;
        self.topic_permissions.push((key, granted));
        Ok(())
    }

    fn user_in_vhost<'e>(&self, entry: &Entry<'e>) -> Result<(&'e str, &'e str), String> {
        let (user, vhost) = (entry.name("user")?, entry.name("vhost")?);
        if !self.known_users.contains(user) {
            return Err(entry.error(AdminError::NoSuchUser(user.to_owned())));
        }
        self.check_vhost_of(entry, vhost)?;
        Ok((user, vhost))
    }

    fn check_vhost_of(&self, entry: &Entry<'_>, vhost: &str) -> Result<(), String> {
        match self.topologies.contains_key(vhost) {
            true => Ok(()),
            false => Err(entry.error(AdminError::NoSuchVHost(vhost.to_owned()))),
        }
    }

    fn topology(&mut self, entry: &Entry<'_>) -> Result<(Arc<str>, &mut TopologyPlan), String> {
        let vhost = entry.name("vhost")?;
        self.check_vhost_of(entry, vhost)?;
        let name: Arc<str> = vhost.into();
        let topology = self.topologies.entry(name.clone()).or_default();
        Ok((name, topology))
    }

    fn global_parameter(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let (name, value) = (entry.name("name")?, entry.value("value"));
        let value = value.cloned().unwrap_or(Value::Null);
        self.global_parameters.push((name.into(), value));
        Ok(())
    }

    fn parameter(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let (component, name) = (entry.name("component")?, entry.name("name")?);
        let value = entry.value("value").cloned().unwrap_or(Value::Null);
        let authority = match component {
            "operator_policy" => Authority::Operator,
            "policy" => Authority::User,
            _ => {
                let vhost = self.topology(entry)?.0;
                let key = [vhost, component.into(), name.into()];
                self.parameters.push((key, value));
                return Ok(());
            }
        };
        let request = PolicyRequest::from_parameter(authority, name, &value)
            .map_err(|text| entry.error(text))?;
        self.add_policy(entry, &request)
    }

    fn policy(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let request = PolicyRequest {
            authority: Authority::User,
            name: entry.name("name")?,
            pattern: entry.text("pattern")?,
            apply_to: entry.optional_text("apply-to")?.unwrap_or("all"),
            priority: entry.number("priority")?,
            definition: entry.table("definition")?,
        };
        self.add_policy(entry, &request)
    }

    fn add_policy(&mut self, entry: &Entry<'_>, request: &PolicyRequest<'_>) -> Result<(), String> {
        let policy = request.check().map_err(|error| entry.error(error))?;
        let (_, topology) = self.topology(entry)?;
        topology.policies.push((request.authority, policy));
        Ok(())
    }

    fn exchange(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let name = entry.name("name")?;
        let kind = entry.text("type")?;
        let kind = ExchangeKind::from_name(kind)
            .ok_or_else(|| entry.error(format!("invalid exchange type '{kind}'")))?;
        let options = ExchangeOptions {
            kind,
            durable: entry.flag("durable")?,
            auto_delete: entry.flag("auto_delete")?,
            internal: entry.flag("internal")?,
            arguments: entry.table("arguments")?,
        };
        let (vhost, topology) = self.topology(entry)?;
        if !is_own(name) {
            let text = "skipped: every vhost has the exchanges whose names begin with 'amq.'";
            self.warnings.push(entry.error(text));
            return Ok(());
        }
        options
            .validate(Resource::exchange(name, &vhost))
            .map_err(|error| entry.error(error.text))?;
        let name: Arc<str> = name.into();
        // One that is there stays as it is.
        if !topology.known_exchanges.contains_key(&name) {
            let routed_as = options.routed_as();
            topology.known_exchanges.insert(name.clone(), routed_as);
            topology.exchanges.push((name, options));
        }
        Ok(())
    }

    fn queue(&mut self, admin: &Admin<'_>, entry: &Entry<'_>) -> Result<(), String> {
        let name = entry.name("name")?;
        let mut arguments = entry.table("arguments")?;
        // Releases differ in whether the type is among the arguments.
        if let Some(kind) = entry.optional_text("type")?
            && kind != "classic"
            && arguments.get("x-queue-type").is_none()
        {
            arguments.insert("x-queue-type", kind);
        }
        let options = QueueOptions {
            durable: entry.flag("durable")?,
            auto_delete: entry.flag("auto_delete")?,
            exclusive: None,
            arguments,
        };
        let (vhost, topology) = self.topology(entry)?;
        if name.is_empty() || name.starts_with("amq.") {
            let text = "skipped: names of queues that begin with 'amq.' are reserved";
            self.warnings.push(entry.error(text));
            return Ok(());
        }
        options
            .validate(Resource::queue(name, &vhost), false)
            .map_err(|error| entry.error(error.text))?;
        let name: Arc<str> = name.into();
        if topology.known_queues.insert(name.clone()) {
            topology.queues.push((name, options));
            return Ok(());
        }
        // One that is there stays as it is.
        let there = admin
            .broker
            .vhost(&vhost)
            .and_then(|vhost| vhost.queue(&name));
        if let Some(Err(error)) = there.map(|queue| queue.assert_equivalent(&options)) {
            let text = format!("kept as it is: {}", error.text);
            self.warnings.push(entry.error(text));
        }
        Ok(())
    }

    fn binding(&mut self, entry: &Entry<'_>) -> Result<(), String> {
        let (source, destination) = (entry.name("source")?, entry.name("destination")?);
        let routing_key = entry.name("routing_key")?.to_owned();
        let arguments = entry.table("arguments")?;
        let to_queue = match entry.text("destination_type")? {
            "queue" => true,
            "exchange" => false,
            other => return Err(entry.error(format!("invalid destination_type '{other}'"))),
        };
        let (vhost, topology) = self.topology(entry)?;
        let missing = |resource: Resource<'_>| entry.error(format!("no {resource}"));
        let kind = topology.known_exchanges.get(source);
        let kind = kind.ok_or_else(|| missing(Resource::exchange(source, &vhost)))?;
        kind.validate_binding(routing_key.as_bytes(), &arguments)
            .map_err(|error| entry.error(error.text))?;
        let destination: Arc<str> = destination.into();
        let destination = if to_queue {
            if !topology.known_queues.contains(&destination) {
                return Err(missing(Resource::queue(&destination, &vhost)));
            }
            DestinationKey::Queue(destination)
        } else {
            if !topology.known_exchanges.contains_key(&destination) {
                return Err(missing(Resource::exchange(&destination, &vhost)));
            }
            DestinationKey::Exchange(destination)
        };
        if source.is_empty() {
            // All queues are bound to the default exchange anyway.
            return Ok(());
        }
        topology.bindings.push(BindingPlan {
            source: source.into(),
            destination,
            routing_key,
            arguments,
        });
        Ok(())
    }

    fn warn_of_components(&mut self) {
        let components: BTreeSet<&str> = self
            .parameters
            .iter()
            .map(|([_, component, _], _)| &**component)
            .collect();
        let warnings = components.into_iter().map(|component| {
            format!("parameters of component '{component}' are kept, but have no effect yet")
        });
        let warnings: Vec<String> = warnings.collect();
        self.warnings.extend(warnings);
    }
}
