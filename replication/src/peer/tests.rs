//! Tests of the sending side: a bench with one peer, and the tests by subject.

mod arrival;
mod failures;
mod limits;
mod model;
mod slots;

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{AppliedKind, Event, Instance, InstanceKey, Mono, Now, Origin, PeerId, Wall};

use super::Peer;
use crate::config::Config;
use crate::facts::{Inbound, LinkState, PeerFacts, PeerKind};
use crate::message::{Action, Failure, Item, ItemOutcome, RequestId};

/// One peer, and the time.
struct Bench {
    peer: Peer,
    now: Now,
    id: RequestId,
    /// All instances, but for their ids.
    instance: Arc<Instance>,
}

impl Bench {
    fn new(kind: PeerKind) -> Self {
        Self::with(kind, &Config::default())
    }

    fn with(kind: PeerKind, config: &Config) -> Self {
        let now = Now {
            mono: Mono(1_000_000),
            wall: Wall(1_700_000_000_000),
        };
        let mut peer = Peer::new(now, config, 7);
        peer.set_kind(now, kind);
        Self {
            peer,
            now,
            id: RequestId(0),
            instance: instance("any"),
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now.mono = self.now.mono.after(time);
        self.now.wall.0 += u64::try_from(time.as_millis()).expect("little time passes in tests");
    }

    fn says(&mut self, id: &str, kind: AppliedKind) {
        self.hears(id, kind, Origin::Client);
    }

    fn hears(&mut self, id: &str, kind: AppliedKind, origin: Origin) {
        let event = applied(id, kind, origin, &self.instance);
        self.peer.note(self.now, &event);
    }

    fn expires(&mut self, id: &str) {
        let event = Event::Expired {
            seq: 1,
            version: 1,
            key: key(id),
            before: Arc::clone(&self.instance),
        };
        self.peer.note(self.now, &event);
    }

    fn poll(&mut self) -> Option<Vec<(String, Action)>> {
        let id = RequestId(self.id.0 + 1);
        let batch = self.peer.poll_batch(self.now, id)?;
        self.id = id;
        Some(batch.into_iter().map(short).collect())
    }

    /// The batch that has to be due now.
    fn batch(&mut self) -> Vec<(String, Action)> {
        self.poll().expect("a batch is due")
    }

    fn answer(&mut self, outcomes: Vec<ItemOutcome>) -> Vec<Arc<Instance>> {
        self.peer.batch_answered(self.now, self.id, outcomes)
    }

    fn fail(&mut self, failure: Failure) {
        self.fail_until(failure, None);
    }

    fn fail_until(&mut self, failure: Failure, retry_after: Option<Duration>) {
        self.peer
            .batch_failed(self.now, self.id, failure, &"as told".into(), retry_after);
    }

    /// How long the peer is left alone from now on.
    fn pause(&self) -> Duration {
        let until = self.peer.poll_timeout().expect("something waits");
        until.since(self.now.mono)
    }

    fn facts(&self) -> PeerFacts {
        let mut facts = PeerFacts {
            peer: PeerId("http://peer:8761/eureka".into()),
            kind: PeerKind::Unknown,
            node: None,
            state: LinkState::Starting,
            error: None,
            last_success: None,
            lag: Duration::ZERO,
            queue: 0,
            sent: 0,
            retries: 0,
            conflicts: 0,
            missing: 0,
            failed: 0,
            overflowed: 0,
            outdated: 0,
            poisoned: 0,
            digests: 0,
            differing: 0,
            repaired: 0,
            diverged: None,
            clock_skew: None,
            preserving: None,
            rules: None,
            reaches_us: None,
            inbound: Inbound::default(),
        };
        self.peer.report(self.now, &mut facts);
        facts
    }
}

fn instance(id: &str) -> Arc<Instance> {
    Arc::new(Instance::new("app", id, "host", "10.0.0.1"))
}

fn key(id: &str) -> InstanceKey {
    InstanceKey::new("app", id)
}

fn applied(id: &str, kind: AppliedKind, origin: Origin, instance: &Arc<Instance>) -> Event {
    let gone = kind == AppliedKind::Cancelled;
    Event::Applied {
        seq: 1,
        version: 1,
        key: key(id),
        kind,
        before: gone.then(|| Arc::clone(instance)),
        after: (!gone).then(|| Arc::clone(instance)),
        origin,
    }
}

fn short(item: Item) -> (String, Action) {
    (item.key.id().to_string(), item.action)
}

fn item(id: &str, action: Action) -> (String, Action) {
    (id.to_owned(), action)
}

fn peer_origin() -> Origin {
    Origin::Peer(PeerId("http://other:8761/eureka".into()))
}
