//! The server in the test's own process, for what no client can ask for.

use std::sync::Arc;

use amqp_server::Listener;
use broker::{Broker, Settings};
use client::Options;
use store::{Budget, RealDisk, Store};

use super::folder::Folder;

/// A server on a port of its own. It ends with the test's runtime.
pub struct InProcess {
    pub broker: Arc<Broker>,
    pub options: Options,
    folder: Folder,
}

impl InProcess {
    pub fn start(name: &str) -> InProcess {
        InProcess::with_data(Folder::new(name))
    }

    fn with_data(folder: Folder) -> InProcess {
        let disk = Arc::new(RealDisk);
        let opened = Store::open(disk, folder.path(), Budget::default(), true);
        let (store, recovered) = opened.expect("a store");
        let settings = Settings {
            node_name: "leveret@test".into(),
            ..Settings::default()
        };
        let broker = Broker::new(settings, store, recovered).expect("a broker");
        let address = "127.0.0.1:0".parse().expect("an address");
        let listener = Listener::bind(address, broker.clone(), Arc::default());
        let listener = listener.expect("a listener");
        let uri = format!("amqp://guest:guest@{}", listener.address());
        tokio::spawn(listener.run());
        let options: Options = uri.parse().expect("a URI");
        InProcess {
            broker,
            options: Options {
                heartbeat: 0,
                ..options
            },
            folder,
        }
    }

    /// Stops and starts again with the same data. Clients must have gone before.
    pub fn restart(self) -> InProcess {
        self.broker.store.close();
        InProcess::with_data(self.folder)
    }
}
