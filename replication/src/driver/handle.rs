//! What others hold of the mesh: the registry's sink, the API, whoever shows facts.

use std::fmt;
use std::mem;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use eureka_registry_core::{Clock, Event, EventSink, Mono, Now, Origin, PeerId};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::link::Link;
use super::resolution::Sources;
use crate::config::Config;
use crate::facts::Facts;
use crate::http::ConnectionCounts;
use crate::mesh::Mesh;
use crate::message::{NodeId, Outcome, Output, RequestId, Sender};

/// The mesh, shared. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

struct Shared {
    node: NodeId,
    clock: Arc<dyn Clock>,
    guarded: Mutex<Guarded>,
    /// Whether there are peers, for who asks without the lock.
    has_peers: AtomicBool,
    sources: Mutex<Arc<Sources>>,
    changed_sources: AtomicBool,
    links: Mutex<Vec<Arc<Link>>>,
    panics: AtomicU64,
    /// The driver has something to do.
    wake: Notify,
    /// A request has ended.
    progress: Notify,
}

struct Guarded {
    mesh: Mesh,
    /// When the driver looks again of itself; zero while it is about to.
    asleep_until: Mono,
}

/// What the driver counted since the start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct DriverCounts {
    /// Connections to the peers there are now.
    pub connections: ConnectionCounts,
    /// Panics that replication survived: bugs, all of them.
    pub panics: u64,
}

impl Handle {
    /// A mesh without peers. Nothing is sent before a [`Replicator`](super::Replicator) runs.
    pub fn new(config: Config, sources: Sources, clock: Arc<dyn Clock>) -> Self {
        Self {
            shared: Arc::new(Shared {
                node: config.node,
                guarded: Mutex::new(Guarded {
                    mesh: Mesh::new(clock.now(), config),
                    asleep_until: Mono(0),
                }),
                clock,
                has_peers: AtomicBool::new(false),
                sources: Mutex::new(Arc::new(sources)),
                changed_sources: AtomicBool::new(true),
                links: Mutex::default(),
                panics: AtomicU64::new(0),
                wake: Notify::new(),
                progress: Notify::new(),
            }),
        }
    }

    /// A batch, replicated request or repair arrived: the peer under whose name it is to be applied.
    pub fn inbound(&self, sender: &Sender) -> PeerId {
        let now = self.shared.clock.now();
        let peer = self.shared.guarded.lock().mesh.handle_inbound(now, sender);
        self.shared.wake.notify_one();
        peer
    }

    /// What there is to know.
    pub fn facts(&self) -> Facts {
        let now = self.shared.clock.now();
        self.shared.guarded.lock().mesh.facts(now)
    }

    /// What was counted.
    pub fn counts(&self) -> DriverCounts {
        let mut counts = DriverCounts {
            panics: self.shared.panics.load(Ordering::Relaxed),
            ..DriverCounts::default()
        };
        for link in &*self.shared.links.lock() {
            let of_link = link.transport.counts();
            counts.connections.opened += of_link.opened;
            counts.connections.reused += of_link.reused;
            counts.connections.stale += of_link.stale;
        }
        counts
    }

    /// Who this node is among its peers.
    pub fn node(&self) -> NodeId {
        self.shared.node
    }

    /// Other peers, or other credentials. Queues of those that stay are kept.
    pub fn set_peer_sources(&self, sources: Sources) {
        *self.shared.sources.lock() = Arc::new(sources);
        self.shared.changed_sources.store(true, Ordering::Release);
        self.shared.wake.notify_one();
    }

    /// Names are resolved so often from now on.
    pub fn set_refresh_interval(&self, interval: Duration) {
        let now = self.shared.clock.now();
        let mut guarded = self.shared.guarded.lock();
        guarded.mesh.set_refresh_interval(now, interval);
        drop(guarded);
        self.shared.wake.notify_one();
    }

    /// The node stops: what waits is sent without lingering. True if all of it arrived at those peers that can be reached;
    /// false after `within`.
    pub async fn flush(&self, within: Duration) -> bool {
        let now = self.shared.clock.now();
        self.shared.guarded.lock().mesh.flush(now);
        let flushed = timeout(within, async {
            loop {
                let progress = self.shared.progress.notified();
                if self.shared.guarded.lock().mesh.is_flushed() {
                    return;
                }
                self.shared.wake.notify_one();
                progress.await;
            }
        });
        flushed.await.is_ok()
    }

    /// Does what is due, and gives away what is to be executed, and the next due moment.
    pub(super) fn drain(&self, now: Now) -> (Vec<Output>, Option<Mono>) {
        let mut guarded = self.shared.guarded.lock();
        guarded.mesh.handle_timeout(now);
        let mut outputs = Vec::new();
        while let Some(output) = guarded.mesh.poll_output() {
            outputs.push(output);
        }
        let due = guarded.mesh.poll_timeout();
        guarded.asleep_until = if outputs.is_empty() {
            due.unwrap_or(Mono(u64::MAX))
        } else {
            Mono(0)
        };
        (outputs, due)
    }

    /// Waits for something to do.
    pub(super) async fn woken(&self) {
        self.shared.wake.notified().await;
    }

    pub(super) fn outcome(&self, peer: &PeerId, id: RequestId, node: Option<NodeId>, outcome: Outcome) {
        let now = self.shared.clock.now();
        let handled = catch_unwind(AssertUnwindSafe(|| {
            let mut guarded = self.shared.guarded.lock();
            guarded.mesh.handle_outcome(now, peer, id, node, outcome);
        }));
        if handled.is_err() {
            self.panicked();
        }
        self.shared.progress.notify_waiters();
        // `run` looks again after every task, but not after a request that could not begin.
        self.shared.wake.notify_one();
    }

    pub(super) fn set_peers(&self, peers: Vec<PeerId>) {
        let now = self.shared.clock.now();
        let mut guarded = self.shared.guarded.lock();
        guarded.mesh.set_peers(now, peers);
        let has_peers = !guarded.mesh.is_alone();
        self.shared.has_peers.store(has_peers, Ordering::Relaxed);
    }

    pub(super) fn set_addresses(&self, peer: &PeerId, addresses: Vec<IpAddr>) {
        self.shared.guarded.lock().mesh.set_addresses(peer, addresses);
    }

    pub(super) fn resolve_failed(&self, text: &str) {
        let now = self.shared.clock.now();
        self.shared.guarded.lock().mesh.resolve_failed(now, text);
    }

    pub(super) fn set_links(&self, links: Vec<Arc<Link>>) {
        let old = mem::replace(&mut *self.shared.links.lock(), links);
        drop(old);
    }

    pub(super) fn sources(&self) -> Arc<Sources> {
        Arc::clone(&self.shared.sources.lock())
    }

    pub(super) fn take_changed_sources(&self) -> bool {
        self.shared.changed_sources.swap(false, Ordering::AcqRel)
    }

    pub(super) fn panicked(&self) {
        self.shared.panics.fetch_add(1, Ordering::Relaxed);
    }
}

impl Guarded {
    /// Whether something is due before the driver looks of itself; asked once for each time it sleeps.
    fn wants_to_be_woken(&mut self) -> bool {
        let wanted = self
            .mesh
            .poll_timeout()
            .is_some_and(|due| due < self.asleep_until);
        if wanted {
            self.asleep_until = Mono(0);
        }
        wanted
    }
}

impl EventSink for Handle {
    /// Wakes the driver only if there is something to do before it looks of itself. A panic stays here, because it would keep the
    /// registry's other events from the sink.
    fn event(&self, event: &Event) {
        let noted = catch_unwind(AssertUnwindSafe(|| {
            let mut guarded = self.shared.guarded.lock();
            // Many nodes are alone: they pay for a look.
            if guarded.mesh.is_alone() && !matches!(event, Event::Preserving(_)) {
                return false;
            }
            let now = self.shared.clock.now();
            if let Event::Preserving(preserving) = event {
                guarded.mesh.set_preserving(now, *preserving);
            }
            guarded.mesh.handle_event(now, event);
            guarded.wants_to_be_woken()
        }));
        match noted {
            Ok(true) => self.shared.wake.notify_one(),
            Ok(false) => {}
            Err(_) => self.panicked(),
        }
    }

    /// What a peer sent is not sent on, and many nodes are alone. A peer that is just being added is told of the next renewal.
    fn hears_renewals(&self, origin: &Origin) -> bool {
        !origin.is_peer() && self.shared.has_peers.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}
