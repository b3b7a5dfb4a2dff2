//! What carries requests and answers between the nodes of a transcript: one millisecond each way, and faults on demand.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use eureka_registry_core::{Mono, PeerId};
use eureka_replication::{Failure, NodeId, RequestId};

use crate::node::{Answer, Request};

/// From one node to another.
const WAY: Duration = Duration::from_millis(1);
/// How long the answer of a node that hangs is waited for.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(5);

/// Everything that is on its way.
#[derive(Debug, Default)]
pub(crate) struct Network {
    messages: BTreeMap<(Mono, u64), Message>,
    sent: u64,
    /// Directions in which nothing goes.
    cuts: BTreeSet<(usize, usize)>,
    /// How a node fails whatever it is asked.
    faults: BTreeMap<usize, Fault>,
    /// Requests by sender, receiver and kind, since they were last counted.
    counts: BTreeMap<(usize, usize, &'static str), usize>,
}

/// Something on its way.
#[derive(Debug)]
pub(crate) enum Message {
    Request {
        from: usize,
        to: usize,
        peer: PeerId,
        id: RequestId,
        request: Request,
    },
    Answer {
        to: usize,
        peer: PeerId,
        id: RequestId,
        node: Option<NodeId>,
        answer: Result<Answer, Failure>,
    },
}

/// What a node does instead of answering.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// It answers with this status.
    Status(u16),
    /// It does not answer in time.
    Hang,
    /// Nobody is there.
    Down,
}

impl Network {
    /// Takes a request on its way, or tells who asks that there is none.
    pub(crate) fn ask(
        &mut self,
        now: Mono,
        from: usize,
        to: usize,
        (peer, id): (PeerId, RequestId),
        request: Request,
    ) {
        let kind = match &request {
            Request::Batch(_) => "batches",
            Request::Probe => "probes",
            Request::Repair(_) => "repairs",
            Request::Lists => "pulls",
        };
        *self.counts.entry((from, to, kind)).or_default() += 1;
        let fault = self.faults.get(&to).copied();
        let (after, result) = match fault {
            _ if self.cuts.contains(&(from, to)) => (WAY * 2, Err(Failure::Unreachable)),
            Some(Fault::Down) => (WAY * 2, Err(Failure::Unreachable)),
            Some(Fault::Hang) => (TIMEOUT, Err(Failure::Busy)),
            Some(Fault::Status(status)) => (WAY * 2, Ok(Answer::Status(status))),
            None => {
                let message = Message::Request {
                    from,
                    to,
                    peer,
                    id,
                    request,
                };
                self.push(now.after(WAY), message);
                return;
            }
        };
        let node = None;
        self.push(
            now.after(after),
            Message::Answer {
                to: from,
                peer,
                id,
                node,
                answer: result,
            },
        );
    }

    /// Takes an answer on its way.
    pub(crate) fn answer(&mut self, now: Mono, message: Message) {
        self.push(now.after(WAY), message);
    }

    /// When the next message arrives.
    pub(crate) fn next_due(&self) -> Option<Mono> {
        self.messages.keys().next().map(|(due, _)| *due)
    }

    /// What arrives now.
    pub(crate) fn arrive(&mut self, now: Mono) -> Option<Message> {
        let entry = self.messages.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// Nothing goes from one to the other.
    pub(crate) fn cut(&mut self, from: usize, to: usize) {
        self.cuts.insert((from, to));
    }

    /// It goes again.
    pub(crate) fn mend(&mut self, from: usize, to: usize) {
        self.cuts.remove(&(from, to));
    }

    /// From now on a node fails like this, or not any more.
    pub(crate) fn fail(&mut self, node: usize, fault: Option<Fault>) {
        match fault {
            Some(fault) => self.faults.insert(node, fault),
            None => self.faults.remove(&node),
        };
    }

    /// Requests since the last time, by sender, receiver and kind.
    pub(crate) fn take_counts(&mut self) -> BTreeMap<(usize, usize, &'static str), usize> {
        std::mem::take(&mut self.counts)
    }

    fn push(&mut self, due: Mono, message: Message) {
        self.sent += 1;
        self.messages.insert((due, self.sent), message);
    }
}
