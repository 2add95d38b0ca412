//! Policies and operator policies.

use std::sync::Arc;

use amqp::FieldTable;
use serde_json::Value;

use super::{Admin, AdminError, check_name};
use crate::json::table_from;
use crate::policy::{Authority, Policy};
use crate::vhost::VHost;

/// A policy to set.
#[derive(Debug, Clone)]
pub struct PolicyRequest<'a> {
    /// Whose it is.
    pub authority: Authority,
    /// Its name.
    pub name: &'a str,
    /// The pattern that names must match.
    pub pattern: &'a str,
    /// RabbitMQ's name of what it is for, such as `queues`.
    pub apply_to: &'a str,
    /// The highest one that matches applies.
    pub priority: i64,
    /// What it sets.
    pub definition: FieldTable,
}

impl<'a> PolicyRequest<'a> {
    /// From a parameter: operator policies travel as such.
    pub(super) fn from_parameter(
        authority: Authority,
        name: &'a str,
        value: &'a Value,
    ) -> Result<PolicyRequest<'a>, String> {
        let text = |key| value.get(key).and_then(Value::as_str);
        let definition = value.get("definition").and_then(Value::as_object);
        Ok(PolicyRequest {
            authority,
            name,
            pattern: text("pattern").ok_or("pattern is missing")?,
            apply_to: text("apply-to").unwrap_or("all"),
            priority: value.get("priority").and_then(Value::as_i64).unwrap_or(0),
            definition: definition.map(table_from).transpose()?.unwrap_or_default(),
        })
    }

    /// The policy, once everything about it is checked.
    pub(super) fn check(&self) -> Result<Policy, AdminError> {
        check_name("policy", self.name)?;
        Policy::new(
            self.authority,
            self.name,
            self.pattern,
            self.apply_to,
            self.priority,
            self.definition.clone(),
        )
        .map_err(|text| AdminError::Invalid(format!("Validation failed\n\n{text}\n")))
    }
}

impl Admin<'_> {
    /// Sets a policy in a vhost, in place of one of the same name. It applies to what is there at
    /// once, and to what comes.
    ///
    /// # Errors
    /// There is no such vhost, or something about the policy makes no sense.
    pub fn set_policy(&self, vhost: &str, request: &PolicyRequest<'_>) -> Result<(), AdminError> {
        let vhost = self.vhost(vhost)?;
        let policy = request.check()?;
        self.put_policies(&vhost, [(request.authority, policy)]);
        Ok(())
    }

    /// All at once: each time what applies to all queues is worked out anew.
    pub(super) fn put_policies(
        &self,
        vhost: &VHost,
        policies: impl IntoIterator<Item = (Authority, Policy)>,
    ) {
        let set = vhost.change_by(self.by, |topology| topology.set_policies(policies));
        for (authority, policy) in set {
            let events = &self.broker.events;
            events.policy_set(self.by, &vhost.name, authority, &policy);
        }
    }

    /// Removes a policy.
    ///
    /// # Errors
    /// There is no such vhost or policy.
    pub fn clear_policy(
        &self,
        vhost: &str,
        authority: Authority,
        name: &str,
    ) -> Result<(), AdminError> {
        let vhost = self.vhost(vhost)?;
        let cleared = vhost.change_by(self.by, |topology| topology.clear_policy(authority, name));
        if !cleared {
            return Err(AdminError::NoSuchParameter);
        }
        let events = &self.broker.events;
        events.policy_cleared(self.by, &vhost.name, authority, name);
        Ok(())
    }

    /// A vhost's policies, by name.
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn list_policies(
        &self,
        vhost: &str,
        authority: Authority,
    ) -> Result<Vec<Arc<Policy>>, AdminError> {
        let vhost = self.vhost(vhost)?;
        Ok(vhost.read().policies(authority).cloned().collect())
    }
}
