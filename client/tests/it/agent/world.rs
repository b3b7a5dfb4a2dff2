//! Servers that do as they are told, and a clock that goes from one thing to do to the next.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "what the model does not know is to stop the test"
)]

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use eureka_client::agent::{Agent, AgentConfig, Event, FetchKind, Provide};
use eureka_client::call::{Answer, Call, Change, Request, RequestId, Scope};
use eureka_client::{Consume, Server};
use eureka_registry_core::wire::Applications;
use eureka_registry_core::{
    Action, Instance, InstanceKey, LeaseTerms, LeaseTimes, LeaseView, Mono, Now, Snapshot, Status, Wall,
    reconcile_hash,
};

/// What an ordinary answer takes.
const LATENCY: u64 = 10;
/// The wall clock at the start.
pub(crate) const EPOCH: u64 = 1_000_000;

/// How a server takes requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mood {
    Answers,
    /// Every request, with this status.
    Refuses(u16),
    /// Writes are taken, reads are refused.
    HoldsReads,
    /// Does nothing, says nothing.
    Silent,
    /// Does what it is told, but the answer is lost.
    Deaf,
    /// No connection.
    Gone,
}

/// One server with its own registry.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) server: Arc<Server>,
    pub(crate) mood: Mood,
    pub(crate) instances: BTreeMap<InstanceKey, LeaseView>,
    /// What happened; a cursor is a place in here.
    pub(crate) log: Vec<Change>,
    pub(crate) boot: u32,
    pub(crate) feed: bool,
    /// Every question for the feed gets this status.
    pub(crate) feed_status: Option<u16>,
    pub(crate) waits: bool,
    /// Its cursor stays where it is, whatever it tells.
    pub(crate) stuck: bool,
    pub(crate) remote: bool,
    pub(crate) delta_status: Option<u16>,
    pub(crate) tags: bool,
    /// Said instead of the true hash.
    pub(crate) hash: Option<&'static str>,
    pub(crate) left_out: usize,
    pub(crate) refuses_registrations: Option<u16>,
}

struct Flight {
    request: Request,
    at: Mono,
    answer: Option<Answer>,
    write: bool,
}

pub(crate) struct World {
    pub(crate) now: Now,
    pub(crate) agent: Agent,
    pub(crate) models: Vec<Model>,
    flights: Vec<Flight>,
    pub(crate) sent: Vec<String>,
    pub(crate) events: VecDeque<String>,
    pub(crate) view: Option<Snapshot>,
    pub(crate) kinds: Vec<FetchKind>,
    pub(crate) fetched_at: Vec<u64>,
    /// What the owner says when it is asked for the health.
    pub(crate) health: Option<Option<Status>>,
    /// Whether a write may begin while another one is under way: when that one is not waited for any longer.
    pub(crate) may_overlap: bool,
    calls: u32,
}

pub(crate) fn orders(secs: u32) -> Instance {
    let mut instance = Instance::new("orders", "i-1", "h1", "10.0.0.1");
    instance.lease = LeaseTerms {
        renewal_interval_secs: secs,
        duration_secs: 3 * secs,
    };
    instance
}

pub(crate) fn provide() -> AgentConfig {
    AgentConfig::new().provide(Provide::new(orders(30))).seed(7)
}

pub(crate) fn consume() -> Consume {
    let mut consume = Consume::default();
    consume.feed = false;
    consume
}

pub(crate) fn reading(consume: Consume) -> AgentConfig {
    AgentConfig::new().consume(consume).seed(7)
}

pub(crate) fn start() -> Now {
    Now {
        mono: Mono(0),
        wall: Wall(EPOCH),
    }
}

impl Model {
    fn new(name: usize) -> Self {
        let url = format!("http://s{name}:8761/eureka/");
        Self {
            server: Arc::new(Server::parse(&url).expect("a URL")),
            mood: Mood::Answers,
            instances: BTreeMap::new(),
            log: Vec::new(),
            boot: 1,
            feed: true,
            feed_status: None,
            waits: true,
            stuck: false,
            remote: false,
            delta_status: None,
            tags: false,
            hash: None,
            left_out: 0,
            refuses_registrations: None,
        }
    }

    pub(crate) fn put(&mut self, instance: Instance) {
        let view = view(instance);
        self.instances.insert(view.key(), view.clone());
        self.log.push(Change {
            action: Action::Added,
            view,
        });
    }

    pub(crate) fn add(&mut self, app: &str, id: &str) {
        self.put(Instance::new(app, id, id, "10.0.0.9"));
    }

    pub(crate) fn remove(&mut self, app: &str, id: &str) -> bool {
        let Some(mut view) = self.instances.remove(&InstanceKey::new(app, id)) else {
            return false;
        };
        view.action = Action::Deleted;
        self.log.push(Change {
            action: Action::Deleted,
            view,
        });
        true
    }

    /// A restart: knows nobody, and no cursor of before.
    pub(crate) fn restart(&mut self) {
        self.instances.clear();
        self.log.clear();
        self.boot += 1;
    }

    fn cursor(&self) -> Arc<str> {
        format!("{}.{}", self.boot, self.log.len()).into()
    }

    fn hash_now(&self) -> Arc<str> {
        if let Some(hash) = self.hash {
            return hash.into();
        }
        let mut counts = [0; 5];
        for view in self.instances.values() {
            let place = Status::ALL
                .iter()
                .position(|status| *status == view.instance.status);
            counts[place.expect("one of five")] += 1;
        }
        reconcile_hash(counts).into()
    }

    fn list(&self, views: Vec<LeaseView>, tag: Option<Arc<str>>) -> Answer {
        let mut applications = Applications::default();
        applications.version = Some("1".into());
        applications.hash = Some(self.hash_now());
        applications.instances = views;
        applications.left_out = self.left_out;
        Answer::List { applications, tag }
    }

    /// The latest state of whatever is in the log.
    fn delta(&self) -> Answer {
        let mut latest = BTreeMap::new();
        for change in &self.log {
            let view = LeaseView {
                action: change.action,
                ..change.view.clone()
            };
            latest.insert(change.view.key(), view);
        }
        self.list(latest.into_values().collect(), None)
    }

    /// What there is behind a cursor; `None` for a foreign one.
    fn behind(&self, since: &str) -> Option<Vec<Change>> {
        let (boot, place) = since.split_once('.')?;
        let place: usize = place.parse().ok()?;
        (boot == self.boot.to_string() && place <= self.log.len()).then(|| self.log[place..].to_vec())
    }

    /// `None` while it waits.
    fn answer(&mut self, call: &Call, waited: bool) -> Option<Answer> {
        let is_read = matches!(
            call,
            Call::Fetch { .. } | Call::Delta { .. } | Call::Changes { .. }
        );
        let refused = |status| {
            Some(Answer::Refused {
                status,
                retry_after: None,
            })
        };
        match self.mood {
            Mood::Refuses(status) => return refused(status),
            Mood::HoldsReads if is_read => return refused(503),
            Mood::Answers | Mood::HoldsReads | Mood::Silent | Mood::Deaf | Mood::Gone => {}
        }
        Some(match call {
            Call::Register(_) if self.refuses_registrations.is_some() => {
                return refused(self.refuses_registrations.unwrap_or_default());
            }
            Call::Register(instance) => {
                self.put((**instance).clone());
                Answer::Done
            }
            Call::Renew { key, .. } if self.instances.contains_key(key) => Answer::Done,
            Call::Renew { .. } => Answer::NotFound,
            Call::Cancel(key) => match self.remove(key.app(), key.id()) {
                true => Answer::Done,
                false => Answer::NotFound,
            },
            Call::Fetch { held, .. } => {
                let tag: Option<Arc<str>> = self.tags.then(|| format!("W/{}", self.cursor()).into());
                if tag.is_some() && *held == tag {
                    Answer::Unchanged
                } else {
                    self.list(self.instances.values().cloned().collect(), tag)
                }
            }
            Call::Delta { .. } => match self.delta_status {
                Some(404) => Answer::NotFound,
                Some(status) => return refused(status),
                None => self.delta(),
            },
            Call::Changes { .. } if self.feed_status.is_some() => {
                return refused(self.feed_status.unwrap_or_default());
            }
            Call::Changes { .. } if !self.feed => Answer::NotFound,
            Call::Changes { since, .. } => {
                let changes = match since {
                    None => Vec::new(),
                    Some(since) => match self.behind(since) {
                        None => return Some(Answer::Gone),
                        Some(changes) if changes.is_empty() && self.waits && !waited => return None,
                        Some(changes) => changes,
                    },
                };
                Answer::Changes {
                    cursor: match since {
                        Some(since) if self.stuck => Arc::clone(since),
                        Some(_) | None => self.cursor(),
                    },
                    changes,
                    remote: self.remote,
                }
            }
            other => panic!("an unknown call: {other:?}"),
        })
    }
}

impl World {
    /// So many servers, `set` before the agent begins.
    pub(crate) fn new(servers: usize, config: AgentConfig, set: impl FnOnce(&mut [Model])) -> Self {
        let mut models: Vec<_> = (1..=servers).map(Model::new).collect();
        set(&mut models);
        let list = models.iter().map(|model| Arc::clone(&model.server)).collect();
        let mut world = Self {
            now: start(),
            agent: Agent::new(start(), config, list),
            models,
            flights: Vec::new(),
            sent: Vec::new(),
            events: VecDeque::new(),
            view: None,
            kinds: Vec::new(),
            fetched_at: Vec::new(),
            health: None,
            may_overlap: false,
            calls: 0,
        };
        world.drain();
        world
    }

    /// The model of the server that the agent asks: the others are told by what it sent.
    pub(crate) fn model(&mut self, host: &str) -> &mut Model {
        let found = self.models.iter_mut().find(|model| model.server.host() == host);
        found.expect("a server of this name")
    }

    /// Whom the last request went to.
    pub(crate) fn last_host(&self) -> String {
        let last = self.sent.last().expect("something was sent");
        last.split(' ').nth(1).expect("a host").to_owned()
    }

    /// Everything in the next so many milliseconds.
    pub(crate) fn run(&mut self, millis: u64) {
        let end = Mono(self.now.mono.0 + millis);
        loop {
            self.drain();
            self.wake_waiting();
            let flight = self.flights.iter().map(|flight| flight.at).min();
            let timer = self.agent.poll_timeout().map(|(at, _)| at);
            if let Some(timer) = timer {
                assert!(
                    timer > self.now.mono,
                    "a timer in the past: {timer:?} at {:?}",
                    self.now
                );
            }
            let next = flight.into_iter().chain(timer).min().filter(|at| *at <= end);
            let Some(next) = next else {
                self.go_to(end);
                self.drain();
                return;
            };
            self.go_to(next);
            self.calls += 1;
            assert!(
                self.calls < 500_000,
                "it does not come to rest: {:?}",
                self.sent.last()
            );
            if timer.is_some_and(|timer| timer <= next) {
                self.agent.handle_timeout(self.now);
                self.drain();
            }
            while let Some(place) = self.flights.iter().position(|flight| flight.at <= next) {
                let flight = self.flights.swap_remove(place);
                self.land(flight);
                self.drain();
            }
        }
    }

    /// Both clocks go on.
    fn go_to(&mut self, at: Mono) {
        self.now.wall.0 += at.0 - self.now.mono.0;
        self.now.mono = at;
    }

    fn land(&mut self, flight: Flight) {
        let answer = match flight.answer {
            Some(answer) => answer,
            None => {
                let host = flight.request.server.host().to_owned();
                let model = self.model(&host);
                let answer = model.answer(&flight.request.call, true);
                answer.expect("it has waited")
            }
        };
        self.agent.handle_answer(self.now, flight.request.id, answer);
    }

    /// Long polls of servers where something happened are answered.
    fn wake_waiting(&mut self) {
        let now = self.now.mono;
        for place in 0..self.flights.len() {
            if self.flights[place].answer.is_some() {
                continue;
            }
            let call = self.flights[place].request.call.clone();
            let host = self.flights[place].request.server.host().to_owned();
            let model = self.model(&host);
            let answer = match model.mood {
                Mood::Gone => Some(Answer::Unreachable("the connection broke".into())),
                Mood::Silent | Mood::Deaf => None,
                Mood::Answers | Mood::HoldsReads | Mood::Refuses(_) => model.answer(&call, false),
            };
            if let Some(answer) = answer {
                self.flights[place].answer = Some(answer);
                self.flights[place].at = Mono(now.0 + 1);
            }
        }
    }

    /// Takes what the agent wants to send and to tell.
    pub(crate) fn drain(&mut self) {
        loop {
            while let Some(request) = self.agent.poll_request() {
                self.launch(request);
            }
            let Some(event) = self.agent.poll_event() else {
                return;
            };
            self.note(&event);
            if let (Event::CheckHealth, Some(health)) = (&event, self.health) {
                self.agent.set_health(self.now, health);
            }
        }
    }

    fn launch(&mut self, request: Request) {
        let now = self.now.mono;
        let is_write = |call: &Call| matches!(call, Call::Register(_) | Call::Renew { .. } | Call::Cancel(_));
        let write = is_write(&request.call);
        let host = request.server.host().to_owned();
        self.sent
            .push(format!("{} {host} {}", clock(now), told(&request.call)));
        let others = self.flights.iter().filter(|flight| flight.write == write).count();
        assert!(
            others == 0 || self.may_overlap,
            "more than one of a kind: {:?}",
            self.sent
        );
        let late = Mono(now.0 + millis(request.within));
        let model = self.model(&host);
        let (at, answer) = match model.mood {
            Mood::Silent => (late, Some(Answer::TimedOut)),
            Mood::Deaf => {
                model.answer(&request.call, true);
                (late, Some(Answer::TimedOut))
            }
            Mood::Gone => (Mono(now.0 + LATENCY), Some(Answer::Unreachable("refused".into()))),
            Mood::Answers | Mood::HoldsReads | Mood::Refuses(_) => match model.answer(&request.call, false) {
                Some(answer) => (Mono(now.0 + LATENCY), Some(answer)),
                None => (Mono(now.0 + 25_000), None),
            },
        };
        self.flights.push(Flight {
            request,
            at,
            answer,
            write,
        });
    }

    fn note(&mut self, event: &Event) {
        let text = match event {
            Event::Registered { server } => format!("registered {}", server.host()),
            Event::Renewed { server } => format!("renewed {}", server.host()),
            Event::Missing { server } => format!("missing {}", server.host()),
            Event::RegistrationFailed { server, why } => format!("register {}: {why}", server.host()),
            Event::RenewalFailed {
                server,
                why,
                lease_left,
            } => format!(
                "renew {}: {why}, {} ms left",
                server.host(),
                lease_left.as_millis()
            ),
            Event::Left { cancelled } => format!("left cancelled={cancelled}"),
            Event::CheckHealth => "check health".into(),
            Event::Fetched(fetched) => {
                self.view = Some(fetched.snapshot.clone());
                self.kinds.push(fetched.kind);
                self.fetched_at.push(self.now.mono.0);
                format!("fetched {:?} {}", fetched.kind, fetched.server.host())
            }
            Event::FetchFailed { server, why } => {
                let host = server.as_ref().map_or("nobody", |server| server.host());
                format!("fetch {host}: {why}")
            }
            Event::Following { server } => format!("following {}", server.host()),
            Event::Polling { server, why } => format!("polling {} ({why:?})", server.host()),
            Event::NoServers => "no servers".into(),
            other => panic!("an unknown event: {other:?}"),
        };
        self.events.push_back(format!("{} {text}", clock(self.now.mono)));
    }

    /// What was sent since the last time, without times and hosts.
    pub(crate) fn taken_sent(&mut self) -> Vec<String> {
        let sent = std::mem::take(&mut self.sent);
        sent.iter()
            .map(|line| line.splitn(3, ' ').nth(2).unwrap_or_default().to_owned())
            .collect()
    }

    /// What was told since the last time, without times.
    pub(crate) fn taken_events(&mut self) -> Vec<String> {
        let events = std::mem::take(&mut self.events);
        let bare = |line: &String| line.split_once(' ').map_or("", |(_, rest)| rest).to_owned();
        events.iter().map(bare).collect()
    }

    /// Keys and statuses of what is held.
    pub(crate) fn held(&self) -> Vec<String> {
        let view = self.view.as_ref();
        view.into_iter()
            .flat_map(Snapshot::instances)
            .map(|view| format!("{} {}", view.key(), view.instance.status))
            .collect()
    }

    /// An answer to a request that nobody waits for.
    pub(crate) fn stray(&mut self, id: u64, answer: Answer) {
        self.agent.handle_answer(self.now, RequestId(id), answer);
        self.drain();
    }

    /// How long the gaps between sending times of such requests are.
    pub(crate) fn gaps(&self, what: &str) -> Vec<u64> {
        let at = |line: &String| {
            let (clock, rest) = line.split_once(' ')?;
            let (_, call) = rest.split_once(' ')?;
            call.starts_with(what)
                .then(|| clock.replace('.', "").parse().ok())?
        };
        let times: Vec<u64> = self.sent.iter().filter_map(at).collect();
        times.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

fn told(call: &Call) -> String {
    let mut text = String::new();
    let written = match call {
        Call::Register(instance) => write!(
            text,
            "register {} {} dirty={}",
            instance.key(),
            instance.status,
            instance.last_dirty.expect("a dirty time") - EPOCH as i64
        ),
        Call::Renew {
            status, last_dirty, ..
        } => write!(text, "renew {status} dirty={}", last_dirty - EPOCH as i64),
        Call::Cancel(key) => write!(text, "cancel {key}"),
        Call::Fetch { what, regions, held } => {
            let scope = match what {
                Scope::Vip(vip) => format!(" vip={vip}"),
                Scope::SecureVip(vip) => format!(" svip={vip}"),
                _ => String::new(),
            };
            let held = held
                .as_ref()
                .map_or(String::new(), |held| format!(" held={held}"));
            write!(text, "full{scope}{}{held}", listed(regions))
        }
        Call::Delta { regions } => write!(text, "delta{}", listed(regions)),
        Call::Changes { since, filter, .. } => {
            let filter = filter
                .as_ref()
                .map_or(String::new(), |filter| format!(" if {filter}"));
            write!(text, "changes {}{filter}", since.as_deref().unwrap_or("from now"))
        }
        other => panic!("an unknown call: {other:?}"),
    };
    written.expect("writing to a string cannot fail");
    text
}

fn listed(regions: &[Arc<str>]) -> String {
    match regions {
        [] => String::new(),
        some => format!(" regions={}", some.join(",")),
    }
}

pub(crate) fn view(instance: Instance) -> LeaseView {
    LeaseView {
        lease: LeaseTimes {
            terms: instance.lease,
            registered: Wall(1),
            renewed: Wall(1),
            evicted: Wall(0),
            service_up: Wall(1),
        },
        instance: Arc::new(instance),
        action: Action::Added,
        last_updated: Wall(1),
        coordinating: false,
    }
}

fn clock(at: Mono) -> String {
    format!("{}.{:03}", at.0 / 1000, at.0 % 1000)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("a short time")
}
