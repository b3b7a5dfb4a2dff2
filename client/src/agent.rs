//! The client as a machine without clock, thread or socket: it registers an instance, reads a registry, or both.

mod config;
mod event;
mod stats;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Instance, LeaseView, Mono, Now, Status};

use crate::call::{Answer, Request, RequestId};
use crate::endpoints::Endpoints;
use crate::server::Server;

pub use config::{AgentConfig, Consume, Provide, Regions};
pub use event::{Event, FetchKind, Fetched, Phase, PollingWhy, Registration, Why};
pub use stats::{Reason, Stats};

/// The machine.
#[derive(Debug)]
pub struct Agent {
    config: AgentConfig,
    endpoints: Endpoints,
    requests: VecDeque<Request>,
    events: VecDeque<Event>,
    stats: Stats,
    left: bool,
}

impl Agent {
    /// Begins at once: the first requests are there to be sent.
    pub fn new(now: Now, config: AgentConfig, servers: Vec<Arc<Server>>) -> Self {
        Self {
            endpoints: Endpoints::new(now, config.endpoints.clone(), servers, config.seed),
            config,
            requests: VecDeque::new(),
            events: VecDeque::new(),
            stats: Stats::default(),
            left: false,
        }
    }

    /// Other servers, perhaps none. Requests under way end as they end.
    pub fn set_servers(&mut self, now: Now, servers: Vec<Arc<Server>>) {
        self.endpoints.set_servers(now, servers);
    }

    /// The owner's judgement of the instance. STARTING and OUT_OF_SERVICE stay whatever health checks say.
    pub fn set_status(&mut self, now: Now, status: Status) {
        self.update(now, |instance| instance.status = status);
    }

    /// Sets one pair of metadata.
    pub fn set_metadata(&mut self, now: Now, key: &str, value: &str) {
        self.update(now, |instance| instance.metadata.insert(key, value));
    }

    /// Changes the instance; its application and its id stay.
    pub fn update(&mut self, _now: Now, change: impl FnOnce(&mut Instance)) {
        if let Some(provide) = &mut self.config.provide {
            change(&mut provide.instance);
        }
    }

    /// The answer to [`Event::CheckHealth`]; `None` keeps the status.
    pub fn set_health(&mut self, now: Now, health: Option<Status>) {
        if let Some(status) = health {
            self.set_status(now, status);
        }
    }

    /// What is known from before, say from a copy on disk: held until the first fetch, never the base of a delta.
    pub fn begin_with(&mut self, _now: Now, _views: Vec<LeaseView>) {}

    /// Reads as soon as possible.
    pub fn refresh(&mut self, _now: Now) {}

    /// Stops reading, and leaves in an orderly way within [`Provide::leave_within`].
    pub fn leave(&mut self, _now: Now) {
        self.left = true;
    }

    /// Whether it has left and nothing is under way.
    pub fn is_finished(&self) -> bool {
        self.left
    }

    /// What came of a request.
    pub fn handle_answer(&mut self, _now: Now, _id: RequestId, _answer: Answer) {}

    /// To be called when [`poll_timeout`](Self::poll_timeout) says.
    pub fn handle_timeout(&mut self, _now: Now) {}

    /// A request to send, until there is none.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// What happened, until there is nothing.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), and why.
    pub fn poll_timeout(&self) -> Option<(Mono, Reason)> {
        None
    }

    /// How long a view may be old while one server can be reached and answers in time.
    pub fn staleness_bound(&self) -> Duration {
        self.config.request_timeout
    }

    /// The registration as it is; `None` if none was asked for.
    pub fn registration(&self) -> Option<Registration> {
        let provide = self.config.provide.as_ref()?;
        Some(Registration {
            phase: Phase::Starting,
            server: None,
            confirmed: None,
            instance: Arc::new(provide.instance.clone()),
        })
    }

    /// What was counted.
    pub fn stats(&self) -> Stats {
        self.stats
    }
}
