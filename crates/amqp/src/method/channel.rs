//! Channel: open, flow, close (0-9-1 section 1.5).

use crate::ShortStr;

class! {
    'a 20;

    /// `channel.open`
    Open<'a> = 10 "channel.open" {
        /// Argument `out-of-band`.
        out_of_band: ShortStr<'a>;
    }
    /// `channel.open-ok`
    OpenOk<'a> = 11 "channel.open-ok" {
        /// Argument `channel-id`.
        channel_id: &'a [u8], since V0_9;
    }
    /// `channel.flow`
    Flow = 20 "channel.flow" {
        /// Argument `active`.
        active: bool;
    }
    /// `channel.flow-ok`
    FlowOk = 21 "channel.flow-ok" {
        /// Argument `active`.
        active: bool;
    }
    /// `channel.close`
    Close<'a> = 40 "channel.close" {
        /// Argument `reply-code`.
        reply_code: u16;
        /// Argument `reply-text`.
        reply_text: ShortStr<'a>;
        /// Argument `class-id`.
        class_id: u16;
        /// Argument `method-id`.
        method_id: u16;
    }
    /// `channel.close-ok`
    CloseOk = 41 "channel.close-ok" {
    }
}
