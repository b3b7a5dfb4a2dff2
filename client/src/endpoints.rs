//! Which server to ask: own zone first, one at a time, and not the one that just failed.
//!
//! A server is kept until it fails or its session is over, so that clients spread again over servers that were added or
//! came back. Who failed is set aside, longer each time. If all are set aside, the one that is free first is asked: there
//! is always somebody to ask, as long as there are servers.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Mono, Now};

use crate::server::Server;

/// A session with a server of another zone ends after this, if one of the own zone can be asked again.
const AWAY: Duration = Duration::from_secs(120);

/// Longer times would not fit once they have been multiplied.
pub(crate) const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// How servers are chosen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EndpointsConfig {
    /// Servers of this zone are asked before all others.
    pub zone: Option<Arc<str>>,
    /// One server is asked for about so long (half to one and a half times), then another one; as Java does.
    pub session: Duration,
    /// How long a server that failed once is set aside; twice as long each time, with jitter.
    pub quarantine: Duration,
    /// The longest that a server is set aside, whatever it asks for itself.
    pub quarantine_max: Duration,
}

impl Default for EndpointsConfig {
    fn default() -> Self {
        Self {
            zone: None,
            session: Duration::from_secs(20 * 60),
            quarantine: Duration::from_secs(5),
            quarantine_max: Duration::from_secs(300),
        }
    }
}

/// What a server is needed for. Both have their own server, since one may serve writes and hold its lists back.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Use {
    /// Lists, deltas, changes.
    Read,
    /// Registrations, renewals, cancels.
    Write,
}

/// How a server failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// No answer, or none in time.
    Unreachable,
    /// An answer that is no use.
    Refused {
        /// Of HTTP.
        status: u16,
        /// For how long it asks to be left alone.
        retry_after: Option<Duration>,
    },
    /// An answer that makes no sense.
    Garbage,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Failures of servers.
    pub failures: u64,
    /// Times that another server was chosen than the one before.
    pub switches: u64,
    /// Sessions that ended by themselves.
    pub sessions: u64,
}

/// The servers, and which of them is asked.
#[derive(Debug)]
pub struct Endpoints {
    config: EndpointsConfig,
    random: fastrand::Rng,
    /// In the order in which they are asked.
    servers: Vec<Entry>,
    read: Pin,
    write: Pin,
    stats: EndpointStats,
}

#[derive(Debug)]
struct Entry {
    server: Arc<Server>,
    /// Set aside for either use.
    failed: Aside,
    /// Set aside for reads, by what it refuses to readers alone.
    refused: Aside,
}

/// How long a server is left alone, and how often in a row it gave a reason.
#[derive(Clone, Copy, Debug, Default)]
struct Aside {
    times: u32,
    until: Mono,
}

/// The server that is asked for one use.
#[derive(Debug, Default)]
struct Pin {
    server: Option<Arc<Server>>,
    since: Mono,
    until: Mono,
    last: Option<Arc<Server>>,
}

impl Endpoints {
    /// These servers, in an order drawn from the seed: own zone first. Times of more than a year are a year.
    pub fn new(now: Now, mut config: EndpointsConfig, servers: Vec<Arc<Server>>, seed: u64) -> Self {
        for time in [
            &mut config.session,
            &mut config.quarantine,
            &mut config.quarantine_max,
        ] {
            *time = (*time).min(YEAR);
        }
        let mut endpoints = Self {
            config,
            random: fastrand::Rng::with_seed(seed),
            servers: Vec::new(),
            read: Pin::default(),
            write: Pin::default(),
            stats: EndpointStats::default(),
        };
        endpoints.set_servers(now, servers);
        endpoints
    }

    /// Other servers. What is known of those that stay is kept.
    pub fn set_servers(&mut self, _now: Now, mut servers: Vec<Arc<Server>>) {
        self.random.shuffle(&mut servers);
        let own =
            |server: &Server| self.config.zone.is_some() && server.zone() == self.config.zone.as_deref();
        servers.sort_by_key(|server| !own(server));
        let mut before = std::mem::take(&mut self.servers);
        for server in servers {
            if self.servers.iter().any(|entry| entry.server == server) {
                continue;
            }
            let known = before.iter().position(|entry| entry.server == server);
            self.servers.push(match known {
                Some(place) => before.swap_remove(place),
                None => Entry::new(server),
            });
        }
        for pin in [&mut self.read, &mut self.write] {
            let listed = |server: &Arc<Server>| self.servers.iter().any(|entry| entry.server == *server);
            pin.server = pin.server.take().filter(listed);
        }
    }

    /// How many servers there are.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Whom to ask, other than those that were tried already; `None` if there is nobody else.
    pub fn choose(&mut self, now: Now, purpose: Use, tried: &[Arc<Server>]) -> Option<Arc<Server>> {
        self.end_session(now, purpose);
        let pinned = self.pin(purpose).server.clone();
        if let Some(server) = pinned.filter(|server| !tried.contains(server)) {
            return Some(server);
        }
        let untried = |entry: &&Entry| !tried.contains(&entry.server);
        let free = self
            .servers
            .iter()
            .filter(untried)
            .find(|entry| entry.free_at(purpose) <= now.mono);
        let soonest = || {
            let entries = self.servers.iter().filter(untried);
            entries.min_by_key(|entry| entry.free_at(purpose))
        };
        let server = Arc::clone(&free.or_else(soonest)?.server);
        self.keep(now, purpose, &server);
        Some(server)
    }

    /// A server answered as it should. One that is not listed any more is not kept for that.
    pub fn succeeded(&mut self, now: Now, purpose: Use, server: &Arc<Server>) {
        let Some(entry) = self.entry(server) else {
            return;
        };
        entry.failed = Aside::default();
        if purpose == Use::Read {
            entry.refused = Aside::default();
        }
        if self.pin(purpose).server.is_none() {
            self.keep(now, purpose, server);
        }
    }

    /// A server failed: it is set aside. What it refuses to readers alone is no reason to write elsewhere.
    pub fn failed(&mut self, now: Now, purpose: Use, server: &Arc<Server>, failure: Failure) {
        self.stats.failures += 1;
        let spread = 0.8 + 0.4 * self.random.f64();
        let (first, most) = (self.config.quarantine, self.config.quarantine_max);
        let reads_only = purpose == Use::Read
            && matches!(
                failure,
                Failure::Refused {
                    status: 403 | 503,
                    ..
                }
            );
        let Some(entry) = self.entry(server) else {
            return;
        };
        let asked_for = match failure {
            Failure::Refused { retry_after, .. } => retry_after.unwrap_or_default(),
            Failure::Unreachable | Failure::Garbage => Duration::ZERO,
        };
        let aside = if reads_only {
            &mut entry.refused
        } else {
            &mut entry.failed
        };
        let doubled = first.saturating_mul(1 << aside.times.min(16)).min(most);
        let length = doubled.mul_f64(spread).max(asked_for).min(most);
        *aside = Aside {
            times: aside.times.saturating_add(1),
            until: now.mono.after(length),
        };
        for (pin, concerned) in [(&mut self.read, true), (&mut self.write, !reads_only)] {
            if concerned && pin.server.as_ref() == Some(server) {
                pin.server = None;
            }
        }
    }

    /// Who is asked at the moment.
    pub fn pinned(&self, purpose: Use) -> Option<&Arc<Server>> {
        match purpose {
            Use::Read => self.read.server.as_ref(),
            Use::Write => self.write.server.as_ref(),
        }
    }

    /// What was counted.
    pub fn stats(&self) -> EndpointStats {
        self.stats
    }

    fn end_session(&mut self, now: Now, purpose: Use) {
        let pin = self.pin(purpose);
        let Some(server) = &pin.server else {
            return;
        };
        let (since, until) = (pin.since, pin.until);
        let is_own = |server: &Server| server.zone() == self.config.zone.as_deref();
        let away = self.config.zone.is_some()
            && !is_own(server)
            && now.mono >= since.after(AWAY)
            && self
                .servers
                .iter()
                .any(|entry| is_own(&entry.server) && entry.free_at(purpose) <= now.mono);
        if away || now.mono >= until {
            let over = Arc::clone(server);
            self.stats.sessions += 1;
            // Behind the others of its kind, so that another one has its turn.
            if let Some(place) = self.servers.iter().position(|entry| entry.server == over) {
                let entry = self.servers.remove(place);
                let zone = self.config.zone.as_deref();
                let own = zone.is_some() && entry.server.zone() == zone;
                let end = match own {
                    true => self
                        .servers
                        .iter()
                        .take_while(|entry| entry.server.zone() == zone)
                        .count(),
                    false => self.servers.len(),
                };
                self.servers.insert(end, entry);
            }
            self.pin_mut(purpose).server = None;
        }
    }

    fn keep(&mut self, now: Now, purpose: Use, server: &Arc<Server>) {
        let length = self.config.session.mul_f64(0.5 + self.random.f64());
        let pin = self.pin_mut(purpose);
        let switched = pin.last.as_ref().is_some_and(|last| last != server);
        *pin = Pin {
            server: Some(Arc::clone(server)),
            since: now.mono,
            until: now.mono.after(length),
            last: Some(Arc::clone(server)),
        };
        self.stats.switches += u64::from(switched);
    }

    fn entry(&mut self, server: &Arc<Server>) -> Option<&mut Entry> {
        self.servers.iter_mut().find(|entry| entry.server == *server)
    }

    fn pin(&self, purpose: Use) -> &Pin {
        match purpose {
            Use::Read => &self.read,
            Use::Write => &self.write,
        }
    }

    fn pin_mut(&mut self, purpose: Use) -> &mut Pin {
        match purpose {
            Use::Read => &mut self.read,
            Use::Write => &mut self.write,
        }
    }
}

impl Entry {
    fn new(server: Arc<Server>) -> Self {
        Self {
            server,
            failed: Aside::default(),
            refused: Aside::default(),
        }
    }

    /// From when on it may be asked.
    fn free_at(&self, purpose: Use) -> Mono {
        match purpose {
            Use::Read => self.failed.until.max(self.refused.until),
            Use::Write => self.failed.until,
        }
    }
}
