//! Carrying out an import that was checked.

use super::Imported;
use super::plan::{BindingPlan, Plan, TopologyPlan};
use crate::admin::{Admin, AdminError};
use crate::binding::{Binding, Destination, DestinationKey};
use crate::topology::Topology;
use crate::vhost::VHost;

/// Entries for which a vhost's lock is held at once: its publishers wait meanwhile.
const MAX_PER_HOLD: usize = 256;

impl Plan {
    /// Makes it so. Somebody may delete what is needed meanwhile: then an error says so, and what
    /// came before stays.
    pub fn apply(self, admin: &Admin<'_>) -> Result<Imported, AdminError> {
        let mut warnings = self.warnings;
        for (name, metadata) in self.vhosts {
            match metadata {
                Some(metadata) => admin.put_vhost(&name, metadata)?,
                None => admin.add_vhost(&name, Default::default())?,
            }
        }
        for (name, password, tags) in self.users {
            admin.put_user(&name, password, tags)?;
        }
        // Before permissions: nobody may come in between and be held by none of them.
        let topics = admin.put_topic_permissions(self.topic_permissions);
        for (vhost, user, patterns) in &self.permissions {
            let [configure, write, read] = patterns;
            admin.set_permissions(vhost, user, [configure, write, read])?;
        }
        topics
            .iter()
            .for_each(|granted| admin.tell_topic_permission(granted));
        admin.put_parameters(self.parameters, self.global_parameters);
        for (name, topology) in self.topologies {
            if let Some(vhost) = admin.broker.vhost(&name) {
                topology.apply(admin, &vhost, &mut warnings);
            }
        }
        Ok(Imported {
            entries: self.entries,
            warnings,
        })
    }
}

impl TopologyPlan {
    fn apply(self, admin: &Admin<'_>, vhost: &VHost, warnings: &mut Vec<String>) {
        admin.put_policies(vhost, self.policies);
        let by = admin.by;
        in_parts(by, vhost, self.exchanges, |topology, (name, options)| {
            if !topology.exchanges.contains_key(&name) {
                topology.insert_exchange(vhost.make_exchange(name, options));
            }
        });
        in_parts(by, vhost, self.queues, |topology, (name, options)| {
            if !topology.queues.contains_key(&name) {
                topology.insert_queue(vhost.make_queue(name, options));
            }
        });
        in_parts(by, vhost, self.bindings, |topology, binding| {
            if let Err(warning) = bind(topology, binding) {
                warnings.push(warning);
            }
        });
    }
}

fn in_parts<T>(by: &str, vhost: &VHost, all: Vec<T>, mut each: impl FnMut(&mut Topology, T)) {
    let mut all = all.into_iter().peekable();
    while all.peek().is_some() {
        let part = all.by_ref().take(MAX_PER_HOLD);
        vhost.change_by(by, |topology| part.for_each(|entry| each(topology, entry)));
    }
}

fn bind(topology: &mut Topology, binding: BindingPlan) -> Result<(), String> {
    let found = match &binding.destination {
        DestinationKey::Queue(name) => topology.queues.get(name).cloned().map(Destination::Queue),
        DestinationKey::Exchange(name) => topology
            .exchanges
            .get(name)
            .map(|exchange| Destination::Exchange(exchange.name.clone())),
    };
    let source = &binding.source;
    let (Some(destination), true) = (found, topology.exchanges.contains_key(source)) else {
        return Err(format!(
            "a binding of exchange '{source}' was left out: one of its ends was deleted meanwhile"
        ));
    };
    topology.bind(Binding {
        source: binding.source,
        destination,
        routing_key: binding.routing_key.into_bytes().into(),
        arguments: binding.arguments,
    });
    Ok(())
}
