//! The node: its vhosts, users, parameters, alarms, and the connections that are open.
//!
//! Each has a small lock of its own. What survives a restart is logged under the lock that guards it,
//! so that the log has the order of the changes; where several are needed, their order is vhosts →
//! topology → users → parameters.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ahash::HashMap;
use amqp::ReplyCode;
use parking_lot::RwLock;
use store::{DefinitionChange, Durability, Lsn, Recovered, Store};

use crate::access::{Login, PasswordHash, Permissions, User, Users};
use crate::alarm::Alarms;
use crate::clock::Clock;
use crate::connections::Connections;
use crate::definitions::{self, BadDefinition, Definitions};
use crate::error::Error;
use crate::events::Events;
use crate::metadata::VHostMetadata;
use crate::name::ConnectionId;
use crate::parameters::Parameters;
use crate::session::Session;
use crate::timer::Timer;
use crate::vhost::{Node, VHost};

/// What a new node starts with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The first user's name.
    pub default_user: String,
    /// The first user's password.
    pub default_password: String,
    /// The first vhost.
    pub default_vhost: String,
    /// The first user's tags.
    pub default_tags: Vec<String>,
    /// The first user's configure, write and read patterns.
    pub default_permissions: [String; 3],
    /// Users that may connect from this machine only.
    pub loopback_users: Vec<String>,
    /// Shown to clients as `cluster_name`.
    pub cluster_name: String,
    /// The node's own name, as traces and the names of shards have it.
    pub node_name: String,
    /// How long a consumer of a quorum queue may keep a message, where nothing else is said;
    /// milliseconds.
    pub consumer_timeout: Option<u64>,
    /// What confirms wait for, where a queue does not say.
    pub durability: Durability,
    /// Whether a new node gets the first user and vhost at all: not where definitions say who may
    /// come.
    pub set_up: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            default_user: "guest".into(),
            default_password: "guest".into(),
            default_vhost: "/".into(),
            default_tags: vec!["administrator".into()],
            default_permissions: [".*".into(), ".*".into(), ".*".into()],
            loopback_users: vec!["guest".into()],
            cluster_name: "rabbit@localhost".into(),
            node_name: "rabbit@localhost".into(),
            consumer_timeout: None,
            durability: Durability::default(),
            set_up: true,
        }
    }
}

/// The node.
#[derive(Debug)]
pub struct Broker {
    /// Users and permissions.
    pub users: Users,
    /// What blocks publishers.
    pub alarms: Alarms,
    /// Who is connected.
    pub connections: Connections,
    /// Shown to clients.
    pub cluster_name: String,
    pub(crate) node_name: Arc<str>,
    consumer_timeout: Option<u64>,
    /// What is kept.
    pub store: Arc<Store>,
    /// What happens at a time. Somebody has to run it.
    pub timer: Arc<Timer>,
    /// What happens, for those who want to know.
    pub events: Arc<Events>,
    /// The vhost that events are published in.
    pub(crate) default_vhost: String,
    durability: Durability,
    pub(crate) parameters: Parameters,
    /// Where in the log the last change of what belongs to no vhost's topology is.
    logged: AtomicU64,
    pub(crate) vhosts: RwLock<HashMap<Arc<str>, Arc<VHost>>>,
}

/// A node cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings are wrong.
    #[error(transparent)]
    Settings(#[from] Error),
    /// What was found in the data directory makes no sense.
    #[error(transparent)]
    Definitions(#[from] BadDefinition),
}

impl Broker {
    /// A node with what the store holds; with one vhost and one user if that is nothing.
    ///
    /// # Errors
    /// The settings or the definitions that were found make no sense.
    pub fn new(
        settings: Settings,
        store: Arc<Store>,
        recovered: Recovered,
    ) -> Result<Arc<Broker>, StartError> {
        Broker::with_clock(settings, store, recovered, Clock::system())
    }

    /// As [`Broker::new`], with a clock of the caller's.
    ///
    /// # Errors
    /// As there.
    pub fn with_clock(
        settings: Settings,
        store: Arc<Store>,
        mut recovered: Recovered,
        clock: Clock,
    ) -> Result<Arc<Broker>, StartError> {
        let events = Events::new(&settings.node_name, clock.now());
        let broker = Broker {
            users: Users::default(),
            alarms: Alarms::default(),
            connections: Connections::default(),
            cluster_name: settings.cluster_name.clone(),
            node_name: settings.node_name.as_str().into(),
            consumer_timeout: settings.consumer_timeout,
            durability: settings.durability,
            store,
            parameters: Parameters::default(),
            logged: AtomicU64::new(0),
            timer: Timer::new(clock),
            events,
            default_vhost: settings.default_vhost.clone(),
            vhosts: RwLock::default(),
        };
        if recovered.definitions.is_empty() {
            if settings.set_up {
                broker.set_up(&settings)?;
            }
        } else {
            let definitions = Definitions::read(&recovered.definitions)?;
            broker.restore(definitions, &mut recovered);
        }
        recovered.finish(&broker.store);
        broker.users.set_loopback_only(settings.loopback_users);
        Ok(Arc::new(broker))
    }

    /// The first vhost and the first user, in one record of the log: a node that was interrupted
    /// between the two would have definitions, but nobody who may log in.
    fn set_up(&self, settings: &Settings) -> Result<(), Error> {
        let [configure, write, read] = &settings.default_permissions;
        let permissions = Arc::new(Permissions::new(configure, write, read)?);
        let vhost: Arc<str> = settings.default_vhost.as_str().into();
        let user = User {
            name: settings.default_user.as_str().into(),
            password: PasswordHash::new(&settings.default_password),
            tags: settings.default_tags.clone(),
            permissions: [(vhost.clone(), permissions)].into_iter().collect(),
        };
        let mut change = DefinitionChange::default();
        let metadata = VHostMetadata {
            description: "Default virtual host".to_owned(),
            ..VHostMetadata::default()
        };
        change.define(&definitions::vhost_key(&vhost), &metadata.encode());
        definitions::define_user(&mut change, &user);
        self.define(change);
        let made = self.make_vhost(vhost.clone(), metadata);
        self.vhosts.write().insert(vhost, made);
        self.users.insert(user);
        Ok(())
    }

    pub(crate) fn make_vhost(&self, name: Arc<str>, metadata: VHostMetadata) -> Arc<VHost> {
        let node = Node {
            name: self.node_name.clone(),
            consumer_timeout: self.consumer_timeout,
            store: self.store.clone(),
            durability: self.durability,
            timer: self.timer.clone(),
            events: self.events.clone(),
        };
        let vhost = VHost::new(name, metadata, &node);
        if *vhost.name == *self.default_vhost {
            vhost.publish_events();
        }
        vhost
    }

    /// Logs a change of what belongs to no topology.
    pub(crate) fn define(&self, change: DefinitionChange) {
        self.note_logged(self.store.define(change));
    }

    /// Something that belongs to no topology was logged there.
    pub(crate) fn note_logged(&self, lsn: Option<Lsn>) {
        if let Some(lsn) = lsn {
            self.logged.fetch_max(lsn.0, Ordering::AcqRel);
        }
    }

    /// All changes of definitions that were made before are durable once this position is.
    pub fn definitions_logged(&self) -> Lsn {
        let own = Lsn(self.logged.load(Ordering::Acquire));
        let vhosts = self.vhosts.read();
        let of_vhosts = vhosts.values().map(|vhost| vhost.definitions_logged());
        of_vhosts.max().map_or(own, |lsn| lsn.max(own))
    }

    /// The vhost of that name.
    pub fn vhost(&self, name: &str) -> Option<Arc<VHost>> {
        self.vhosts.read().get(name).cloned()
    }

    /// Checks a user's name and password.
    pub fn login(&self, name: &str, password: &[u8], from: IpAddr) -> Login {
        self.users.login(name, password, from)
    }

    /// A user's access to a vhost: connection.open. What the user may do is asked anew, for it may
    /// have changed since the login.
    pub fn open_session(
        &self,
        user: &User,
        vhost: &str,
        connection: ConnectionId,
    ) -> Result<Session, Error> {
        let found = self
            .vhost(vhost)
            .ok_or_else(|| Error::new(ReplyCode::NotAllowed, format!("vhost {vhost} not found")))?;
        let granted = self
            .users
            .get_with_topics(&user.name, vhost)
            .and_then(|(user, topics)| {
                let permissions = user.permissions.get(vhost)?.clone();
                Some((user, permissions, topics))
            });
        let (user, permissions, topics) = granted.ok_or_else(|| {
            let user = &user.name;
            let text = format!("access to vhost '{vhost}' refused for user '{user}'");
            Error::new(ReplyCode::NotAllowed, text)
        })?;
        Ok(Session::new(user, found, permissions, topics, connection))
    }
}
