//! Requests under way are counted, and how long they take is measured.

use std::sync::Arc;
use std::time::Instant;

use eureka_http_api::Class;
use http::Response;

use super::Body;
use super::refusal::Refusal;
use super::stack::Gate;
use super::work::Work;
use crate::clock;

/// Counts a request, or one that stays, until its answer is sent, and measures the time to the head of its answer.
#[derive(Debug)]
pub(super) struct Meter {
    class: Class,
    started: Instant,
    ticket: Option<Ticket>,
}

impl Meter {
    /// A request has come. Who stays counts before anybody looks at how many there are: there are never more than are allowed.
    pub(super) fn start(gate: &Arc<Gate>, work: Work) -> Self {
        Self {
            class: work.class,
            started: clock::instant(),
            ticket: work.stays.then(|| Ticket::take(gate, true)),
        }
    }

    /// The load has been judged; any other request counts from now on, and so not against itself.
    pub(super) fn enter(&mut self, gate: &Arc<Gate>) {
        self.ticket.get_or_insert_with(|| Ticket::take(gate, false));
    }

    /// This is the head of the answer, perhaps because of a refusal.
    pub(super) fn end(&mut self, refusal: Option<Refusal>, answer: &mut Response<Body>) {
        let ticket = self
            .ticket
            .take()
            .expect("a future is not polled after it is done");
        let meters = &ticket.gate.front.meters;
        if refusal == Some(Refusal::Panic) {
            meters.panics.increment(1);
        }
        meters.answered(self.class, self.started.elapsed());
        answer.body_mut().watch(ticket);
    }
}

/// A request under way or one that stays, until it is dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    gate: Arc<Gate>,
    stays: bool,
}

impl Ticket {
    fn take(gate: &Arc<Gate>, stays: bool) -> Self {
        gate.front.pressure.enter(stays);
        Self {
            gate: Arc::clone(gate),
            stays,
        }
    }

    /// Its answer panicked while it was sent.
    pub(super) fn panicked(&self) {
        self.gate.front.meters.panics.increment(1);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.gate.front.pressure.leave(self.stays);
    }
}
