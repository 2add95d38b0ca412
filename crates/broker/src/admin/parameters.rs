//! Runtime parameters of components that Leveret does not have yet: listing them.

use std::sync::Arc;

use serde_json::Value;

use super::Admin;

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

    /// The parameters of the whole node, by name.
    pub fn list_global_parameters(&self) -> Vec<(Arc<str>, Value)> {
        self.broker.parameters.list_global()
    }
}
