//! What a policy is for: queues of some types, exchanges, or everything.

use std::fmt;

/// What a policy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyTo {
    /// Queues and exchanges.
    All,
    /// Queues of every type.
    Queues,
    /// Queues of type `classic`.
    ClassicQueues,
    /// Queues of type `quorum`.
    QuorumQueues,
    /// Queues of type `stream`.
    Streams,
    /// Exchanges.
    Exchanges,
}

/// All of them, by RabbitMQ's names.
const NAMES: [(&str, ApplyTo); 6] = [
    ("all", ApplyTo::All),
    ("queues", ApplyTo::Queues),
    ("classic_queues", ApplyTo::ClassicQueues),
    ("quorum_queues", ApplyTo::QuorumQueues),
    ("streams", ApplyTo::Streams),
    ("exchanges", ApplyTo::Exchanges),
];

/// What a policy may meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// An exchange.
    Exchange,
    /// A queue of type `classic`.
    ClassicQueue,
    /// A queue of type `quorum`.
    QuorumQueue,
    /// A queue of type `stream`.
    Stream,
}

impl ApplyTo {
    /// From RabbitMQ's name of it.
    pub fn from_name(name: &str) -> Option<ApplyTo> {
        let mut names = NAMES.iter();
        names
            .find(|(known, _)| *known == name)
            .map(|(_, apply_to)| *apply_to)
    }

    pub(super) fn unrecognised(name: &str) -> String {
        format!(
            "apply-to '{name}' unrecognised; should be one of: 'queues', 'classic_queues', \
             'quorum_queues', 'streams', 'exchanges', or 'all'"
        )
    }

    pub(super) fn covers(self, target: Target) -> bool {
        match self {
            ApplyTo::All => true,
            ApplyTo::Queues => target != Target::Exchange,
            ApplyTo::ClassicQueues => target == Target::ClassicQueue,
            ApplyTo::QuorumQueues => target == Target::QuorumQueue,
            ApplyTo::Streams => target == Target::Stream,
            ApplyTo::Exchanges => target == Target::Exchange,
        }
    }
}

impl fmt::Display for ApplyTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, apply_to)| apply_to == self);
        f.write_str(name.map_or("", |(name, _)| name))
    }
}
