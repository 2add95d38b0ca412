//! Exchanges and bindings, as the model sees them.

use std::collections::BTreeSet;

use broker::ExchangeKind;

use crate::universe::{Name, exchange_sort, queue_kind};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    Queue(Name),
    Exchange(Name),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    pub source: Name,
    pub key: Name,
    pub target: Target,
}

impl Binding {
    /// Both of its ends are.
    pub fn is_durable(&self) -> bool {
        let target = match self.target {
            Target::Queue(name) => queue_kind(name).durable,
            Target::Exchange(name) => exchange_sort(name).durable,
        };
        target && exchange_sort(self.source).durable
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    pub exchanges: BTreeSet<Name>,
    pub bindings: BTreeSet<Binding>,
}

impl Topology {
    /// Names of the queues that a message goes to.
    pub fn route(&self, exchange: Name, key: Name) -> BTreeSet<Name> {
        let (mut passed, mut queues) = (vec![exchange], BTreeSet::new());
        let mut next = 0;
        while let Some(source) = passed.get(next).copied() {
            next += 1;
            let any_key = exchange_sort(source).kind == ExchangeKind::Fanout;
            let matching =
                |binding: &&Binding| binding.source == source && (any_key || binding.key == key);
            for binding in self.bindings.iter().filter(matching) {
                match binding.target {
                    Target::Queue(name) => drop(queues.insert(name)),
                    Target::Exchange(name) if passed.contains(&name) => {}
                    Target::Exchange(name) => passed.push(name),
                }
            }
        }
        queues
    }

    pub fn unbind(&mut self, binding: &Binding) {
        if self.bindings.remove(binding) {
            self.remove_if_exhausted(binding.source);
        }
    }

    /// A queue has gone, or an exchange.
    pub fn remove_target(&mut self, target: Target) {
        let to: Vec<Binding> = self.bindings.iter().copied().collect();
        to.iter()
            .filter(|binding| binding.target == target)
            .for_each(|binding| self.unbind(binding));
    }

    pub fn remove_exchange(&mut self, name: Name) {
        if self.exchanges.remove(name) {
            self.bindings.retain(|binding| binding.source != name);
            self.remove_target(Target::Exchange(name));
        }
    }

    fn remove_if_exhausted(&mut self, name: Name) {
        let bound = self.bindings.iter().any(|binding| binding.source == name);
        if !bound && exchange_sort(name).auto_delete {
            self.remove_exchange(name);
        }
    }

    /// The part that a restart leaves.
    pub fn durable(&self) -> Topology {
        let exchanges = self.exchanges.iter().copied();
        let bindings = self.bindings.iter().copied();
        Topology {
            exchanges: exchanges
                .filter(|name| exchange_sort(name).durable)
                .collect(),
            bindings: bindings.filter(Binding::is_durable).collect(),
        }
    }
}
