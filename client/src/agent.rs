//! The client as a machine without clock, thread or socket: it registers an instance, reads a registry, or both.
//!
//! ```
//! use std::sync::Arc;
//! use eureka_client::agent::{Agent, AgentConfig, Event, Provide};
//! use eureka_client::call::{Answer, Call};
//! use eureka_client::Server;
//! use eureka_registry_core::{Instance, Mono, Now, Wall};
//!
//! let now = Now { mono: Mono(0), wall: Wall(1_700_000_000_000) };
//! let server = Arc::new(Server::parse("http://127.0.0.1:8761/eureka/")?);
//! let instance = Instance::new("orders", "host-1:orders:8080", "host-1", "10.0.0.1");
//! let mut agent = Agent::new(now, AgentConfig::new().provide(Provide::new(instance)), vec![server]);
//!
//! let request = agent.poll_request().expect("it registers at once");
//! assert!(matches!(request.call, Call::Register(_)));
//! // Whoever owns the agent sends it, and says what came of it.
//! agent.handle_answer(now, request.id, Answer::Done);
//! assert!(matches!(agent.poll_event(), Some(Event::Registered { .. })));
//! let (renewal, _) = agent.poll_timeout().expect("the lease is to be renewed");
//! assert!((27_000..=30_000).contains(&renewal.0));
//! # Ok::<(), eureka_client::ServerError>(())
//! ```
//!
//! # Rules for both sides
//!
//! * At most one write and one read are under way. Every request ends: its owner answers with [`Answer::TimedOut`] after
//!   [`Request::within`].
//! * What fails at one server is tried at the next one at once, at up to three; then comes a pause of 1 s that doubles with
//!   each further round, up to 30 s, with a jitter of 20 %. Nobody is tried a second time before everybody else was.
//! * A request that was not answered in time may have been carried out. All of them can be repeated without harm.
//! * Steps of the wall clock have no effect but on dirty times, and those never go back.
//!
//! # Providing
//!
//! * It registers at once, with whatever status the instance has. Answers that say that the request is wrong (400, 413 and
//!   the like) are not carried to other servers; it is tried again after 30 s, or with the next change.
//! * The dirty time is that of the last change of content: the wall clock's, or one more than the one before if that is
//!   later. Registering again after a 404 keeps it. Renewals name the one that was registered.
//! * It renews on the interval of the instance, times 0.9 to 1. If that fails it goes on as said above and does not wait
//!   for the next interval; pauses are shorter than that and than a third of the lease, and so long an answer is waited for at most, too. 404:
//!   registers there at once.
//! * Changes are registered at once: four, and one more every 5 s. Beyond that they wait and become one.
//! * The owner is asked for the health before the first registration (which waits for 5 s at most) and then each
//!   [`Provide::health_interval`]. STARTING and OUT_OF_SERVICE set by the owner are left alone.
//! * It leaves by DOWN, then a cancel, at up to three servers, within [`Provide::leave_within`]. A write under way is waited
//!   for during half of that. 404 counts as done, and so does nothing that was ever sent.
//!
//! # Consuming
//!
//! * A server that has a feed is followed: first its cursor, then a full list, then whatever lies behind the cursor, by long
//!   polls of 25 s: one request, one answer, and what changes between two of them comes in one. Servers without a feed,
//!   and those whose lists also have other regions, are polled.
//! * A poll is due after the interval times 0.85 to 1. It is a delta, or a full list if another server was read before, if
//!   the last success is longer ago than [`Consume::delta_retention`], if deltas are refused there, for virtual addresses,
//!   and each [`Consume::full_interval`] (that, too, where a feed is followed).
//! * After a delta the hash of all that is held is compared with the server's. If it differs, the delta is not shown and a
//!   full list is fetched at once, but once an interval only. It is not compared if instances could not be understood.
//! * A read that fails changes nothing of what is held. An empty list does not take the place of one that is not empty
//!   before it was confirmed for [`Consume::hold_empty`]: a server that was just restarted knows nobody. Until then it
//!   counts as a failure, and other servers are asked.
//! * A feed that fails twice, while lists can be read, is left alone for five minutes.
//! * How old a view can be is bounded: [`AgentConfig::staleness_bound`].

mod config;
mod event;
mod exchange;
mod fetcher;
mod pace;
mod registrar;
mod stats;

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Instance, LeaseView, Mono, Now, Status};

use self::exchange::Exchange;
use self::fetcher::Fetcher;
use self::registrar::Registrar;
use crate::call::{Answer, Request, RequestId};
use crate::endpoints::Endpoints;
use crate::server::Server;

pub use config::{AgentConfig, Consume, Provide, Regions};
pub use event::{Event, FetchKind, Fetched, Phase, PollingWhy, Registration, Why};
pub use stats::{Reason, Stats};

/// The machine: provider, consumer, or both. See the [module](self) for its rules.
///
/// After any call that takes `now`, send what [`poll_request`](Self::poll_request) gives, look at what
/// [`poll_event`](Self::poll_event) gives, and ask [`poll_timeout`](Self::poll_timeout) again.
#[derive(Debug)]
pub struct Agent {
    exchange: Exchange,
    registrar: Option<Registrar>,
    /// Boxed: agents that read nothing are small.
    fetcher: Option<Box<Fetcher>>,
    /// What of the configuration bounds staleness.
    bounds: Option<Box<AgentConfig>>,
    is_leaving: bool,
}

impl Agent {
    /// Begins at once: the first requests are there to be sent.
    pub fn new(now: Now, config: AgentConfig, servers: Vec<Arc<Server>>) -> Self {
        let AgentConfig {
            provide,
            consume,
            endpoints,
            request_timeout,
            seed,
        } = config.bounded();
        let bounds = consume.clone().map(|consume| {
            Box::new(AgentConfig {
                consume: Some(consume),
                request_timeout,
                ..AgentConfig::default()
            })
        });
        let endpoints = Endpoints::new(now, endpoints, servers, seed);
        let mut agent = Self {
            exchange: Exchange::new(endpoints, request_timeout, seed),
            registrar: provide.map(|provide| Registrar::new(now, provide)),
            fetcher: consume.map(|consume| Box::new(Fetcher::new(now, consume))),
            bounds,
            is_leaving: false,
        };
        agent.step(now);
        agent
    }

    /// Other servers, perhaps none. Requests under way end as they end.
    pub fn set_servers(&mut self, now: Now, servers: Vec<Arc<Server>>) {
        let had_none = self.exchange.endpoints.is_empty();
        self.exchange.endpoints.set_servers(now, servers);
        self.exchange.servers_changed();
        if let Some(registrar) = &mut self.registrar {
            registrar.servers_changed(now, had_none);
        }
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.servers_changed(now, had_none);
        }
        self.step(now);
    }

    /// The owner's judgement of the instance. STARTING and OUT_OF_SERVICE stay whatever health checks say. Ignored once it
    /// leaves.
    pub fn set_status(&mut self, now: Now, status: Status) {
        if let Some(registrar) = &mut self.registrar {
            registrar.set_status(now, status);
        }
        self.step(now);
    }

    /// Sets one pair of metadata. Ignored once it leaves.
    pub fn set_metadata(&mut self, now: Now, key: &str, value: &str) {
        self.update(now, |instance| instance.metadata.insert(key, value));
    }

    /// Changes the instance; its application and its id stay, and its dirty time is not the owner's to set. Ignored once it
    /// leaves.
    pub fn update(&mut self, now: Now, change: impl FnOnce(&mut Instance)) {
        if let Some(registrar) = &mut self.registrar {
            registrar.update(now, change);
        }
        self.step(now);
    }

    /// The answer to [`Event::CheckHealth`]; `None` keeps the status.
    pub fn set_health(&mut self, now: Now, health: Option<Status>) {
        if let Some(registrar) = &mut self.registrar {
            registrar.set_health(now, health);
        }
        self.step(now);
    }

    /// What is known from before, say from a copy on disk: held until the first fetch, never the base of a delta. Does
    /// nothing after the first fetch.
    pub fn begin_with(&mut self, _now: Now, views: Vec<LeaseView>) {
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.begin_with(views);
        }
    }

    /// Reads as soon as possible, if the server is polled; at most once a second. A server that is followed tells by itself.
    pub fn refresh(&mut self, now: Now) {
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.refresh(now);
        }
        self.step(now);
    }

    /// Stops reading, and leaves in an orderly way within [`Provide::leave_within`].
    pub fn leave(&mut self, now: Now) {
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.stop(&mut self.exchange);
        }
        if let Some(registrar) = &mut self.registrar {
            registrar.leave(now, &mut self.exchange);
        }
        self.is_leaving = true;
        self.step(now);
    }

    /// Whether it has left and nothing is under way.
    pub fn is_finished(&self) -> bool {
        self.is_leaving && self.registrar.as_ref().is_none_or(Registrar::is_finished)
    }

    /// What came of a request.
    pub fn handle_answer(&mut self, now: Now, id: RequestId, answer: Answer) {
        if let Some(registrar) = self.registrar.as_mut().filter(|side| side.waits_for(id)) {
            registrar.handle_answer(now, &mut self.exchange, answer);
        } else if let Some(fetcher) = self.fetcher.as_mut().filter(|side| side.waits_for(id)) {
            fetcher.handle_answer(now, &mut self.exchange, answer);
        } else {
            self.exchange.stats.stray_answers += 1;
        }
        self.step(now);
    }

    /// To be called when [`poll_timeout`](Self::poll_timeout) says; harmless at any time.
    pub fn handle_timeout(&mut self, now: Now) {
        self.step(now);
    }

    /// A request to send, until there is none.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.exchange.poll_request()
    }

    /// What happened, until there is nothing.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.exchange.poll_event()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), and why; `None` if only an answer or the owner can bring
    /// anything new. Never earlier than the last `now` that was given.
    pub fn poll_timeout(&self) -> Option<(Mono, Reason)> {
        let write = self.registrar.as_ref().and_then(Registrar::due);
        let read = self.fetcher.as_ref().and_then(|fetcher| fetcher.due());
        let read = read.map(|due| (due, Reason::Fetch));
        [write, read].into_iter().flatten().min()
    }

    /// How old a view can be while one of the servers can be reached and answers in time; see
    /// [`AgentConfig::staleness_bound`].
    pub fn staleness_bound(&self) -> Duration {
        let servers = self.exchange.endpoints.len();
        let bounds = self.bounds.as_ref();
        bounds.map_or(Duration::ZERO, |config| config.staleness_bound(servers))
    }

    /// The registration as it is; `None` if none was asked for.
    pub fn registration(&self) -> Option<Registration> {
        self.registrar.as_ref().map(Registrar::registration)
    }

    /// What was counted.
    pub fn stats(&self) -> Stats {
        Stats {
            delayed_changes: self.registrar.as_ref().map_or(0, Registrar::delayed),
            switches: self.exchange.endpoints.stats().switches,
            ..self.exchange.stats
        }
    }

    /// Does whatever is due on both sides.
    fn step(&mut self, now: Now) {
        if let Some(registrar) = &mut self.registrar {
            registrar.step(now, &mut self.exchange);
        }
        if let Some(fetcher) = &mut self.fetcher {
            fetcher.step(now, &mut self.exchange);
        }
    }
}
