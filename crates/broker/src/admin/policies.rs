//! Policies and operator policies.

use std::sync::Arc;

use amqp::FieldTable;

use super::{Admin, AdminError, check_name};
use crate::events::{CLI_USER, PolicyEvent};
use crate::policy::{Authority, Policy};

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

impl PolicyRequest<'_> {
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
        vhost.change_by(CLI_USER, |topology| {
            topology.set_policies([(request.authority, policy)])
        });
        let policy = PolicyEvent {
            vhost: &vhost.name,
            name: request.name,
            pattern: request.pattern,
            apply_to: request.apply_to,
            priority: request.priority,
            definition: &request.definition,
        };
        self.broker.events.policy_set(CLI_USER, &policy);
        Ok(())
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
        let cleared = vhost.change_by(CLI_USER, |topology| topology.clear_policy(authority, name));
        if !cleared {
            return Err(AdminError::NoSuchParameter);
        }
        let events = &self.broker.events;
        match authority {
            Authority::User => events.policy_cleared(CLI_USER, &vhost.name, name),
            Authority::Operator => events.operator_policy_cleared(CLI_USER, &vhost.name, name),
        }
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
