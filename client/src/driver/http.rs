//! Requests of agents as HTTP/1.1, over connections that any number of agents share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Extensions, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

mod answer;
mod connector;
mod feed;
mod message;
mod turns;

#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::call::{Answer, Call, Request};
use crate::server::Server;
use connector::{Answered, Connector};
use turns::Turns;

/// Characters of a reason at most.
const WHY: usize = 300;
/// Headers of an answer at most.
const HEADERS_MAX: usize = 100;

/// How a [`Pool`] connects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolConfig {
    /// Requests under way at once to each server; more wait for their turn, so that a server that hangs takes no turn of
    /// another one. Questions to a change feed, which wait for what happens, do not count.
    pub connections: usize,
    /// How long a connection may take: name, TCP, TLS.
    pub connect_timeout: Duration,
    /// A connection that was idle for so long is closed.
    pub idle_timeout: Duration,
    /// Bytes of the longest answer, unpacked.
    pub max_body: usize,
    /// What the client calls itself: `DiscoveryIdentity-Name`.
    pub identity: Arc<str>,
    /// Whom to trust, and what to show.
    #[cfg(feature = "tls")]
    pub tls: Tls,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            connections: 64,
            connect_timeout: Duration::from_secs(2),
            idle_timeout: Duration::from_secs(45),
            max_body: 256 << 20,
            identity: "DefaultClient".into(),
            #[cfg(feature = "tls")]
            tls: Tls::system(),
        }
    }
}

/// Connections to servers. Cheap to clone; all clones share them.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    client: Client<Connector, Full<Bytes>>,
    /// Keeps no connection.
    fresh: Client<Connector, Full<Bytes>>,
    config: PoolConfig,
    turns: Turns,
    sent: AtomicU64,
    waited: AtomicU64,
    timed_out: AtomicU64,
    sent_again: AtomicU64,
}

/// What a [`Pool`] counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Requests.
    pub sent: u64,
    /// Requests that had to wait because as many were under way as there may be.
    pub waited: u64,
    /// Requests that were not answered in time, or had no turn in time.
    pub timed_out: u64,
    /// Requests sent again at once over a new connection, because the server had closed the one they went over.
    pub sent_again: u64,
}

impl Pool {
    /// No connection yet; they come as they are needed.
    pub fn new(config: PoolConfig) -> Self {
        let connector = Connector::new(&config);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(config.idle_timeout)
            .pool_max_idle_per_host(config.connections)
            .http1_max_headers(HEADERS_MAX)
            .build(connector.clone());
        let fresh = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .http1_max_headers(HEADERS_MAX)
            .build(connector);
        Self(Arc::new(Inner {
            client,
            fresh,
            turns: Turns::new(config.connections),
            config,
            sent: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
            sent_again: AtomicU64::new(0),
        }))
    }

    /// Sends a request; what comes of it is there within [`Request::within`], counted from now.
    pub async fn send(&self, request: &Request) -> Answer {
        let inner = &*self.0;
        match timeout(request.within, inner.exchange(request)).await {
            Ok(answer) => answer,
            Err(_) => {
                inner.timed_out.fetch_add(1, Ordering::Relaxed);
                Answer::TimedOut
            }
        }
    }

    /// What was counted.
    pub fn stats(&self) -> PoolStats {
        PoolStats {
            sent: self.0.sent.load(Ordering::Relaxed),
            waited: self.0.waited.load(Ordering::Relaxed),
            timed_out: self.0.timed_out.load(Ordering::Relaxed),
            sent_again: self.0.sent_again.load(Ordering::Relaxed),
        }
    }
}

impl Inner {
    async fn exchange(&self, request: &Request) -> Answer {
        // A question that waits for changes must not keep others from renewing.
        let waits = matches!(request.call, Call::Changes { .. });
        let _turn = match waits {
            true => None,
            false => Some(self.turn(&request.server).await),
        };
        self.sent.fetch_add(1, Ordering::Relaxed);
        match self.respond(request).await {
            Ok(response) => answer::of(&request.call, response, self.config.max_body).await,
            Err(why) => Answer::Unreachable(why),
        }
    }

    async fn turn(&self, server: &Arc<Server>) -> Option<OwnedSemaphorePermit> {
        let turns = self.turns.of(server);
        if let Ok(turn) = Arc::clone(&turns).try_acquire_owned() {
            return Some(turn);
        }
        self.waited.fetch_add(1, Ordering::Relaxed);
        turns.acquire_owned().await.ok()
    }

    /// The head of an answer.
    ///
    /// That a server closed a connection from earlier says nothing about it: the request goes over a new one, once. All
    /// requests of an agent may be done twice.
    async fn respond(&self, request: &Request) -> Result<Response<Incoming>, String> {
        let message = message::of(request, &self.config.identity)?;
        let response = match self.client.request(message).await {
            Err(error) if was_kept(&error) => {
                self.sent_again.fetch_add(1, Ordering::Relaxed);
                let message = message::of(request, &self.config.identity)?;
                self.fresh.request(message).await
            }
            response => response,
        };
        let response =
            response.map_err(|error| reason(std::error::Error::source(&error).unwrap_or(&error)))?;
        if let Some(answered) = response.extensions().get::<Answered>() {
            answered.set();
        }
        Ok(response)
    }
}

/// Whether a request failed on a connection that had brought an answer before.
fn was_kept(error: &Error) -> bool {
    let mut extensions = Extensions::new();
    if let Some(connection) = error.connect_info() {
        connection.get_extras(&mut extensions);
    }
    extensions.get::<Answered>().is_some_and(Answered::get)
}

impl Default for Pool {
    fn default() -> Self {
        Self::new(PoolConfig::default())
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("config", &self.0.config)
            .finish_non_exhaustive()
    }
}

/// An error and its causes: the inner ones say what happened.
fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    clipped(&text)
}

/// The beginning of a text, as it may be shown and logged.
fn clipped(text: &str) -> String {
    text.chars()
        .filter(|character| !character.is_control())
        .take(WHY)
        .collect()
}
