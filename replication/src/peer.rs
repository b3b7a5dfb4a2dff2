//! The sending side of one peer: what waits for it, what is on its way, and when to try again.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Event, Instance, Mono, Now};

use crate::config::Config;
use crate::facts::{LinkState, PeerFacts, PeerKind};
use crate::message::{Failure, Item, ItemOutcome, RequestId};

/// One peer, as far as sending goes.
#[derive(Debug)]
pub(crate) struct Peer {
    kind: PeerKind,
}

impl Peer {
    /// Nothing is known of it, and nothing waits.
    pub(crate) fn new(_now: Now, _config: &Config, _seed: u64) -> Self {
        Self {
            kind: PeerKind::Unknown,
        }
    }

    /// What it turned out to be; nothing is sent while that is unknown.
    pub(crate) fn set_kind(&mut self, _now: Now, kind: PeerKind) {
        self.kind = kind;
    }

    /// What it is, as far as is known.
    pub(crate) fn kind(&self) -> PeerKind {
        self.kind
    }

    /// Something happened in the registry: perhaps the peer is to be told. What a peer sent, and what expired, is not.
    pub(crate) fn note(&mut self, _now: Now, _event: &Event) {}

    /// The next batch, if one is due. It is in flight until [`batch_answered`](Self::batch_answered) or
    /// [`batch_failed`](Self::batch_failed) with the same id; there is never a second one.
    pub(crate) fn poll_batch(&mut self, _now: Now, _id: RequestId) -> Option<Vec<Item>> {
        None
    }

    /// The batch was answered, item by item. Returned are the peer's newer copies, to be adopted.
    pub(crate) fn batch_answered(
        &mut self,
        _now: Now,
        _id: RequestId,
        _outcomes: Vec<ItemOutcome>,
    ) -> Vec<Arc<Instance>> {
        Vec::new()
    }

    /// The batch failed as a whole: what was in it waits again. `text` is for people.
    pub(crate) fn batch_failed(
        &mut self,
        _now: Now,
        _id: RequestId,
        _failure: Failure,
        _text: &Arc<str>,
        _retry_after: Option<Duration>,
    ) {
    }

    /// A probe or a step of a repair was answered.
    pub(crate) fn reached(&mut self, _now: Now) {}

    /// A probe or a step of a repair failed. `Rejected` and `TooLarge` are kept for display only: they say nothing of batches.
    pub(crate) fn unreached(
        &mut self,
        _now: Now,
        _failure: Failure,
        _text: &Arc<str>,
        _retry_after: Option<Duration>,
    ) {
    }

    /// Whether the back-off is over, or there is none. Probes and repairs ask, too.
    pub(crate) fn may_send(&self, _now: Now) -> bool {
        true
    }

    /// When the back-off is over, if there is one (it may be over already).
    pub(crate) fn blocked_until(&self) -> Option<Mono> {
        None
    }

    /// Takes `items` of a repair from the rate; may go into debt.
    pub(crate) fn spend(&mut self, _now: Now, _items: usize) {}

    /// How many items the rate allows at once.
    pub(crate) fn allowance(&self, _now: Now) -> usize {
        0
    }

    /// Whether items were given up since the last call: only repair can bring the peer what was in them.
    pub(crate) fn take_behind(&mut self) -> bool {
        false
    }

    /// The node stops: from now on nothing lingers.
    pub(crate) fn flush(&mut self, _now: Now) {}

    /// Whether nothing waits and nothing is in flight.
    pub(crate) fn is_idle(&self) -> bool {
        true
    }

    /// When to call [`poll_batch`](Self::poll_batch) next; perhaps at once.
    pub(crate) fn poll_timeout(&self) -> Option<Mono> {
        None
    }

    /// How the way to it is.
    pub(crate) fn state(&self) -> LinkState {
        LinkState::Starting
    }

    /// Since when it is so.
    pub(crate) fn since(&self) -> Mono {
        Mono(0)
    }

    /// Last request that was answered, also of a probe or a repair.
    pub(crate) fn last_success(&self) -> Option<Mono> {
        None
    }

    /// Fills in what is known here: kind, state, error, last success, lag, queue and the counters of items.
    pub(crate) fn report(&self, _now: Now, facts: &mut PeerFacts) {
        facts.kind = self.kind;
    }
}
