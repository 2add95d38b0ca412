//! How the main thread and the connections' tasks tell each other where they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, watch};

use crate::Error;

/// Where a load is. Tasks follow; none goes ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Consumers connect and declare their queues.
    ConnectConsumers,
    /// Producers connect.
    ConnectProducers,
    /// Messages flow.
    Run,
    /// Producers stop, and wait for what is under way.
    StopProducers,
    /// Consumers stop. Everybody closes.
    StopConsumers,
}

/// Which side a task is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Producer,
    Consumer,
}

/// What a task reports.
#[derive(Debug)]
pub enum Report {
    /// A connection is open and ready to start.
    Ready(Side),
    /// A channel has started.
    Started,
    /// A channel has reached its limit.
    Done(Side, &'static str),
    /// A producer connection will publish no more, and has left what it has.
    Settled,
    /// Something that people should know, once.
    Note(String),
    /// A connection has failed.
    Failed(Error),
    /// A connection's task has ended.
    Ended(Side),
}

/// The tasks' end.
#[derive(Clone)]
pub struct Control {
    stage: watch::Receiver<Stage>,
    stopping: Arc<AtomicBool>,
    reports: mpsc::UnboundedSender<Report>,
}

/// The main thread's end.
pub struct Steering {
    stage: watch::Sender<Stage>,
    stopping: Arc<AtomicBool>,
    /// What the tasks report.
    pub reports: mpsc::UnboundedReceiver<Report>,
}

/// Both ends.
pub fn pair() -> (Steering, Control) {
    let (stage_sender, stage) = watch::channel(Stage::ConnectConsumers);
    let (report_sender, reports) = mpsc::unbounded_channel();
    let stopping = Arc::new(AtomicBool::new(false));
    let steering = Steering {
        stage: stage_sender,
        stopping: stopping.clone(),
        reports,
    };
    let control = Control {
        stage,
        stopping,
        reports: report_sender,
    };
    (steering, control)
}

impl Steering {
    /// Goes on to a stage.
    pub fn turn_to(&self, stage: Stage) {
        if stage >= Stage::StopProducers {
            self.stopping.store(true, Ordering::Relaxed);
        }
        self.stage.send_if_modified(|current| {
            let later = stage > *current;
            *current = stage.max(*current);
            later
        });
    }
}

impl Control {
    /// True once producers are to stop: for loops that never wait.
    #[inline]
    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// True once that stage has come.
    pub fn reached(&self, stage: Stage) -> bool {
        *self.stage.borrow() >= stage
    }

    /// Waits for a stage, or a later one. Cancel safe.
    pub async fn wait_for(&mut self, stage: Stage) {
        // An error means that the main thread is gone, and this one is about to be.
        let _ = self.stage.wait_for(|current| *current >= stage).await;
    }

    /// Reports.
    pub fn report(&self, report: Report) {
        // Nobody listens any more once the load has ended.
        let _ = self.reports.send(report);
    }
}
