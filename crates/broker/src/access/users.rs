//! Users and logging in.

use std::net::IpAddr;
use std::sync::Arc;

use ahash::{HashMap, HashSet};
use parking_lot::RwLock;

use super::{PasswordHash, Permissions, TopicPermissions, UserTopics};

/// A user.
#[derive(Debug, Clone)]
pub struct User {
    /// Login name.
    pub name: Arc<str>,
    /// The password's hash.
    pub password: PasswordHash,
    /// `administrator`, `monitoring`, …
    pub tags: Vec<String>,
    /// By vhost; no entry, no access.
    pub permissions: HashMap<Arc<str>, Arc<Permissions>>,
}

impl User {
    /// May act for others: publish with any user-id.
    pub fn is_impersonator(&self) -> bool {
        self.tags.iter().any(|tag| tag == "impersonator")
    }
}

/// How a login went.
#[derive(Debug)]
pub enum Login {
    /// Welcome.
    Accepted(Arc<User>),
    /// No such user, or not that password.
    Refused,
    /// The user may connect from this machine only.
    OnlyFromLoopback,
}

/// All users.
#[derive(Debug, Default)]
pub struct Users {
    by_name: RwLock<UserMap>,
    /// Users that may connect from this machine only.
    loopback_only: RwLock<HashSet<String>>,
    topic: RwLock<TopicPermissions>,
}

/// Users by name.
pub(crate) type UserMap = HashMap<Arc<str>, Arc<User>>;

impl Users {
    /// Adds or replaces a user.
    pub fn insert(&self, user: User) {
        self.by_name
            .write()
            .insert(user.name.clone(), Arc::new(user));
    }

    /// Sets which users may connect from this machine only.
    pub fn set_loopback_only(&self, names: impl IntoIterator<Item = String>) {
        *self.loopback_only.write() = names.into_iter().collect();
    }

    /// The user of that name.
    pub fn get(&self, name: &str) -> Option<Arc<User>> {
        self.by_name.read().get(name).cloned()
    }

    /// All users, by name.
    pub fn list(&self) -> Vec<Arc<User>> {
        let mut users: Vec<_> = self.by_name.read().values().cloned().collect();
        users.sort_by(|a, b| a.name.cmp(&b.name));
        users
    }

    /// Changes users. Whatever is logged of it is logged meanwhile, so that both have one order.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut UserMap) -> R) -> R {
        change(&mut self.by_name.write())
    }

    /// The same for topic permissions.
    pub(crate) fn change_topic<R>(&self, change: impl FnOnce(&mut TopicPermissions) -> R) -> R {
        change(&mut self.topic.write())
    }

    /// The user of that name as it is now, with its topic permissions in a vhost.
    pub(crate) fn get_with_topics(
        &self,
        name: &str,
        vhost: &str,
    ) -> Option<(Arc<User>, UserTopics)> {
        // Both held: a user that is deleted loses its topic permissions at the same time.
        let users = self.by_name.read();
        let user = users.get(name)?.clone();
        Some((user, UserTopics::of(&self.topic.read(), name, vhost)))
    }

    /// Checks name, password and where the client is.
    pub fn login(&self, name: &str, password: &[u8], from: IpAddr) -> Login {
        let Some(user) = self.get(name) else {
            return Login::Refused;
        };
        if password.is_empty() || !user.password.verify(password) {
            return Login::Refused;
        }
        let loopback = from.to_canonical().is_loopback();
        if !loopback && self.loopback_only.read().contains(name) {
            return Login::OnlyFromLoopback;
        }
        Login::Accepted(user)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn guest_logs_in_from_loopback_only() {
        let users = Users::default();
        users.insert(User {
            name: "guest".into(),
            password: PasswordHash::new("guest"),
            tags: Vec::new(),
            permissions: HashMap::default(),
        });
        users.set_loopback_only(["guest".to_owned()]);
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let mapped = IpAddr::from(Ipv4Addr::LOCALHOST.to_ipv6_mapped());
        let elsewhere = IpAddr::from([192, 0, 2, 1]);
        assert!(matches!(
            users.login("guest", b"guest", here),
            Login::Accepted(_)
        ));
        assert!(matches!(
            users.login("guest", b"guest", mapped),
            Login::Accepted(_)
        ));
        assert!(matches!(
            users.login("guest", b"guest", elsewhere),
            Login::OnlyFromLoopback
        ));
        assert!(matches!(
            users.login("guest", b"wrong", elsewhere),
            Login::Refused
        ));
        assert!(matches!(
            users.login("nobody", b"guest", here),
            Login::Refused
        ));
    }
}
