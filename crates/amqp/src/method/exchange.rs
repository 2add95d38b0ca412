//! Exchange: declare, delete, and the bindings between exchanges (0-9-1 section 1.6, RabbitMQ extensions).

use crate::{ShortStr, Table};

class! {
    'a 40;

    /// `exchange.declare`
    Declare<'a> = 10 "exchange.declare" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `exchange`.
        exchange: ShortStr<'a>;
        /// Argument `kind`.
        kind: ShortStr<'a>;
        /// Argument `passive`.
        passive: bool;
        /// Argument `durable`.
        durable: bool;
        /// Argument `auto-delete`.
        auto_delete: bool;
        /// Argument `internal`.
        internal: bool;
        /// Argument `no-wait`.
        no_wait: bool;
        /// Argument `arguments`.
        arguments: Table<'a>;
    }
    /// `exchange.declare-ok`
    DeclareOk = 11 "exchange.declare-ok" {
    }
    /// `exchange.delete`
    Delete<'a> = 20 "exchange.delete" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `exchange`.
        exchange: ShortStr<'a>;
        /// Argument `if-unused`.
        if_unused: bool;
        /// Argument `no-wait`.
        no_wait: bool;
    }
    /// `exchange.delete-ok`
    DeleteOk = 21 "exchange.delete-ok" {
    }
    /// `exchange.bind`
    Bind<'a> = 30 since V0_9 "exchange.bind" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `destination`.
        destination: ShortStr<'a>;
        /// Argument `source`.
        source: ShortStr<'a>;
        /// Argument `routing-key`.
        routing_key: ShortStr<'a>;
        /// Argument `no-wait`.
        no_wait: bool;
        /// Argument `arguments`.
        arguments: Table<'a>;
    }
    /// `exchange.bind-ok`
    BindOk = 31 since V0_9 "exchange.bind-ok" {
    }
    /// `exchange.unbind`
    Unbind<'a> = 40 since V0_9 "exchange.unbind" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `destination`.
        destination: ShortStr<'a>;
        /// Argument `source`.
        source: ShortStr<'a>;
        /// Argument `routing-key`.
        routing_key: ShortStr<'a>;
        /// Argument `no-wait`.
        no_wait: bool;
        /// Argument `arguments`.
        arguments: Table<'a>;
    }
    /// `exchange.unbind-ok`
    UnbindOk = 51 since V0_9 "exchange.unbind-ok" {
    }
}
