//! Vhosts: adding, describing and deleting them.

use std::sync::Arc;

use store::DefinitionChange;

use super::users::check_tags;
use super::{Admin, AdminError, check_name};
use crate::access::User;
use crate::definitions;
use crate::metadata::{QUEUE_TYPES, VHostMetadata};
use crate::policy::Authority;
use crate::vhost::VHost;

/// What is told about a vhost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VHostInfo {
    /// Its name.
    pub name: Arc<str>,
    /// What is said about it.
    pub metadata: VHostMetadata,
    /// Its messages are copied to the firehose.
    pub traced: bool,
}

/// What has gone with a vhost, besides what is in its topology.
#[derive(Default)]
struct Gone {
    /// Users that had permissions.
    permissions: Vec<Arc<str>>,
    /// Users that had topic permissions, once for each exchange.
    topic_permissions: Vec<Arc<str>>,
    /// Components and names.
    parameters: Vec<(Arc<str>, Arc<str>)>,
    policies: Vec<(Authority, Arc<str>)>,
}

impl Admin<'_> {
    /// All vhosts, by name.
    pub fn list_vhosts(&self) -> Vec<VHostInfo> {
        let mut all: Vec<VHostInfo> = self
            .all_vhosts()
            .iter()
            .map(|vhost| VHostInfo {
                name: vhost.name.clone(),
                metadata: vhost.metadata(),
                traced: vhost.is_traced(),
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    pub(super) fn all_vhosts(&self) -> Vec<Arc<VHost>> {
        self.broker.vhosts.read().values().cloned().collect()
    }

    /// Adds a vhost; one that is there stays as it is.
    ///
    /// # Errors
    /// The name or the metadata make no sense.
    pub fn add_vhost(&self, name: &str, metadata: VHostMetadata) -> Result<(), AdminError> {
        check_vhost(name, &metadata)?;
        let mut vhosts = self.broker.vhosts.write();
        if vhosts.contains_key(name) {
            return Ok(());
        }
        self.broker.define(described(name, &metadata));
        let vhost = self.broker.make_vhost(name.into(), metadata);
        vhosts.insert(vhost.name.clone(), vhost.clone());
        drop(vhosts);
        self.broker.events.vhost_created(self.by, &vhost);
        Ok(())
    }

    /// Adds a vhost, or changes what is said about the one that is there.
    ///
    /// # Errors
    /// The name or the metadata make no sense.
    pub fn put_vhost(&self, name: &str, metadata: VHostMetadata) -> Result<(), AdminError> {
        self.add_vhost(name, metadata.clone())?;
        let vhosts = self.broker.vhosts.read();
        if let Some(vhost) = vhosts.get(name)
            && vhost.metadata() != metadata
        {
            let change = described(name, &metadata);
            vhost.set_metadata(metadata, || self.broker.define(change));
        }
        Ok(())
    }

    /// Deletes a vhost with everything in it, permissions and parameters included, and closes the
    /// connections to it. One record of the log: all of it is gone, or nothing.
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn delete_vhost(&self, name: &str) -> Result<(), AdminError> {
        let mut gone = Gone::default();
        let vhost = {
            // Held until all is logged: a new vhost of that name comes after.
            let mut vhosts = self.broker.vhosts.write();
            let removed = vhosts.remove(name);
            let vhost = removed.ok_or_else(|| AdminError::NoSuchVHost(name.to_owned()))?;
            for authority in [Authority::Operator, Authority::User] {
                let names = vhost.read();
                let names = names.policies(authority).map(|policy| policy.name.clone());
                gone.policies.extend(names.map(|name| (authority, name)));
            }
            let logged = vhost.dissolve(|change| {
                change.undefine(&definitions::vhost_key(name));
                self.remove_access(name, change, &mut gone);
                gone.parameters = self.broker.parameters.remove_vhost(name, change);
            });
            self.broker.note_logged(logged);
            vhost
        };
        self.tell_of_end(&vhost, &gone);
        self.broker.connections.end_of_vhost(name);
        Ok(())
    }

    /// Begins or ends to copy a vhost's messages to the firehose; see [`VHost::set_tracing`].
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn set_tracing(&self, vhost: &str, traced: bool) -> Result<(), AdminError> {
        self.vhost(vhost)?.set_tracing(traced);
        Ok(())
    }

    /// In RabbitMQ's order.
    fn tell_of_end(&self, vhost: &VHost, gone: &Gone) {
        let (events, by, name) = (&self.broker.events, self.by, &*vhost.name);
        for user in &gone.permissions {
            events.permission_deleted(by, user, name);
        }
        for user in &gone.topic_permissions {
            events.topic_permission_deleted(by, user, name);
        }
        events.vhost_deleted(by, vhost);
        for (component, parameter) in &gone.parameters {
            events.parameter_cleared(by, name, (component, parameter));
        }
        for (authority, policy) in &gone.policies {
            events.policy_cleared(by, name, *authority, policy);
        }
    }

    fn remove_access(&self, vhost: &str, change: &mut DefinitionChange, gone: &mut Gone) {
        self.broker.users.change(|users| {
            for user in users.values_mut() {
                if user.permissions.contains_key(vhost) {
                    let mut changed = User::clone(user);
                    changed.permissions.remove(vhost);
                    change.undefine(&definitions::permission_key(&user.name, vhost));
                    gone.permissions.push(user.name.clone());
                    *user = Arc::new(changed);
                }
            }
        });
        self.broker.users.change_topic(|topic| {
            topic.retain(|[user, of, exchange], _| {
                let stays = **of != *vhost;
                if !stays {
                    let key = definitions::topic_permission_key(user, of, exchange);
                    change.undefine(&key);
                    gone.topic_permissions.push(user.clone());
                }
                stays
            });
        });
    }
}

fn described(name: &str, metadata: &VHostMetadata) -> DefinitionChange {
    let mut change = DefinitionChange::default();
    change.define(&definitions::vhost_key(name), &metadata.encode());
    change
}

/// Checks what is said about a new vhost.
pub(super) fn check_vhost(name: &str, metadata: &VHostMetadata) -> Result<(), AdminError> {
    check_name("vhost", name)?;
    check_tags(&metadata.tags)?;
    match &metadata.default_queue_type {
        Some(name) if !QUEUE_TYPES.contains(&&**name) => {
            // RabbitMQ's word for it.
            Err(AdminError::Invalid("invalid_queue_type".to_owned()))
        }
        _ => Ok(()),
    }
}
