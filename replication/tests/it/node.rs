//! A node as the server puts it together: a registry, a mesh, and whoever carries out what the mesh asks for. Requests
//! and answers are values, and nothing here waits: transcripts and the simulator carry them from node to node.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    Changed, Command, Event, Instance, InstanceKey, LeaseView, Mono, Now, Origin, PeerId, Reads, Registry,
    Renewed, RepairAnswer, RepairRequest, Reply, Status, Step,
};
use eureka_replication::{
    Failure, Item, ItemOutcome, LinkState, Live, Mesh, NodeId, Outcome, Output, Probed, Pulled, RequestId,
    Sender, Sending,
};

/// A node of ours.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) registry: Registry,
    pub(crate) mesh: Mesh,
    /// What happened in the registry, for whoever watches: to be taken out.
    pub(crate) events: Vec<Event>,
    /// What the mesh reported for the log: to be taken out.
    pub(crate) alarms: Vec<(eureka_replication::Alarm, bool)>,
    /// Whether the mesh asked for its peers' names to be resolved again.
    pub(crate) resolve: bool,
    /// Requests that are under way.
    waiting: BTreeMap<(PeerId, RequestId), Waiting>,
    /// Requests to be sent.
    outgoing: Vec<Outgoing>,
    mesh_config: eureka_replication::Config,
    preserving: bool,
}

/// A request to a peer.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) peer: PeerId,
    pub(crate) id: RequestId,
    pub(crate) request: Request,
}

/// What servers ask each other.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    /// POST `peerreplication/batch/`.
    Batch(Vec<Sending>),
    /// GET `/api/v1/node`.
    Probe,
    /// POST `/api/v1/repair/..`.
    Repair(RepairRequest),
    /// GET `apps/`.
    Lists,
}

/// What they answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Item by item: the status, and the newer copy with a 409.
    Batch(Vec<(u16, Option<Arc<Instance>>)>),
    /// Who answers and how it does.
    Probed(Probed),
    /// See [`Request::Repair`].
    Repair(RepairAnswer),
    /// Everything that is registered.
    Lists(Vec<Arc<LeaseView>>),
    /// Nothing but a status.
    Status(u16),
}

/// A request that is under way.
#[derive(Debug)]
struct Waiting {
    asked: Mono,
    what: Asked,
}

#[derive(Debug)]
enum Asked {
    /// For each item whether there was something to send.
    Batch(Vec<bool>),
    Probe,
    Repair(Step),
    Lists,
}

impl Node {
    /// A node without peers yet, its reads held.
    pub(crate) fn new(
        now: Now,
        registry: eureka_registry_core::Config,
        mesh: eureka_replication::Config,
    ) -> Self {
        Self {
            id: mesh.node,
            registry: Registry::new(now, registry),
            mesh: Mesh::new(now, mesh.clone()),
            events: Vec::new(),
            alarms: Vec::new(),
            resolve: false,
            waiting: BTreeMap::new(),
            outgoing: Vec::new(),
            mesh_config: mesh,
            preserving: false,
        }
    }

    /// Tells the mesh its peers.
    pub(crate) fn set_peers(&mut self, now: Now, peers: Vec<PeerId>) {
        self.mesh.set_peers(now, peers);
        self.carry_out(now);
    }

    /// What a client, an operator or the node itself asks for.
    pub(crate) fn apply(&mut self, now: Now, origin: Origin, command: Command) -> Reply {
        let reply = self.registry.apply(now, origin, command);
        self.carry_out(now);
        reply
    }

    /// Does what is due.
    pub(crate) fn tick(&mut self, now: Now) {
        // The server calls its registry once a second, due or not, and again while there was too much for one call.
        for _ in 0..64 {
            self.registry.handle_timeout(now);
            self.drain(now);
            if self.registry.poll_timeout().is_none_or(|(due, _)| due > now.mono) {
                break;
            }
        }
        if self.mesh.poll_timeout().is_some_and(|due| due <= now.mono) {
            self.mesh.handle_timeout(now);
        }
        self.carry_out(now);
    }

    /// When to call [`tick`](Self::tick) next.
    pub(crate) fn next_due(&self) -> Option<Mono> {
        let registry = self.registry.poll_timeout().map(|(due, _)| due);
        registry.into_iter().chain(self.mesh.poll_timeout()).min()
    }

    /// The requests that are to be sent now.
    pub(crate) fn take_outgoing(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outgoing)
    }

    /// Whether lists may be read.
    pub(crate) fn is_open(&mut self, now: Now) -> bool {
        self.registry.snapshot(now).reads() == Reads::Open
    }

    /// Sum of everything held, as digests compare it.
    pub(crate) fn root(&mut self, now: Now) -> u64 {
        match self.registry.repair_request(now, &Step::Compare) {
            RepairRequest::Compare { root, .. } => root,
            other => panic!("a compare is {other:?}"),
        }
    }

    /// Answers a request of another server, as the frontend does.
    pub(crate) fn serve(&mut self, now: Now, sender: &Sender, request: &Request) -> Answer {
        let own = sender.node == Some(self.id);
        let answer = match request {
            Request::Probe => Answer::Probed(self.introduce(now, sender)),
            Request::Lists if self.is_open(now) => {
                let snapshot = self.registry.snapshot(now);
                Answer::Lists(snapshot.instances().cloned().collect())
            }
            Request::Lists => Answer::Status(403),
            Request::Batch(_) | Request::Repair(_) if own => Answer::Status(421),
            Request::Batch(items) => {
                let origin = Origin::Peer(self.mesh.handle_inbound(now, sender));
                let answers = items
                    .iter()
                    .map(|item| replicate(now, &mut self.registry, &origin, item));
                Answer::Batch(answers.collect())
            }
            Request::Repair(request) => {
                let origin = Origin::Peer(self.mesh.handle_inbound(now, sender));
                Answer::Repair(self.registry.repair_answer(now, origin, request.clone()))
            }
        };
        self.carry_out(now);
        answer
    }

    /// A request of ours ended: `node` is who answered, if it was one of ours. What is not waited for any more is ignored.
    pub(crate) fn answered(
        &mut self,
        now: Now,
        peer: &PeerId,
        id: RequestId,
        node: Option<NodeId>,
        answer: Result<Answer, Failure>,
    ) {
        let Some(waiting) = self.waiting.remove(&(peer.clone(), id)) else {
            return;
        };
        let outcome = match answer {
            Ok(_) if node == Some(self.id) => failed(Failure::Own, "this node"),
            Ok(answer) => self.understand(now, peer, waiting, answer),
            Err(failure) => failed(failure, "no answer"),
        };
        self.mesh.handle_outcome(now, peer, id, node, outcome);
        self.carry_out(now);
    }

    /// What an answer means for the mesh; what the registry has to learn from it is learned.
    fn understand(&mut self, now: Now, peer: &PeerId, waiting: Waiting, answer: Answer) -> Outcome {
        match (waiting.what, answer) {
            (Asked::Probe, Answer::Probed(probed)) => Outcome::Probed(probed),
            (Asked::Probe, Answer::Status(404)) => Outcome::Probed(Probed {
                node: None,
                wall: None,
                preserving: None,
                rules: None,
                reaches_us: None,
            }),
            (Asked::Batch(sent), Answer::Batch(answers)) => Outcome::Answered(items(&sent, &answers)),
            (Asked::Repair(step), Answer::Repair(answer)) => {
                let origin = Origin::Peer(peer.clone());
                let learned = self.registry.learn(now, origin, waiting.asked, &step, answer);
                self.drain(now);
                Outcome::Learned(learned)
            }
            (Asked::Lists, Answer::Lists(views)) => {
                let instances = views.len();
                for view in views {
                    let instance = Arc::clone(&view.instance);
                    let age = Duration::ZERO;
                    let origin = Origin::Peer(peer.clone());
                    self.registry.apply(now, origin, Command::Adopt { instance, age });
                }
                self.drain(now);
                let (checked, held) = (true, false);
                Outcome::Pulled(Pulled {
                    instances,
                    checked,
                    held,
                })
            }
            (Asked::Lists, Answer::Status(403)) => {
                let (instances, checked, held) = (0, false, true);
                Outcome::Pulled(Pulled {
                    instances,
                    checked,
                    held,
                })
            }
            (_, Answer::Status(status)) => failed(class(status), "a status"),
            (_, _) => failed(Failure::Unreachable, "another answer"),
        }
    }

    /// What this node says of itself to whoever asks.
    fn introduce(&self, now: Now, sender: &Sender) -> Probed {
        let reaches = sender.node.and_then(|asking| {
            let facts = self.mesh.facts(now);
            let known = facts.peers.iter().find(|peer| peer.node == Some(asking))?;
            Some(known.state == LinkState::Up)
        });
        Probed {
            node: Some(self.id),
            wall: Some(now.wall),
            preserving: Some(self.preserving),
            rules: Some(self.mesh_config.rules.clone()),
            reaches_us: reaches,
        }
    }

    /// Hands events to the mesh in their order, as the sink does under the registry's lock.
    fn drain(&mut self, now: Now) {
        while let Some(event) = self.registry.poll_event() {
            if let Event::Preserving(preserving) = event {
                self.preserving = preserving;
                self.mesh.set_preserving(now, preserving);
            }
            self.mesh.handle_event(now, &event);
            self.events.push(event);
        }
    }

    /// Does what the mesh asks for, as the driver does.
    fn carry_out(&mut self, now: Now) {
        self.drain(now);
        if self.mesh.poll_timeout().is_some_and(|due| due <= now.mono) {
            self.mesh.handle_timeout(now);
        }
        while let Some(output) = self.mesh.poll_output() {
            match output {
                Output::Send { peer, id, items } => self.send(now, peer, id, &items),
                Output::Probe { peer, id } => self.ask(now, peer, id, Asked::Probe, Request::Probe),
                Output::Repair { peer, id, step } => {
                    let request = self.registry.repair_request(now, &step);
                    self.ask(now, peer, id, Asked::Repair(step), Request::Repair(request));
                }
                Output::Pull { peer, id } => self.ask(now, peer, id, Asked::Lists, Request::Lists),
                Output::Adopt { peer, command } => {
                    self.registry.apply(now, Origin::Peer(peer), command);
                }
                Output::Reachable { peer, reachable } => self.registry.peer_reachable(now, &peer, reachable),
                Output::Open { synced, settle } => self.registry.open(now, synced, settle),
                Output::Resolve => self.resolve = true,
                Output::Alarm { alarm, raised } => self.alarms.push((alarm, raised)),
                other => panic!("unknown: {other:?}"),
            }
            self.drain(now);
        }
    }

    /// Fills in a batch as things are now.
    fn send(&mut self, now: Now, peer: PeerId, id: RequestId, items: &[Item]) {
        let rendered: Vec<_> = items
            .iter()
            .map(|item| item.render(live(now, &self.registry, &item.key)))
            .collect();
        let sent: Vec<_> = rendered.iter().map(Option::is_some).collect();
        let sending: Vec<_> = rendered.into_iter().flatten().collect();
        if sending.is_empty() {
            let outcome = Outcome::Answered(vec![ItemOutcome::Void; sent.len()]);
            let node = None;
            self.mesh.handle_outcome(now, &peer, id, node, outcome);
        } else {
            self.ask(now, peer, id, Asked::Batch(sent), Request::Batch(sending));
        }
    }

    fn ask(&mut self, now: Now, peer: PeerId, id: RequestId, what: Asked, request: Request) {
        let asked = now.mono;
        self.waiting.insert((peer.clone(), id), Waiting { asked, what });
        self.outgoing.push(Outgoing { peer, id, request });
    }
}

/// A lease as it is at the moment of sending.
pub(crate) fn live(now: Now, registry: &Registry, key: &InstanceKey) -> Option<Live> {
    let view = registry.lease(now, key)?;
    let age = registry.age(now, key)?;
    Some(Live { view, age })
}

/// Applies an item of a batch as a single request of its kind, as the frontend does.
pub(crate) fn replicate(
    now: Now,
    registry: &mut Registry,
    origin: &Origin,
    item: &Sending,
) -> (u16, Option<Arc<Instance>>) {
    let origin = origin.clone();
    match item {
        Sending::Register(live) => {
            registry.register(now, origin, Arc::clone(&live.view.instance), Duration::ZERO);
            (200, None)
        }
        Sending::Cancel(key) => (changed(registry.cancel(now, origin, key)), None),
        Sending::Override(live) => {
            let instance = &live.view.instance;
            // Java sends what is shown, also where it stores no override because that is shown anyway.
            let status = match instance.overridden_status {
                Status::Unknown => instance.status,
                status => status,
            };
            let dirty = instance.last_dirty;
            (
                changed(registry.set_override(now, origin, &instance.key(), status, dirty)),
                None,
            )
        }
        Sending::ClearOverride(live) => {
            let instance = &live.view.instance;
            let (status, dirty) = (Some(instance.status), instance.last_dirty);
            (
                changed(registry.clear_override(now, origin, &instance.key(), status, dirty)),
                None,
            )
        }
        Sending::Renew(live) => {
            let instance = &live.view.instance;
            let overridden = Some(instance.overridden_status).filter(|status| *status != Status::Unknown);
            match registry.renew(now, origin, &instance.key(), instance.last_dirty, overridden) {
                Renewed::Ok => (200, None),
                Renewed::Missing | Renewed::Ahead => (404, None),
                Renewed::Behind(view) => (409, Some(Arc::clone(&view.instance))),
            }
        }
    }
}

const fn changed(changed: Changed) -> u16 {
    match changed {
        Changed::Ok => 200,
        Changed::Missing => 404,
    }
}

/// The outcome of each item of a batch, those included for which there was nothing to send.
fn items(sent: &[bool], answers: &[(u16, Option<Arc<Instance>>)]) -> Vec<ItemOutcome> {
    let mut answers = answers.iter();
    let mut outcomes = Vec::with_capacity(sent.len());
    for sent in sent {
        let outcome = match (sent, if *sent { answers.next() } else { None }) {
            (false, _) => ItemOutcome::Void,
            (true, Some((200..=299, _))) => ItemOutcome::Ok,
            (true, Some((404, _))) => ItemOutcome::Missing,
            (true, Some((409, Some(newer)))) => ItemOutcome::Conflict(Arc::clone(newer)),
            (true, Some((status, _))) => ItemOutcome::Failed(*status),
            (true, None) => break,
        };
        outcomes.push(outcome);
    }
    outcomes
}

const fn class(status: u16) -> Failure {
    match status {
        421 => Failure::Own,
        429 | 503 => Failure::Busy,
        400 => Failure::Rejected,
        413 => Failure::TooLarge,
        500..=599 => Failure::Unreachable,
        _ => Failure::Misconfigured,
    }
}

fn failed(failure: Failure, text: &str) -> Outcome {
    Outcome::Failed {
        failure,
        text: text.into(),
        retry_after: None,
    }
}
