//! Publishing: from a message's head to its queues, one lock of a queue per run of messages.
//!
//! Each connection owns one publisher, so nothing here is shared. Routes are kept until the
//! topology's generation changes. Messages of one route form a run, which is handed to its queues
//! when it is long enough, when its place is wanted for another route, or when the owner flushes:
//! before it does anything whose order against the publishes a client could see. Several runs are
//! open at a time only if each is for one queue, and no two for the same: so each queue gets its
//! messages in order.

use std::sync::Arc;

use ahash::HashMap;
use amqp::{Properties, PropertySummary, Table, Value};
use smallvec::SmallVec;
use store::Message;

use crate::access::Operation;
use crate::arguments::type_name;
use crate::error::{Error, Resource};
use crate::exchange::Head;
use crate::internal_publish;
use crate::positions::LogPositions;
use crate::queue::{MAX_PER_HOLD, Refused};
use crate::routing::{Route, route};
use crate::session::{Session, check_topic};
use crate::spread::Spread;
use crate::vhost::VHost;

/// Bytes after which a run is handed over.
const MAX_RUN_BYTES: usize = 64 * 1024;
/// Exchanges for which [`Spread`]s are kept.
const MAX_SPREADS: usize = 8;
/// Runs that are open at a time.
const MAX_RUNS: usize = 8;
/// Routes and their queues that are kept; when there are more, all are dropped.
const MAX_KEPT: usize = 16_384;
const CC: &str = "CC";
const BCC: &str = "BCC";

/// What decides where a message goes.
#[derive(Debug, Clone, Copy)]
pub struct Publish<'a> {
    /// Exchange name, as on the wire.
    pub exchange: &'a [u8],
    /// Routing key.
    pub routing_key: &'a [u8],
    /// What the properties say.
    pub properties: &'a PropertySummary<'a>,
    /// The properties themselves.
    pub all_properties: Properties<'a>,
}

/// Where a message goes, and what of it the broker has understood.
#[derive(Debug)]
pub struct PublishOutcome {
    /// The queues; none = unroutable.
    pub route: Arc<Route>,
    /// The headers hold BCC, which consumers must not see.
    pub has_bcc: bool,
    /// For how long the message is wanted, in milliseconds.
    pub expiration: Option<u64>,
}

/// A queue had no room for a message, and refused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejected;

/// A connection's publisher.
#[derive(Debug, Default)]
pub struct Publisher {
    generation: u64,
    /// Key: length of the exchange's name, the name, the routing key.
    routes: HashMap<Box<[u8]>, Arc<Route>>,
    /// Routes and their queues in `routes`.
    kept: usize,
    /// The key of the route that was used last.
    last_key: Vec<u8>,
    /// `None` while it is lent.
    last: Option<Arc<Route>>,
    lent: Lent,
    /// Exchanges whose routes for all keys are known; at most [`MAX_SPREADS`].
    spreads: Vec<Spread>,
    runs: Vec<Run>,
    /// The run that the last message went to.
    current: usize,
    /// The run whose place is wanted next.
    oldest: usize,
    logged: LogPositions,
}

/// What [`Publisher::route`] has given away for [`Publisher::push`] to give back: that spares each
/// message of a run two changes of a reference count.
#[derive(Debug, Default, Clone, Copy)]
enum Lent {
    #[default]
    Nothing,
    /// The last route, which has that address.
    Last(usize),
    /// What a spread has for one of its targets.
    Target { spread: usize, at: usize },
}

/// Messages that go the same way.
#[derive(Debug)]
struct Run {
    route: Arc<Route>,
    messages: Vec<Message>,
    bytes: usize,
}

impl Publisher {
    /// Finds a message's queues. Errors are those of basic.publish.
    #[inline]
    pub fn route(
        &mut self,
        session: &Session,
        publish: &Publish<'_>,
    ) -> Result<PublishOutcome, Error> {
        self.lent = Lent::Nothing;
        let generation = session.vhost.generation();
        if generation != self.generation {
            // What is gone is not kept alive by a run.
            self.flush();
            self.runs.clear();
            self.routes.clear();
            self.kept = 0;
            self.last = None;
            self.spreads.clear();
            self.generation = generation;
        }
        let properties = publish.properties;
        let mut outcome = match properties.headers {
            Some(headers) => self.route_by_headers(session, publish, headers)?,
            None => PublishOutcome {
                route: match self.lend(publish) {
                    Some(last) => last,
                    None => match self.spread(publish) {
                        Some(route) => route,
                        None => self.look_up(session, publish, None)?,
                    },
                },
                has_bcc: false,
                expiration: None,
            },
        };
        if let Some(user_id) = properties.user_id {
            check_user_id(session, user_id.as_bytes())?;
        }
        if let Some(expiration) = properties.expiration {
            outcome.expiration = Some(parse_expiration(expiration.as_bytes())?);
        }
        Ok(outcome)
    }

    #[inline]
    fn spread(&mut self, publish: &Publish<'_>) -> Option<Arc<Route>> {
        let (exchange, key) = (publish.exchange, publish.routing_key);
        let mut spreads = self.spreads.iter_mut().enumerate();
        let (spread, (at, route)) =
            spreads.find_map(|(n, spread)| Some((n, spread.route(exchange, key)?)))?;
        self.lent = Lent::Target { spread, at };
        Some(route)
    }

    /// The last route, if that is the one.
    #[inline]
    fn lend(&mut self, publish: &Publish<'_>) -> Option<Arc<Route>> {
        let last = match self.last_key_is(publish) {
            true => self.last.take()?,
            false => return None,
        };
        self.lent = Lent::Last(Arc::as_ptr(&last).addr());
        Some(last)
    }

    #[inline]
    fn last_key_is(&self, publish: &Publish<'_>) -> bool {
        let (exchange, key) = (publish.exchange, publish.routing_key);
        self.last_key.len() == 1 + exchange.len() + key.len()
            && usize::from(self.last_key[0]) == exchange.len()
            && self.last_key[1..=exchange.len()] == *exchange
            && self.last_key[1 + exchange.len()..] == *key
    }

    /// Headers may add routing keys (CC, BCC), and decide in headers exchanges.
    fn route_by_headers(
        &mut self,
        session: &Session,
        publish: &Publish<'_>,
        headers: Table<'_>,
    ) -> Result<PublishOutcome, Error> {
        let mut keys: SmallVec<[&[u8]; 4]> = SmallVec::from_slice(&[publish.routing_key]);
        let found = collect_keys(headers, CC, &mut keys)
            .and_then(|cc| Ok((cc, collect_keys(headers, BCC, &mut keys)?)));
        let (has_cc, has_bcc) = match found {
            Ok(found) => found,
            Err(error) => {
                // What is wrong with the exchange is said first.
                find(session, publish, &[publish.routing_key], None, None)?;
                return Err(error);
            }
        };
        let route = if has_cc || has_bcc {
            keys.sort_unstable();
            keys.dedup();
            Arc::new(find(session, publish, &keys, Some(headers), None)?)
        } else {
            self.look_up(session, publish, Some(headers))?
        };
        Ok(PublishOutcome {
            route,
            has_bcc,
            expiration: None,
        })
    }

    fn look_up(
        &mut self,
        session: &Session,
        publish: &Publish<'_>,
        headers: Option<Table<'_>>,
    ) -> Result<Arc<Route>, Error> {
        self.last_key.clear();
        // Short strings are at most 255 bytes.
        self.last_key.push(publish.exchange.len() as u8);
        self.last_key.extend_from_slice(publish.exchange);
        self.last_key.extend_from_slice(publish.routing_key);
        if let Some(route) = self.routes.get(&*self.last_key) {
            self.last = Some(route.clone());
            return Ok(route.clone());
        }
        self.last = None;
        let learn = headers.is_none() && self.spreads.len() < MAX_SPREADS;
        let spreads = learn.then_some(&mut self.spreads);
        let route = find(session, publish, &[publish.routing_key], headers, spreads)?;
        // Many keys may lead to few queues: their routes are one, which is at hand.
        let alike = self.runs.iter().find(|run| run.route.is_like(&route));
        let route = match alike {
            Some(run) => run.route.clone(),
            None => Arc::new(route),
        };
        if route.reusable {
            self.kept += 1 + route.queues.len();
            if self.kept > MAX_KEPT {
                self.routes.clear();
                self.kept = 1 + route.queues.len();
            }
            self.routes
                .insert(self.last_key.as_slice().into(), route.clone());
            self.last = Some(route.clone());
        }
        Ok(route)
    }

    /// Adds a message to the run of its route.
    #[inline]
    pub fn push(&mut self, route: Arc<Route>, message: Message) {
        let current = self.runs.get(self.current);
        if !current.is_some_and(|run| Arc::ptr_eq(&run.route, &route)) {
            self.change_run(&route);
        }
        self.take_back(route);
        let run = &mut self.runs[self.current];
        run.bytes += message.stored_len();
        run.messages.push(message);
        if run.messages.len() >= MAX_PER_HOLD || run.bytes >= MAX_RUN_BYTES {
            run.hand_over(&mut self.logged);
        }
    }

    /// Keeps what was lent for the next message.
    #[inline]
    fn take_back(&mut self, route: Arc<Route>) {
        match std::mem::take(&mut self.lent) {
            // What is lent is also in `routes`, so no other has its address.
            Lent::Last(address) if address == Arc::as_ptr(&route).addr() => self.last = Some(route),
            Lent::Target { spread, at } => {
                if let Some(spread) = self.spreads.get_mut(spread) {
                    spread.take_back(at, route);
                }
            }
            Lent::Last(_) | Lent::Nothing => {}
        }
    }

    /// Makes the run for that route the current one.
    fn change_run(&mut self, route: &Arc<Route>) {
        let only = route.only_queue();
        let alone = |run: &Run| run.route.only_queue().is_none();
        if only.is_none() || self.runs.first().is_some_and(alone) {
            self.flush();
            self.runs.clear();
            self.oldest = 0;
        }
        let known = self
            .runs
            .iter()
            .position(|run| run.route.only_queue() == only);
        self.current = match known {
            Some(known) => known,
            None if self.runs.len() < MAX_RUNS => {
                self.runs.push(Run {
                    route: route.clone(),
                    messages: Vec::new(),
                    bytes: 0,
                });
                return self.current = self.runs.len() - 1;
            }
            None => {
                let oldest = self.oldest;
                self.oldest = (oldest + 1) % MAX_RUNS;
                self.runs[oldest].hand_over(&mut self.logged);
                self.runs[oldest].route = route.clone();
                oldest
            }
        };
    }

    /// Hands a message to queues that may refuse it. Those that do not have it all the same.
    /// One that has come before is dropped, and its publisher need not know.
    pub fn offer(&mut self, route: &Route, message: &Message) -> Result<(), Rejected> {
        if let Some(window) = &route.window
            && !window.admits(message)
        {
            return Ok(());
        }
        // What was published before comes before.
        self.flush();
        let mut result = Ok(());
        for queue in &route.queues {
            match queue.offer(message.clone()) {
                Ok(logged) => logged.into_iter().for_each(|at| self.logged.add(at)),
                Err(Refused) => result = Err(Rejected),
            }
        }
        if let Some(window) = &route.window {
            match result {
                Ok(()) => window.keep(),
                Err(Rejected) => window.forget(message),
            }
        }
        result
    }

    /// Has the histories on a message's way keep it, before it goes there.
    pub fn remember(&mut self, vhost: &VHost, route: &Route, message: &Message) {
        if !route.is_remembered() {
            return;
        }
        for queue in internal_publish::remember(vhost, route, message) {
            let logged = internal_publish::put(&queue, [message.clone()]);
            self.logged.extend(logged);
        }
    }

    /// Hands all runs to their queues.
    #[inline]
    pub fn flush(&mut self) {
        for run in &mut self.runs {
            run.hand_over(&mut self.logged);
        }
    }

    /// Where in the log everything is that has been handed over and must survive.
    pub fn logged(&self) -> LogPositions {
        self.logged
    }
}

impl Run {
    /// Hands what there is to its queues.
    #[inline]
    fn hand_over(&mut self, positions: &mut LogPositions) {
        if self.messages.is_empty() {
            return;
        }
        self.bytes = 0;
        if let Some((last, others)) = self.route.queues.split_last() {
            for queue in others {
                let logged = queue.publish(self.messages.iter().cloned());
                logged.into_iter().for_each(|at| positions.add(at));
            }
            let logged = last.publish(self.messages.drain(..));
            logged.into_iter().for_each(|at| positions.add(at));
        }
        self.messages.clear();
    }
}

/// Finds queues in the topology; checks that the exchange exists and may be published to. Notes in
/// `spreads` if that tells where all its messages go.
fn find(
    session: &Session,
    publish: &Publish<'_>,
    keys: &[&[u8]],
    headers: Option<Table<'_>>,
    spreads: Option<&mut Vec<Spread>>,
) -> Result<Route, Error> {
    let vhost = &session.vhost;
    let name = std::str::from_utf8(publish.exchange).map_err(|_| {
        let name = String::from_utf8_lossy(publish.exchange);
        Error::not_found(Resource::exchange(&name, &vhost.name))
    })?;
    let resource = Resource::exchange(name, &vhost.name);
    session.permit(Operation::Write, resource)?;
    // The message's own key first.
    let keys_in_order = std::iter::once(&publish.routing_key).chain(keys).copied();
    let refusal = session.topic_refusal(Operation::Write, name, keys_in_order);
    let topology = vhost.read();
    match topology.exchanges.get(name) {
        None => Err(Error::not_found(resource)),
        Some(exchange) if exchange.internal => Err(Error::refused(format!(
            "cannot publish to internal {resource}"
        ))),
        Some(exchange) => {
            check_topic(Some(exchange), refusal)?;
            let window = exchange.belongings.window.clone();
            let properties = publish.all_properties;
            let head = Head {
                keys,
                headers,
                properties,
            };
            let mut route = route(&topology, name, &head);
            route.traced = vhost.is_traced();
            // What leads nowhere has not been published, and may come again.
            route.window = window.filter(|_| !route.queues.is_empty());
            route.special |= route.traced || route.window.is_some();
            if let Some(spreads) = spreads.filter(|_| !route.traced) {
                spreads.extend(Spread::of(exchange));
            }
            Ok(route)
        }
    }
}

fn collect_keys<'a>(
    headers: Table<'a>,
    header: &str,
    keys: &mut SmallVec<[&'a [u8]; 4]>,
) -> Result<bool, Error> {
    let Some(value) = headers.get(header) else {
        return Ok(false);
    };
    let Value::Array(items) = value else {
        let given = type_name(&value.to_owned()?);
        return Err(Error::precondition(format!(
            "invalid message: {{unacceptable_type_in_header,\"{header}\",{given}}}"
        )));
    };
    for item in items.iter() {
        if let Value::LongStr(key) = item? {
            keys.push(key);
        }
    }
    Ok(true)
}

fn check_user_id(session: &Session, user_id: &[u8]) -> Result<(), Error> {
    let user = &session.user;
    if user_id == user.name.as_bytes() || user.is_impersonator() {
        return Ok(());
    }
    let user_id = String::from_utf8_lossy(user_id);
    let name = &user.name;
    Err(Error::precondition(format!(
        "user_id property set to '{user_id}' but authenticated user was '{name}'"
    )))
}

/// Milliseconds, in RabbitMQ's understanding of text (`rabbit_basic:parse_expiration`).
fn parse_expiration(expiration: &[u8]) -> Result<u64, Error> {
    let text = String::from_utf8_lossy(expiration);
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(if digits == 0 { 0 } else { sign + digits });
    let problem = match number.parse::<i128>() {
        Ok(_) if !rest.is_empty() => format!("{{leftover_string,{rest:?}}}"),
        Ok(number @ 0..=315_360_000_000) => return Ok(number as u64),
        Ok(number @ ..0) => format!("{{value_negative,{number}}}"),
        Ok(number) => format!("{{value_too_large,{number}}}"),
        Err(_) => "no_integer".to_owned(),
    };
    Err(Error::precondition(format!(
        "invalid expiration '{text}': {problem}"
    )))
}
