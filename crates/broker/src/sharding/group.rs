//! Who consumes an exchange's shards by the exchange's name, and which of them each gets.
//!
//! With more consumers than shards each consumer has one shard, and shards have the same number of
//! consumers, or one more; with fewer, each shard has one consumer. Whenever a consumer or a shard
//! comes or goes all are told, and look anew which are theirs ([`ShardMember::shards`]).

use std::sync::Arc;
use std::task::Waker;

use ahash::HashMap;
use parking_lot::Mutex;

use crate::outbox::Outbox;
use crate::queue::Queue;
use crate::vhost::VHost;

/// What a connection calls one of its consumers of shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardHandle(pub u32);

/// All groups of a vhost, by exchange.
#[derive(Debug, Default)]
pub(crate) struct ShardGroups(Mutex<HashMap<Arc<str>, Group>>);

#[derive(Debug, Default)]
struct Group {
    /// In the order in which they came.
    members: Vec<Member>,
    next_id: u64,
}

#[derive(Debug)]
struct Member {
    id: u64,
    outbox: Arc<Outbox>,
    handle: ShardHandle,
}

impl Group {
    fn tell(&self) -> Vec<Waker> {
        let tell = |member: &Member| member.outbox.push_rebalance(member.handle);
        self.members.iter().filter_map(tell).collect()
    }
}

impl ShardGroups {
    /// Tells all consumers of an exchange's shards to look which are theirs.
    pub fn rebalance(&self, exchange: &str) {
        let wakers = self.0.lock().get(exchange).map(Group::tell);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn join(&self, exchange: &Arc<str>, outbox: Arc<Outbox>, handle: ShardHandle) -> u64 {
        let (id, wakers) = {
            let mut groups = self.0.lock();
            let group = groups.entry(exchange.clone()).or_default();
            let wakers = group.tell();
            let id = group.next_id;
            group.next_id += 1;
            group.members.push(Member { id, outbox, handle });
            (id, wakers)
        };
        wakers.into_iter().for_each(Waker::wake);
        id
    }

    fn leave(&self, exchange: &Arc<str>, id: u64) {
        let wakers = {
            let mut groups = self.0.lock();
            let Some(group) = groups.get_mut(exchange) else {
                return;
            };
            group.members.retain(|member| member.id != id);
            if group.members.is_empty() {
                groups.remove(exchange);
                return;
            }
            group.tell()
        };
        wakers.into_iter().for_each(Waker::wake);
    }

    /// A consumer's place among the others, and how many there are.
    fn place(&self, exchange: &str, id: u64) -> Option<(usize, usize)> {
        let groups = self.0.lock();
        let members = &groups.get(exchange)?.members;
        let place = members.iter().position(|member| member.id == id)?;
        Some((place, members.len()))
    }
}

/// A consumer of an exchange's shards; until it is dropped.
#[derive(Debug)]
pub struct ShardMember {
    vhost: Arc<VHost>,
    exchange: Arc<str>,
    id: u64,
}

impl ShardMember {
    pub(crate) fn join(
        vhost: &Arc<VHost>,
        exchange: &Arc<str>,
        outbox: Arc<Outbox>,
        handle: ShardHandle,
    ) -> ShardMember {
        ShardMember {
            vhost: vhost.clone(),
            exchange: exchange.clone(),
            id: vhost.shard_groups.join(exchange, outbox, handle),
        }
    }

    /// The shards that are this consumer's now.
    pub fn shards(&self) -> Vec<Arc<Queue>> {
        let groups = &self.vhost.shard_groups;
        let Some((place, members)) = groups.place(&self.exchange, self.id) else {
            return Vec::new();
        };
        let shards = self.vhost.read().shards(&self.exchange, &self.vhost.node);
        assigned(shards.unwrap_or_default(), place, members)
    }
}

impl Drop for ShardMember {
    fn drop(&mut self) {
        self.vhost.shard_groups.leave(&self.exchange, self.id);
    }
}

/// The part of one of `members`.
fn assigned<T: Clone>(shards: Vec<T>, place: usize, members: usize) -> Vec<T> {
    match shards.len() {
        0 => Vec::new(),
        count if members >= count => vec![shards[place % count].clone()],
        _ => shards.into_iter().skip(place).step_by(members).collect(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_shard_is_consumed_and_none_by_many_more_than_another(
            shards in 1usize..20,
            members in 1usize..40,
        ) {
            let all: Vec<usize> = (0..shards).collect();
            let parts: Vec<_> = (0..members)
                .map(|place| assigned(all.clone(), place, members))
                .collect();
            let consumers: Vec<usize> = all
                .iter()
                .map(|shard| parts.iter().filter(|part| part.contains(shard)).count())
                .collect();
            let (least, most) = (consumers.iter().min(), consumers.iter().max());
            let (least, most) = (least.expect("one at least"), most.expect("one at least"));
            prop_assert!(*least >= 1 && most - least <= 1);
            let sizes = parts.iter().map(Vec::len);
            let (smallest, largest) = (sizes.clone().min(), sizes.max());
            let (smallest, largest) = (smallest.expect("one"), largest.expect("one"));
            prop_assert!(smallest >= 1 && largest - smallest <= 1);
        }
    }
}
