//! An HTTP service on a thread of its own, for the tests of the SQS client: it answers each call as
//! the test says.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A call as it arrived.
pub struct Call {
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
}

impl Call {
    /// The action and what it is about, whichever protocol it came in.
    pub fn parameters(&self) -> BTreeMap<String, String> {
        let Some(target) = self.headers.get("x-amz-target") else {
            let pairs = self.body.split('&').filter_map(|pair| pair.split_once('='));
            return pairs
                .map(|(name, value)| (name.into(), value.into()))
                .collect();
        };
        let object: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(&self.body).expect("a JSON object");
        let text = |value: serde_json::Value| value.as_str().map(str::to_owned);
        let members = object.into_iter();
        let members = members.filter_map(|(name, value)| Some((name, text(value)?)));
        let action = target.to_str().expect("text").replace("AmazonSQS.", "");
        members.chain([("Action".to_owned(), action)]).collect()
    }
}

/// What to answer.
pub enum Reply {
    /// This status and body.
    With(u16, String),
    /// Nothing, ever.
    Silence,
}

type Answer = dyn Fn(&Call) -> Reply + Send + Sync;

/// The service; it ends when it is dropped.
pub struct Service {
    port: u16,
    connections: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
    stop: Option<oneshot::Sender<()>>,
}

impl Service {
    /// Starts one that keeps connections open, or ends each after one call.
    pub fn start(
        keep_alive: bool,
        answer: impl Fn(&Call) -> Reply + Send + Sync + 'static,
    ) -> Service {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("not blocking");
        let port = listener.local_addr().expect("an address").port();
        let connections = Arc::new(AtomicUsize::new(0));
        let (stop, stopped) = oneshot::channel();
        let (count, answer) = (Arc::clone(&connections), Arc::new(answer) as Arc<Answer>);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(async {
                tokio::select! {
                    () = accept(listener, keep_alive, &count, answer) => {}
                    _ = stopped => {}
                }
            });
        });
        Service {
            port,
            connections,
            thread: Some(thread),
            stop: Some(stop),
        }
    }

    /// Its address.
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// How many connections it has accepted.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn accept(
    listener: std::net::TcpListener,
    keep_alive: bool,
    count: &AtomicUsize,
    answer: Arc<Answer>,
) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        count.fetch_add(1, Ordering::Relaxed);
        let answer = Arc::clone(&answer);
        let service = service_fn(move |request| serve(request, Arc::clone(&answer)));
        let connection = http1::Builder::new()
            .keep_alive(keep_alive)
            .serve_connection(TokioIo::new(stream), service);
        tokio::spawn(async move { drop(connection.await) });
    }
}

async fn serve(
    request: Request<Incoming>,
    answer: Arc<Answer>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    let call = Call {
        path: head.uri.path().to_owned(),
        headers: head.headers,
        body: String::from_utf8(body.into()).expect("text"),
    };
    match answer(&call) {
        Reply::With(status, body) => Ok(Response::builder()
            .status(status)
            .body(Full::new(body.into()))
            .expect("a response")),
        Reply::Silence => std::future::pending().await,
    }
}
