//! A client: an agent, the machine it runs on, and what its owner does with it.

use std::sync::Arc;
use std::time::Duration;

use eureka_client::Server;
use eureka_client::agent::{Agent, AgentConfig, Consume, Provide};
use eureka_client::call::Scope;
use eureka_registry_core::{Instance, InstanceKey, LeaseTerms, LeaseView, Mono, Now, Status, Wall};

use super::scenario::{BEGIN, Consumer, Plan, VIP};

/// What a consumer sees.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) sum: u64,
    pub(super) views: Vec<LeaseView>,
    /// When a server last listed exactly this, as far as was seen.
    pub(super) fresh: u64,
    /// It comes from before this agent.
    pub(super) old: bool,
    /// When it was last found that there is somebody.
    pub(super) peopled: u64,
}

/// An agent that ended, and from when on nobody may hold its instance.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) key: InstanceKey,
    pub(super) at: u64,
    pub(super) duration: u64,
}

#[derive(Debug)]
pub(super) struct Machine {
    pub(super) plan: Plan,
    pub(super) agent: Option<Agent>,
    /// Counts agents: what was meant for an earlier one does not reach a later one.
    pub(super) generation: u64,
    started: u64,
    /// What its monotonic clock showed then.
    base: u64,
    pub(super) offset: i64,
    /// Nothing happens there until then.
    pub(super) paused: u64,
    /// The servers it knows; a number above those that are is a server that is not.
    pub(super) list: Vec<usize>,
    /// How it feels; what a hook says.
    pub(super) health: Status,
    pub(super) key: Option<InstanceKey>,
    name: usize,
    /// How many names it had.
    names: usize,
    /// Requests under way: reads, and writes.
    pub(super) open: [u32; 2],
    /// Version and content of what it told last.
    pub(super) told: Option<(i64, Arc<Instance>)>,
    /// The version of its content, and since when it has that, about.
    pub(super) changed: (Option<i64>, u64),
    /// When a server that runs last had it, and had it as it is.
    pub(super) placed: (u64, u64),
    /// When a server last accepted a registration or renewal of it.
    pub(super) accepted: u64,
    pub(super) view: View,
    pub(super) ended: Vec<Ended>,
    pub(super) leaving: Option<u64>,
    /// Since when each server could have been asked all along, for writes and for reads.
    pub(super) good: Vec<[Option<u64>; 2]>,
    /// Requests in this hour, and what each kind of answer was worth.
    pub(super) asked: u64,
    pub(super) counted: Counted,
    /// When it wants to be called, unless it was touched since that was asked.
    due: Option<u64>,
    touched: bool,
}

/// What the world counted of one agent, to be compared with what that says.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counted {
    pub(super) registered: u64,
    pub(super) renewed: u64,
    pub(super) missing: u64,
    /// In the order of the kinds: full, unchanged, delta, feed.
    pub(super) fetched: [u64; 4],
    /// Answers to what it did not wait for any more.
    pub(super) stray: u64,
}

impl Machine {
    pub(super) fn new(plan: Plan, name: usize, servers: usize) -> Self {
        Self {
            plan,
            agent: None,
            generation: 0,
            started: 0,
            base: 0,
            offset: 0,
            paused: 0,
            list: (0..servers).collect(),
            health: Status::Up,
            key: None,
            name,
            names: 0,
            open: [0; 2],
            told: None,
            changed: (None, 0),
            placed: (0, 0),
            accepted: 0,
            view: View::default(),
            ended: Vec::new(),
            leaving: None,
            good: vec![[None; 2]; servers],
            asked: 0,
            counted: Counted::default(),
            due: None,
            touched: true,
        }
    }

    pub(super) fn now(&self, t: u64) -> Now {
        Now {
            mono: Mono(t - self.started + self.base),
            wall: Wall((BEGIN + t).saturating_add_signed(self.offset)),
        }
    }

    /// When it wants to be called.
    pub(super) fn due(&mut self) -> Option<u64> {
        if self.touched {
            self.touched = false;
            let due = self.agent.as_ref().and_then(Agent::poll_timeout);
            self.due = due.map(|(due, _)| (self.started + due.0.saturating_sub(self.base)).max(self.paused));
        }
        self.due
    }

    /// Something was done with the agent.
    pub(super) fn touch(&mut self) -> Option<&mut Agent> {
        self.touched = true;
        self.agent.as_mut()
    }

    /// Starts an agent. With `keep` its view is what the one before it had.
    pub(super) fn start(&mut self, t: u64, seed: u64, keep: bool) {
        self.touched = true;
        self.generation += 1;
        self.started = t;
        self.base = seed % (1 << 40);
        self.leaving = None;
        self.accepted = t;
        self.placed = (t, t);
        self.open = [0; 2];
        self.counted = Counted::default();
        self.view = View {
            old: keep,
            fresh: t,
            peopled: t,
            views: if keep {
                std::mem::take(&mut self.view.views)
            } else {
                Vec::new()
            },
            sum: 0,
        };
        let mut config = AgentConfig::new();
        config.provide = self.plan.provide.map(|provider| {
            let mut provide = Provide::new(self.instance(t));
            provide.health_interval = provider.hook.then(|| Duration::from_secs(20));
            provide
        });
        config.consume = self.plan.consume.map(consume);
        config.request_timeout = self.plan.request_timeout;
        config.seed = seed;
        let now = self.now(t);
        let mut agent = Agent::new(now, config, servers(&self.list));
        if keep {
            agent.begin_with(now, self.view.views.clone());
        }
        self.agent = Some(agent);
    }

    /// What it registers. A process that starts with a clock behind that of the one before it would not be believed under
    /// the same name, for its version is the older one: it gets another, as it would on another port.
    fn instance(&mut self, t: u64) -> Instance {
        let provider = self.plan.provide.expect("it provides something");
        let wall = i64::try_from(self.now(t).wall.0).expect("not for ages");
        if self.names == 0 || self.told.as_ref().is_some_and(|(dirty, _)| *dirty >= wall) {
            self.names += 1;
        }
        self.told = None;
        let id = format!("i-{}-{}", self.name, self.names);
        let mut instance = Instance::new(provider.app, &id, "host", "10.0.0.1");
        instance.lease = LeaseTerms {
            renewal_interval_secs: provider.lease.0,
            duration_secs: provider.lease.1,
        };
        instance.vip_address = provider.chosen.then(|| format!("{VIP},other").into());
        self.key = Some(instance.key());
        // Who had this name before is not gone after all.
        self.ended.retain(|ended| ended.key != instance.key());
        instance
    }
}

fn consume(consumer: Consumer) -> Consume {
    let mut consume = Consume::default();
    consume.scope = match consumer.all {
        true => Scope::All,
        false => Scope::Vip(VIP.into()),
    };
    consume.interval = Duration::from_secs(consumer.interval);
    consume.delta = consumer.delta;
    consume.feed = consumer.feed;
    consume
}

/// Server number so and so, as clients name it.
pub(super) fn server(number: usize) -> Arc<Server> {
    Arc::new(Server::parse(&format!("http://server-{number}:8761/eureka/")).expect("a URL"))
}

/// Which number that was.
pub(super) fn number(server: &Server) -> usize {
    let number = server.host().strip_prefix("server-");
    number
        .and_then(|number| number.parse().ok())
        .expect("one of ours")
}

pub(super) fn servers(list: &[usize]) -> Vec<Arc<Server>> {
    list.iter().map(|number| server(*number)).collect()
}
