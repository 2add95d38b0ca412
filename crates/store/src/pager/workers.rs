//! The store's threads: one writes segments and manifests, one reads segments.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;

use parking_lot::Mutex;
use wal::AlignedBuffer;

use super::{INTERVAL, Pager};
use crate::load::Load;
use crate::resident::Request;
use crate::shared::Shared;

/// Who does the work.
#[derive(Debug)]
pub(crate) enum Workers {
    Running(Mutex<Vec<JoinHandle<()>>>),
    /// The caller, whenever it likes.
    None(Box<Mutex<ByHand>>),
}

#[derive(Debug)]
pub(crate) struct ByHand {
    pager: Pager,
    requests: Receiver<Request>,
    loads: Receiver<Option<Load>>,
}

impl Workers {
    pub fn start(
        shared: &Arc<Shared>,
        pager: Pager,
        requests: Receiver<Request>,
        loads: Receiver<Option<Load>>,
        threads: bool,
    ) -> Workers {
        if !threads {
            return Workers::None(Box::new(Mutex::new(ByHand {
                pager,
                requests,
                loads,
            })));
        }
        let writing = spawn("leveret-pager", move || {
            page_until_stopped(pager, &requests)
        });
        let reading = {
            let shared = shared.clone();
            spawn("leveret-reader", move || {
                let mut buffer = AlignedBuffer::default();
                while let Ok(Some(load)) = loads.recv() {
                    read(&shared, load, &mut buffer);
                }
            })
        };
        Workers::Running(Mutex::new(vec![writing, reading]))
    }

    pub fn run_once(&self, shared: &Shared) {
        let Workers::None(work) = self else { return };
        let _ = shared.wal.run_once();
        let ByHand {
            pager,
            requests,
            loads,
        } = &mut *work.lock();
        while let Ok(request) = requests.try_recv() {
            pager.handle(request);
        }
        pager.look();
        let mut buffer = AlignedBuffer::default();
        while let Ok(Some(load)) = loads.try_recv() {
            read(shared, load, &mut buffer);
        }
    }

    pub fn stop(&self, shared: &Shared) {
        let Workers::Running(threads) = self else {
            return;
        };
        shared.request(Request::Stop);
        let _ = shared.loads.send(None);
        for thread in std::mem::take(&mut *threads.lock()) {
            // The last reference to the store may be dropped by one of them.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .expect("the system has room for a thread")
}

fn page_until_stopped(mut pager: Pager, requests: &Receiver<Request>) {
    loop {
        match requests.recv_timeout(INTERVAL) {
            Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            Ok(request) => pager.handle(request),
            Err(RecvTimeoutError::Timeout) => {}
        }
        pager.look();
    }
}

fn read(shared: &Shared, load: Load, buffer: &mut AlignedBuffer) {
    let stream = load.stream;
    let Some(queue) = shared.resident(stream) else {
        return;
    };
    match shared.read(&load, buffer) {
        Ok(loaded) => queue.complete_load(loaded),
        Err(error) => shared.fail(error),
    }
}
