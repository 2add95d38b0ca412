//! Connection: start, tune, open and close the whole connection (0-9-1 section 1.4).

use crate::{ShortStr, Table};

class! {
    'a 10;

    /// `connection.start`
    Start<'a> = 10 "connection.start" {
        /// Argument `version-major`.
        version_major: u8;
        /// Argument `version-minor`.
        version_minor: u8;
        /// Argument `server-properties`.
        server_properties: Table<'a>;
        /// Argument `mechanisms`.
        mechanisms: &'a [u8];
        /// Argument `locales`.
        locales: &'a [u8];
    }
    /// `connection.start-ok`
    StartOk<'a> = 11 "connection.start-ok" {
        /// Argument `client-properties`.
        client_properties: Table<'a>;
        /// Argument `mechanism`.
        mechanism: ShortStr<'a>;
        /// Argument `response`.
        response: &'a [u8];
        /// Argument `locale`.
        locale: ShortStr<'a>;
    }
    /// `connection.secure`
    Secure<'a> = 20 "connection.secure" {
        /// Argument `challenge`.
        challenge: &'a [u8];
    }
    /// `connection.secure-ok`
    SecureOk<'a> = 21 "connection.secure-ok" {
        /// Argument `response`.
        response: &'a [u8];
    }
    /// `connection.tune`
    Tune = 30 "connection.tune" {
        /// Argument `channel-max`.
        channel_max: u16;
        /// Argument `frame-max`.
        frame_max: u32;
        /// Argument `heartbeat`.
        heartbeat: u16;
    }
    /// `connection.tune-ok`
    TuneOk = 31 "connection.tune-ok" {
        /// Argument `channel-max`.
        channel_max: u16;
        /// Argument `frame-max`.
        frame_max: u32;
        /// Argument `heartbeat`.
        heartbeat: u16;
    }
    /// `connection.open`
    Open<'a> = 40 "connection.open" {
        /// Argument `virtual-host`.
        virtual_host: ShortStr<'a>;
        /// Argument `capabilities`.
        capabilities: ShortStr<'a>;
        /// Argument `insist`.
        insist: bool;
    }
    /// `connection.open-ok`
    OpenOk<'a> = 41 "connection.open-ok" {
        /// Argument `known-hosts`.
        known_hosts: ShortStr<'a>;
    }
    /// `connection.close`
    Close<'a> = 50 or 60 on V0_8 "connection.close" {
        /// Argument `reply-code`.
        reply_code: u16;
        /// Argument `reply-text`.
        reply_text: ShortStr<'a>;
        /// Argument `class-id`.
        class_id: u16;
        /// Argument `method-id`.
        method_id: u16;
    }
    /// `connection.close-ok`
    CloseOk = 51 or 61 on V0_8 "connection.close-ok" {
    }
    /// `connection.blocked`
    Blocked<'a> = 60 since V0_9 "connection.blocked" {
        /// Argument `reason`.
        reason: ShortStr<'a>;
    }
    /// `connection.unblocked`
    Unblocked = 61 since V0_9 "connection.unblocked" {
    }
    /// `connection.update-secret`
    UpdateSecret<'a> = 70 since V0_9 "connection.update-secret" {
        /// Argument `new-secret`.
        new_secret: &'a [u8];
        /// Argument `reason`.
        reason: ShortStr<'a>;
    }
    /// `connection.update-secret-ok`
    UpdateSecretOk = 71 since V0_9 "connection.update-secret-ok" {
    }
}
