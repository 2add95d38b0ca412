//! Basic: publish, deliver, acknowledge (0-9-1 section 1.8).

use crate::{ShortStr, Table};

class! {
    'a 60;

    /// `basic.qos`
    Qos = 10 "basic.qos" {
        /// Argument `prefetch-size`.
        prefetch_size: u32;
        /// Argument `prefetch-count`.
        prefetch_count: u16;
        /// Argument `global`.
        global: bool;
    }
    /// `basic.qos-ok`
    QosOk = 11 "basic.qos-ok" {
    }
    /// `basic.consume`
    Consume<'a> = 20 "basic.consume" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `queue`.
        queue: ShortStr<'a>;
        /// Argument `consumer-tag`.
        consumer_tag: ShortStr<'a>;
        /// Argument `no-local`.
        no_local: bool;
        /// Argument `no-ack`.
        no_ack: bool;
        /// Argument `exclusive`.
        exclusive: bool;
        /// Argument `no-wait`.
        no_wait: bool;
        /// Argument `arguments`.
        arguments: Table<'a>, since V0_9;
    }
    /// `basic.consume-ok`
    ConsumeOk<'a> = 21 "basic.consume-ok" {
        /// Argument `consumer-tag`.
        consumer_tag: ShortStr<'a>;
    }
    /// `basic.cancel`
    Cancel<'a> = 30 "basic.cancel" {
        /// Argument `consumer-tag`.
        consumer_tag: ShortStr<'a>;
        /// Argument `no-wait`.
        no_wait: bool;
    }
    /// `basic.cancel-ok`
    CancelOk<'a> = 31 "basic.cancel-ok" {
        /// Argument `consumer-tag`.
        consumer_tag: ShortStr<'a>;
    }
    /// `basic.publish`
    Publish<'a> = 40 "basic.publish" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `exchange`.
        exchange: ShortStr<'a>;
        /// Argument `routing-key`.
        routing_key: ShortStr<'a>;
        /// Argument `mandatory`.
        mandatory: bool;
        /// Argument `immediate`.
        immediate: bool;
    }
    /// `basic.return`
    Return<'a> = 50 "basic.return" {
        /// Argument `reply-code`.
        reply_code: u16;
        /// Argument `reply-text`.
        reply_text: ShortStr<'a>;
        /// Argument `exchange`.
        exchange: ShortStr<'a>;
        /// Argument `routing-key`.
        routing_key: ShortStr<'a>;
    }
    /// `basic.deliver`
    Deliver<'a> = 60 "basic.deliver" {
        /// Argument `consumer-tag`.
        consumer_tag: ShortStr<'a>;
        /// Argument `delivery-tag`.
        delivery_tag: u64;
        /// Argument `redelivered`.
        redelivered: bool;
        /// Argument `exchange`.
        exchange: ShortStr<'a>;
        /// Argument `routing-key`.
        routing_key: ShortStr<'a>;
    }
    /// `basic.get`
    Get<'a> = 70 "basic.get" {
        /// Argument `ticket`.
        ticket: u16;
        /// Argument `queue`.
        queue: ShortStr<'a>;
        /// Argument `no-ack`.
        no_ack: bool;
    }
    /// `basic.get-ok`
    GetOk<'a> = 71 "basic.get-ok" {
        /// Argument `delivery-tag`.
        delivery_tag: u64;
        /// Argument `redelivered`.
        redelivered: bool;
        /// Argument `exchange`.
        exchange: ShortStr<'a>;
        /// Argument `routing-key`.
        routing_key: ShortStr<'a>;
        /// Argument `message-count`.
        message_count: u32;
    }
    /// `basic.get-empty`
    GetEmpty<'a> = 72 "basic.get-empty" {
        /// Argument `cluster-id`.
        cluster_id: ShortStr<'a>;
    }
    /// `basic.ack`
    Ack = 80 "basic.ack" {
        /// Argument `delivery-tag`.
        delivery_tag: u64;
        /// Argument `multiple`.
        multiple: bool;
    }
    /// `basic.reject`
    Reject = 90 "basic.reject" {
        /// Argument `delivery-tag`.
        delivery_tag: u64;
        /// Argument `requeue`.
        requeue: bool;
    }
    /// `basic.recover-async`
    RecoverAsync = 100 "basic.recover-async" {
        /// Argument `requeue`.
        requeue: bool;
    }
    /// `basic.recover`
    Recover = 110 "basic.recover" {
        /// Argument `requeue`.
        requeue: bool;
    }
    /// `basic.recover-ok`
    RecoverOk = 111 "basic.recover-ok" {
    }
    /// `basic.nack`
    Nack = 120 since V0_9 "basic.nack" {
        /// Argument `delivery-tag`.
        delivery_tag: u64;
        /// Argument `multiple`.
        multiple: bool;
        /// Argument `requeue`.
        requeue: bool;
    }
}
