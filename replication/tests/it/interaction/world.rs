//! The nodes of a transcript, the clients that renew at them, and the commands that move them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    Changed, Command, Event, Instance, InstanceKey, Mono, Now, Origin, PeerId, Registered, Renewed, Reply,
    Status, Wall,
};
use eureka_replication::{NodeId, Rules, Sender};

use super::arguments::{Arguments, duration};
use super::network::{Fault, Message, Network};
use super::show;
use crate::node::{Answer, Node, Request};

/// What the wall clock shows when a transcript begins.
const START: Wall = Wall(1_700_000_000_000);
/// How long a transcript waits for nodes to become equal.
const PATIENCE: Duration = Duration::from_secs(600);

/// All nodes under one clock.
pub(crate) struct World {
    now: Now,
    settings: Settings,
    members: Vec<Member>,
    network: Network,
    clients: BTreeMap<InstanceKey, Client>,
    verbose: bool,
}

/// One server.
struct Member {
    node: Node,
    /// It speaks and answers as Java's does.
    java: bool,
    /// How often it was started.
    boots: u64,
    paused: bool,
    /// Its peers' names lead to these nodes.
    peers: BTreeMap<PeerId, usize>,
    opened: bool,
}

/// A client that renews.
struct Client {
    node: usize,
    every: Duration,
    next: Mono,
    instance: Arc<Instance>,
}

#[derive(Clone, Default)]
struct Settings {
    registry: eureka_registry_core::Config,
    mesh: eureka_replication::Config,
}

impl Default for World {
    fn default() -> Self {
        Self {
            now: Now {
                mono: Mono(0),
                wall: START,
            },
            settings: Settings::default(),
            members: Vec::new(),
            network: Network::default(),
            clients: BTreeMap::new(),
            verbose: false,
        }
    }
}

impl World {
    /// Runs one line and tells what came of it, alarms and openings included:
    ///
    /// ```text
    /// nodes N [SETTING=VALUE]...                 N nodes that are each other's peers, at time zero
    /// java n1                                    the node speaks and answers as Java's does, and is open at once
    /// peers n1 n2 n3                             from now on these are the peers of the first; none: no peers
    /// shared n1 n2 n3                            the first node's name for the second leads to the third from now on
    /// client n1 APP/id [every=D] [dirty=N] [...] a client registers and renews there until it crashes
    /// roam APP/id n2                             it renews there from now on
    /// crash APP/id                               it renews no more
    /// register|renew|cancel|override|clear|metadata n1 APP/id [...] [from=ORIGIN]
    /// cut n1 n2 [one-way] | mend n1 n2           requests between the two, or from the first to the second, fail
    /// fault n1 STATUS|hang|down|none             how it fails whatever it is asked
    /// pause n1 | resume n1                       nothing happens in it; what it is asked hangs
    /// restart n1                                 it begins anew, empty
    /// advance D                                  time passes
    /// stabilize                                  time passes until all nodes are equal and have nothing left to send
    /// show                                       what each node that runs lists; equal ones together
    /// ages APP/id                                how long ago each node heard of it
    /// mesh n1                                    what it knows of its peers
    /// traffic                                    requests since the last time
    /// events on|off                              print evictions and late leases
    /// ```
    pub(crate) fn run(&mut self, line: &str) -> Result<String, String> {
        let arguments = Arguments::parse(line);
        let mut answer = match arguments.name {
            "nodes" => self.nodes(&arguments)?,
            "advance" => {
                let by = arguments.next().and_then(duration).ok_or("how long?")?;
                self.advance(self.now.mono.after(by))
            }
            "stabilize" => self.stabilize(),
            "show" => self.show(),
            "ages" => self.ages(&arguments.key()?),
            "mesh" => self.mesh(arguments.node),
            "traffic" => self.traffic(),
            "events" => {
                self.verbose = arguments.next() == Some("on");
                String::new()
            }
            "client" | "roam" | "crash" => self.client(&arguments)?,
            "register" | "renew" | "cancel" | "override" | "clear" | "metadata" => {
                self.command(&arguments)?
            }
            _ => self.trouble(&arguments)?,
        };
        arguments.finish()?;
        self.send_all();
        answer += &self.drain();
        Ok(answer)
    }

    fn nodes(&mut self, arguments: &Arguments<'_>) -> Result<String, String> {
        let count: usize = arguments
            .next()
            .and_then(|text| text.parse().ok())
            .ok_or("how many?")?;
        *self = Self {
            settings: settings(arguments)?,
            ..Self::default()
        };
        for index in 0..count {
            let node = self.start(index, 0);
            let others = (0..count).filter(|other| *other != index);
            let peers = others.map(|other| (peer(other), other)).collect();
            self.members.push(Member {
                node,
                java: false,
                boots: 0,
                paused: false,
                peers,
                opened: false,
            });
        }
        Ok(String::new())
    }

    fn start(&self, index: usize, boots: u64) -> Node {
        let mut mesh = self.settings.mesh.clone();
        mesh.node = NodeId([index as u64 + 1, boots]);
        mesh.seed = index as u64 + 10 * boots;
        Node::new(self.now, self.settings.registry.clone(), mesh)
    }

    /// Tells a node its peers and their addresses.
    fn introduce(&mut self, index: usize) {
        let now = self.now;
        let member = &mut self.members[index];
        member.node.set_peers(now, member.peers.keys().cloned().collect());
        for (peer, leads_to) in &member.peers {
            member.node.mesh.set_addresses(peer, vec![address(*leads_to)]);
        }
    }

    /// Faults of nodes and of the ways between them.
    fn trouble(&mut self, arguments: &Arguments<'_>) -> Result<String, String> {
        let index = arguments.node;
        let count = self.members.len();
        let member = self
            .members
            .get_mut(index)
            .ok_or_else(|| format!("there are {count} nodes"))?;
        match arguments.name {
            "java" => {
                member.java = true;
                member.node.registry.open(self.now, 0, None);
            }
            "peers" => {
                member.peers.clear();
                while let Some(other) = next_node(arguments) {
                    member.peers.insert(peer(other), other);
                }
                if member.node.mesh.facts(self.now).peers.is_empty() && self.now.mono == Mono(0) {
                    return Ok(String::new());
                }
                self.introduce(index);
            }
            "shared" => {
                let name = peer(next_node(arguments).ok_or("which name?")?);
                let leads_to = next_node(arguments).ok_or("to whom?")?;
                member.peers.insert(name, leads_to);
            }
            "cut" | "mend" => {
                let other = next_node(arguments).ok_or("which other?")?;
                let one_way = arguments.next() == Some("one-way");
                let change = if arguments.name == "cut" {
                    Network::cut
                } else {
                    Network::mend
                };
                change(&mut self.network, index, other);
                if !one_way {
                    change(&mut self.network, other, index);
                }
            }
            "fault" => {
                let fault = match arguments.next() {
                    Some("none") => None,
                    Some("hang") => Some(Fault::Hang),
                    Some("down") => Some(Fault::Down),
                    status => Some(Fault::Status(
                        status.and_then(|text| text.parse().ok()).ok_or("how?")?,
                    )),
                };
                self.network.fail(index, fault);
            }
            "pause" => {
                member.paused = true;
                self.network.fail(index, Some(Fault::Hang));
            }
            "resume" => {
                member.paused = false;
                self.network.fail(index, None);
            }
            "restart" => {
                member.boots += 1;
                member.opened = false;
                let boots = member.boots;
                self.members[index].node = self.start(index, boots);
                self.introduce(index);
            }
            name => return Err(format!("there is no command `{name} {}`", arguments.rest)),
        }
        Ok(String::new())
    }

    fn client(&mut self, arguments: &Arguments<'_>) -> Result<String, String> {
        let key = arguments.key()?;
        match arguments.name {
            "client" => {
                let every = arguments.duration("every")?.unwrap_or(Duration::from_secs(30));
                let instance = Arc::new(instance(&key, arguments)?);
                let command = Command::Register {
                    instance: Arc::clone(&instance),
                    age: Duration::ZERO,
                };
                self.members[arguments.node]
                    .node
                    .apply(self.now, Origin::Client, command);
                self.clients.insert(
                    key,
                    Client {
                        node: arguments.node,
                        every,
                        next: self.now.mono.after(every),
                        instance,
                    },
                );
            }
            "roam" => {
                let client = self.clients.get_mut(&key).ok_or("no such client")?;
                client.node = next_node(arguments).ok_or("where?")?;
            }
            _ => {
                self.clients.remove(&key).ok_or("no such client")?;
            }
        }
        Ok(String::new())
    }

    fn command(&mut self, arguments: &Arguments<'_>) -> Result<String, String> {
        let (now, origin) = (self.now, arguments.origin()?);
        let key = arguments.key()?;
        let command = match arguments.name {
            "register" => Command::Register {
                instance: Arc::new(instance(&key, arguments)?),
                age: Duration::ZERO,
            },
            "renew" => Command::Renew {
                key,
                last_dirty: arguments.number("dirty")?,
                overridden: arguments.status_option("overridden")?,
            },
            "cancel" => {
                self.clients.remove(&key);
                Command::Cancel { key }
            }
            "override" => Command::Override {
                key,
                status: arguments.next().and_then(Status::parse).ok_or("which status?")?,
                last_dirty: arguments.number("dirty")?,
            },
            "clear" => Command::ClearOverride {
                key,
                status: arguments.next().and_then(Status::parse),
                last_dirty: arguments.number("dirty")?,
            },
            _ => Command::Metadata {
                key,
                entries: arguments
                    .take_rest()
                    .into_iter()
                    .map(|(key, value)| (key.into(), value.into()))
                    .collect(),
            },
        };
        let reply = self.members[arguments.node].node.apply(now, origin, command);
        Ok(describe(&reply))
    }

    /// Time passes, and what is due is done when it is due.
    fn advance(&mut self, end: Mono) -> String {
        let mut text = String::new();
        self.begin();
        self.send_all();
        while let Some(due) = self.next_due().filter(|due| *due <= end) {
            self.pass_to(due.max(self.now.mono));
            self.step();
            text += &self.drain();
        }
        self.pass_to(end);
        text
    }

    fn stabilize(&mut self) -> String {
        let began = self.now.mono;
        let mut text = String::new();
        self.begin();
        self.send_all();
        while !self.is_stable() {
            let limit = began.after(PATIENCE);
            let Some(due) = self.next_due().filter(|due| *due <= limit) else {
                return text + "not stable after ten minutes\n";
            };
            self.pass_to(due.max(self.now.mono));
            self.step();
            text += &self.drain();
        }
        let took = self.now.mono.since(began);
        text + &format!("stable after {}\n", show::seconds(took))
    }

    /// At time zero, when everything about them is said, nodes learn of their peers.
    fn begin(&mut self) {
        if self.now.mono == Mono(0) {
            (0..self.members.len()).for_each(|index| self.introduce(index));
        }
    }

    fn pass_to(&mut self, mono: Mono) {
        self.now.wall.0 += mono.0 - self.now.mono.0;
        self.now.mono = mono;
    }

    fn next_due(&self) -> Option<Mono> {
        let awake = self.members.iter().filter(|member| !member.paused);
        let nodes = awake.filter_map(|member| member.node.next_due());
        let clients = self.clients.values().map(|client| client.next);
        nodes.chain(clients).chain(self.network.next_due()).min()
    }

    /// Everything that is due now: messages, clients, nodes.
    fn step(&mut self) {
        let now = self.now;
        while let Some(message) = self.network.arrive(now.mono) {
            self.deliver(message);
        }
        self.renew_due();
        for member in self.members.iter_mut().filter(|member| !member.paused) {
            if member.node.next_due().is_some_and(|due| due <= now.mono) {
                member.node.tick(now);
            }
        }
        self.send_all();
    }

    fn renew_due(&mut self) {
        let now = self.now;
        for (key, client) in &mut self.clients {
            if client.next > now.mono {
                continue;
            }
            client.next = now.mono.after(client.every);
            let member = &mut self.members[client.node];
            if member.paused {
                continue;
            }
            let renew = Command::Renew {
                key: key.clone(),
                last_dirty: client.instance.last_dirty,
                overridden: None,
            };
            let reply = member.node.apply(now, Origin::Client, renew);
            if matches!(reply, Reply::Renewed(Renewed::Missing | Renewed::Ahead)) {
                let instance = Arc::clone(&client.instance);
                let age = Duration::ZERO;
                member
                    .node
                    .apply(now, Origin::Client, Command::Register { instance, age });
            }
        }
    }

    fn deliver(&mut self, message: Message) {
        let now = self.now;
        match message {
            Message::Request {
                from,
                to,
                peer,
                id,
                request,
            } => {
                let asking = &self.members[from];
                let sender = Sender {
                    node: (!asking.java).then_some(asking.node.id),
                    address: Some(address(from)),
                    identity: None,
                };
                let as_java = asking.java || self.members[to].java;
                let member = &mut self.members[to];
                let unknown = match &request {
                    Request::Probe => as_java,
                    // Served by who has peers.
                    Request::Repair(_) => as_java || member.peers.is_empty(),
                    Request::Batch(_) | Request::Lists => false,
                };
                let answer = if unknown {
                    Answer::Status(404)
                } else {
                    member.node.serve(now, &sender, &request)
                };
                let node = (!as_java).then_some(member.node.id);
                let answer = Ok(answer);
                self.network.answer(
                    now.mono,
                    Message::Answer {
                        to: from,
                        peer,
                        id,
                        node,
                        answer,
                    },
                );
            }
            Message::Answer {
                to,
                peer,
                id,
                node,
                answer,
            } => {
                if !self.members[to].paused {
                    self.members[to].node.answered(now, &peer, id, node, answer);
                }
            }
        }
    }

    fn send_all(&mut self) {
        for (from, member) in self.members.iter_mut().enumerate() {
            for outgoing in member.node.take_outgoing() {
                let to = member.peers[&outgoing.peer];
                let name = (outgoing.peer, outgoing.id);
                self.network.ask(self.now.mono, from, to, name, outgoing.request);
            }
        }
    }

    /// All that run list the same, sum up the same, and have nothing left to send.
    fn is_stable(&mut self) -> bool {
        let now = self.now;
        let mut seen = Vec::new();
        for member in self.members.iter_mut().filter(|member| !member.paused) {
            let busy = member
                .node
                .mesh
                .facts(now)
                .peers
                .iter()
                .any(|peer| peer.queue > 0);
            if busy || !member.node.is_open(now) {
                return false;
            }
            seen.push((member.node.root(now), listed(now, &mut member.node)));
        }
        seen.windows(2).all(|pair| pair[0] == pair[1])
    }

    fn show(&mut self) -> String {
        let now = self.now;
        let mut groups: Vec<(String, Vec<String>)> = Vec::new();
        let members = self.members.iter_mut().enumerate();
        for (index, member) in members.filter(|(_, member)| !member.paused) {
            let held = if member.node.is_open(now) { "" } else { " (held)" };
            let name = format!("n{}{held}", index + 1);
            let list = listed(now, &mut member.node);
            match groups.iter_mut().find(|(known, _)| *known == list) {
                Some((_, names)) => names.push(name),
                None => groups.push((list, vec![name])),
            }
        }
        let groups = groups.into_iter();
        groups
            .map(|(list, names)| format!("{}: {list}\n", names.join(" ")))
            .collect()
    }

    fn ages(&self, key: &InstanceKey) -> String {
        let mut text = String::new();
        for (index, member) in self.members.iter().enumerate() {
            let age = member
                .node
                .registry
                .age(self.now, key)
                .map_or_else(|| String::from("-"), show::seconds);
            writeln!(text, "n{}: {age}", index + 1).expect("a string takes all");
        }
        text
    }

    fn mesh(&self, index: usize) -> String {
        let facts = self.members[index].node.mesh.facts(self.now);
        let mut text = String::new();
        for peer in &facts.peers {
            writeln!(text, "{}", show::peer(self.now.wall, peer)).expect("a string takes all");
        }
        for (name, inbound) in &facts.strangers {
            writeln!(text, "{} requests={}", name.0, inbound.requests).expect("a string takes all");
        }
        for alarm in &facts.alarms {
            writeln!(text, "{} {}: {}", alarm.kind.name(), alarm.peer.0, alarm.text)
                .expect("a string takes all");
        }
        text
    }

    fn traffic(&mut self) -> String {
        let counts = self.network.take_counts().into_iter();
        let line = |((from, to, kind), count)| format!("n{}>n{} {kind}={count}\n", from + 1, to + 1);
        counts.map(line).collect()
    }

    /// Alarms, openings and, if wanted, what happened to leases.
    fn drain(&mut self) -> String {
        let now = self.now;
        let mut text = String::new();
        let at = show::moment(now.mono);
        // Who looks into a registry that is paused gives it the time.
        let members = self.members.iter_mut().enumerate();
        for (index, member) in members.filter(|(_, member)| !member.paused) {
            let name = format!("  {at} n{}", index + 1);
            for (alarm, raised) in member.node.alarms.drain(..) {
                let verb = if raised { "raised" } else { "ended" };
                writeln!(text, "{name} {verb} {} {}", alarm.kind.name(), alarm.peer.0)
                    .expect("a string takes all");
            }
            for event in std::mem::take(&mut member.node.events) {
                match event {
                    Event::Late { key } if self.verbose => writeln!(text, "{name} {key} late"),
                    Event::Expired { key, .. } if self.verbose => writeln!(text, "{name} {key} expired"),
                    _ => Ok(()),
                }
                .expect("a string takes all");
            }
            let open = member.node.is_open(now);
            if open && !std::mem::replace(&mut member.opened, open) {
                writeln!(text, "{name} opens").expect("a string takes all");
            }
            if std::mem::take(&mut member.node.resolve) {
                let peers = member.peers.keys().cloned().collect();
                member.node.set_peers(now, peers);
            }
        }
        text
    }
}

/// `n2`, as an index.
fn next_node(arguments: &Arguments<'_>) -> Option<usize> {
    let number: usize = arguments.next()?.strip_prefix('n')?.parse().ok()?;
    number.checked_sub(1)
}

fn peer(index: usize) -> PeerId {
    PeerId(format!("http://n{}", index + 1).into())
}

fn address(index: usize) -> IpAddr {
    let last = u8::try_from(index + 1).expect("few nodes");
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
}

/// What a node lists, in the order of keys.
fn listed(now: Now, node: &mut Node) -> String {
    let snapshot = node.registry.snapshot(now);
    let lines: Vec<_> = snapshot.instances().map(|view| show::instance(view)).collect();
    if lines.is_empty() {
        String::from("nothing")
    } else {
        lines.join(", ")
    }
}

/// `status= dirty= duration= meta=KEY:VALUE`.
fn instance(key: &InstanceKey, arguments: &Arguments<'_>) -> Result<Instance, String> {
    let mut instance = Instance::new(key.app(), key.id(), "host", "10.0.0.1");
    instance.status = arguments.status_option("status")?.unwrap_or(Status::Up);
    instance.last_dirty = Some(arguments.number("dirty")?.unwrap_or(1));
    if let Some(duration) = arguments.duration("duration")? {
        instance.lease.duration_secs = u32::try_from(duration.as_secs()).expect("short");
    }
    if let Some((key, value)) = arguments.text("meta").and_then(|text| text.split_once(':')) {
        instance.metadata.insert(key, value);
    }
    Ok(instance)
}

fn describe(reply: &Reply) -> String {
    let text = match reply {
        Reply::Registered(Registered::Accepted) => "accepted",
        Reply::Registered(Registered::KeptNewer) => "kept newer",
        Reply::Registered(Registered::Refused) => "refused",
        Reply::Renewed(Renewed::Ok) | Reply::Changed(Changed::Ok) => "ok",
        Reply::Renewed(Renewed::Missing) | Reply::Changed(Changed::Missing) => "missing",
        Reply::Renewed(Renewed::Ahead) => "ahead",
        Reply::Renewed(Renewed::Behind(_)) => "behind",
        other => return format!("{other:?}\n"),
    };
    format!("{text}\n")
}

fn settings(arguments: &Arguments<'_>) -> Result<Settings, String> {
    let mut settings = Settings::default();
    let mesh = &mut settings.mesh;
    mesh.rules = Rules {
        lease_expiry: "exact".into(),
        eviction_interval: Duration::from_secs(60),
        preservation: true,
    };
    for (name, setting) in [
        ("digest-interval", &mut mesh.digest_interval),
        ("settle", &mut mesh.settle),
        ("wait-when-empty", &mut mesh.wait_when_empty),
        ("retry-interval", &mut mesh.retry_interval),
        ("silence-bound", &mut mesh.silence_bound),
        ("eviction-interval", &mut settings.registry.eviction_interval),
    ] {
        if let Some(value) = arguments.duration(name)? {
            *setting = value;
        }
    }
    if let Some(limit) = arguments.number("queue-limit")? {
        mesh.queue_limit = limit;
    }
    if let Some(hold) = arguments.number("hold")? {
        settings.registry.silent_peer_hold = hold;
    }
    if let Some(on) = arguments.number("preservation")? {
        settings.registry.preservation.enabled = on;
    }
    Ok(settings)
}
