//! The client as a machine without clock, thread or socket: it registers an instance, reads a registry, or both.

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
        } = config;
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
