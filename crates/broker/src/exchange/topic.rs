//! Topic exchange: words separated by dots; `*` stands for one word, `#` for any number.
//!
//! A trie of words. Matching walks it with the routing key's words; a `#` node is entered once
//! for every suffix, so a match costs O(words × nodes on matching paths), and the memo of
//! (node, word) pairs that were tried keeps patterns with many `#` from growing exponentially.

use std::sync::Arc;

use ahash::{HashMap, HashSet, HashSetExt};
use smallvec::SmallVec;

use super::{Head, Router, Visit};
use crate::binding::Binding;

const ONE_WORD: &[u8] = b"*";
const ANY_WORDS: &[u8] = b"#";

#[derive(Default)]
struct Node {
    children: HashMap<Box<[u8]>, Node>,
    one_word: Option<Box<Node>>,
    any_words: Option<Box<Node>>,
    bindings: Vec<Arc<Binding>>,
}

#[derive(Default)]
pub(super) struct Topic {
    root: Node,
}

fn words(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    // An empty key has no words, so that `#` matches it and `*` does not.
    key.split(|byte| *byte == b'.')
        .filter(move |_| !key.is_empty())
}

impl Node {
    fn is_empty(&self) -> bool {
        self.bindings.is_empty()
            && self.children.is_empty()
            && self.one_word.is_none()
            && self.any_words.is_none()
    }

    fn child(&mut self, word: &[u8]) -> &mut Node {
        match word {
            ONE_WORD => self.one_word.get_or_insert_default(),
            ANY_WORDS => self.any_words.get_or_insert_default(),
            _ => self.children.entry(word.into()).or_default(),
        }
    }

    /// Removes the binding below this node, and the nodes that it leaves empty.
    fn remove(&mut self, words: &[&[u8]], binding: &Arc<Binding>) {
        let Some((word, rest)) = words.split_first() else {
            self.bindings.retain(|other| !Arc::ptr_eq(other, binding));
            return;
        };
        let emptied = |node: &mut Node| {
            node.remove(rest, binding);
            node.is_empty()
        };
        match *word {
            ONE_WORD => {
                self.one_word.take_if(|node| emptied(node));
            }
            ANY_WORDS => {
                self.any_words.take_if(|node| emptied(node));
            }
            _ => {
                if self.children.get_mut(*word).is_some_and(emptied) {
                    self.children.remove(*word);
                }
            }
        }
    }
}

struct Search<'s, 'r, 'v> {
    words: &'s [&'s [u8]],
    visit: Visit<'v, 'r>,
    /// Pairs of `#` node and word index that were entered.
    entered: HashSet<(usize, usize)>,
}

impl<'r> Search<'_, 'r, '_> {
    fn at(&mut self, node: &'r Node, index: usize) {
        if let Some(any) = &node.any_words {
            for skipped in index..=self.words.len() {
                // A longer suffix was tried before: everything from here on is done.
                if !self
                    .entered
                    .insert((std::ptr::from_ref::<Node>(any).addr(), skipped))
                {
                    break;
                }
                self.at(any, skipped);
            }
        }
        let Some(word) = self.words.get(index) else {
            node.bindings
                .iter()
                .for_each(|binding| (self.visit)(&binding.destination));
            return;
        };
        if let Some(child) = node.children.get(*word) {
            self.at(child, index + 1);
        }
        if let Some(child) = &node.one_word {
            self.at(child, index + 1);
        }
    }
}

impl Router for Topic {
    fn add(&mut self, binding: &Arc<Binding>) {
        let node = words(&binding.routing_key).fold(&mut self.root, Node::child);
        node.bindings.push(binding.clone());
    }

    fn remove(&mut self, binding: &Arc<Binding>) {
        let words: SmallVec<[&[u8]; 16]> = words(&binding.routing_key).collect();
        self.root.remove(&words, binding);
    }

    fn route<'r>(&'r self, message: &Head<'_>, visit: Visit<'_, 'r>) {
        for key in message.keys {
            let words: SmallVec<[&[u8]; 16]> = words(key).collect();
            Search {
                words: &words,
                visit: &mut *visit,
                entered: HashSet::new(),
            }
            .at(&self.root, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use amqp::FieldTable;
    use proptest::prelude::*;

    use super::*;
    use crate::binding::Destination;

    fn binding(key: &str) -> Arc<Binding> {
        Arc::new(Binding {
            source: "x".into(),
            destination: Destination::Exchange(key.into()),
            routing_key: key.as_bytes().into(),
            arguments: FieldTable::new(),
        })
    }

    fn matches(topic: &Topic, routing_key: &str) -> bool {
        let mut hit = false;
        let head = Head {
            keys: &[routing_key.as_bytes()],
            headers: None,
            properties: amqp::Properties::default(),
        };
        topic.route(&head, &mut |_| hit = true);
        hit
    }

    /// The definition, word by word.
    fn matches_by_definition(pattern: &[&str], words: &[&str]) -> bool {
        match (pattern.split_first(), words.split_first()) {
            (None, None) => true,
            (None, Some(_)) => false,
            (Some((&"#", rest)), _) => {
                (0..=words.len()).any(|n| matches_by_definition(rest, &words[n..]))
            }
            (Some(_), None) => false,
            (Some((word, pattern)), Some((first, words))) => {
                (*word == "*" || word == first) && matches_by_definition(pattern, words)
            }
        }
    }

    fn split(key: &str) -> Vec<&str> {
        if key.is_empty() {
            Vec::new()
        } else {
            key.split('.').collect()
        }
    }

    proptest! {
        #[test]
        fn trie_matches_as_defined(
            pattern in "([ab*#](\\.[ab*#]){0,5})?",
            keys in prop::collection::vec("([ab](\\.[ab]){0,6})?", 1..6),
        ) {
            let mut topic = Topic::default();
            let bound = binding(&pattern);
            topic.add(&bound);
            for key in &keys {
                prop_assert_eq!(
                    matches(&topic, key),
                    matches_by_definition(&split(&pattern), &split(key)),
                    "pattern {:?}, key {:?}", pattern, key
                );
            }
            topic.remove(&bound);
            prop_assert!(topic.root.is_empty());
        }
    }

    #[test]
    fn many_hashes_end_in_reasonable_time() {
        let mut topic = Topic::default();
        topic.add(&binding(&vec!["#"; 100].join(".")));
        topic.add(&binding(&(vec!["#.a"; 60].join(".") + ".b")));
        assert!(matches(&topic, &vec!["a"; 120].join(".")));
    }
}
