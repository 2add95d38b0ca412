//! What a broker prints: read by two threads until it closes its streams, kept for whoever asks why
//! a test failed.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Shared with the reading threads; the mutex guards both parts.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    text: String,
    /// The first word that begins with `amqp://`.
    uri: Option<String>,
    /// Streams that are still being read.
    open: usize,
}

impl Log {
    /// Collects a stream from now on.
    pub(crate) fn collect(&self, stream: impl Read + Send + 'static) {
        self.state().open += 1;
        let log = self.clone();
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                log.push(&String::from_utf8_lossy(&line));
            }
            log.state().open -= 1;
            log.0.1.notify_all();
        });
    }

    fn push(&self, line: &str) {
        let mut state = self.state();
        if state.uri.is_none()
            && let Some(word) = line
                .split_whitespace()
                .find(|word| word.starts_with("amqp://"))
        {
            state.uri = Some(word.trim_end_matches(['/', ',', '.']).to_owned());
            self.0.1.notify_all();
        }
        state.text.push_str(line);
        state.text.push('\n');
    }

    /// The broker's address, once printed; `None` after `limit`.
    pub(crate) fn wait_for_uri(&self, limit: Duration) -> Option<String> {
        let waiting = self
            .0
            .1
            .wait_timeout_while(self.state(), limit, |state| state.uri.is_none());
        let (state, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        state.uri.clone()
    }

    /// Waits until all streams have ended, or for `limit`.
    pub(crate) fn wait_for_end(&self, limit: Duration) {
        let waiting = self
            .0
            .1
            .wait_timeout_while(self.state(), limit, |state| state.open > 0);
        drop(waiting);
    }

    /// Everything so far.
    pub(crate) fn text(&self) -> String {
        self.state().text.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_found_among_other_words() {
        let log = Log::default();
        log.collect(&b"starting\nlistening on amqp://127.0.0.1:45123 (amqp)\n"[..]);
        let uri = log.wait_for_uri(Duration::from_secs(10));
        assert_eq!(uri.as_deref(), Some("amqp://127.0.0.1:45123"));
    }

    #[test]
    fn waiting_for_an_address_ends() {
        assert_eq!(Log::default().wait_for_uri(Duration::from_millis(1)), None);
    }
}
