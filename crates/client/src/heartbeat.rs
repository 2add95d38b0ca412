//! Heartbeats (0-9-1 section 4.2.7): send a sign of life when nothing else was sent for half an
//! interval; give the peer up after two intervals of silence.
//!
//! One timer per connection, reset only when it has fired. Traffic sets two flags and reads no clock.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use crate::Error;
use crate::output::Output;
use crate::transport::Transport;

/// Ticks of half an interval without anything received until the peer is given up.
const SILENT_TICKS: u32 = 4;

pub(crate) struct Heartbeat {
    tick: Duration,
    timer: Pin<Box<Sleep>>,
    silent: u32,
}

impl Heartbeat {
    /// `None` for an interval of 0: no heartbeats.
    pub(crate) fn new(seconds: u16) -> Option<Self> {
        let tick = Duration::from_secs(seconds.into()) / 2;
        (seconds > 0).then(|| Heartbeat {
            tick,
            timer: Box::pin(sleep(tick)),
            silent: 0,
        })
    }

    /// Does what is due, and has the task woken for what comes next.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        transport: &mut Transport,
        output: &mut Output,
    ) -> Result<(), Error> {
        while self.timer.as_mut().poll(cx).is_ready() {
            self.timer.as_mut().reset(Instant::now() + self.tick);
            if !std::mem::take(&mut transport.sent) && output.pending() == 0 {
                output.heartbeat();
            }
            self.silent = match std::mem::take(&mut transport.received) {
                true => 0,
                false => self.silent + 1,
            };
            if self.silent >= SILENT_TICKS {
                let address = transport.address().to_owned();
                return Err(Error::HeartbeatMissed {
                    address,
                    silence: self.tick * self.silent,
                });
            }
        }
        Ok(())
    }
}
