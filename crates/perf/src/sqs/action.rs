//! What a queue service is asked for, and what it answers, in neither protocol's clothes.

/// One call. `queue` is the queue's URL, as the service gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action<'a> {
    /// Creates a standard queue with the attributes that the service chooses.
    CreateQueue {
        /// Up to 80 letters, digits, `-` and `_`.
        name: &'a str,
    },
    /// Looks up the URL of a queue.
    GetQueueUrl {
        /// See [`Action::CreateQueue`].
        name: &'a str,
    },
    /// Sends one message.
    SendMessage {
        /// Where to.
        queue: &'a str,
        /// Its body.
        body: &'a str,
    },
    /// Sends up to ten messages, which may fail one by one.
    SendMessageBatch {
        /// Where to.
        queue: &'a str,
        /// The messages.
        entries: &'a [Entry],
    },
    /// Asks for messages.
    ReceiveMessage {
        /// Where from.
        queue: &'a str,
        /// Up to 10.
        max: u8,
        /// How many seconds to wait for the first: up to 20.
        wait_seconds: u8,
    },
    /// Ends a message's life.
    DeleteMessage {
        /// Where it is.
        queue: &'a str,
        /// What came with it.
        receipt_handle: &'a str,
    },
    /// Deletes a queue with all that is in it.
    DeleteQueue {
        /// Which.
        queue: &'a str,
    },
}

impl Action<'_> {
    /// The name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Action::CreateQueue { .. } => "CreateQueue",
            Action::GetQueueUrl { .. } => "GetQueueUrl",
            Action::SendMessage { .. } => "SendMessage",
            Action::SendMessageBatch { .. } => "SendMessageBatch",
            Action::ReceiveMessage { .. } => "ReceiveMessage",
            Action::DeleteMessage { .. } => "DeleteMessage",
            Action::DeleteQueue { .. } => "DeleteQueue",
        }
    }

    /// The URL of the queue that it is about; none where there is only a name.
    pub fn queue(&self) -> Option<&str> {
        match self {
            Action::CreateQueue { .. } | Action::GetQueueUrl { .. } => None,
            Action::SendMessage { queue, .. }
            | Action::SendMessageBatch { queue, .. }
            | Action::ReceiveMessage { queue, .. }
            | Action::DeleteMessage { queue, .. }
            | Action::DeleteQueue { queue } => Some(queue),
        }
    }
}

/// One message of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Up to 80 letters, digits, `-` and `_`, unlike the others of the batch.
    pub id: String,
    /// The message's body.
    pub body: String,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Action::CreateQueue`] and [`Action::GetQueueUrl`]: the queue's URL.
    Queue(String),
    /// To [`Action::SendMessage`]: the MD5 of the body that arrived, in hexadecimal digits.
    Sent(String),
    /// To [`Action::SendMessageBatch`]: entries by their ids, in any order.
    Batch(Vec<(String, Outcome)>),
    /// To [`Action::ReceiveMessage`].
    Messages(Vec<Message>),
    /// To the others.
    Done,
}

/// What became of one entry of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was taken; with the MD5 of the body that arrived.
    Sent(String),
    /// It was not: code and message.
    Refused(String, String),
}

/// A message received.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// Its body.
    pub body: String,
    /// What deletes it.
    pub receipt_handle: String,
    /// What the service says the MD5 of the body is.
    pub md5: String,
    /// How often it was handed out, this time included, if the service says so.
    pub receive_count: Option<u32>,
}

impl Message {
    /// Whether the service says that it handed this message out before.
    pub fn is_redelivered(&self) -> bool {
        self.receive_count.is_some_and(|count| count > 1)
    }
}
