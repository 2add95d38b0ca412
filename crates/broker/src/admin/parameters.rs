//! Runtime parameters of components that Leveret does not have yet: they are kept, and exported again.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Admin, AdminError, PolicyRequest, check_name};
use crate::json::{table_to, value_from};
use crate::policy::{Authority, Policy};

/// Policies are parameters in RabbitMQ, but of another kind.
const POLICY: &str = "policy";
/// These are parameters in all respects.
const OPERATOR_POLICY: &str = "operator_policy";

/// A runtime parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterInfo {
    /// The vhost that it is for.
    pub vhost: Arc<str>,
    /// What it is for, such as `shovel`.
    pub component: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its value, which has a meaning for the component only.
    pub value: Value,
}

impl Admin<'_> {
    /// Sets a parameter of a vhost; what has no effect yet is the caller's to say.
    ///
    /// # Errors
    /// There is no such vhost, or something about it makes no sense.
    pub fn set_parameter(
        &self,
        vhost: &str,
        component: &str,
        name: &str,
        value: Value,
    ) -> Result<(), AdminError> {
        match component {
            POLICY => return Err(invalid("policies may not be set using this method")),
            OPERATOR_POLICY => {
                let request = PolicyRequest::from_parameter(Authority::Operator, name, &value);
                let refused = |text| invalid(format!("Validation failed\n\n{text}\n"));
                return self.set_policy(vhost, &request.map_err(refused)?);
            }
            _ => {}
        }
        check_name("component", component)?;
        check_parameter(name, &value)?;
        // Held, so that the vhost cannot go meanwhile.
        let vhosts = self.broker.vhosts.read();
        let found = vhosts.get(vhost);
        let found = found.ok_or_else(|| AdminError::NoSuchVHost(vhost.to_owned()))?;
        let key = [found.name.clone(), component.into(), name.into()];
        let set = self.store_parameters(vec![(key, value)], Vec::new());
        drop(vhosts);
        self.tell_parameters(&set);
        Ok(())
    }

    /// Removes a parameter of a vhost.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn clear_parameter(
        &self,
        vhost: &str,
        component: &str,
        name: &str,
    ) -> Result<(), AdminError> {
        match component {
            POLICY => return Err(invalid("policies may not be cleared using this method")),
            OPERATOR_POLICY => return self.clear_policy(vhost, Authority::Operator, name),
            _ => {}
        }
        let key = [vhost, component, name].map(Arc::from);
        let log = |change| self.broker.define(change);
        if !self.broker.parameters.clear(&key, log) {
            return Err(AdminError::NoSuchParameter);
        }
        let events = &self.broker.events;
        events.parameter_cleared(self.by, vhost, (component, name));
        Ok(())
    }

    /// Sets a parameter of the whole node.
    ///
    /// # Errors
    /// Its name or its value make no sense.
    pub fn set_global_parameter(&self, name: &str, value: Value) -> Result<(), AdminError> {
        check_parameter(name, &value)?;
        self.put_parameters(Vec::new(), vec![(name.into(), value)]);
        Ok(())
    }

    /// Removes a parameter of the whole node. As in RabbitMQ no event tells of it.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn clear_global_parameter(&self, name: &str) -> Result<(), AdminError> {
        let log = |change| self.broker.define(change);
        match self.broker.parameters.clear_global(name, log) {
            true => Ok(()),
            false => Err(AdminError::NoSuchParameter),
        }
    }

    /// Sets many, of vhosts that are known to be there.
    pub(super) fn put_parameters(
        &self,
        of_vhosts: Vec<([Arc<str>; 3], Value)>,
        global: Vec<(Arc<str>, Value)>,
    ) {
        let set = self.store_parameters(of_vhosts, global.clone());
        // RabbitMQ tells of these even if they were so before.
        for (name, value) in &global {
            let events = &self.broker.events;
            events.global_parameter_set(self.by, name, value);
        }
        self.tell_parameters(&set);
    }

    fn store_parameters(
        &self,
        of_vhosts: Vec<([Arc<str>; 3], Value)>,
        global: Vec<(Arc<str>, Value)>,
    ) -> Vec<([Arc<str>; 3], Value)> {
        let log = |change| self.broker.define(change);
        self.broker.parameters.set(of_vhosts, global, log)
    }

    fn tell_parameters(&self, set: &[([Arc<str>; 3], Value)]) {
        for ([vhost, component, name], value) in set {
            let events = &self.broker.events;
            events.parameter_set(self.by, vhost, (component, name), value);
        }
    }

    /// The parameters of all vhosts; policies are none here.
    pub fn list_parameters(&self) -> Vec<ParameterInfo> {
        let all = self.broker.parameters.list().into_iter();
        all.map(|([vhost, component, name], value)| ParameterInfo {
            vhost,
            component,
            name,
            value,
        })
        .collect()
    }

    /// The parameters of a vhost, by component and name; operator policies are among them, as in
    /// RabbitMQ.
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn list_vhost_parameters(&self, vhost: &str) -> Result<Vec<ParameterInfo>, AdminError> {
        let policies = self.list_policies(vhost, Authority::Operator)?;
        let policies = policies.iter().map(|policy| ParameterInfo {
            vhost: vhost.into(),
            component: OPERATOR_POLICY.into(),
            name: policy.name.clone(),
            value: settings(policy),
        });
        let mut all = self.list_parameters();
        all.retain(|parameter| *parameter.vhost == *vhost);
        all.extend(policies);
        all.sort_by(|a, b| (&a.component, &a.name).cmp(&(&b.component, &b.name)));
        Ok(all)
    }

    /// The parameters of the whole node, by name.
    pub fn list_global_parameters(&self) -> Vec<(Arc<str>, Value)> {
        self.broker.parameters.list_global()
    }
}

/// What a policy says, as definitions and parameters have it.
pub(super) fn settings(policy: &Policy) -> Value {
    json!({
        "pattern": policy.pattern.as_str(),
        "apply-to": policy.apply_to.to_string(),
        "priority": policy.priority,
        "definition": table_to(&policy.definition),
    })
}

fn check_parameter(name: &str, value: &Value) -> Result<(), AdminError> {
    check_name("parameter", name)?;
    value_from(value).map(drop).map_err(invalid)
}

fn invalid(text: impl Into<String>) -> AdminError {
    AdminError::Invalid(text.into())
}
