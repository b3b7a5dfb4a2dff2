//! Requests of agents as HTTP/1.1, over connections that any number of agents share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::timeout;

mod answer;
mod connector;
mod feed;
mod message;

use crate::call::{Answer, Call, Request};
use connector::Connector;

/// Characters of a reason at most.
pub(super) const WHY: usize = 300;

/// How a [`Pool`] connects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolConfig {
    /// Requests under way at once; more wait for their turn. Questions to a change feed, which wait for what happens, do not count.
    pub connections: usize,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// A connection that was idle for so long is closed.
    pub idle_timeout: Duration,
    /// Bytes of the longest answer, unpacked.
    pub max_body: usize,
    /// What the client calls itself: `DiscoveryIdentity-Name`.
    pub identity: Arc<str>,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            connections: 64,
            connect_timeout: Duration::from_secs(2),
            idle_timeout: Duration::from_secs(45),
            max_body: 256 << 20,
            identity: "DefaultClient".into(),
        }
    }
}

/// Connections to servers. Cheap to clone; all clones share them.
#[derive(Clone)]
pub struct Pool(Arc<Inner>);

struct Inner {
    client: Client<Connector, Full<Bytes>>,
    config: PoolConfig,
    slots: Semaphore,
    sent: AtomicU64,
    waited: AtomicU64,
    timed_out: AtomicU64,
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
}

impl Pool {
    /// No connection yet; they come as they are needed.
    pub fn new(config: PoolConfig) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(config.idle_timeout)
            .pool_max_idle_per_host(config.connections)
            .http1_max_headers(100)
            .build(Connector::new(&config));
        Self(Arc::new(Inner {
            client,
            slots: Semaphore::new(config.connections.max(1)),
            config,
            sent: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
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
        }
    }
}

impl Inner {
    async fn exchange(&self, request: &Request) -> Answer {
        let message = match message::of(request, &self.config.identity) {
            Ok(message) => message,
            Err(why) => return Answer::Unreachable(why),
        };
        // A question that waits for changes must not keep others from renewing.
        let waits = matches!(request.call, Call::Changes { .. });
        let _slot = match (waits, self.slots.try_acquire()) {
            (true, _) => None,
            (false, Ok(slot)) => Some(slot),
            (false, Err(_)) => {
                self.waited.fetch_add(1, Ordering::Relaxed);
                self.slots.acquire().await.ok()
            }
        };
        self.sent.fetch_add(1, Ordering::Relaxed);
        match self.client.request(message).await {
            Ok(response) => answer::of(&request.call, response, self.config.max_body).await,
            Err(error) => Answer::Unreachable(reason(&error)),
        }
    }
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

/// The innermost causes say what happened; the outer ones only that something did.
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
