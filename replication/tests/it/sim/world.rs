//! One run: servers, clients, the network between them, and time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr};

use eureka_registry_core::{
    Changed, Command, Config as RegistryConfig, Mono, Now, Origin, PeerId, PreservationConfig, Registry,
    Renewed, Reply, Wall,
};
use eureka_replication::{Config as MeshConfig, Failure, NodeId, RequestId, Sender};
use std::time::Duration;

use super::client::Client;
use super::java::Java;
use super::links::Links;
use super::rng::Rng;
use super::scenario::{Act, Scenario, TIMEOUT};
use super::trace;
use super::watch::Watch;
use crate::node::{Answer, Node, Outgoing};

/// What clocks show when a run begins.
const EPOCH: u64 = 1_700_000_000_000;
/// A connection that is refused tells so at once, one that is cut after this long, in milliseconds.
const REFUSED: u64 = 1;
const CUT: u64 = 1_000;
/// A server calls its registry at least this often.
const CALLED_EVERY: u64 = 1_000;
/// Time between two looks of those who watch.
const SAMPLE: u64 = 1_000;

/// Everything there is.
pub(super) struct World {
    pub(super) at: u64,
    pub(super) scenario: Scenario,
    pub(super) servers: Vec<Place>,
    pub(super) links: Links,
    pub(super) clients: Vec<Client>,
    pub(super) watch: Watch,
    pub(super) peers: Vec<PeerId>,
    rng: Rng,
    agenda: BinaryHeap<Reverse<Entry>>,
    order: u64,
    trace: bool,
}

/// Where a server runs, whether it does now or not.
pub(super) struct Place {
    pub(super) server: Option<Server>,
    pub(super) booted: u64,
    pub(super) paused_until: u64,
    pub(super) skew: i64,
    /// Counts processes: what is meant for an earlier one is void.
    process: u32,
    /// The next time it is called.
    wakes: u64,
}

pub(super) enum Server {
    Ours(Box<Node>),
    Java(Box<Java>),
}

struct Entry {
    at: u64,
    order: u64,
    what: Happening,
}

enum Happening {
    Wake { node: usize, process: u32 },
    Boot { node: usize },
    Act(usize),
    Step { client: usize, process: u32 },
    Arrive(Box<Letter>),
    Return(Box<Reception>),
    Sample,
}

/// A request on its way.
#[derive(Clone)]
struct Letter {
    from: usize,
    from_process: u32,
    to: usize,
    to_process: u32,
    outgoing: Outgoing,
    sender: Sender,
    deadline: u64,
    /// Nobody waits for the answer.
    void: bool,
}

/// The end of a request.
struct Reception {
    to: usize,
    to_process: u32,
    peer: PeerId,
    id: RequestId,
    node: Option<NodeId>,
    result: Result<Answer, Failure>,
}

impl World {
    pub(super) fn new(scenario: Scenario, trace: bool) -> Self {
        let places = scenario.nodes.iter().map(|plan| Place {
            server: None,
            booted: 0,
            paused_until: 0,
            skew: plan.skew,
            process: 0,
            wakes: u64::MAX,
        });
        let clients = scenario.clients.iter().enumerate();
        let count = scenario.nodes.len();
        let mut world = Self {
            at: 0,
            servers: places.collect(),
            links: Links::new(&scenario),
            clients: clients.map(|(index, plan)| Client::new(index, *plan)).collect(),
            watch: Watch::new(&scenario),
            peers: (0..count)
                .map(|node| PeerId(format!("http://n{node}:8761/eureka").into()))
                .collect(),
            rng: Rng::new(scenario.seed),
            agenda: BinaryHeap::new(),
            order: 0,
            trace,
            scenario,
        };
        for node in 0..count {
            let at = world.scenario.nodes[node].boots;
            world.links.isolate(node, at);
            world.plan(at, Happening::Boot { node });
        }
        for client in 0..world.clients.len() {
            let at = world.clients[client].plan.starts;
            let act = (at, Act::Start { client });
            world.scenario.acts.push(act);
        }
        for act in 0..world.scenario.acts.len() {
            let at = world.scenario.acts[act].0;
            world.plan(at, Happening::Act(act));
        }
        world.plan(SAMPLE, Happening::Sample);
        world
    }

    /// Lets time pass until the watch has seen enough. `Err` says what went wrong.
    pub(super) fn run(&mut self) -> Result<(), String> {
        while let Some(Reverse(entry)) = self.agenda.pop() {
            debug_assert!(entry.at >= self.at, "time goes on");
            self.at = entry.at;
            self.happen(entry.what);
            if let Some(violation) = self.watch.violation.take() {
                return Err(format!("at {}: {violation}", seconds(self.at)));
            }
            if self.watch.finished {
                return Ok(());
            }
        }
        Err("nothing happens any more".to_owned())
    }

    pub(super) fn now(&self, node: usize) -> Now {
        let place = &self.servers[node];
        Now {
            mono: Mono(self.at - place.booted),
            wall: Wall((EPOCH + self.at).saturating_add_signed(place.skew)),
        }
    }

    #[expect(clippy::print_stdout, reason = "a trace is to be read")]
    pub(super) fn note(&self, text: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>10} {}", seconds(self.at), text());
        }
    }

    pub(super) fn is_up(&self, node: usize) -> bool {
        self.servers[node].server.is_some() && self.servers[node].paused_until <= self.at
    }

    fn plan(&mut self, at: u64, what: Happening) {
        self.order += 1;
        let order = self.order;
        self.agenda.push(Reverse(Entry { at, order, what }));
    }

    fn happen(&mut self, what: Happening) {
        match what {
            Happening::Wake { node, process } => self.wake(node, process),
            Happening::Boot { node } => self.boot(node),
            Happening::Act(act) => self.act(self.scenario.acts[act].1),
            Happening::Step { client, process } => self.step(client, process),
            Happening::Arrive(letter) => self.arrive(*letter),
            Happening::Return(reception) => self.receive(*reception),
            Happening::Sample => {
                super::oracle::look(self);
                self.plan(self.at + SAMPLE, Happening::Sample);
            }
        }
    }

    fn boot(&mut self, node: usize) {
        let plan = self.scenario.nodes[node];
        let others = (0..self.peers.len()).filter(|other| *other != node);
        let peers: Vec<_> = others.map(|other| self.peers[other].clone()).collect();
        self.servers[node].booted = self.at;
        self.servers[node].process += 1;
        self.servers[node].wakes = u64::MAX;
        let now = self.now(node);
        let seed = self.rng.next();
        let server = if plan.java {
            Server::Java(Box::new(Java::new(now, java_config(seed, plan.eviction), peers)))
        } else {
            let id = NodeId([node as u64 + 1, self.rng.next()]);
            let registry = RegistryConfig {
                seed: [seed, 1],
                node: id.0[0],
                called_every: Some(Duration::from_millis(CALLED_EVERY)),
                eviction_interval: Duration::from_secs(plan.eviction),
                ..RegistryConfig::default()
            };
            let mesh = MeshConfig {
                seed,
                node: id,
                digest_interval: Duration::from_secs(self.scenario.digest_interval),
                queue_limit: self.scenario.queue_limit,
                max_rate: self.scenario.max_rate,
                ..MeshConfig::default()
            };
            let mut ours = Node::new(now, registry, mesh);
            ours.set_peers(now, peers);
            for other in (0..self.peers.len()).filter(|other| *other != node) {
                ours.mesh.set_addresses(&self.peers[other], vec![address(other)]);
            }
            Server::Ours(Box::new(ours))
        };
        self.servers[node].server = Some(server);
        self.note(|| format!("n{node} starts"));
        self.settle(node);
    }

    fn wake(&mut self, node: usize, process: u32) {
        let place = &mut self.servers[node];
        if place.process != process || place.server.is_none() || place.wakes > self.at {
            return;
        }
        if place.paused_until > self.at {
            place.wakes = place.paused_until;
            let at = place.paused_until;
            return self.plan(at, Happening::Wake { node, process });
        }
        place.wakes = u64::MAX;
        let now = self.now(node);
        match self.servers[node].server.as_mut().expect("it is up") {
            Server::Ours(ours) => ours.tick(now),
            Server::Java(java) => java.tick(now),
        }
        self.settle(node);
    }

    /// After anything was done at a server: its requests leave, whoever watches is told, and it is called again when it wants.
    fn settle(&mut self, node: usize) {
        let booted = self.servers[node].booted;
        let Some(server) = self.servers[node].server.as_mut() else {
            return;
        };
        let (events, outgoing, due) = match server {
            Server::Ours(ours) => (
                std::mem::take(&mut ours.events),
                ours.take_outgoing(),
                ours.next_due(),
            ),
            Server::Java(java) => (
                std::mem::take(&mut java.events),
                java.take_outgoing(),
                java.next_due(),
            ),
        };
        for event in &events {
            super::oracle::event(self, node, event);
        }
        for outgoing in outgoing {
            self.send(node, outgoing);
        }
        let place = &mut self.servers[node];
        let due = due.map_or(u64::MAX, |due| booted + due.0);
        let at = due.min(self.at + CALLED_EVERY).max(self.at);
        if at < place.wakes {
            place.wakes = at;
            let process = place.process;
            self.plan(at, Happening::Wake { node, process });
        }
    }

    fn send(&mut self, from: usize, outgoing: Outgoing) {
        let to = self
            .peers
            .iter()
            .position(|peer| *peer == outgoing.peer)
            .expect("a peer that exists");
        super::oracle::sent(self, from, to, &outgoing);
        let to = if self.links.is_looped(self.at, from, to) {
            from
        } else {
            to
        };
        let weather = self.scenario.weather;
        let healthy = self.at >= self.scenario.heal;
        let mut delay = self.rng.between(1, weather.delay + 2);
        if !healthy && self.rng.permille(weather.straying) {
            delay = self.rng.between(TIMEOUT / 2, 4 * TIMEOUT);
            self.links.spoil(from, to, self.at + delay);
        }
        let from_process = self.servers[from].process;
        let fails = if self.links.is_cut(self.at, from, to) {
            Some((Failure::Unreachable, CUT))
        } else if self.servers[to].server.is_none() {
            Some((Failure::Unreachable, REFUSED))
        } else if !healthy && self.rng.permille(weather.loss) {
            self.links.spoil(from, to, self.at + TIMEOUT);
            Some((Failure::Busy, TIMEOUT))
        } else {
            None
        };
        self.note(|| {
            format!(
                "n{from} -> n{to} {}{}",
                trace::request(&outgoing),
                if fails.is_some() { " fails" } else { "" }
            )
        });
        if let Some((failure, after)) = fails {
            let (peer, id) = (outgoing.peer, outgoing.id);
            return self.give_back(self.at + after, from, from_process, peer, id, Err(failure));
        }
        let letter = Letter {
            from,
            from_process,
            to,
            to_process: self.servers[to].process,
            sender: self.sender(from),
            outgoing,
            deadline: self.at + TIMEOUT,
            void: false,
        };
        if !healthy && self.rng.permille(weather.twice) {
            let late = self.at + delay + self.rng.between(1, 2_000);
            let mut again = letter.clone();
            again.void = true;
            self.plan(late, Happening::Arrive(Box::new(again)));
        }
        self.plan(self.at + delay, Happening::Arrive(Box::new(letter)));
    }

    /// The end of a request that failed.
    fn give_back(
        &mut self,
        at: u64,
        to: usize,
        to_process: u32,
        peer: PeerId,
        id: RequestId,
        result: Result<Answer, Failure>,
    ) {
        let reception = Reception {
            to,
            to_process,
            peer,
            id,
            node: None,
            result,
        };
        self.plan(at.max(self.at), Happening::Return(Box::new(reception)));
    }

    fn arrive(&mut self, mut letter: Letter) {
        let (from, to) = (letter.from, letter.to);
        let gone = self.servers[to].process != letter.to_process || self.servers[to].server.is_none();
        let paused_until = self.servers[to].paused_until;
        if !gone && paused_until > self.at {
            if !letter.void && paused_until >= letter.deadline {
                letter.void = true;
                let (peer, id) = (letter.outgoing.peer.clone(), letter.outgoing.id);
                self.give_back(
                    letter.deadline,
                    from,
                    letter.from_process,
                    peer,
                    id,
                    Err(Failure::Busy),
                );
            }
            let at = paused_until + self.rng.between(0, 20);
            return self.plan(at, Happening::Arrive(Box::new(letter)));
        }
        if gone {
            if !letter.void {
                let (peer, id) = (letter.outgoing.peer, letter.outgoing.id);
                self.give_back(
                    self.at,
                    from,
                    letter.from_process,
                    peer,
                    id,
                    Err(Failure::Unreachable),
                );
            }
            return;
        }
        super::oracle::arriving(self, from, to, &letter.outgoing.request);
        let now = self.now(to);
        let (node, answer) = match self.servers[to].server.as_mut().expect("it is up") {
            Server::Ours(ours) => {
                let id = letter.sender.node.map(|_| ours.id);
                (id, ours.serve(now, &letter.sender, &letter.outgoing.request))
            }
            Server::Java(java) => (None, java.serve(now, &letter.sender, &letter.outgoing.request)),
        };
        self.settle(to);
        if letter.void {
            return;
        }
        self.answer(letter, node, answer);
    }

    /// The answer is on its way back, unless it gets lost or comes too late.
    fn answer(&mut self, letter: Letter, node: Option<NodeId>, answer: Answer) {
        let (from, to) = (letter.from, letter.to);
        let healthy = self.at >= self.scenario.heal;
        let lost = !healthy && self.rng.permille(self.scenario.weather.loss);
        let back = self.at + self.rng.between(1, self.scenario.weather.delay + 2);
        let (peer, id) = (letter.outgoing.peer, letter.outgoing.id);
        if lost || self.links.is_mute(self.at, from, to) || back > letter.deadline {
            self.links.spoil(from, to, letter.deadline);
            return self.give_back(
                letter.deadline,
                from,
                letter.from_process,
                peer,
                id,
                Err(Failure::Busy),
            );
        }
        let reception = Reception {
            to: from,
            to_process: letter.from_process,
            peer,
            id,
            node,
            result: Ok(answer),
        };
        self.plan(back, Happening::Return(Box::new(reception)));
    }

    fn receive(&mut self, reception: Reception) {
        let to = reception.to;
        let place = &self.servers[to];
        if place.process != reception.to_process || place.server.is_none() {
            return;
        }
        if place.paused_until > self.at {
            let at = place.paused_until + self.rng.between(0, 20);
            return self.plan(at, Happening::Return(Box::new(reception)));
        }
        let now = self.now(to);
        let Reception {
            peer,
            id,
            node,
            result,
            ..
        } = reception;
        match self.servers[to].server.as_mut().expect("it is up") {
            Server::Ours(ours) => ours.answered(now, &peer, id, node, result),
            Server::Java(java) => java.answered(now, &peer, id, result),
        }
        self.settle(to);
    }

    fn sender(&self, node: usize) -> Sender {
        let id = match &self.servers[node].server {
            Some(Server::Ours(ours)) => Some(ours.id),
            Some(Server::Java(_)) | None => None,
        };
        let address = address(node);
        Sender {
            node: id,
            address: Some(address),
            identity: Some(address.to_string().into()),
        }
    }

    /// The next request of a client.
    fn step(&mut self, client: usize, process: u32) {
        if !self.clients[client].running || self.clients[client].process != process {
            return;
        }
        let jitter = self.rng.between(0, 500);
        let next = self.at + self.clients[client].interval() - jitter;
        self.plan(next, Happening::Step { client, process });
        self.heartbeat(client);
    }

    /// A heartbeat, or a registration; like Java's, a client tries three servers.
    fn heartbeat(&mut self, client: usize) {
        if self.clients[client].silent_until > self.at {
            return;
        }
        let count = self.servers.len();
        let balanced = self.clients[client].plan.balanced;
        let first = if balanced {
            self.rng.below(count)
        } else {
            self.clients[client].home
        };
        for node in (0..3).map(|attempt| (first + attempt) % count) {
            if !self.is_up(node) {
                continue;
            }
            for _ in 0..2 {
                let command = self.clients[client].request();
                let reply = self.ask(node, Origin::Client, command);
                self.note(|| format!("i-{client} at n{node}: {reply:?}"));
                match reply {
                    Reply::Renewed(Renewed::Missing | Renewed::Ahead) => {
                        self.clients[client].unknown(self.at)
                    }
                    Reply::Registered(_) => {
                        self.clients[client].registered();
                        self.watch.accepted(self.at, client, node);
                        break;
                    }
                    _ => {
                        self.watch.accepted(self.at, client, node);
                        break;
                    }
                }
            }
            self.settle(node);
            return;
        }
    }

    /// A change at a server that is up.
    pub(super) fn ask(&mut self, node: usize, origin: Origin, command: Command) -> Reply {
        let now = self.now(node);
        match self.servers[node].server.as_mut().expect("it is up") {
            Server::Ours(ours) => ours.apply(now, origin, command),
            Server::Java(java) => java.apply(now, origin, command),
        }
    }

    fn act(&mut self, act: Act) {
        self.note(|| format!("{act:?}"));
        match act {
            Act::Cut { from, to, until } => self.links.cut(self.at, from, to, until),
            Act::Mute { from, to, until } => self.links.mute(from, to, until),
            Act::Loop { from, to, until } => self.links.turn_back(from, to, until),
            Act::Part { group, until } => {
                let count = self.servers.len();
                for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
                    if (group >> from) & 1 != (group >> to) & 1 {
                        self.links.cut(self.at, from, to, until);
                    }
                }
            }
            Act::Pause { node, until } if self.is_up(node) => {
                self.servers[node].paused_until = until;
                self.links.isolate(node, until + TIMEOUT);
                self.watch.paused(node, self.at, until);
            }
            Act::Restart { node, until } if self.is_up(node) => {
                self.servers[node].server = None;
                self.links.isolate(node, until);
                self.watch.restarted(node, until);
                self.plan(until, Happening::Boot { node });
            }
            Act::Pause { .. } | Act::Restart { .. } => {}
            Act::Step { node, by } => self.servers[node].skew += by,
            Act::Accept { node } => self.accept_losses(node),
            _ => self.change(act),
        }
    }

    fn accept_losses(&mut self, node: usize) {
        let now = self.now(node);
        if !self.is_up(node) {
            return;
        }
        if let Some(Server::Ours(ours)) = &mut self.servers[node].server {
            ours.registry.accept_losses(now);
            ours.tick(now);
        }
        self.settle(node);
    }

    /// What clients and operators do.
    fn change(&mut self, act: Act) {
        match act {
            Act::Start { client } if !self.clients[client].running => {
                self.clients[client].start(self.at);
                let process = self.clients[client].process;
                self.step(client, process);
            }
            Act::Crash { client } => self.clients[client].stop(),
            Act::Cancel { client, node } if self.clients[client].running => {
                let node = node.unwrap_or(self.clients[client].home);
                self.cancel(client, node);
            }
            Act::Return { client, node } if self.clients[client].running => {
                self.cancel(client, self.clients[client].home);
                self.clients[client].home = node;
                self.clients[client].start(self.at + 1);
                let process = self.clients[client].process;
                let soon = self.at + self.rng.between(1, 3_000);
                self.plan(soon, Happening::Step { client, process });
            }
            Act::Silence { client, until } => self.clients[client].silent_until = until,
            Act::Move { client, node } => self.clients[client].home = node,
            Act::Report { client, status } if self.clients[client].running => {
                self.clients[client].report(self.at, status);
                self.heartbeat(client);
            }
            Act::Metadata { client, node } => {
                let key = self.clients[client].key.clone();
                let text = (self.at / 1_000).to_string();
                let entries = vec![("note".into(), text.into())];
                self.operate(client, node, Command::Metadata { key, entries });
            }
            Act::Override { client, node, status } => {
                let key = self.clients[client].key.clone();
                let last_dirty = None;
                self.operate(
                    client,
                    node,
                    Command::Override {
                        key,
                        status,
                        last_dirty,
                    },
                );
            }
            Act::Clear { client, node, status } => {
                let key = self.clients[client].key.clone();
                let last_dirty = None;
                self.operate(
                    client,
                    node,
                    Command::ClearOverride {
                        key,
                        status,
                        last_dirty,
                    },
                );
            }
            _ => {}
        }
    }

    fn cancel(&mut self, client: usize, node: usize) {
        self.clients[client].stop();
        if self.is_up(node) && self.clients[client].silent_until <= self.at {
            let key = self.clients[client].key.clone();
            let reply = self.ask(node, Origin::Client, Command::Cancel { key });
            if reply == Reply::Changed(Changed::Ok) {
                self.watch.cancelled(self.at, client, node);
            }
            self.note(|| format!("i-{client} cancels at n{node}: {reply:?}"));
            self.settle(node);
        }
    }

    fn operate(&mut self, client: usize, node: usize, command: Command) {
        if !self.is_up(node) {
            return;
        }
        let reply = self.ask(node, Origin::Operator, command);
        self.note(|| format!("operator at n{node}: {reply:?}"));
        if reply == Reply::Changed(Changed::Ok) {
            self.watch.operated(self.at, client);
        }
        self.settle(node);
    }
}

impl Place {
    /// The registry of the server that runs here.
    pub(super) fn registry(&self) -> Option<&Registry> {
        Some(match self.server.as_ref()? {
            Server::Ours(ours) => &ours.registry,
            Server::Java(java) => &java.registry,
        })
    }
}

fn address(node: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, node as u8 + 1))
}

fn java_config(seed: u64, eviction: u64) -> RegistryConfig {
    RegistryConfig {
        seed: [seed, 1],
        eviction_interval: Duration::from_secs(eviction),
        preservation: PreservationConfig {
            enabled: false,
            ..RegistryConfig::eureka_java().preservation
        },
        ..RegistryConfig::eureka_java()
    }
}

pub(super) fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1_000, millis % 1_000)
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl Eq for Entry {}
