//! HTTP/1.1 to one peer: connections that are kept, requests that end in time, answers sorted into the classes of failures.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, HeaderName,
    HeaderValue, RETRY_AFTER, USER_AGENT,
};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use parking_lot::Mutex;
use tokio::time::timeout;

mod answer;
mod connection;
#[cfg(test)]
mod tests;

use crate::address::PeerAddress;
use crate::message::{Failure, NodeId};

pub(crate) use answer::Answer;
use connection::{Connection, Lost};

/// Names the node behind a request or an answer.
const NODE: HeaderName = HeaderName::from_static("x-eureka-node");
/// Connections kept for later; no more are in use at once than the mesh asks for, which is two.
const IDLE_MAX: usize = 4;
/// A connection that lay idle during so many calls of [`Transport::sweep`] is closed.
const SWEEPS_MAX: u8 = 2;
/// Longer answers are unpacked and read by threads that may block: that takes milliseconds for each of its megabytes.
pub(crate) const HEAVY: usize = 1 << 20;
/// What is wrong with an answer is told in so many characters: the answer itself may be quoted in it.
const WHY: usize = 300;
/// Smaller bodies are not worth compressing.
const COMPRESSED_FROM: usize = 1024;

/// What all requests of this node have in common.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Who asks.
    pub(crate) node: NodeId,
    /// Own address, for `DiscoveryIdentity-Id`.
    pub(crate) address: Arc<str>,
    /// How long a connection may take.
    pub(crate) connect_within: Duration,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    pub(crate) method: Method,
    /// With the path of the peer's API before it, if it is of that.
    pub(crate) path: String,
    /// Empty for none, else JSON.
    pub(crate) body: Bytes,
    /// Whether the peer takes compressed bodies: ours do, Spring's server does not.
    pub(crate) compressed: bool,
    /// From the beginning to the last byte of the answer.
    pub(crate) within: Duration,
    /// Longest answer, unpacked.
    pub(crate) longest: usize,
    /// Over a new connection: who answers is who is behind the address now, also if that is a balancer's.
    pub(crate) anew: bool,
}

impl Asking {
    /// The failure of a request whose answer makes no sense.
    pub(crate) fn garbage(&self, why: impl fmt::Display, node: Option<NodeId>) -> Failed {
        Failed {
            failure: Failure::Unreachable,
            text: format!(
                "{} {}: {}",
                self.method,
                self.path,
                clipped(&why.to_string(), WHY)
            )
            .into(),
            retry_after: None,
            node,
        }
    }
}

/// A request that led to nothing.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) failure: Failure,
    /// What was seen; without secrets.
    pub(crate) text: Arc<str>,
    pub(crate) retry_after: Option<Duration>,
    /// Who answered, if somebody did.
    pub(crate) node: Option<NodeId>,
}

/// The way to one peer.
#[derive(Debug)]
pub(crate) struct Transport {
    address: PeerAddress,
    headers: HeaderMap,
    connect_within: Duration,
    idle: Mutex<Vec<Idle>>,
    counts: Counts,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    sweeps: u8,
}

/// What was counted since the start.
#[derive(Debug, Default)]
struct Counts {
    opened: AtomicU64,
    reused: AtomicU64,
    stale: AtomicU64,
}

/// Figures of the connections to a peer, or to all.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ConnectionCounts {
    /// Connections opened.
    pub opened: u64,
    /// Requests that went over a connection that was there already.
    pub reused: u64,
    /// Requests sent again at once, because the peer had closed the connection they went over.
    pub stale: u64,
}

/// How far a request has come, for saying what took too long.
enum Phase {
    Connecting,
    Waiting,
}

impl Transport {
    pub(crate) fn new(address: PeerAddress, identity: &Identity) -> Self {
        Self {
            headers: headers(&address, identity),
            address,
            connect_within: identity.connect_within,
            idle: Mutex::default(),
            counts: Counts::default(),
        }
    }

    pub(crate) fn address(&self) -> &PeerAddress {
        &self.address
    }

    /// Asks and gets an answer of whatever status, or none.
    ///
    /// A connection from earlier that turns out to have been closed by the peer says nothing about the peer: the request
    /// goes over a new one at once. All requests of this crate may be sent twice.
    pub(crate) async fn ask(&self, asking: &Asking) -> Result<Answer, Failed> {
        let mut phase = Phase::Connecting;
        let exchange = timeout(asking.within, self.exchange(asking, &mut phase)).await;
        let lost = match exchange {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(lost)) => lost,
            Err(_) => match phase {
                Phase::Connecting => Lost::NotConnected("no connection in time".into()),
                Phase::Waiting => Lost::TimedOut,
            },
        };
        Err(lost.into_failed(asking))
    }

    async fn exchange(&self, asking: &Asking, phase: &mut Phase) -> Result<Answer, Lost> {
        let (body, encoding) = packed(asking);
        let kept = if asking.anew { None } else { self.kept() };
        if let Some(mut connection) = kept {
            *phase = Phase::Waiting;
            match connection
                .exchange(self.request(asking, &body, encoding), asking.longest)
                .await
            {
                Err(Lost::BeforeAnswer(_)) => {
                    self.counts.stale.fetch_add(1, Ordering::Relaxed);
                    // The others are as old.
                    self.idle.lock().clear();
                }
                result => {
                    self.counts.reused.fetch_add(1, Ordering::Relaxed);
                    return self.keep(connection, result);
                }
            }
        }
        *phase = Phase::Connecting;
        let connecting = Connection::open(&self.address.host, self.address.port, self.connect_within);
        let mut connection = connecting.await?;
        self.counts.opened.fetch_add(1, Ordering::Relaxed);
        *phase = Phase::Waiting;
        let result = connection
            .exchange(self.request(asking, &body, encoding), asking.longest)
            .await;
        self.keep(connection, result)
    }

    /// The connection that was used last, so that those there are too many of grow old.
    fn kept(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        while let Some(Idle { connection, .. }) = idle.pop() {
            if connection.is_open() {
                return Some(connection);
            }
        }
        None
    }

    fn keep(&self, connection: Connection, result: Result<Answer, Lost>) -> Result<Answer, Lost> {
        if result.is_ok() && connection.is_open() {
            let mut idle = self.idle.lock();
            if idle.len() < IDLE_MAX {
                idle.push(Idle {
                    connection,
                    sweeps: 0,
                });
            }
        }
        result
    }

    /// Closes connections that were not used since the last call but one.
    pub(crate) fn sweep(&self) {
        self.idle.lock().retain_mut(|idle| {
            idle.sweeps += 1;
            idle.sweeps <= SWEEPS_MAX && idle.connection.is_open()
        });
    }

    pub(crate) fn counts(&self) -> ConnectionCounts {
        ConnectionCounts {
            opened: self.counts.opened.load(Ordering::Relaxed),
            reused: self.counts.reused.load(Ordering::Relaxed),
            stale: self.counts.stale.load(Ordering::Relaxed),
        }
    }

    fn request(&self, asking: &Asking, body: &Bytes, encoding: Option<&'static str>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body.clone()));
        *request.method_mut() = asking.method.clone();
        // A path is made of encoded names and of what `PeerAddress` was checked to hold.
        *request.uri_mut() = asking.path.parse().unwrap_or_default();
        *request.headers_mut() = self.headers.clone();
        if !body.is_empty() {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
        }
        if let Some(encoding) = encoding {
            let encoding = HeaderValue::from_static(encoding);
            request.headers_mut().insert(CONTENT_ENCODING, encoding);
        }
        request
    }
}

/// The headers of every request, those that Java's servers send among them.
fn headers(address: &PeerAddress, identity: &Identity) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(10);
    let text = |text: &str| HeaderValue::from_str(text).ok();
    let host = match address.port {
        80 => address.host.clone(),
        port => format!("{}:{port}", address.host),
    };
    let fields = [
        (HOST, text(&host)),
        (ACCEPT, text("application/json")),
        (ACCEPT_ENCODING, text("gzip")),
        (USER_AGENT, text(concat!("eureka/", env!("CARGO_PKG_VERSION")))),
        (
            HeaderName::from_static("discoveryidentity-name"),
            text("DefaultServer"),
        ),
        (HeaderName::from_static("discoveryidentity-version"), text("1.0")),
        (
            HeaderName::from_static("discoveryidentity-id"),
            text(&identity.address),
        ),
        (NODE, text(&identity.node.to_string())),
        (AUTHORIZATION, address.credentials.as_ref().and_then(basic)),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    headers
}

fn basic((user, password): &(String, String)) -> Option<HeaderValue> {
    let encoded = STANDARD.encode(format!("{user}:{password}"));
    let mut value = HeaderValue::from_str(&format!("Basic {encoded}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The body as it is sent, and how it is encoded.
fn packed(asking: &Asking) -> (Bytes, Option<&'static str>) {
    if !asking.compressed || asking.body.len() < COMPRESSED_FROM {
        return (asking.body.clone(), None);
    }
    (answer::gzip(&asking.body), Some("gzip"))
}

impl Answer {
    /// Who answered, as it says.
    pub(crate) fn node(&self) -> Option<NodeId> {
        NodeId::parse(self.headers.get(NODE)?.to_str().ok()?)
    }

    /// What went wrong, judged by who answered and by the status. `None`: nothing.
    pub(crate) fn failure(&self, own: NodeId) -> Option<Failure> {
        if self.node() == Some(own) {
            return Some(Failure::Own);
        }
        (!self.status.is_success()).then(|| class(self.status))
    }

    /// The failure of a request that was answered so.
    pub(crate) fn failed(&self, asking: &Asking, failure: Failure) -> Failed {
        Failed {
            failure,
            text: self.text(asking).into(),
            retry_after: self.retry_after(),
            node: self.node(),
        }
    }

    /// The body of an answer that is a success and JSON.
    pub(crate) fn into_success(self, asking: &Asking, own: NodeId) -> Result<Vec<u8>, Failed> {
        if let Some(failure) = self.failure(own) {
            return Err(self.failed(asking, failure));
        }
        match self.unusable() {
            None => Ok(self.body),
            Some(why) => Err(asking.garbage(why, self.node())),
        }
    }

    /// Why an answer that claims success cannot be one.
    fn unusable(&self) -> Option<&'static str> {
        if self.body.is_empty() {
            return Some("the answer is empty");
        }
        let content_type = self.headers.get(CONTENT_TYPE)?;
        let is_json = content_type.to_str().is_ok_and(|text| text.contains("json"));
        (!is_json).then_some("the answer is not JSON")
    }

    fn retry_after(&self) -> Option<Duration> {
        let seconds = self.headers.get(RETRY_AFTER)?.to_str().ok()?;
        Some(Duration::from_secs(u64::from(
            seconds.trim().parse::<u32>().ok()?,
        )))
    }

    /// What was asked, the status, and the beginning of a body that is text.
    fn text(&self, asking: &Asking) -> String {
        const QUOTED: usize = 120;
        let mut text = format!("{} {}: {}", asking.method, asking.path, self.status);
        let body = String::from_utf8_lossy(&self.body);
        let quoted = clipped(&body, QUOTED);
        if !quoted.is_empty() {
            text.push_str(": ");
            text.push_str(&quoted);
        }
        text
    }
}

/// The beginning of what a peer wrote, as it may be shown and logged.
pub(crate) fn clipped(text: &str, characters: usize) -> String {
    text.chars()
        .filter(|character| !character.is_control())
        .take(characters)
        .collect()
}

fn class(status: StatusCode) -> Failure {
    match status {
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => {
            Failure::Busy
        }
        StatusCode::BAD_REQUEST => Failure::Rejected,
        StatusCode::PAYLOAD_TOO_LARGE => Failure::TooLarge,
        StatusCode::MISDIRECTED_REQUEST => Failure::Own,
        status if status.is_server_error() || status.is_informational() => Failure::Unreachable,
        // Redirects among them: what they lead to is not the peer that was configured.
        _ => Failure::Misconfigured,
    }
}
