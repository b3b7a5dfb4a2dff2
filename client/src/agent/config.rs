//! What an agent is to do: provide an instance, consume a registry, or both.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::Instance;

use super::fetcher::FEED_REST;
use super::fetcher::FEED_WAIT;
use super::pace::{JITTER, LONGEST_PAUSE, ROUND_TRIES};
use crate::call::Scope;
use crate::endpoints::{EndpointsConfig, YEAR};

/// Nothing is asked more often than this, whatever is configured.
pub(super) const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// What a server is asked at most until it is known that it is no use, or that it is.
const REQUESTS_OF_A_SERVER: u32 = 3;

/// What an agent is to do, and with which patience. Times of more than a year are a year.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentConfig {
    /// The instance to register; `None` registers nothing.
    pub provide: Option<Provide>,
    /// What to read; `None` reads nothing.
    pub consume: Option<Consume>,
    /// How servers are chosen.
    pub endpoints: EndpointsConfig,
    /// How long a request may take, from the beginning to the last byte of the answer: 5 s. A long poll has this beyond
    /// its waiting.
    pub request_timeout: Duration,
    /// What randomness is drawn from: jitter, and the order of servers.
    pub seed: u64,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            provide: None,
            consume: None,
            endpoints: EndpointsConfig::default(),
            request_timeout: Duration::from_secs(5),
            seed: 0,
        }
    }
}

impl AgentConfig {
    /// Neither provides nor consumes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers an instance.
    #[must_use]
    pub fn provide(self, provide: Provide) -> Self {
        Self {
            provide: Some(provide),
            ..self
        }
    }

    /// Reads a registry.
    #[must_use]
    pub fn consume(self, consume: Consume) -> Self {
        Self {
            consume: Some(consume),
            ..self
        }
    }

    /// How old a view can be as long as one of so many servers is reached, serves lists, and answers each request within
    /// [`request_timeout`](Self::request_timeout) (a long poll: within its waiting and that), while the others may fail in
    /// any way and as slowly as they are allowed to. That is: two [`Event::Fetched`](super::Event::Fetched) never lie farther
    /// apart, and what the later one shows is younger than that. Zero if nothing is read.
    ///
    /// It is the longest time between two reads, and what an answer takes; then up to three requests of each server (whether
    /// it has a feed, what changed, and all of it if that does not fit), with a pause after three servers that failed.
    ///
    /// A registry that really became empty is believed only after more: see [`emptied_bound`](Self::emptied_bound).
    pub fn staleness_bound(&self, servers: usize) -> Duration {
        let Some(consume) = &self.consume else {
            return Duration::ZERO;
        };
        let follows = consume.feed && !matches!(consume.regions, Regions::Named(_));
        let waiting = if follows {
            FEED_WAIT + FEED_REST
        } else {
            Duration::ZERO
        };
        let interval = consume.interval.max(SHORTEST_INTERVAL);
        let servers = u32::try_from(servers.max(1)).unwrap_or(u32::MAX);
        let pauses = (servers - 1) / ROUND_TRIES;
        let pause = interval.min(LONGEST_PAUSE).mul_f64(1.0 + JITTER);
        let requests = REQUESTS_OF_A_SERVER.saturating_mul(servers).saturating_add(1);
        interval
            .max(waiting)
            .saturating_add(self.request_timeout.saturating_mul(requests))
            .saturating_add(pause.saturating_mul(pauses))
    }

    /// The same for a registry that lost its last instance all at once: an empty list counts as a failure for
    /// [`Consume::hold_empty`], since a server that has just been restarted knows nobody. (Where a feed or a delta tells of
    /// each instance that it is gone, they are gone at once.)
    pub fn emptied_bound(&self, servers: usize) -> Duration {
        let hold = self.consume.as_ref().map(|consume| consume.hold_empty);
        let seen_and_confirmed = self.staleness_bound(servers).saturating_mul(2);
        seen_and_confirmed.saturating_add(hold.unwrap_or_default())
    }

    /// The same, with times that can be multiplied.
    pub(super) fn bounded(mut self) -> Self {
        let mut times = vec![&mut self.request_timeout];
        if let Some(provide) = &mut self.provide {
            times.push(&mut provide.leave_within);
            times.extend(provide.health_interval.as_mut());
        }
        if let Some(consume) = &mut self.consume {
            times.push(&mut consume.interval);
            times.push(&mut consume.full_interval);
            times.push(&mut consume.delta_retention);
            times.push(&mut consume.hold_empty);
        }
        for time in times {
            *time = (*time).min(YEAR);
        }
        self
    }

    /// With this seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

/// An instance to register and to keep registered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Provide {
    /// What to register, with whatever status it has: STARTING, too, is registered.
    pub instance: Instance,
    /// How long leaving may take in all: 5 s.
    pub leave_within: Duration,
    /// How often the owner is asked for the health of the instance; `None`: never.
    pub health_interval: Option<Duration>,
    /// Whether leaving tells the servers (DOWN, then a cancel). If not, what is registered stays until its lease runs out,
    /// as with Java's `shouldUnregisterOnShutdown=false`: for restarts that are quicker than the lease.
    pub unregister: bool,
}

impl Provide {
    /// This instance, without health checks.
    pub fn new(instance: Instance) -> Self {
        Self {
            instance,
            leave_within: Duration::from_secs(5),
            health_interval: None,
            unregister: true,
        }
    }
}

/// What to read, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Consume {
    /// All instances, or those of one virtual address.
    pub scope: Scope,
    /// Of which regions.
    pub regions: Regions,
    /// How often a server without a feed is asked, at most (times 0.85 to 1): 30 s.
    pub interval: Duration,
    /// Whether deltas are used between full lists.
    pub delta: bool,
    /// Whether the feed of changes is used where a server has one.
    pub feed: bool,
    /// How often a full list is fetched in any case: 15 min.
    pub full_interval: Duration,
    /// How long servers keep what deltas tell: 180 s. After a longer gap a full list is fetched.
    pub delta_retention: Duration,
    /// For how long an empty list must be confirmed before it takes the place of one that is not empty: 90 s.
    pub hold_empty: Duration,
}

impl Default for Consume {
    fn default() -> Self {
        Self {
            scope: Scope::All,
            regions: Regions::Local,
            interval: Duration::from_secs(30),
            delta: true,
            feed: true,
            full_interval: Duration::from_secs(15 * 60),
            delta_retention: Duration::from_secs(180),
            hold_empty: Duration::from_secs(90),
        }
    }
}

/// The regions whose instances are read.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Regions {
    /// What the server gives by itself: its own region, and others beside it if it is configured so.
    #[default]
    Local,
    /// The server's own region and these.
    Named(Vec<Arc<str>>),
    /// The server's own region only.
    Own,
}

impl Regions {
    /// The name of a region that nobody has: whoever asks for it alone gets the server's own region and no other.
    pub const NOBODY: &str = "none-but-your-own";

    /// As the query names them.
    pub(crate) fn query(&self) -> Arc<[Arc<str>]> {
        match self {
            Self::Local => Arc::default(),
            Self::Named(names) => names.iter().cloned().collect(),
            Self::Own => Arc::new([Arc::from(Self::NOBODY)]),
        }
    }
}
