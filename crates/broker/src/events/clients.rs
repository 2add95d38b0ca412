//! Events of connections, channels, consumers and logins, and of alarms, which concern clients.

use amqp::FieldValue;

use super::{Event, Events};
use crate::client_info::{ClientInfo, address_term};
use crate::consumers::ConsumerInfo;
use crate::queue::Queue;
use crate::session::{REPLY_TO, Session};
use crate::terms;

impl Events {
    /// A client has logged in.
    pub fn authenticated(&self, client: &ClientInfo, user: &str) {
        self.emit("", || {
            of_login(Event::new("user.authentication.success"), client, user)
        });
    }

    /// A client was refused.
    pub fn not_authenticated(&self, client: &ClientInfo, user: &str, error: &str) {
        // The text comes as a list of its characters, as Erlang has texts.
        let error = error.chars().map(|c| FieldValue::I64(u32::from(c).into()));
        let error = FieldValue::Array(error.collect());
        self.emit("", || {
            let event = Event::new("user.authentication.failure").with("error", error);
            of_login(event, client, user)
        });
    }

    /// A connection is open.
    pub fn connection_created(&self, session: &Session) {
        let (Some(client), true) = (&session.client, self.wanted()) else {
            return;
        };
        let properties = client.properties();
        let name = properties.get("connection_name").cloned();
        let mut event = Event::new("connection.created")
            .with("node", self.node())
            .with_number("connected_at", client.connected_at.cast_signed())
            .with("client_properties", terms::entries(&properties))
            .with_number("channel_max", client.channel_max)
            .with_number("frame_max", client.frame_max)
            .with_number("timeout", client.heartbeat_s)
            .with("vhost", &*session.vhost.name)
            .with("user", &*session.user.name)
            .with("protocol", &*protocol(client));
        for absent in ["hash", "cipher", "key_exchange", "protocol"] {
            event = event.with(&format!("ssl_{absent}"), "");
        }
        event = event.with("auth_mechanism", &*client.mechanism);
        for absent in ["validity", "issuer", "subject"] {
            event = event.with(&format!("peer_cert_{absent}"), "");
        }
        event = event
            .with("ssl", false)
            .with("peer_host", &*address_term(client.peer.ip()))
            .with("host", &*address_term(client.server.ip()))
            .with_number("peer_port", client.peer.port())
            .with_number("port", client.server.port())
            .with("name", &*client.name())
            .with("pid", &*self.process(session.connection, 0))
            .with("type", "network");
        if let Some(name) = name {
            event = event.with("user_provided_name", name);
        }
        self.publish(&session.user.name, event);
    }

    /// A connection has ended.
    pub fn connection_closed(&self, session: &Session) {
        if let Some(client) = &session.client {
            self.emit("", || {
                Event::new("connection.closed")
                    .with("client_properties", terms::entries(&client.properties()))
                    .with("node", self.node())
                    .with("pid", &*self.process(session.connection, 0))
                    .with("name", &*client.name())
                    .by_nobody()
            });
        }
    }

    /// A channel is open.
    pub fn channel_created(&self, session: &Session, number: u16) {
        self.emit(&session.user.name, || {
            Event::new("channel.created")
                .with("vhost", &*session.vhost.name)
                .with("user", &*session.user.name)
                .with_number("number", number)
                .with("connection", &*self.process(session.connection, 0))
                .with("name", &*format!("{} ({number})", session.client_name()))
                .with("pid", &*self.process(session.connection, number))
        });
    }

    /// A channel has ended.
    pub fn channel_closed(&self, session: &Session, number: u16) {
        self.emit(&session.user.name, || {
            Event::new("channel.closed").with("pid", &*self.process(session.connection, number))
        });
    }

    /// A consumer is new.
    pub(crate) fn consumer_created(&self, session: &Session, queue: &Queue, of: &ConsumerInfo) {
        if is_for_replies(queue) {
            return;
        }
        self.emit(&session.user.name, || {
            Event::new("consumer.created")
                .with("arguments", terms::entries(&of.arguments))
                .with_number("prefetch_count", of.prefetch)
                .with("queue", &*queue.name)
                .with("vhost", &*queue.vhost)
                .with("channel", &*self.process(of.connection, of.channel))
                .with("ack_required", of.ack_required)
                .with("exclusive", of.exclusive)
                .with("consumer_tag", &*of.tag)
        });
    }

    /// A consumer has ended.
    pub(crate) fn consumer_deleted(&self, session: &Session, queue: &Queue, of: &ConsumerInfo) {
        if is_for_replies(queue) {
            return;
        }
        self.emit(&session.user.name, || {
            Event::new("consumer.deleted")
                .with("queue", &*queue.name)
                .with("vhost", &*queue.vhost)
                .with("channel", &*self.process(of.connection, of.channel))
                .with("consumer_tag", &*of.tag)
        });
    }

    /// An alarm has begun to ring, or has ended. `source`: `memory` or `disk`.
    pub fn alarm(&self, source: &str, ringing: bool) {
        let key = if ringing {
            "alarm.set"
        } else {
            "alarm.cleared"
        };
        self.emit("", || {
            Event::new(key)
                .with("node", self.node())
                .with("source", source)
                .by_nobody()
        });
    }
}

/// In RabbitMQ there is no queue behind direct reply-to.
fn is_for_replies(queue: &Queue) -> bool {
    queue.name.starts_with(REPLY_TO)
}

fn protocol(client: &ClientInfo) -> String {
    let [major, minor, revision] = client.protocol;
    format!("{{{major},{minor},{revision}}}")
}

fn of_login(event: Event, client: &ClientInfo, user: &str) -> Event {
    event
        .with("ssl", false)
        .with("auth_mechanism", &*client.mechanism)
        .with("protocol", &*protocol(client))
        .with_number("peer_port", client.peer.port())
        .with("peer_host", &*address_term(client.peer.ip()))
        .with("connection_name", &*client.name())
        .with("host", &*address_term(client.server.ip()))
        .with("name", user)
        .with("connection_type", "network")
        .by_nobody()
}
