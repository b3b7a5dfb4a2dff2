//! Drives the mesh: gives it the time and what the registry says, and executes what it asks for over HTTP and DNS.
//!
//! A [`Handle`] is made first, because the registry's event sink needs it; then the registry; then the [`Replicator`],
//! which runs as one task. Lock order is registry, then mesh: the sink is called under the registry's lock and takes the
//! mesh's, so nothing here calls the registry while it holds the mesh.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Origin, PeerId, RegistryHandle};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::sleep;

mod handle;
mod link;
mod probe;
mod pull;
mod repair;
mod resolution;
mod send;

pub use handle::{DriverCounts, Handle};
pub use resolution::{Own, Sources, SourcesError};

pub use crate::dns::{DnsError, Resolver};
pub use crate::http::ConnectionCounts;

use crate::facts::Alarm;
use crate::http::{Failed, Identity};
use crate::message::{Failure, NodeId, Outcome, Output, RequestId};
use link::{Lane, Link};
use resolution::Round;

/// The mesh is asked at least this often, whatever it says, because not all of its reasons to act wake the driver.
const LONGEST: Duration = Duration::from_secs(1);
/// After a turn that had nothing to do: a due moment may lie a fraction of a millisecond ahead.
const SHORTEST: Duration = Duration::from_millis(1);
/// After a panic, which may happen again at once.
const AFTER_PANIC: Duration = Duration::from_millis(100);
/// Idle connections are looked at so often, and closed when they were not used since the last look but one.
const SWEEP: Duration = Duration::from_secs(15);

/// How the driver behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Own IP address, as told to peers in `DiscoveryIdentity-Id`.
    pub address: Arc<str>,
    /// For a connection, and for a request from its beginning to the last byte of its answer.
    pub request_timeout: Duration,
    /// The same for requests whose answers are whole registries.
    pub copy_timeout: Duration,
    /// Whether the registry is opened when the mesh says so. Not if its owner has opened it: a node without peers, which may
    /// get some later, must not hold what it serves already.
    pub opens: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            address: Arc::from("127.0.0.1"),
            request_timeout: Duration::from_secs(5),
            copy_timeout: Duration::from_secs(30),
            opens: true,
        }
    }
}

/// Is told of alarms: which, and whether it was raised or ended. Called without locks; must not block.
pub type AlarmSink = Box<dyn Fn(&Alarm, bool) + Send>;

/// The task that replicates.
pub struct Replicator {
    handle: Handle,
    registry: RegistryHandle,
    settings: Arc<Settings>,
    identity: Identity,
    resolver: Resolver,
    alarms: AlarmSink,
    links: BTreeMap<PeerId, Arc<Link>>,
    /// What names gave when they were last resolved.
    round: Round,
    /// Rounds of questions begun. Only the last one counts: sources may have changed since those before it.
    rounds: u64,
    tasks: JoinSet<Ended>,
    errands: HashMap<Id, Errand>,
}

/// What a task is for, should it panic.
#[derive(Clone, Debug)]
enum Errand {
    Request {
        link: Arc<Link>,
        id: RequestId,
        lane: Lane,
    },
    Resolve,
    Locate,
}

/// What became of a task.
#[derive(Debug)]
enum Ended {
    /// Who answered, if somebody did, and what.
    Request(Option<NodeId>, Outcome),
    /// The round of this number, and what came of it.
    Resolved(u64, Round),
    Located(PeerId, Vec<IpAddr>),
}

impl Replicator {
    /// Nothing happens before [`run`](Self::run).
    pub fn new(
        handle: Handle,
        registry: RegistryHandle,
        resolver: Resolver,
        settings: Settings,
        alarms: AlarmSink,
    ) -> Self {
        let identity = Identity {
            node: handle.node(),
            address: Arc::clone(&settings.address),
            connect_within: settings.request_timeout,
        };
        Self {
            handle,
            registry,
            settings: Arc::new(settings),
            identity,
            resolver,
            alarms,
            links: BTreeMap::new(),
            round: Round::default(),
            rounds: 0,
            tasks: JoinSet::new(),
            errands: HashMap::new(),
        }
    }

    /// Replicates until `shutdown` is ready. What waits then is lost: see [`Handle::flush`].
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut sweep = pin!(sleep(SWEEP));
        loop {
            let wait = self.turn();
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
                () = self.handle.woken() => {}
                () = &mut sweep => {
                    self.links.values().for_each(|link| link.transport.sweep());
                    sweep.set(sleep(SWEEP));
                }
                () = sleep(wait) => {}
            }
        }
    }

    /// Does what is due, and tells how long it is until more is. A panic must not end replication.
    fn turn(&mut self) -> Duration {
        match catch_unwind(AssertUnwindSafe(|| self.step())) {
            Ok(wait) => wait,
            Err(_) => {
                self.handle.panicked();
                AFTER_PANIC
            }
        }
    }

    fn step(&mut self) -> Duration {
        if self.handle.take_changed_sources() {
            self.resolve();
        }
        let now = self.registry.now();
        let (outputs, due) = self.handle.drain(now);
        if outputs.is_empty() {
            return due.map_or(LONGEST, |due| due.since(now.mono).clamp(SHORTEST, LONGEST));
        }
        for output in outputs {
            let request = request_of(&output);
            let executed = catch_unwind(AssertUnwindSafe(|| self.execute(output)));
            if executed.is_err() {
                self.handle.panicked();
                // The mesh asks for nothing more of the kind before it has heard of this one.
                if let Some((peer, id)) = request {
                    self.handle.outcome(&peer, id, None, panicked());
                }
            }
        }
        Duration::ZERO
    }

    /// No lock is held here.
    fn execute(&mut self, output: Output) {
        match output {
            Output::Send { peer, id, items } => {
                self.request(peer, id, Lane::Send, |errand| send::send(errand, items));
            }
            Output::Probe { peer, id } => self.request(peer, id, Lane::Probe, probe::probe),
            Output::Repair { peer, id, step } => {
                self.request(peer, id, Lane::Repair, |errand| repair::repair(errand, step));
            }
            Output::Pull { peer, id } => self.request(peer, id, Lane::Pull, pull::pull),
            Output::Adopt { peer, command } => {
                self.registry.apply(Origin::Peer(peer), command);
            }
            Output::Reachable { peer, reachable } => self.registry.peer_reachable(&peer, reachable),
            Output::Open { synced, settle } => {
                if self.settings.opens {
                    self.registry.open(synced, settle);
                }
            }
            Output::Resolve => self.resolve(),
            Output::Alarm { alarm, raised } => (self.alarms)(&alarm, raised),
        }
    }

    /// Begins a request, unless one of its kind is under way to that peer: the mesh does not ask for that, but a peer that
    /// was removed and came back is new to it.
    fn request<F, R>(&mut self, peer: PeerId, id: RequestId, lane: Lane, begin: F)
    where
        F: FnOnce(link::Errand) -> R,
        R: Future<Output = Result<(Option<NodeId>, Outcome), Failed>> + Send + 'static,
    {
        let refused = |failure, text: &str| Failed {
            failure,
            text: text.into(),
            retry_after: None,
            node: None,
        };
        let Some(link) = self.links.get(&peer).cloned() else {
            let failed = refused(Failure::Unreachable, "the peer is not configured any more");
            self.handle.outcome(&peer, id, None, failed.into());
            return;
        };
        if !link.begin(lane) {
            let failed = refused(Failure::Busy, "another request is under way");
            self.handle.outcome(&peer, id, None, failed.into());
            return;
        }
        let work = begin(link::Errand {
            link: Arc::clone(&link),
            registry: self.registry.clone(),
            settings: Arc::clone(&self.settings),
            own: self.identity.node,
        });
        let task = self.tasks.spawn(async move {
            match work.await {
                Ok((node, outcome)) => Ended::Request(node, outcome),
                Err(failed) => Ended::Request(failed.node, failed.into()),
            }
        });
        self.errands.insert(task.id(), Errand::Request { link, id, lane });
    }

    fn ended(&mut self, ended: Result<(Id, Ended), JoinError>) {
        let (id, ended) = match ended {
            Ok((id, ended)) => (id, Some(ended)),
            Err(error) => {
                self.handle.panicked();
                (error.id(), None)
            }
        };
        match (self.errands.remove(&id), ended) {
            (Some(Errand::Request { link, id, lane }), ended) => {
                link.end(lane);
                let (node, outcome) = match ended {
                    Some(Ended::Request(node, outcome)) => (node, outcome),
                    _ => (None, panicked()),
                };
                if let Outcome::Probed(probed) = &outcome {
                    link.set_ours(probed.node.is_some());
                }
                self.handle.outcome(&link.peer, id, node, outcome);
            }
            (_, Some(Ended::Resolved(number, round))) if number == self.rounds => self.resolved(round),
            (_, Some(Ended::Resolved(..))) => {}
            (_, Some(Ended::Located(peer, addresses))) => self.handle.set_addresses(&peer, addresses),
            (Some(Errand::Resolve), _) => self
                .handle
                .resolve_failed("resolving the peers' names went wrong"),
            (Some(Errand::Locate) | None, _) => {}
        }
    }

    /// Resolves the names of peers, whose results come later. The old peers stay until then.
    fn resolve(&mut self) {
        let sources = self.handle.sources();
        self.rounds += 1;
        let (resolver, before, number) = (self.resolver, self.round.clone(), self.rounds);
        let task = self
            .tasks
            .spawn(async move { Ended::Resolved(number, before.next(&sources, resolver).await) });
        self.errands.insert(task.id(), Errand::Resolve);
    }

    fn resolved(&mut self, round: Round) {
        if let Some(peers) = &round.peers {
            let mut links = BTreeMap::new();
            for address in peers {
                let peer = address.id();
                // Connections with old credentials are none.
                let kept = self.links.remove(&peer);
                let kept = kept.filter(|link| link.transport.address() == address);
                let link = kept.unwrap_or_else(|| Arc::new(Link::new(address.clone(), &self.identity)));
                self.locate(Arc::clone(&link));
                links.insert(peer, link);
            }
            self.links = links;
            self.handle.set_links(self.links.values().cloned().collect());
            self.handle.set_peers(self.links.keys().cloned().collect());
        }
        // Behind the peers, which would count as all being well.
        if let Some(error) = &round.error {
            self.handle.resolve_failed(error);
        }
        self.round = round;
    }

    fn locate(&mut self, link: Arc<Link>) {
        let task = self.tasks.spawn(async move {
            let address = link.transport.address();
            let found = resolution::locate(&address.host, address.port).await;
            Ended::Located(link.peer.clone(), found)
        });
        self.errands.insert(task.id(), Errand::Locate);
    }
}

fn request_of(output: &Output) -> Option<(PeerId, RequestId)> {
    match output {
        Output::Send { peer, id, .. }
        | Output::Probe { peer, id }
        | Output::Repair { peer, id, .. }
        | Output::Pull { peer, id } => Some((peer.clone(), *id)),
        Output::Adopt { .. }
        | Output::Reachable { .. }
        | Output::Open { .. }
        | Output::Resolve
        | Output::Alarm { .. } => None,
    }
}

fn panicked() -> Outcome {
    Outcome::Failed {
        failure: Failure::Unreachable,
        text: "the request went wrong here: a bug of this node".into(),
        retry_after: None,
    }
}

impl From<Failed> for Outcome {
    fn from(failed: Failed) -> Self {
        Self::Failed {
            failure: failed.failure,
            text: failed.text,
            retry_after: failed.retry_after,
        }
    }
}
