//! The node: its vhosts, users, alarms, and the connections that are open.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ahash::HashMap;
use amqp::ReplyCode;
use parking_lot::{Mutex, RwLock};
use store::{DefinitionChange, Durability, Recovered, Store};

use crate::access::{Login, PasswordHash, Permissions, User, Users};
use crate::alarm::Alarms;
use crate::clock::Clock;
use crate::definitions::{self, BadDefinition, Definitions};
use crate::error::Error;
use crate::events::{Events, INTERNAL_USER};
use crate::name::ConnectionId;
use crate::outbox::Outbox;
use crate::session::Session;
use crate::timer::Timer;
use crate::vhost::VHost;

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
    /// The node's own name.
    pub node_name: String,
    /// What confirms wait for, where a queue does not say.
    pub durability: Durability,
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
            durability: Durability::default(),
        }
    }
}

/// The open connections' outboxes, to reach their owners.
#[derive(Debug, Default)]
pub struct Connections {
    next_id: AtomicU64,
    open: Mutex<HashMap<ConnectionId, Arc<Outbox>>>,
    stopping: AtomicBool,
}

impl Connections {
    /// An id for a client that has just come.
    pub fn next_id(&self) -> ConnectionId {
        ConnectionId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    /// Registers a connection whose handshake is done.
    pub fn open(&self, id: ConnectionId, outbox: Arc<Outbox>) {
        self.open.lock().insert(id, outbox);
    }

    /// Forgets a connection.
    pub fn close(&self, id: ConnectionId) {
        self.open.lock().remove(&id);
    }

    /// Number of open connections.
    pub fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// Wakes every connection's task, to look at alarms and at [`Connections::stopping`].
    pub fn wake_all(&self) {
        let open: Vec<Arc<Outbox>> = self.open.lock().values().cloned().collect();
        open.iter().for_each(|outbox| outbox.wake());
    }

    /// Asks every connection to close with 320.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake_all();
    }

    /// True once the node is shutting down.
    #[inline]
    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
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
    /// What is kept.
    pub store: Arc<Store>,
    /// What happens at a time. Somebody has to run it.
    pub timer: Arc<Timer>,
    /// What happens, for those who want to know.
    pub events: Arc<Events>,
    /// The vhost that events are published in.
    default_vhost: String,
    durability: Durability,
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
            durability: settings.durability,
            store,
            timer: Timer::new(clock),
            events,
            default_vhost: settings.default_vhost.clone(),
            vhosts: RwLock::default(),
        };
        if recovered.definitions.is_empty() {
            broker.set_up(&settings)?;
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
        change.define(&definitions::vhost_key(&vhost), &[]);
        definitions::define_user(&mut change, &user);
        self.store.define(change);
        let made = self.make_vhost(vhost.clone());
        self.vhosts.write().insert(vhost, made);
        self.users.insert(user);
        Ok(())
    }

    /// Adds or replaces a user with its permissions.
    pub fn add_user(&self, user: User) {
        let mut change = DefinitionChange::default();
        definitions::define_user(&mut change, &user);
        self.store.define(change);
        self.users.insert(user);
    }

    /// Adds a vhost, or returns the one that is there.
    pub fn add_vhost(&self, name: &str) -> Arc<VHost> {
        let mut vhosts = self.vhosts.write();
        if let Some(vhost) = vhosts.get(name) {
            return vhost.clone();
        }
        let mut change = DefinitionChange::default();
        change.define(&definitions::vhost_key(name), &[]);
        self.store.define(change);
        let vhost = self.make_vhost(name.into());
        vhosts.insert(vhost.name.clone(), vhost.clone());
        drop(vhosts);
        self.events.vhost_created(INTERNAL_USER, &vhost);
        vhost
    }

    pub(crate) fn make_vhost(&self, name: Arc<str>) -> Arc<VHost> {
        let vhost = VHost::new(
            name,
            self.store.clone(),
            self.durability,
            self.timer.clone(),
            self.events.clone(),
        );
        if *vhost.name == *self.default_vhost {
            vhost.publish_events();
        }
        vhost
    }

    /// The vhost of that name.
    pub fn vhost(&self, name: &str) -> Option<Arc<VHost>> {
        self.vhosts.read().get(name).cloned()
    }

    /// Checks a user's name and password.
    pub fn login(&self, name: &str, password: &[u8], from: IpAddr) -> Login {
        self.users.login(name, password, from)
    }

    /// A user's access to a vhost: connection.open.
    pub fn open_session(
        &self,
        user: Arc<User>,
        vhost: &str,
        connection: ConnectionId,
    ) -> Result<Session, Error> {
        let found = self
            .vhost(vhost)
            .ok_or_else(|| Error::new(ReplyCode::NotAllowed, format!("vhost {vhost} not found")))?;
        let permissions = user.permissions.get(vhost).cloned().ok_or_else(|| {
            let user = &user.name;
            let text = format!("access to vhost '{vhost}' refused for user '{user}'");
            Error::new(ReplyCode::NotAllowed, text)
        })?;
        Ok(Session::new(user, found, permissions, connection))
    }
}
