//! Reply codes of connection.close, channel.close and basic.return (AMQP 0-9-1 section 1.2).

macro_rules! reply_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal $level:ident,)*) => {
        /// A reply code, with the constant's name that RabbitMQ puts before every reply text.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum ReplyCode { $($(#[$doc])* $name = $code,)* }

        impl ReplyCode {
            /// The name in reply texts: `NOT_FOUND` in `NOT_FOUND - no queue 'x' in vhost '/'`.
            pub fn name(self) -> &'static str {
                match self { $(ReplyCode::$name => $text,)* }
            }

            /// True where the whole connection is closed ("hard error"), false where the channel is.
            pub fn closes_connection(self) -> bool {
                match self { $(ReplyCode::$name => reply_codes!(@$level),)* }
            }

            /// The code's constant, if the number is one of the protocol's.
            pub fn from_code(code: u16) -> Option<ReplyCode> {
                match code { $($code => Some(ReplyCode::$name),)* _ => None }
            }
        }
    };
    (@hard) => { true };
    (@soft) => { false };
}

reply_codes! {
    /// The peer closed normally.
    Success = 200 "REPLY_SUCCESS" soft,
    /// Content too large for the peer.
    ContentTooLarge = 311 "CONTENT_TOO_LARGE" soft,
    /// A mandatory message was routed to no queue.
    NoRoute = 312 "NO_ROUTE" soft,
    /// An immediate message met no ready consumer.
    NoConsumers = 313 "NO_CONSUMERS" soft,
    /// An operator closed the connection.
    ConnectionForced = 320 "CONNECTION_FORCED" hard,
    /// The virtual host is not there or not allowed.
    InvalidPath = 402 "INVALID_PATH" hard,
    /// The user may not do this.
    AccessRefused = 403 "ACCESS_REFUSED" soft,
    /// The entity does not exist.
    NotFound = 404 "NOT_FOUND" soft,
    /// Another connection owns the entity.
    ResourceLocked = 405 "RESOURCE_LOCKED" soft,
    /// A condition of the request does not hold.
    PreconditionFailed = 406 "PRECONDITION_FAILED" soft,
    /// A frame could not be decoded.
    FrameError = 501 "FRAME_ERROR" hard,
    /// A frame held illegal values.
    SyntaxError = 502 "SYNTAX_ERROR" hard,
    /// The method does not exist or is out of sequence.
    CommandInvalid = 503 "COMMAND_INVALID" hard,
    /// The channel is not in the right state.
    ChannelError = 504 "CHANNEL_ERROR" hard,
    /// A frame of another kind was due.
    UnexpectedFrame = 505 "UNEXPECTED_FRAME" hard,
    /// The server is out of something.
    ResourceError = 506 "RESOURCE_ERROR" hard,
    /// The request is prohibited.
    NotAllowed = 530 "NOT_ALLOWED" hard,
    /// The server does not do this.
    NotImplemented = 540 "NOT_IMPLEMENTED" hard,
    /// The server failed.
    InternalError = 541 "INTERNAL_ERROR" hard,
}

impl ReplyCode {
    /// The number on the wire.
    pub fn code(self) -> u16 {
        self as u16
    }
}
