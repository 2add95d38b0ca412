//! Queue: declare, bind, purge, delete (0-9-1 section 1.7).

use crate::{ShortStr, Table};

class! {
    'a 50;

    /// `queue.declare`
    Declare<'a> = 10 "queue.declare" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `queue`.
        queue: ShortStr<'a>;
        /// Argument `passive`.
        passive: bool;
        /// Argument `durable`.
        durable: bool;
        /// Argument `exclusive`.
        exclusive: bool;
        /// Argument `auto-delete`.
        auto_delete: bool;
        /// Argument `no-wait`.
        no_wait: bool;
        /// Argument `arguments`.
        arguments: Table<'a>;
    }
    /// `queue.declare-ok`
    DeclareOk<'a> = 11 "queue.declare-ok" {
        /// Argument `queue`.
        queue: ShortStr<'a>;
        /// Argument `message-count`.
        message_count: u32;
        /// Argument `consumer-count`.
        consumer_count: u32;
    }
    /// `queue.bind`
    Bind<'a> = 20 "queue.bind" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `queue`.
        queue: ShortStr<'a>;
        /// Argument `exchange`.
        exchange: ShortStr<'a>;
        /// Argument `routing-key`.
        routing_key: ShortStr<'a>;
        /// Argument `no-wait`.
        no_wait: bool;
        /// Argument `arguments`.
        arguments: Table<'a>;
    }
    /// `queue.bind-ok`
    BindOk = 21 "queue.bind-ok" {
    }
    /// `queue.unbind`
    Unbind<'a> = 50 "queue.unbind" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `queue`.
        queue: ShortStr<'a>;
        /// Argument `exchange`.
        exchange: ShortStr<'a>;
        /// Argument `routing-key`.
        routing_key: ShortStr<'a>;
        /// Argument `arguments`.
        arguments: Table<'a>;
    }
    /// `queue.unbind-ok`
    UnbindOk = 51 "queue.unbind-ok" {
    }
    /// `queue.purge`
    Purge<'a> = 30 "queue.purge" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `queue`.
        queue: ShortStr<'a>;
        /// Argument `no-wait`.
        no_wait: bool;
    }
    /// `queue.purge-ok`
    PurgeOk = 31 "queue.purge-ok" {
        /// Argument `message-count`.
        message_count: u32;
    }
    /// `queue.delete`
    Delete<'a> = 40 "queue.delete" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `queue`.
        queue: ShortStr<'a>;
        /// Argument `if-unused`.
        if_unused: bool;
        /// Argument `if-empty`.
        if_empty: bool;
        /// Argument `no-wait`.
        no_wait: bool;
    }
    /// `queue.delete-ok`
    DeleteOk = 41 "queue.delete-ok" {
        /// Argument `message-count`.
        message_count: u32;
    }
}
