//! A server of ours inside the test: a registry and the REST API on a port, to be stopped and started again.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use eureka_client::Server;
use eureka_http_api::{Api, ApiService, Config as ApiConfig};
use eureka_registry_core::{
    Clock, Config, Event, InstanceKey, LeaseView, Mono, Now, RegistryHandle, Status, Wall,
};
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tower::Service as _;

/// Whatever a test waits for is there long before this.
const LONGEST: Duration = Duration::from_secs(30);
/// The time of day when a node starts.
const MORNING: u64 = 1_700_000_000_000;

/// A node; dropping it stops it.
pub(crate) struct Node {
    pub(crate) registry: RegistryHandle,
    address: SocketAddr,
    seen: Arc<Seen>,
    /// Accepts connections, and has a task for each.
    serving: JoinSet<()>,
}

/// Requests that arrived, as `METHOD /path`.
#[derive(Default)]
struct Seen {
    lines: Mutex<Vec<String>>,
    connections: AtomicUsize,
    more: Notify,
}

struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Now {
        let since_start = u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX);
        Now {
            mono: Mono(since_start),
            wall: Wall(MORNING + since_start),
        }
    }
}

impl Node {
    /// An empty one on a port of its own.
    pub(crate) async fn start() -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    /// An empty one on this port.
    async fn start_at(address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_reuseaddr(true).expect("an option every socket has");
        socket.bind(address).expect("the port is free");
        let listener = socket.listen(64).expect("it is bound");
        let address = listener.local_addr().expect("it is bound");

        let config = Config {
            // Each start is another boot, whose cursors are not those of the one before.
            seed: [0, 1].map(|half| RandomState::new().hash_one(half)),
            ..Config::default()
        };
        let registry = RegistryHandle::new(
            config,
            Arc::new(TestClock(Instant::now())),
            Arc::new(|_: &Event| {}),
        );
        registry.open(0, None);
        let boot = format!("{:x}", registry.boot());
        let service = ApiService::new(Api::new(registry.clone(), ApiConfig::new(&boot)));
        let seen = Arc::new(Seen::default());
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, service, Arc::clone(&seen)));
        Self {
            registry,
            address,
            seen,
            serving,
        }
    }

    /// Refuses connections from now on, and cuts those there are.
    pub(crate) async fn stop(&mut self) {
        self.serving.shutdown().await;
    }

    /// The same address, and nothing known: stopped if it was not, and started again.
    pub(crate) async fn restart(&mut self) {
        self.stop().await;
        *self = Self::start_at(self.address).await;
    }

    #[cfg(feature = "dns")]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/eureka/", self.address)
    }

    pub(crate) fn server(&self) -> Arc<Server> {
        Arc::new(Server::parse(&self.url()).expect("a URL"))
    }

    /// What is registered, by key.
    pub(crate) fn lease(&self, key: &InstanceKey) -> Option<LeaseView> {
        self.registry.lease(key)
    }

    /// Waits until an instance has this status; `None` is gone.
    pub(crate) async fn until_status(&self, key: &InstanceKey, status: Option<Status>) {
        let status_now = || self.lease(key).map(|view| view.instance.status);
        let mut changes = self.registry.subscribe();
        let reached = async {
            while status_now() != status {
                changes.changed().await;
            }
        };
        let waited = timeout(LONGEST, reached).await;
        assert!(waited.is_ok(), "{key:?} is {:?} and not {status:?}", status_now());
    }

    /// How many requests began like this.
    pub(crate) fn count(&self, beginning: &str) -> usize {
        let lines = self.seen.lines.lock();
        lines.iter().filter(|line| line.starts_with(beginning)).count()
    }

    /// How many connections were opened.
    pub(crate) fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// Waits until so many requests began like this.
    pub(crate) async fn until_count(&self, beginning: &str, count: usize) {
        let reached = async {
            loop {
                let more = self.seen.more.notified();
                if self.count(beginning) >= count {
                    return;
                }
                more.await;
            }
        };
        let waited = timeout(LONGEST, reached).await;
        assert!(waited.is_ok(), "{beginning} came {} times", self.count(beginning));
    }
}

/// Waits for something that comes, with the bound of all tests.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waited = timeout(LONGEST, future).await;
    waited.unwrap_or_else(|_| panic!("{what} did not come"))
}

/// Waits, with a bound, for what a client counts or logs. Nobody is told of that, so it is looked at again and again: the
/// pause between two looks keeps the processor free and decides nothing.
pub(crate) async fn until(what: &str, reached: impl Fn() -> bool) {
    let reached = async {
        while !reached() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    within(what, reached).await;
}

async fn serve(listener: TcpListener, service: ApiService, seen: Arc<Seen>) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        seen.connections.fetch_add(1, Ordering::Relaxed);
        let (service, seen) = (service.clone(), Arc::clone(&seen));
        connections.spawn(async move {
            let service = service_fn(move |request: Request<Incoming>| {
                let line = format!("{} {}", request.method(), request.uri().path());
                seen.lines.lock().push(line);
                seen.more.notify_waiters();
                service.clone().call(request)
            });
            let mut http = http1::Builder::new();
            // It ends when the client goes away, or with the node.
            let _ = http
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
