//! Heartbeats: send when nothing else was sent, give up when nothing was received (0-9-1
//! section 4.2.7).
//!
//! A timer ticks at half the negotiated interval; between ticks only two flags are set, so a busy
//! connection never asks for the time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// Ticks without a byte received after which the peer counts as gone: two intervals.
const SILENT_TICKS: u32 = 4;

/// What a tick asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    /// Send a heartbeat.
    Send,
    /// Nothing was received for two intervals.
    PeerIsGone,
}

/// One connection's heartbeat.
pub(crate) struct Heartbeat {
    timer: Pin<Box<Sleep>>,
    half_interval: Duration,
    /// Something was sent since the last tick.
    pub sent: bool,
    /// Something was received since the last tick.
    pub received: bool,
    silent_ticks: u32,
}

impl Heartbeat {
    /// `None` for interval 0: no heartbeats.
    pub fn new(interval_s: u16) -> Option<Heartbeat> {
        let half_interval = Duration::from_secs(interval_s.into()) / 2;
        (interval_s > 0).then(|| Heartbeat {
            timer: Box::pin(tokio::time::sleep(half_interval)),
            half_interval,
            sent: false,
            received: false,
            silent_ticks: 0,
        })
    }

    /// Ready when something is due.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Beat> {
        while self.timer.as_mut().poll(cx).is_ready() {
            self.timer
                .as_mut()
                .reset(Instant::now() + self.half_interval);
            self.silent_ticks = if self.received {
                0
            } else {
                self.silent_ticks + 1
            };
            let sent = std::mem::take(&mut self.sent);
            self.received = false;
            if self.silent_ticks >= SILENT_TICKS {
                return Poll::Ready(Beat::PeerIsGone);
            }
            if !sent {
                return Poll::Ready(Beat::Send);
            }
        }
        Poll::Pending
    }
}
