//! Permissions: which users may do what in which vhosts. Open connections keep those that they came
//! with.

use std::sync::Arc;

use store::DefinitionChange;

use super::users::no_such;
use super::{Admin, AdminError};
use crate::access::{Permissions, User};
use crate::definitions;

/// What a user may do in the vhost in question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionInfo {
    /// The user.
    pub user: Arc<str>,
    /// Patterns for configure, write and read.
    pub patterns: [String; 3],
}

/// What the user in question may do in a vhost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VHostPermissionInfo {
    /// The vhost.
    pub vhost: Arc<str>,
    /// Patterns for configure, write and read.
    pub patterns: [String; 3],
}

impl Admin<'_> {
    /// Sets what a user may do in a vhost.
    ///
    /// # Errors
    /// There is no such user or vhost, or a pattern makes no sense.
    pub fn set_permissions(
        &self,
        vhost: &str,
        user: &str,
        patterns: [&str; 3],
    ) -> Result<(), AdminError> {
        let [configure, write, read] = patterns;
        let granted = Permissions::new(configure, write, read)
            .map_err(|error| AdminError::Invalid(error.text))?;
        self.change_permissions(vhost, user, Some(granted))?;
        let events = &self.broker.events;
        events.permission_created(self.by, user, vhost, patterns);
        Ok(())
    }

    /// Takes a user's access to a vhost away; it may have none.
    ///
    /// # Errors
    /// There is no such user or vhost.
    pub fn clear_permissions(&self, vhost: &str, user: &str) -> Result<(), AdminError> {
        self.change_permissions(vhost, user, None)?;
        let events = &self.broker.events;
        events.permission_deleted(self.by, user, vhost);
        Ok(())
    }

    fn change_permissions(
        &self,
        vhost: &str,
        user: &str,
        granted: Option<Permissions>,
    ) -> Result<(), AdminError> {
        // Held, so that the vhost cannot go meanwhile.
        let vhosts = self.broker.vhosts.read();
        self.broker.users.change(|users| {
            let found = users.get(user).ok_or_else(|| no_such(user))?;
            let mut changed = User::clone(found);
            let place = vhosts.get(vhost);
            let place = place.ok_or_else(|| AdminError::NoSuchVHost(vhost.to_owned()))?;
            let key = definitions::permission_key(user, vhost);
            let mut change = DefinitionChange::default();
            match granted {
                Some(granted) => {
                    let current = changed.permissions.get(vhost);
                    if current.is_some_and(|current| current.patterns() == granted.patterns()) {
                        return Ok(());
                    }
                    change.define(&key, &definitions::permission_value(&granted));
                    let granted = Arc::new(granted);
                    changed.permissions.insert(place.name.clone(), granted);
                }
                None => {
                    change.undefine(&key);
                    changed.permissions.remove(vhost);
                }
            }
            self.broker.define(change);
            users.insert(changed.name.clone(), Arc::new(changed));
            Ok(())
        })
    }

    /// Who may do what in a vhost, by user.
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn list_permissions(&self, vhost: &str) -> Result<Vec<PermissionInfo>, AdminError> {
        self.vhost(vhost)?;
        let users = self.broker.users.list().into_iter();
        let granted = users.filter_map(|user| {
            let permissions = user.permissions.get(vhost)?;
            Some(PermissionInfo {
                user: user.name.clone(),
                patterns: owned(permissions),
            })
        });
        Ok(granted.collect())
    }

    /// What a user may do, by vhost.
    ///
    /// # Errors
    /// There is no such user.
    pub fn list_user_permissions(
        &self,
        user: &str,
    ) -> Result<Vec<VHostPermissionInfo>, AdminError> {
        let found = self.broker.users.get(user).ok_or_else(|| no_such(user))?;
        let mut granted: Vec<VHostPermissionInfo> = found
            .permissions
            .iter()
            .map(|(vhost, permissions)| VHostPermissionInfo {
                vhost: vhost.clone(),
                patterns: owned(permissions),
            })
            .collect();
        granted.sort_by(|a, b| a.vhost.cmp(&b.vhost));
        Ok(granted)
    }
}

fn owned(permissions: &Permissions) -> [String; 3] {
    permissions.patterns().map(str::to_owned)
}
