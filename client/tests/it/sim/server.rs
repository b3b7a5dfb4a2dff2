//! A server: a registry machine, what HTTP makes of it, and a note of every state it was in.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use eureka_client::call::{Answer, Call, Change, Scope};
use eureka_registry_core::wire::Applications;
use eureka_registry_core::{
    Action, AppliedKind, Changed, Changes, Command, Config, Event, Filter, Instance, InstanceKey, LeaseTimes,
    LeaseView, Mono, Now, Origin, PeerId, PreservationConfig, Reads, Registry, Renewed, Reply, Seen, Settle,
    Snapshot, Wall, reconcile_hash,
};

use super::scenario::{BEGIN, VIP};

/// Names a request among all of all clients.
pub(super) type Token = u64;

/// How many changes one answer of the feed has at most.
const PORTION: usize = 1_000;

/// What an instance is, in a number. Views and registries are compared by the sums of these.
pub(super) fn print(instance: &Instance) -> u64 {
    let mut hasher = DefaultHasher::new();
    instance.hash(&mut hasher);
    hasher.finish()
}

/// All of it, or what one virtual address selects.
pub(super) fn sum(snapshot: &Snapshot) -> u64 {
    let prints = snapshot.instances().map(|view| print(&view.instance));
    prints.fold(0, u64::wrapping_add)
}

fn selected(instance: &Instance) -> bool {
    let list = instance.vip_address.as_deref().unwrap_or_default();
    list.split(',').any(|element| element == VIP)
}

/// How it behaves.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// Has a feed.
    Ours,
    /// Has a feed, but its lists also have instances of other regions, of which that does not tell.
    Remote,
    /// Answers 404 for what is not Eureka's.
    Java,
}

/// Whether it runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    Up,
    /// Does nothing; what arrives waits.
    Paused,
    /// Answers 503.
    Busy,
    Down,
}

/// With what it starts.
#[derive(Clone, Debug)]
pub(super) enum Begin {
    /// Nothing, and shows it.
    Empty,
    /// Nothing, and does not show it for so long.
    Settling(Duration),
    /// Copies of others, with their ages.
    Copies(Vec<(Arc<Instance>, Duration)>),
}

/// Who waits for changes.
#[derive(Debug)]
struct Waiting {
    request: Token,
    since: u64,
    filter: Option<Filter>,
    until: u64,
}

/// What a call to a server brings about at once.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Answers to requests of clients.
    pub(super) answers: Vec<(Token, Answer)>,
    /// What clients did, for the other servers.
    pub(super) copies: Vec<Command>,
}

#[derive(Debug)]
pub(super) struct Machine {
    registry: Registry,
    kind: Kind,
    state: State,
    boot: u64,
    started: u64,
    /// By how much its wall clock is wrong.
    pub(super) offset: i64,
    waiting: Vec<Waiting>,
    /// What it lists now: everything, and what the virtual address selects.
    now_listed: [u64; 2],
    /// When it last listed that, of what it does not list any more.
    listed: [HashMap<u64, u64>; 2],
    /// The state of the registry that was noted last.
    noted: (u64, u64),
    /// When it wants to be called, unless something happened to it since that was asked.
    due: Option<u64>,
    touched: bool,
}

fn config(seed: u64) -> Config {
    Config {
        seed: [seed, 7],
        // A test that says when leases end cannot have a rule that keeps them.
        preservation: PreservationConfig {
            enabled: false,
            ..PreservationConfig::default()
        },
        eviction_interval: Duration::from_secs(15),
        change_log_limit: 60,
        ..Config::default()
    }
}

impl Machine {
    pub(super) fn new(t: u64, kind: Kind) -> Self {
        let now = Now {
            mono: Mono(0),
            wall: Wall(BEGIN + t),
        };
        let mut registry = Registry::new(now, config(1));
        registry.open(now, 0, None);
        Self {
            registry,
            kind,
            state: State::Up,
            boot: 1,
            started: t,
            offset: 0,
            waiting: Vec::new(),
            now_listed: [0; 2],
            listed: [HashMap::new(), HashMap::new()],
            noted: (0, 0),
            due: None,
            touched: true,
        }
    }

    /// It stops, and forgets everything; whoever waited gets no answer.
    pub(super) fn crash(&mut self, t: u64) -> Vec<Token> {
        self.turn(State::Down);
        self.note(t);
        let waiting = self.waiting.drain(..);
        waiting.map(|waiting| waiting.request).collect()
    }

    /// Starts again.
    pub(super) fn start(&mut self, t: u64, begin: Begin) -> Effects {
        self.turn(State::Up);
        self.boot += 1;
        self.started = t;
        let now = self.now(t);
        self.registry = Registry::new(now, config(self.boot));
        let mut synced = 0;
        let settle = match begin {
            Begin::Empty => None,
            Begin::Settling(time) => Some(Settle::exactly(time)),
            Begin::Copies(copies) => {
                for (instance, age) in copies {
                    synced += 1;
                    let peer = Origin::Peer(PeerId("another".into()));
                    self.registry.apply(now, peer, Command::Adopt { instance, age });
                }
                None
            }
        };
        self.registry.open(now, synced, settle);
        self.settle(t)
    }

    pub(super) fn now(&self, t: u64) -> Now {
        Now {
            mono: Mono(t - self.started),
            wall: Wall((BEGIN + t).saturating_add_signed(self.offset)),
        }
    }

    /// When it wants to be called.
    pub(super) fn due(&mut self) -> Option<u64> {
        if std::mem::take(&mut self.touched) {
            self.due = self.soonest();
        }
        self.due
    }

    /// Stops, or goes on.
    pub(super) fn turn(&mut self, state: State) {
        self.state = state;
        self.touched = true;
    }

    fn soonest(&self) -> Option<u64> {
        if matches!(self.state, State::Down | State::Paused) {
            return None;
        }
        let registry = self.registry.poll_timeout().map(|(due, _)| self.started + due.0);
        let waiting = self.waiting.iter().map(|waiting| waiting.until);
        waiting.chain(registry).min()
    }

    pub(super) fn handle_timeout(&mut self, t: u64) -> Effects {
        self.registry.handle_timeout(self.now(t));
        self.settle(t)
    }

    /// Everything that it holds, with ages.
    pub(super) fn copies(&mut self, t: u64) -> Vec<(Arc<Instance>, Duration)> {
        let now = self.now(t);
        let held = self.registry.snapshot(now);
        let aged = held.instances().map(|view| {
            let age = self.registry.age(now, &view.key()).unwrap_or_default();
            (Arc::clone(&view.instance), age)
        });
        aged.collect()
    }

    /// One instance for another server that does not have it, with its age.
    pub(super) fn offer(&self, t: u64, key: &InstanceKey) -> Option<Command> {
        let age = self.registry.age(self.now(t), key)?;
        let instance = self.find(t, key)?;
        Some(Command::Register { instance, age })
    }

    pub(super) fn find(&self, t: u64, key: &InstanceKey) -> Option<Arc<Instance>> {
        self.registry.lease(self.now(t), key).map(|view| view.instance)
    }

    /// How many have this id.
    pub(super) fn by_id(&mut self, t: u64, id: &str) -> usize {
        self.snapshot(t).by_id(id).len()
    }

    pub(super) fn snapshot(&mut self, t: u64) -> Snapshot {
        self.registry.snapshot(self.now(t))
    }

    /// Whether whoever asks is told somebody: empty lists are not believed at once.
    pub(super) fn shows(&mut self, t: u64, scope: usize) -> bool {
        self.now_listed[scope] != 0 && self.snapshot(t).reads() == Reads::Open
    }

    /// When it last listed exactly this, if ever: `t` if it does so now.
    pub(super) fn last_listed(&self, t: u64, scope: usize, sum: u64) -> Option<u64> {
        if self.state != State::Down && self.now_listed[scope] == sum {
            return Some(t);
        }
        self.listed[scope].get(&sum).copied()
    }

    /// Another server tells what a client did there; whether it wants the whole instance.
    pub(super) fn copy(&mut self, t: u64, from: usize, command: Command) -> (Effects, bool) {
        let peer = Origin::Peer(PeerId(format!("server-{from}").into()));
        let reply = self.registry.apply(self.now(t), peer, command);
        let wanted = matches!(reply, Reply::Renewed(Renewed::Missing | Renewed::Ahead));
        (self.settle(t), wanted)
    }

    /// A request of a client. No answer among the effects: it waits.
    pub(super) fn handle(&mut self, t: u64, request: Token, call: &Call) -> Effects {
        let now = self.now(t);
        let client = Origin::Client;
        let answer = match call {
            Call::Register(instance) => {
                self.registry
                    .register(now, client, Arc::clone(instance), Duration::ZERO);
                Some(Answer::Done)
            }
            Call::Renew { key, last_dirty, .. } => {
                match self.registry.renew(now, client, key, Some(*last_dirty), None) {
                    Renewed::Missing | Renewed::Ahead => Some(Answer::NotFound),
                    Renewed::Ok | Renewed::Behind(_) => Some(Answer::Done),
                }
            }
            Call::Cancel(key) => match self.registry.cancel(now, client, key) {
                Changed::Ok => Some(Answer::Done),
                Changed::Missing => Some(Answer::NotFound),
            },
            _ if self.registry.snapshot(now).reads() != Reads::Open => Some(refused(self.kind)),
            Call::Fetch { what, held, .. } => Some(self.list(now, what, held.as_deref())),
            Call::Delta { .. } => Some(self.delta(now)),
            Call::Changes { .. } if self.kind == Kind::Java => Some(Answer::NotFound),
            Call::Changes {
                since: None, filter, ..
            } => {
                let filter = filter.as_deref().map(Filter::parse);
                assert!(
                    filter.is_none_or(|filter| filter.is_ok()),
                    "a filter that is none"
                );
                let version = self.registry.snapshot(now).version();
                Some(self.told(version, Vec::new()))
            }
            Call::Changes {
                since: Some(since),
                filter,
                wait,
            } => self.changes(t, request, since, filter.as_deref(), *wait),
            other => panic!("a request nobody knows: {other:?}"),
        };
        let mut effects = self.settle(t);
        effects.answers.extend(answer.map(|answer| (request, answer)));
        effects
    }

    fn list(&mut self, now: Now, what: &Scope, held: Option<&str>) -> Answer {
        let snapshot = self.registry.snapshot(now);
        let tag = format!("{}-{}", self.boot, snapshot.edition());
        if held == Some(tag.as_str()) {
            return Answer::Unchanged;
        }
        let views: Vec<_> = match what {
            Scope::All => snapshot.instances().cloned().collect(),
            Scope::Vip(vip) => snapshot.by_vip(vip),
            Scope::SecureVip(vip) => snapshot.by_secure_vip(vip),
            other => panic!("a part nobody knows: {other:?}"),
        };
        let mut counts = [0; 5];
        for view in &views {
            counts[view.instance.status as usize] += 1;
        }
        Answer::List {
            applications: applications(reconcile_hash(counts), &views),
            tag: (self.kind != Kind::Java).then(|| tag.into()),
        }
    }

    fn delta(&mut self, now: Now) -> Answer {
        let snapshot = self.registry.snapshot(now);
        Answer::List {
            applications: applications(snapshot.hash(), &snapshot.delta()),
            tag: None,
        }
    }

    fn changes(
        &mut self,
        t: u64,
        request: Token,
        since: &str,
        filter: Option<&str>,
        wait: Duration,
    ) -> Option<Answer> {
        let filter = filter.map(|text| Filter::parse(text).expect("a filter that parses"));
        let version = since.strip_prefix(&format!("{}.", self.boot));
        let Some(version) = version.and_then(|version| version.parse().ok()) else {
            return Some(Answer::Gone);
        };
        let waiting = Waiting {
            request,
            since: version,
            filter,
            until: t + u64::try_from(wait.as_millis()).expect("not for ages"),
        };
        let answer = self.answer(t, &waiting);
        if answer.is_none() {
            self.waiting.push(waiting);
        }
        answer
    }

    pub(super) fn state(&self) -> State {
        self.state
    }

    /// What there is for somebody who waits.
    fn answer(&self, t: u64, waiting: &Waiting) -> Option<Answer> {
        let (changes, current) = match self.registry.changes(self.now(t), waiting.since, PORTION) {
            Changes::Lost { .. } => return Some(Answer::Gone),
            Changes::Since { changes, current } => (changes, current),
        };
        let told: Vec<_> = changes
            .iter()
            .filter_map(|change| tell(change, waiting.filter.as_ref()))
            .collect();
        let over = !told.is_empty() || t >= waiting.until;
        over.then(|| self.told(current, told))
    }

    fn told(&self, version: u64, changes: Vec<Change>) -> Answer {
        Answer::Changes {
            cursor: format!("{}.{version}", self.boot).into(),
            changes,
            remote: self.kind == Kind::Remote,
        }
    }

    /// Drains the registry, notes what it lists now, and answers whoever waited for that.
    fn settle(&mut self, t: u64) -> Effects {
        self.touched = true;
        let mut effects = Effects::default();
        while let Some(event) = self.registry.poll_event() {
            if let Event::Applied {
                key,
                kind,
                after,
                origin: Origin::Client,
                ..
            } = event
            {
                effects.copies.extend(copied(kind, key, after));
            }
        }
        self.note(t);
        for waiting in std::mem::take(&mut self.waiting) {
            match self.answer(t, &waiting) {
                Some(answer) => effects.answers.push((waiting.request, answer)),
                None => self.waiting.push(waiting),
            }
        }
        effects
    }

    /// Notes until when it listed what it does not list any more.
    fn note(&mut self, t: u64) {
        let listed = match self.state {
            State::Down => [0; 2],
            State::Up | State::Paused | State::Busy => {
                if self.noted == (self.boot, self.registry.edition()) {
                    return;
                }
                self.noted = (self.boot, self.registry.edition());
                let snapshot = self.snapshot(t);
                let chosen = snapshot.instances().filter(|view| selected(&view.instance));
                let chosen = chosen.map(|view| print(&view.instance));
                [sum(&snapshot), chosen.fold(0, u64::wrapping_add)]
            }
        };
        for ((then, now), listed) in self.listed.iter_mut().zip(&mut self.now_listed).zip(listed) {
            if *now != listed {
                then.insert(*now, t);
                *now = listed;
            }
        }
    }
}

/// What other servers are told of what a client did.
fn copied(kind: AppliedKind, key: InstanceKey, after: Option<Arc<Instance>>) -> Option<Command> {
    let instance = || after.clone().expect("it is there");
    match kind {
        AppliedKind::Registered => Some(Command::Register {
            instance: instance(),
            age: Duration::ZERO,
        }),
        AppliedKind::Renewed => Some(Command::Renew {
            last_dirty: instance().last_dirty,
            key,
            overridden: None,
        }),
        AppliedKind::Cancelled => Some(Command::Cancel { key }),
        AppliedKind::Overridden
        | AppliedKind::OverrideCleared
        | AppliedKind::MetadataChanged
        | AppliedKind::Adopted => None,
    }
}

fn applications(hash: String, views: &[Arc<LeaseView>]) -> Applications {
    let mut applications = Applications::default();
    applications.version = Some("1".into());
    applications.hash = Some(hash.into());
    applications.instances = views.iter().map(|view| (**view).clone()).collect();
    applications
}

/// A change as the feed tells it to whoever asked with this filter.
fn tell(change: &eureka_registry_core::Change, filter: Option<&Filter>) -> Option<Change> {
    let seen = filter.map_or(Seen::Whole, |filter| filter.sees(change));
    let (action, instance) = match seen {
        Seen::Hidden => return None,
        Seen::Whole => (change.action, &change.instance),
        Seen::Entered => (Action::Added, &change.instance),
        Seen::Left => (Action::Deleted, change.before.as_ref().expect("it was there")),
    };
    let view = LeaseView {
        instance: Arc::clone(instance),
        action,
        last_updated: change.at,
        lease: LeaseTimes {
            terms: instance.lease,
            registered: change.at,
            renewed: change.at,
            evicted: Wall(0),
            service_up: change.at,
        },
        coordinating: false,
    };
    Some(Change { action, view })
}

/// What a server answers to reads while it does not know enough.
fn refused(kind: Kind) -> Answer {
    let status = if kind == Kind::Java { 403 } else { 503 };
    Answer::Refused {
        status,
        retry_after: None,
    }
}
