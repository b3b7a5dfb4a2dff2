//! The change feed over gRPC: one stream, from which questions of the agent are answered.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};
use tonic::Streaming;
use tonic::body::Body;

use super::http::Pool;
use crate::call::{Answer, Call, Change, Request};
use crate::server::Server;
use proto::registry_client::RegistryClient;
use proto::watch_response::Event;
use proto::{WatchRequest, WatchResponse};

mod convert;
mod proto;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(2);
/// How long a server may take to begin a stream.
const BEGIN: Duration = Duration::from_secs(5);
/// A server says something every 15 seconds; one that did not for so long is not there.
const SILENCE: Duration = Duration::from_secs(20);
/// After a failure REST is used for so long.
const REST: Duration = Duration::from_secs(60);
/// Changes in one answer.
const CHANGES: usize = 1_000;

/// Answers an agent's questions for changes from `eureka.v1.Registry/Watch`, for servers whose gRPC address is known.
///
/// A stream is opened behind the cursor that REST gave, and stays open from question to question: a change is there when it
/// happens, and not when it is asked for. Whatever else there is to ask, and whatever goes wrong, is REST's: a cursor that
/// is too old, a server that was started again, a stream that breaks or falls silent. After a failure REST answers for a
/// minute.
///
/// Without TLS.
pub struct GrpcFeed {
    client: Client<HttpConnector, Body>,
    addresses: Vec<(Server, Uri)>,
    state: Mutex<State>,
    streams: AtomicU64,
    failures: AtomicU64,
}

/// What a [`GrpcFeed`] counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct GrpcFeedStats {
    /// Streams that were begun.
    pub streams: u64,
    /// Streams that broke, fell silent, did not begin, or told of a snapshot.
    pub failures: u64,
}

/// Why text is no gRPC address: it must be `http://host:port`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GrpcAddressError;

#[derive(Default)]
struct State {
    reading: Option<Reading>,
    rest_until: Option<Instant>,
}

/// A stream, and how far it was read.
struct Reading {
    server: Arc<Server>,
    filter: Option<Arc<str>>,
    cursor: Arc<str>,
    stream: Streaming<WatchResponse>,
    heard: Instant,
}

/// What came of asking over gRPC.
enum Asked {
    Answered(Answer),
    /// It is nothing for gRPC, or not now.
    Other,
    /// It went wrong, and time has passed.
    Failed,
}

impl GrpcFeed {
    /// For no server yet.
    pub fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT));
        connector.set_nodelay(true);
        Self {
            client: Client::builder(TokioExecutor::new())
                .http2_only(true)
                .build(connector),
            addresses: Vec::new(),
            state: Mutex::default(),
            streams: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// Also for this server, whose gRPC is at `address`: `http://host:9761`.
    pub fn with(mut self, server: Server, address: &str) -> Result<Self, GrpcAddressError> {
        let uri: Uri = address.parse().map_err(|_| GrpcAddressError)?;
        if uri.scheme_str() != Some("http") || uri.authority().is_none() {
            return Err(GrpcAddressError);
        }
        self.addresses.push((server, uri));
        Ok(self)
    }

    /// Sends a request: over gRPC if it can be, else over `pool`. What comes of it is there within [`Request::within`].
    pub async fn send(&self, pool: &Pool, request: &Request) -> Answer {
        let begun = Instant::now();
        match self.ask(request).await {
            Asked::Answered(answer) => answer,
            Asked::Other => pool.send(request).await,
            Asked::Failed => pool.send(&at_once(request, begun.elapsed())).await,
        }
    }

    async fn ask(&self, request: &Request) -> Asked {
        let Call::Changes {
            since: Some(since),
            filter,
            wait,
        } = &request.call
        else {
            return Asked::Other;
        };
        let Some(address) = self.address(&request.server) else {
            return Asked::Other;
        };
        // Held while it waits for changes. Whoever else asks, an agent that shares this, must not wait for that.
        let Ok(mut state) = self.state.try_lock() else {
            return Asked::Other;
        };
        if state.rest_until.is_some_and(|until| Instant::now() < until) {
            return Asked::Other;
        }
        let until = Instant::now() + (*wait).min(request.within);
        // Taken out, so that a question that is given up leaves no stream of which nobody knows how far it was read.
        let kept = state.reading.take();
        let kept = kept.filter(|reading| reading.continues(&request.server, filter.as_ref(), since));
        let reading = match kept {
            Some(reading) => Some(reading),
            None => {
                self.begin(address, request, filter.clone(), Arc::clone(since))
                    .await
            }
        };
        if let Some(mut reading) = reading {
            let (usable, changes) = reading.read(until).await;
            let cursor = Arc::clone(&reading.cursor);
            if usable {
                state.reading = Some(reading);
            } else {
                self.failed(&mut state);
            }
            if usable || !changes.is_empty() {
                return Asked::Answered(answer(cursor, changes));
            }
        } else {
            self.failed(&mut state);
        }
        Asked::Failed
    }

    fn failed(&self, state: &mut State) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        state.rest_until = Some(Instant::now() + REST);
    }

    /// What was counted.
    pub fn stats(&self) -> GrpcFeedStats {
        GrpcFeedStats {
            streams: self.streams.load(Ordering::Relaxed),
            failures: self.failures.load(Ordering::Relaxed),
        }
    }

    /// Zone and credentials make no other server.
    fn address(&self, server: &Server) -> Option<&Uri> {
        let same = |known: &Server| known.to_string() == server.to_string();
        self.addresses
            .iter()
            .find(|(known, _)| same(known))
            .map(|(_, uri)| uri)
    }

    async fn begin(
        &self,
        address: &Uri,
        request: &Request,
        filter: Option<Arc<str>>,
        cursor: Arc<str>,
    ) -> Option<Reading> {
        let mut client = RegistryClient::with_origin(self.client.clone(), address.clone());
        let asked = WatchRequest {
            cursor: cursor.to_string(),
            filter: filter.as_deref().unwrap_or_default().to_owned(),
        };
        let begun = timeout(BEGIN.min(request.within), client.watch(asked)).await;
        match begun {
            Ok(Ok(response)) => {
                self.streams.fetch_add(1, Ordering::Relaxed);
                Some(Reading {
                    server: Arc::clone(&request.server),
                    filter,
                    cursor,
                    stream: response.into_inner(),
                    heard: Instant::now(),
                })
            }
            Ok(Err(status)) => {
                tracing::warn!(%address, code = ?status.code(), why = status.message(), "no changes over gRPC: REST is used");
                None
            }
            Err(_) => {
                tracing::warn!(%address, "no answer over gRPC in time: REST is used");
                None
            }
        }
    }
}

impl Reading {
    fn continues(&self, server: &Server, filter: Option<&Arc<str>>, since: &str) -> bool {
        *self.server == *server && self.filter.as_ref() == filter && *self.cursor == *since
    }

    /// Waits for the first change, and takes what has come with it; false if the stream is of no use any more, and what was
    /// read before that counts.
    async fn read(&mut self, until: Instant) -> (bool, Vec<Change>) {
        let mut until = until;
        let mut changes = Vec::new();
        while changes.len() < CHANGES {
            let message = match timeout_at(until, self.stream.message()).await {
                Err(_) => return (!changes.is_empty() || self.heard.elapsed() <= SILENCE, changes),
                Ok(Ok(Some(message))) => message,
                Ok(Ok(None) | Err(_)) => return (false, changes),
            };
            self.heard = Instant::now();
            match message.event {
                Some(Event::SnapshotBegin(_) | Event::SnapshotPage(_) | Event::SnapshotEnd(_)) => {
                    return (false, changes);
                }
                Some(Event::Change(change)) => match convert::change(change) {
                    Some(change) => changes.push(change),
                    None => return (false, changes),
                },
                Some(Event::Heartbeat(_)) | None => {}
            }
            if !changes.is_empty() {
                until = self.heard;
            }
            self.cursor = message.cursor.into();
        }
        (true, changes)
    }
}

/// The same question for whoever has used up some of its time: not to wait for changes, but to say whether there are any.
fn at_once(request: &Request, passed: Duration) -> Request {
    let mut request = request.clone();
    request.within = request.within.saturating_sub(passed);
    if let Call::Changes { wait, .. } = &mut request.call {
        *wait = Duration::ZERO;
    }
    request
}

/// Whether the server's lists have instances of other regions is for REST to say, which was asked for the first cursor.
fn answer(cursor: Arc<str>, changes: Vec<Change>) -> Answer {
    Answer::Changes {
        cursor,
        changes,
        remote: false,
    }
}

impl Default for GrpcFeed {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for GrpcFeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcFeed")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for GrpcAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a gRPC address is http://host:port")
    }
}

impl std::error::Error for GrpcAddressError {}
