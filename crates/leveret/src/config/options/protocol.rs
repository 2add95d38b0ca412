//! Options of the AMQP protocol: what is proposed to clients and what is refused.

use super::super::option::{ConfigOption, option, store};
use super::super::value;
use super::Section;

pub(super) const SECTION: Section = Section {
    title: "Protocol limits",
    introduction: "Frame sizes may carry the units KB, MB and GB, here powers of 1024. A client \
                   may ask for less than the server proposes, not for more.",
    options: OPTIONS,
};

const OPTIONS: &[ConfigOption] = &[
    option("heartbeat", "60")
        .values("a number of seconds from 0 to 65535")
        .meaning("Heartbeat interval proposed to clients; 0 turns heartbeats off.")
        .set(|draft, entry| store(&mut draft.heartbeat, value::whole(entry.value, 0..=65535))),
    option("frame_max", "131072")
        .values("0, or a size in bytes from 4096 to 4294967295 like 131072 or 128KB")
        .meaning("Largest frame proposed to clients; 0 is no limit.")
        .set(|draft, entry| {
            let size = value::byte_size(entry.value).filter(|size| *size == 0 || *size >= 4096);
            store(
                &mut draft.frame_max,
                size.and_then(|size| size.try_into().ok()),
            )
        }),
    option("initial_frame_max", "4096")
        .values("a size in bytes from 4096 to 4294967295 like 8192 or 8KB")
        .meaning("Largest frame before the limit is agreed; raise it for very long access tokens.")
        .set(|draft, entry| {
            let size = value::byte_size(entry.value).filter(|size| *size >= 4096);
            store(
                &mut draft.initial_frame_max,
                size.and_then(|size| size.try_into().ok()),
            )
        }),
    option("channel_max", "2047")
        .values("a number of channels from 0 to 65535")
        .meaning("Most channels in one connection; 0 is no limit.")
        .set(|draft, entry| store(&mut draft.channel_max, value::whole(entry.value, 0..=65535))),
    option("consumer_timeout", "1800000")
        .values("milliseconds from 0 to 315360000000")
        .meaning(
            "How long a consumer of a quorum queue may keep a message before its channel is closed, \
             where neither the queue nor the consumer says otherwise; 0 is no limit. Classic queues \
             have no limit unless they are given one (`x-consumer-timeout`).",
        )
        .set(|draft, entry| {
            let timeout = value::whole(entry.value, 0..=315_360_000_000);
            store(&mut draft.consumer_timeout, timeout)
        }),
    option("max_message_size", "134217728")
        .values("a size in bytes from 1 to 536870912")
        .meaning("Largest message body.")
        .set(|draft, entry| {
            let size = value::information_unit(entry.value);
            store(
                &mut draft.max_message_size,
                size.filter(|size| (1..=512 << 20).contains(size)),
            )
        }),
];
