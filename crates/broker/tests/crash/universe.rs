//! The queues, exchanges and keys that there may be, and messages that can be told apart.

use std::collections::BTreeSet;

use amqp::FieldTable;
use broker::{ExchangeKind, ExchangeOptions, QueueOptions};
use store::{Message, MessageHead};

/// A queue's, exchange's or routing key's name.
pub type Name = &'static str;

/// A queue that there may be.
#[derive(Debug, PartialEq)]
pub struct QueueKind {
    pub name: Name,
    /// It survives a restart, with its persistent messages.
    pub durable: bool,
    pub auto_delete: bool,
    /// Its confirms wait for the operating system only.
    pub os: bool,
}

const fn queue(name: Name, durable: bool, auto_delete: bool, os: bool) -> QueueKind {
    QueueKind {
        name,
        durable,
        auto_delete,
        os,
    }
}

pub const QUEUES: [QueueKind; 7] = [
    queue("first", true, false, false),
    queue("second", true, false, false),
    queue("third", true, false, false),
    queue("os", true, false, true),
    queue("leaving", true, true, false),
    queue("fleeting", false, false, false),
    queue("passing", false, false, false),
];

/// An exchange that there may be.
#[derive(Debug)]
pub struct ExchangeSort {
    pub name: Name,
    pub kind: ExchangeKind,
    pub durable: bool,
    pub auto_delete: bool,
}

const fn exchange(
    name: Name,
    kind: ExchangeKind,
    durable: bool,
    auto_delete: bool,
) -> ExchangeSort {
    ExchangeSort {
        name,
        kind,
        durable,
        auto_delete,
    }
}

pub const EXCHANGES: [ExchangeSort; 4] = [
    exchange("fan", ExchangeKind::Fanout, true, false),
    exchange("straight", ExchangeKind::Direct, true, false),
    exchange("exhaustible", ExchangeKind::Direct, true, true),
    exchange("windy", ExchangeKind::Fanout, false, false),
];

pub const KEYS: [Name; 3] = ["", "a", "b"];

impl QueueKind {
    pub fn options(&self) -> QueueOptions {
        let arguments = match self.os {
            true => FieldTable::new().with("x-leveret-durability", "os"),
            false => FieldTable::new(),
        };
        QueueOptions {
            durable: self.durable,
            auto_delete: self.auto_delete,
            exclusive: None,
            arguments,
        }
    }
}

impl ExchangeSort {
    pub fn options(&self) -> ExchangeOptions {
        ExchangeOptions {
            durable: self.durable,
            auto_delete: self.auto_delete,
            ..ExchangeOptions::durable(self.kind)
        }
    }
}

pub fn queue_kind(name: &str) -> &'static QueueKind {
    let found = QUEUES.iter().find(|kind| kind.name == name);
    found.unwrap_or_else(|| panic!("a queue {name:?} from nowhere"))
}

pub fn exchange_sort(name: &str) -> &'static ExchangeSort {
    let found = EXCHANGES.iter().find(|kind| kind.name == name);
    found.unwrap_or_else(|| panic!("an exchange {name:?} from nowhere"))
}

/// Names of queues that were found.
pub fn queue_names<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<Name> {
    names.map(|name| queue_kind(name).name).collect()
}

/// Bytes before a body's filling: the message's number, its length, whether it is persistent.
const HEAD: usize = 13;

/// What a body is filled with.
fn filling(id: u64, at: usize) -> u8 {
    (id.wrapping_mul(0x9E37_79B9) as usize ^ at ^ (at >> 8)) as u8
}

/// A message that says which one it is; its body has about that many bytes.
pub fn message(id: u64, exchange: Name, key: Name, persistent: bool, size: usize) -> Message {
    let size = size.max(HEAD);
    let mut body = Vec::with_capacity(size);
    body.extend(id.to_be_bytes());
    body.extend((size as u32).to_be_bytes());
    body.push(u8::from(persistent));
    body.extend((HEAD..size).map(|at| filling(id, at)));
    let head = MessageHead {
        exchange: exchange.as_bytes(),
        routing_key: key.as_bytes(),
        properties: &[0, 0],
        persistent,
        priority: 0,
        times: None,
        has_bcc: false,
    };
    Message::new(&head, &body)
}

/// Which message it is; panics unless it is as it was published.
pub fn id(message: &Message) -> u64 {
    let body = message.body();
    let (head, rest) = body.split_at(HEAD);
    let id = u64::from_be_bytes(head[..8].try_into().expect("eight bytes"));
    let size = u32::from_be_bytes(head[8..12].try_into().expect("four bytes"));
    assert_eq!(body.len(), size as usize, "message {id} has another length");
    let persistent = head[12] == 1;
    assert_eq!(message.is_persistent(), persistent, "message {id}");
    let intact = rest
        .iter()
        .zip(HEAD..)
        .all(|(byte, at)| *byte == filling(id, at));
    assert!(intact, "message {id} has another body");
    id
}
