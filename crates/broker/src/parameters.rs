//! Runtime parameters: settings of components, by vhost or for the whole node. Leveret has none of
//! their components yet: it keeps them, and exports them again.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;
use store::DefinitionChange;

use crate::definitions;

/// All parameters but policies.
#[derive(Debug, Default)]
pub(crate) struct Parameters {
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By vhost, component and name.
    of_vhosts: BTreeMap<[Arc<str>; 3], Value>,
    global: BTreeMap<Arc<str>, Value>,
}

impl Parameters {
    pub fn restore(
        &self,
        of_vhosts: Vec<([Arc<str>; 3], String)>,
        global: Vec<(Arc<str>, String)>,
    ) {
        let read = |json: &str| serde_json::from_str(json).unwrap_or(Value::Null);
        let mut state = self.state.write();
        let of_vhosts = of_vhosts.into_iter().map(|(key, json)| (key, read(&json)));
        state.of_vhosts = of_vhosts.collect();
        let global = global.into_iter().map(|(name, json)| (name, read(&json)));
        state.global = global.collect();
    }

    /// Sets several at once: those of vhosts, and global ones. `log` is called under the lock, with
    /// what that changes. Returns those of vhosts that were not so before.
    pub fn set(
        &self,
        of_vhosts: Vec<([Arc<str>; 3], Value)>,
        global: Vec<(Arc<str>, Value)>,
        log: impl FnOnce(DefinitionChange),
    ) -> Vec<([Arc<str>; 3], Value)> {
        let mut set = Vec::new();
        let mut change = DefinitionChange::default();
        let mut state = self.state.write();
        for (key, value) in of_vhosts {
            if state.of_vhosts.get(&key) == Some(&value) {
                continue;
            }
            let [vhost, component, name] = &key;
            let logged = definitions::parameter_key(vhost, component, name);
            change.define(&logged, &definitions::parameter_value(&value.to_string()));
            state.of_vhosts.insert(key.clone(), value.clone());
            set.push((key, value));
        }
        for (name, value) in global {
            if state.global.get(&name) == Some(&value) {
                continue;
            }
            let logged = definitions::global_parameter_key(&name);
            change.define(&logged, &definitions::parameter_value(&value.to_string()));
            state.global.insert(name, value);
        }
        log(change);
        set
    }

    /// Removes one of a vhost; false if there is none. `log` as above.
    pub fn clear(&self, key: &[Arc<str>; 3], log: impl FnOnce(DefinitionChange)) -> bool {
        let mut state = self.state.write();
        let cleared = state.of_vhosts.remove(key).is_some();
        if cleared {
            let [vhost, component, name] = key;
            let mut change = DefinitionChange::default();
            change.undefine(&definitions::parameter_key(vhost, component, name));
            log(change);
        }
        cleared
    }

    /// Removes a global one; false if there is none. `log` as above.
    pub fn clear_global(&self, name: &str, log: impl FnOnce(DefinitionChange)) -> bool {
        let mut state = self.state.write();
        let cleared = state.global.remove(name).is_some();
        if cleared {
            let mut change = DefinitionChange::default();
            change.undefine(&definitions::global_parameter_key(name));
            log(change);
        }
        cleared
    }

    /// Removes those of a vhost that goes; their components and names.
    pub fn remove_vhost(
        &self,
        vhost: &str,
        change: &mut DefinitionChange,
    ) -> Vec<(Arc<str>, Arc<str>)> {
        let mut removed = Vec::new();
        let mut state = self.state.write();
        state.of_vhosts.retain(|[of, component, name], _| {
            let stays = **of != *vhost;
            if !stays {
                change.undefine(&definitions::parameter_key(of, component, name));
                removed.push((component.clone(), name.clone()));
            }
            stays
        });
        removed
    }

    /// All of vhosts, by vhost, component and name.
    pub fn list(&self) -> Vec<([Arc<str>; 3], Value)> {
        let state = self.state.read();
        let all = state.of_vhosts.iter();
        all.map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// All global ones, by name.
    pub fn list_global(&self) -> Vec<(Arc<str>, Value)> {
        let state = self.state.read();
        let all = state.global.iter();
        all.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}
