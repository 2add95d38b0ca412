//! Who does what: the connections of a load, with the queues and routing keys of their channels.

use super::checks::{self, Attribution, MARKED};
use super::producer::names_producer;
use super::random::Random;
use crate::settings::{Allocation, Queues, Settings};

/// A connection to make.
#[derive(Debug, Clone)]
pub struct Connection<C> {
    /// Index into the settings' brokers.
    pub broker: usize,
    /// Its number on its side.
    pub number: u32,
    /// Its channels.
    pub channels: Vec<C>,
}

/// A channel that publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProducerChannel {
    /// Its number among all producers.
    pub number: u32,
    /// What it publishes with, unless keys are random.
    pub routing_key: String,
}

/// A channel that consumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerChannel {
    /// Its number among all consumers.
    pub number: u32,
    /// Queues that it consumes from; one empty name for a queue of its own.
    pub queues: Vec<String>,
    /// What it binds them with.
    pub routing_key: String,
}

/// All connections.
#[derive(Debug)]
pub struct Plan {
    pub producers: Vec<Connection<ProducerChannel>>,
    pub consumers: Vec<Connection<ConsumerChannel>>,
    /// Queues to declare before anybody connects, each with its routing key.
    pub queues: Vec<(String, String)>,
    pub attribution: Attribution,
}

/// Types of exchanges that choose one of several queues for each message.
const SPREADING: [&str; 4] = [
    "x-modulus-hash",
    "x-consistent-hash",
    "x-random",
    "x-local-random",
];

impl Plan {
    /// Of a load.
    pub fn new(settings: &Settings) -> Plan {
        let mut random = Random::seeded();
        let mut brokers = Brokers {
            count: settings.brokers.len(),
            allocation: settings.allocation,
            next: 0,
            random: random.clone(),
        };
        let routes = Routes::new(settings, &mut random);
        let consumers = consumers(settings, &routes, &mut brokers);
        let producers = producers(settings, &routes, &mut brokers);
        let topology = &settings.topology;
        let keys: Vec<String> = producers
            .iter()
            .flat_map(|connection| &connection.channels)
            .map(|channel| channel.routing_key.clone())
            .collect();
        let attribution = Attribution {
            base: (random.next() as u32 | MARKED) & !0xffff,
            unnamed: keys.len() == 1 && !names_producer(&settings.payload.body),
            keys,
            spread: topology.random_routing_key.is_some()
                && (topology.predeclared || topology.exchange_type.starts_with("x-"))
                || SPREADING.contains(&topology.exchange_type.as_str()),
            routes: certain_routes(settings),
        };
        Plan {
            producers,
            consumers,
            queues: routes.declared_first(settings),
            attribution,
        }
    }
}

/// Where messages go for certain: others may have bound what they like, but what this load binds is
/// bound.
fn certain_routes(settings: &Settings) -> checks::Routes {
    let topology = &settings.topology;
    let bound = topology.exchange.is_empty() || !topology.skip_binding;
    match topology.exchange_type.as_str() {
        _ if !bound || topology.random_routing_key.is_some() || topology.predeclared => {
            checks::Routes::Some
        }
        "fanout" if !topology.exchange.is_empty() => checks::Routes::All,
        "direct" => checks::Routes::ByKey,
        _ => checks::Routes::Some,
    }
}

/// Which queues and keys channels use.
struct Routes {
    queues: Queues,
    /// Common to all, unless queues are taken in turn.
    key: Option<String>,
}

impl Routes {
    fn new(settings: &Settings, random: &mut Random) -> Routes {
        let topology = &settings.topology;
        let key = match (&topology.routing_key, &topology.queues) {
            (Some(key), _) => Some(key.clone()),
            // Messages reach a queue through the default exchange by its name.
            (None, Queues::Shared(queues)) if topology.exchange.is_empty() => {
                queues.first().cloned()
            }
            (None, Queues::InTurn(_)) => None,
            (None, _) => {
                let uuid = super::producer::uuid(random);
                Some(String::from_utf8_lossy(&uuid).into_owned())
            }
        };
        Routes {
            queues: topology.queues.clone(),
            key,
        }
    }

    fn key(&self, number: u32) -> String {
        match (&self.key, &self.queues) {
            (Some(key), _) => key.clone(),
            (None, Queues::InTurn(queues)) => queues[number as usize % queues.len()].clone(),
            (None, _) => String::new(),
        }
    }

    fn queues(&self, number: u32, predeclared: bool) -> Vec<String> {
        match &self.queues {
            Queues::ServerNamed if predeclared => Vec::new(),
            Queues::ServerNamed => vec![String::new()],
            Queues::Shared(queues) => queues.clone(),
            Queues::InTurn(queues) => vec![queues[number as usize % queues.len()].clone()],
        }
    }

    /// Queues in turn exist before anybody uses them; shared ones only if nobody consumes.
    /// Exclusive ones must be declared by their consumers.
    fn declared_first(&self, settings: &Settings) -> Vec<(String, String)> {
        let names = match &self.queues {
            _ if settings.topology.exclusive => return Vec::new(),
            Queues::InTurn(queues) => queues,
            Queues::Shared(queues) if settings.consumers.count == 0 => queues,
            _ => return Vec::new(),
        };
        let key = |name: &String| self.key.clone().unwrap_or_else(|| name.clone());
        names.iter().map(|name| (name.clone(), key(name))).collect()
    }
}

struct Brokers {
    count: usize,
    allocation: Allocation,
    next: usize,
    random: Random,
}

impl Brokers {
    fn choose(&mut self) -> usize {
        match self.allocation {
            Allocation::Random => self.random.below(self.count as u64) as usize,
            Allocation::RoundRobin => {
                self.next += 1;
                (self.next - 1) % self.count
            }
        }
    }
}

fn producers(
    settings: &Settings,
    routes: &Routes,
    brokers: &mut Brokers,
) -> Vec<Connection<ProducerChannel>> {
    let channels = u32::from(settings.producers.channels);
    let channel = |number| ProducerChannel {
        number,
        routing_key: routes.key(number),
    };
    (0..settings.producers.count)
        .map(|number| Connection {
            broker: brokers.choose(),
            number,
            channels: (number * channels..(number + 1) * channels)
                .map(channel)
                .collect(),
        })
        .collect()
}

/// An exclusive queue belongs to one connection: all its consumers are there.
fn consumers(
    settings: &Settings,
    routes: &Routes,
    brokers: &mut Brokers,
) -> Vec<Connection<ConsumerChannel>> {
    let channels = u32::from(settings.consumers.channels);
    let exclusive = settings.topology.exclusive && settings.topology.queues != Queues::ServerNamed;
    let mut connections: Vec<Connection<ConsumerChannel>> = Vec::new();
    for number in 0..settings.consumers.count * channels {
        let channel = ConsumerChannel {
            number,
            queues: routes.queues(number, settings.topology.predeclared),
            routing_key: routes.key(number),
        };
        let owner = match exclusive {
            true => connections
                .iter()
                .position(|c| c.channels[0].queues == channel.queues),
            false => (connections.len() as u32 > number / channels)
                .then_some((number / channels) as usize),
        };
        match owner {
            Some(owner) => connections[owner].channels.push(channel),
            None => connections.push(Connection {
                broker: brokers.choose(),
                number: connections.len() as u32,
                channels: vec![channel],
            }),
        }
    }
    connections
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Consumers, Producers, Topology};

    fn settings(queues: Queues, consumers: u32, channels: u16) -> Settings {
        Settings {
            topology: Topology {
                queues,
                ..Topology::default()
            },
            producers: Producers {
                count: 3,
                ..Producers::default()
            },
            consumers: Consumers {
                count: consumers,
                channels,
                ..Consumers::default()
            },
            ..Settings::default()
        }
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn queues_in_turn_are_shared_out() {
        let plan = Plan::new(&settings(Queues::InTurn(names(&["a", "b"])), 2, 2));
        let keys: Vec<&str> = plan
            .producers
            .iter()
            .map(|c| c.channels[0].routing_key.as_str())
            .collect();
        assert_eq!(keys, ["a", "b", "a"]);
        assert_eq!(plan.consumers[1].channels[0].queues, ["a"]);
        assert_eq!(plan.consumers[1].channels[1].queues, ["b"]);
        assert_eq!(plan.queues[1], ("b".to_owned(), "b".to_owned()));
    }

    #[test]
    fn shared_queues_have_one_key() {
        let plan = Plan::new(&settings(Queues::Shared(names(&["a", "b"])), 1, 1));
        let key = &plan.producers[0].channels[0].routing_key;
        assert_eq!(key.len(), 36);
        assert_eq!(plan.consumers[0].channels[0].queues, ["a", "b"]);
        assert_eq!(&plan.consumers[0].channels[0].routing_key, key);
        assert!(plan.queues.is_empty());
        let unconsumed = Plan::new(&settings(Queues::Shared(names(&["a", "b"])), 0, 1));
        assert_eq!(unconsumed.queues.len(), 2);
    }

    #[test]
    fn consumers_of_an_exclusive_queue_share_its_connection() {
        let mut settings = settings(Queues::InTurn(names(&["a", "b"])), 3, 1);
        settings.topology.exclusive = true;
        let plan = Plan::new(&settings);
        assert_eq!(plan.consumers.len(), 2);
        assert_eq!(plan.consumers[0].channels.len(), 2);
        assert!(plan.queues.is_empty());
    }
}
