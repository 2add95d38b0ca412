//! Options of listeners and sockets.

use std::time::Duration;

use super::super::option::{BuiltIn, ConfigOption, option, store, with_built_in};
use super::super::value;
use super::Section;

pub(super) const SECTION: Section = Section {
    title: "Network",
    introduction: "Every `listeners.tcp.NAME` is one listener; the names are yours. A bare port \
                   listens on all interfaces, IPv6 and IPv4.",
    options: OPTIONS,
};

const OPTIONS: &[ConfigOption] = &[
    with_built_in("listeners.tcp.$name", BuiltIn::Member("default", "5672"))
        .values("a port, or an IP address and a port like 127.0.0.1:5672 or ::1:5672")
        .meaning(
            "Where to accept AMQP connections. Port 0 lets the operating system choose. The first \
             listener in the file replaces the default one.",
        )
        .set(|draft, entry| draft.listeners.set(entry, value::listener(entry.value))),
    with_built_in("listeners.tcp", BuiltIn::Described("not set"))
        .values("none")
        .meaning("`none` turns all `listeners.tcp.NAME` off.")
        .set(|draft, entry| {
            store(
                &mut draft.listeners_off,
                (entry.value == "none").then_some(true),
            )
        }),
    option("tcp_listen_options.backlog", "128")
        .values("a number of connections from 1 to 65535")
        .meaning("Connections that may wait to be accepted.")
        .set(|draft, entry| {
            store(
                &mut draft.tcp_listen_options.backlog,
                value::whole(entry.value, 1..=65535),
            )
        }),
    option("tcp_listen_options.nodelay", "true")
        .values("true or false")
        .meaning("Send small segments at once (`TCP_NODELAY`).")
        .set(|draft, entry| {
            store(
                &mut draft.tcp_listen_options.nodelay,
                value::truth(entry.value),
            )
        }),
    option("handshake_timeout", "10000")
        .values("a number of milliseconds from 1, or infinity")
        .meaning("Time a client has to finish the AMQP handshake.")
        .set(|draft, entry| {
            let timeout = match entry.value {
                "infinity" => Some(None),
                number => value::whole(number, 1..=MOST_MILLISECONDS)
                    .map(|milliseconds| Some(Duration::from_millis(milliseconds))),
            };
            store(&mut draft.handshake_timeout, timeout)
        }),
];

/// About 49 days, which is as much as RabbitMQ's timers take.
const MOST_MILLISECONDS: u64 = u32::MAX as u64;
