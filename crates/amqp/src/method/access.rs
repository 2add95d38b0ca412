//! Access: tickets for realms. RabbitMQ still answers it; nothing depends on the ticket.

use crate::ShortStr;

class! {
    'a 30;

    /// `access.request`
    Request<'a> = 10 "access.request" {
        /// Argument `realm`.
        realm: ShortStr<'a>;
        /// Argument `exclusive`.
        exclusive: bool;
        /// Argument `passive`.
        passive: bool;
        /// Argument `active`.
        active: bool;
        /// Argument `write`.
        write: bool;
        /// Argument `read`.
        read: bool;
    }
    /// `access.request-ok`
    RequestOk = 11 "access.request-ok" {
        /// Argument `ticket`.
        ticket: u16;
    }
}
