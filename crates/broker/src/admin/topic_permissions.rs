//! Topic permissions: which routing keys users may publish and bind with, by exchange. Open
//! connections keep those that they came with.

use std::sync::Arc;

use store::DefinitionChange;

use super::users::no_such;
use super::{Admin, AdminError};
use crate::access::{TopicPermission, TopicPermissions};
use crate::definitions;

/// What a user may do with an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicPermissionInfo {
    /// The user.
    pub user: Arc<str>,
    /// The vhost.
    pub vhost: Arc<str>,
    /// The exchange, which may be none that is there.
    pub exchange: Arc<str>,
    /// Patterns for write and read.
    pub patterns: [String; 2],
}

impl Admin<'_> {
    /// Sets which routing keys of an exchange a user may write and read.
    ///
    /// # Errors
    /// There is no such user or vhost, or a pattern makes no sense.
    pub fn set_topic_permissions(
        &self,
        vhost: &str,
        user: &str,
        exchange: &str,
        patterns: [&str; 2],
    ) -> Result<(), AdminError> {
        let granted = TopicPermission::new(user, vhost, patterns).map_err(AdminError::Invalid)?;
        let key = [user, vhost, exchange].map(Arc::from);
        self.with_user_in_vhost(vhost, user, |topic| {
            self.put_topic_permission(topic, key, granted);
        })?;
        let events = &self.broker.events;
        events.topic_permission_created(self.by, [user, vhost, exchange], patterns);
        Ok(())
    }

    /// Sets many; all users and vhosts are known to be there. Returns what is to be told of them.
    pub(super) fn put_topic_permissions(
        &self,
        all: Vec<([Arc<str>; 3], TopicPermission)>,
    ) -> Vec<TopicPermissionInfo> {
        let put = |(key, granted): ([Arc<str>; 3], TopicPermission)| {
            let info = info(&key, &granted);
            self.broker
                .users
                .change_topic(|topic| self.put_topic_permission(topic, key, granted));
            info
        };
        all.into_iter().map(put).collect()
    }

    pub(super) fn tell_topic_permission(&self, granted: &TopicPermissionInfo) {
        let TopicPermissionInfo {
            user,
            vhost,
            exchange,
            patterns: [write, read],
        } = granted;
        let events = &self.broker.events;
        events.topic_permission_created(self.by, [user, vhost, exchange], [write, read]);
    }

    fn put_topic_permission(
        &self,
        topic: &mut TopicPermissions,
        key: [Arc<str>; 3],
        granted: TopicPermission,
    ) {
        let current = topic.get(&key);
        if current.is_some_and(|current| current.patterns() == granted.patterns()) {
            return;
        }
        let [user, vhost, exchange] = &key;
        let mut change = DefinitionChange::default();
        change.define(
            &definitions::topic_permission_key(user, vhost, exchange),
            &definitions::topic_permission_value(&granted),
        );
        self.broker.define(change);
        topic.insert(key, Arc::new(granted));
    }

    /// Takes a user's topic permissions in a vhost away, all of them or those of one exchange; there
    /// may be none.
    ///
    /// # Errors
    /// There is no such user or vhost.
    pub fn clear_topic_permissions(
        &self,
        vhost: &str,
        user: &str,
        exchange: Option<&str>,
    ) -> Result<(), AdminError> {
        self.with_user_in_vhost(vhost, user, |topic| {
            let mut change = DefinitionChange::default();
            topic.retain(|[of, place, name], _| {
                let goes = **of == *user
                    && **place == *vhost
                    && exchange.is_none_or(|exchange| **name == *exchange);
                if goes {
                    change.undefine(&definitions::topic_permission_key(of, place, name));
                }
                !goes
            });
            self.broker.define(change);
        })?;
        let events = &self.broker.events;
        match exchange {
            None => events.topic_permission_deleted(self.by, user, vhost),
            // RabbitMQ's key for it.
            Some(_) => events.permission_deleted(self.by, user, vhost),
        }
        Ok(())
    }

    fn with_user_in_vhost(
        &self,
        vhost: &str,
        user: &str,
        change: impl FnOnce(&mut TopicPermissions),
    ) -> Result<(), AdminError> {
        // Both held, so that neither can go meanwhile.
        let vhosts = self.broker.vhosts.read();
        self.broker.users.change(|users| {
            if !users.contains_key(user) {
                return Err(no_such(user));
            }
            if !vhosts.contains_key(vhost) {
                return Err(AdminError::NoSuchVHost(vhost.to_owned()));
            }
            self.broker.users.change_topic(change);
            Ok(())
        })
    }

    /// Those of a vhost, by user and exchange.
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn list_topic_permissions(
        &self,
        vhost: &str,
    ) -> Result<Vec<TopicPermissionInfo>, AdminError> {
        self.vhost(vhost)?;
        Ok(self.topic_permissions(|info| *info.vhost == *vhost))
    }

    /// Those of a user, by vhost and exchange.
    ///
    /// # Errors
    /// There is no such user.
    pub fn list_user_topic_permissions(
        &self,
        user: &str,
    ) -> Result<Vec<TopicPermissionInfo>, AdminError> {
        self.broker.users.get(user).ok_or_else(|| no_such(user))?;
        Ok(self.topic_permissions(|info| *info.user == *user))
    }

    fn topic_permissions(
        &self,
        wanted: impl Fn(&TopicPermissionInfo) -> bool,
    ) -> Vec<TopicPermissionInfo> {
        self.broker.users.change_topic(|topic| {
            let all = topic.iter().map(|(key, granted)| info(key, granted));
            all.filter(wanted).collect()
        })
    }
}

fn info([user, vhost, exchange]: &[Arc<str>; 3], granted: &TopicPermission) -> TopicPermissionInfo {
    TopicPermissionInfo {
        user: user.clone(),
        vhost: vhost.clone(),
        exchange: exchange.clone(),
        patterns: granted.patterns().map(str::to_owned),
    }
}
