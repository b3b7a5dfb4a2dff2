//! What both sides of an agent share: servers, requests, events, randomness, counters.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::Now;

use super::event::{Event, Why};
use super::stats::Stats;
use crate::call::{Answer, Call, Request, RequestId};
use crate::endpoints::{Endpoints, Failure, Use};
use crate::server::Server;

#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) endpoints: Endpoints,
    pub(super) request_timeout: Duration,
    pub(super) random: fastrand::Rng,
    pub(super) stats: Stats,
    requests: VecDeque<Request>,
    events: VecDeque<Event>,
    next: u64,
    told_of_no_servers: bool,
}

impl Exchange {
    pub(super) fn new(endpoints: Endpoints, request_timeout: Duration, seed: u64) -> Self {
        Self {
            endpoints,
            request_timeout,
            random: fastrand::Rng::with_seed(seed),
            stats: Stats::default(),
            requests: VecDeque::new(),
            events: VecDeque::new(),
            next: 0,
            told_of_no_servers: false,
        }
    }

    pub(super) fn send(&mut self, server: &Arc<Server>, call: Call, within: Duration) -> RequestId {
        let id = RequestId(self.next);
        self.next += 1;
        self.requests.push_back(Request {
            id,
            server: Arc::clone(server),
            call,
            within,
        });
        id
    }

    /// Takes a request back; false if it was sent already.
    pub(super) fn withdraw(&mut self, id: RequestId) -> bool {
        let before = self.requests.len();
        self.requests.retain(|request| request.id != id);
        self.requests.len() < before
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Told once until there are servers.
    pub(super) fn tell_of_no_servers(&mut self) {
        if !std::mem::replace(&mut self.told_of_no_servers, true) {
            self.tell(Event::NoServers);
        }
    }

    pub(super) fn servers_changed(&mut self) {
        self.told_of_no_servers &= self.endpoints.is_empty();
    }

    /// Sets a server aside for what it answered, unless it is no fault of the server.
    pub(super) fn failed(&mut self, now: Now, purpose: Use, server: &Arc<Server>, fault: &Fault) {
        let failure = match &fault.why {
            Why::Refused(status) => Failure::Refused {
                status: *status,
                retry_after: fault.retry_after,
            },
            Why::TimedOut | Why::Unreachable(_) | Why::NoServers => Failure::Unreachable,
            Why::Garbage(_) => Failure::Garbage,
            // Whoever knows nobody is all the more to be written to.
            Why::Empty => Failure::Refused {
                status: 503,
                retry_after: None,
            },
        };
        self.endpoints.failed(now, purpose, server, failure);
    }

    /// A number from `least` to one, to multiply an interval with.
    pub(super) fn share(&mut self, least: f64) -> f64 {
        least + (1.0 - least) * self.random.f64()
    }

    pub(super) fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

/// An answer that was no use.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) why: Why,
    pub(super) retry_after: Option<Duration>,
}

impl Fault {
    /// What an answer means where it is not the one that was hoped for.
    pub(super) fn of(answer: Answer) -> Self {
        let misplaced = |what: &str| Why::Garbage(format!("{what}, which does not answer this"));
        let mut retry = None;
        let why = match answer {
            Answer::NotFound => Why::Refused(404),
            Answer::Gone => Why::Refused(410),
            Answer::Refused { status, retry_after } => {
                retry = retry_after;
                Why::Refused(status)
            }
            Answer::TimedOut => Why::TimedOut,
            Answer::Unreachable(why) => Why::Unreachable(why),
            Answer::Garbage(what) => Why::Garbage(what),
            Answer::Done => misplaced("success without a body"),
            Answer::List { .. } => misplaced("a list"),
            Answer::Unchanged => misplaced("not modified"),
            Answer::Changes { .. } => misplaced("changes"),
        };
        Self {
            why,
            retry_after: retry,
        }
    }

    pub(super) fn why(why: Why) -> Self {
        Self {
            why,
            retry_after: None,
        }
    }
}
