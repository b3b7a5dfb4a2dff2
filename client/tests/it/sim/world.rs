//! Everything together, and time: what is sent arrives, what is due is done, and faults happen.

use std::collections::BTreeMap;
use std::time::Duration;

use eureka_client::agent::{Event, Fetched};
use eureka_client::call::{Answer, Call, Request, RequestId};
use eureka_registry_core::Command;

use super::client::{self, Ended};
use super::network::{Link, Way};
use super::scenario::{Fault, HOUR, MINUTE, SECOND, Scenario};
use super::server::{self, Begin, Effects, State, Token};
use super::words::{command_text, heard, short, told};

/// So often everything is looked at.
pub(super) const TICK: u64 = 5 * SECOND;

/// What will happen.
#[derive(Debug)]
pub(super) enum Happening {
    Fault(Fault),
    Arrive {
        token: Token,
        call: Box<Call>,
    },
    Answer {
        token: Token,
        answer: Box<Answer>,
    },
    Deadline {
        token: Token,
    },
    Copy {
        from: usize,
        to: usize,
        command: Box<Command>,
        sent: u64,
    },
    ServerStart {
        server: usize,
    },
    ServerResume {
        server: usize,
    },
    ServerIdle {
        server: usize,
    },
    ClientStart {
        client: usize,
    },
    Tick,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Asked {
    Register,
    Renew,
    Cancel,
    Read,
}

impl Asked {
    pub(super) fn of(call: &Call) -> Self {
        match call {
            Call::Register(_) => Self::Register,
            Call::Renew { .. } => Self::Renew,
            Call::Cancel(_) => Self::Cancel,
            _ => Self::Read,
        }
    }
}

/// A request that is under way, or was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) client: usize,
    generation: u64,
    id: RequestId,
    server: usize,
    asked: Asked,
    pub(super) deadline: u64,
    /// The client waits for it.
    pub(super) open: bool,
}

/// What came of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    pub(super) requests: u64,
    pub(super) faults: u64,
    /// How long after each calm began everybody agreed, in milliseconds.
    pub(super) agreed: Vec<u64>,
    /// The oldest view that was seen while a server could have been asked, against its bound.
    pub(super) stalest: (u64, u64),
    pub(super) most_in_an_hour: u64,
}

pub(super) struct World {
    pub(super) scenario: Scenario,
    pub(super) t: u64,
    pub(super) servers: Vec<server::Machine>,
    pub(super) clients: Vec<client::Machine>,
    pub(super) links: Vec<Vec<Link>>,
    pub(super) peers: Vec<Vec<Link>>,
    pub(super) routes: BTreeMap<Token, Route>,
    /// When the calm began, if it is calm.
    pub(super) calm: Option<u64>,
    pub(super) report: Report,
    /// When servers were last disturbed so that leases may last longer there.
    pub(super) disturbed: Vec<u64>,
    /// What arrived at servers that are paused.
    backlog: Vec<Vec<Happening>>,
    /// How many calms there were.
    pub(super) calms: usize,
    pub(super) rng: fastrand::Rng,
    queue: BTreeMap<(u64, u64), Happening>,
    serial: u64,
    /// Hundredths of the usual number of faults.
    intensity: u64,
    trace: bool,
}

impl World {
    pub(super) fn new(scenario: Scenario, trace: bool) -> Self {
        let servers: Vec<_> = scenario
            .servers
            .iter()
            .map(|kind| server::Machine::new(0, *kind))
            .collect();
        let clients: Vec<_> = scenario
            .clients
            .iter()
            .enumerate()
            .map(|(name, plan)| client::Machine::new(*plan, name, servers.len()))
            .collect();
        let rng = fastrand::Rng::with_seed(scenario.seed.wrapping_add(1 << 32));
        Self {
            links: vec![vec![Link::default(); servers.len()]; clients.len()],
            peers: vec![vec![Link::default(); servers.len()]; servers.len()],
            disturbed: vec![0; servers.len()],
            backlog: servers.iter().map(|_| Vec::new()).collect(),
            scenario,
            t: 0,
            servers,
            clients,
            routes: BTreeMap::new(),
            calm: None,
            report: Report::default(),
            calms: 0,
            rng,
            queue: BTreeMap::new(),
            serial: 0,
            intensity: 100,
            trace,
        }
    }

    /// Runs to the end, or to the first thing that must not be.
    pub(super) fn run(&mut self) -> Result<(), String> {
        for client in 0..self.clients.len() {
            let delay = self.rng.u64(0..30 * SECOND);
            self.after(delay, Happening::ClientStart { client });
        }
        self.after(TICK, Happening::Tick);
        let length = self.scenario.length;
        for epoch in 0..length.epochs {
            let begin = epoch * (length.rough + length.calm);
            self.calm = None;
            self.intensity = [30, 100, 100, 300][self.rng.usize(0..4)];
            Fault::ALL.iter().for_each(|(fault, _)| self.next_fault(*fault));
            self.run_until(begin + length.rough)?;
            self.heal()?;
            self.run_until(begin + length.rough + length.calm)?;
            self.conclude()?;
        }
        Ok(())
    }

    fn run_until(&mut self, end: u64) -> Result<(), String> {
        let mut steps = 0;
        loop {
            let queued = self.queue.first_key_value().map(|(key, _)| key.0);
            let servers = self.servers.iter_mut().filter_map(server::Machine::due);
            let clients = self.clients.iter_mut().filter_map(client::Machine::due);
            let next = servers
                .chain(clients)
                .chain(queued)
                .min()
                .unwrap_or(end)
                .max(self.t);
            if next >= end {
                self.t = end;
                return Ok(());
            }
            steps = if next == self.t { steps + 1 } else { 0 };
            if steps > 5_000 {
                let due = self.due();
                return Err(self.fault(&format!("a loop: {due}")));
            }
            self.t = next;
            self.step()?;
        }
    }

    fn due(&mut self) -> String {
        let clients: Vec<_> = self.clients.iter_mut().map(client::Machine::due).collect();
        let servers: Vec<_> = self.servers.iter_mut().map(server::Machine::due).collect();
        format!("clients {clients:?}, servers {servers:?}, at {}", self.t)
    }

    /// What went wrong, and when.
    pub(super) fn fault(&self, what: &str) -> String {
        format!("{} s: {what}", self.t / SECOND)
    }

    #[expect(clippy::print_stdout, reason = "somebody asked for a trace")]
    pub(super) fn say(&self, what: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>10.3} {}", Duration::from_millis(self.t).as_secs_f64(), what());
        }
    }

    pub(super) fn after(&mut self, delay: u64, what: Happening) {
        self.serial += 1;
        self.queue.insert((self.t + delay, self.serial), what);
    }

    /// What is due now.
    fn step(&mut self) -> Result<(), String> {
        for server in 0..self.servers.len() {
            if self.servers[server].due().is_some_and(|due| due <= self.t) {
                let effects = self.servers[server].handle_timeout(self.t);
                self.carry(server, effects);
            }
        }
        for client in 0..self.clients.len() {
            if self.clients[client].due().is_some_and(|due| due <= self.t) {
                self.with_agent(client, |agent, now| agent.handle_timeout(now));
                self.pump(client)?;
            }
        }
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > self.t {
                break;
            }
            let happening = entry.remove();
            self.happen(happening)?;
        }
        Ok(())
    }

    fn happen(&mut self, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::Fault(fault) => {
                if self.calm.is_none() {
                    self.report.faults += 1;
                    self.strike(fault)?;
                    self.next_fault(fault);
                    self.assess();
                }
            }
            Happening::Arrive { token, call } => self.arrive(token, call),
            Happening::Answer { token, answer } => self.answer(token, answer)?,
            Happening::Deadline { token } => {
                if self.routes.get(&token).is_some_and(|route| route.open) {
                    self.give(token, Answer::TimedOut)?;
                }
            }
            Happening::Copy {
                from,
                to,
                command,
                sent,
            } => self.copy(from, to, command, sent),
            Happening::ServerStart { server } => {
                if self.servers[server].state() == State::Down {
                    self.start_server(server);
                    self.assess();
                }
            }
            Happening::ServerResume { server } => {
                if self.servers[server].state() == State::Paused {
                    self.resume(server);
                    self.assess();
                }
            }
            Happening::ServerIdle { server } => {
                if self.servers[server].state() == State::Busy {
                    self.servers[server].turn(State::Up);
                    self.assess();
                }
            }
            Happening::ClientStart { client } => self.start_client(client)?,
            Happening::Tick => {
                self.assess();
                self.look()?;
                self.after(TICK, Happening::Tick);
            }
        }
        Ok(())
    }

    // ---- servers

    fn start_server(&mut self, server: usize) {
        let (t, others) = (self.t, self.servers.len());
        let other = (server + self.rng.usize(1..others)) % others;
        let begin = match self.rng.u32(0..3) {
            0 => Begin::Empty,
            1 => Begin::Settling(Duration::from_secs(40)),
            _ if self.servers[other].state() == State::Up => Begin::Copies(self.servers[other].copies(t)),
            _ => Begin::Empty,
        };
        self.say(|| format!("server {server} starts, {begin:?}"));
        self.disturbed[server] = t;
        let effects = self.servers[server].start(t, begin);
        self.carry(server, effects);
    }

    /// A server goes on, with what arrived meanwhile, in order.
    fn resume(&mut self, server: usize) {
        self.servers[server].turn(State::Up);
        self.disturbed[server] = self.t;
        for happening in std::mem::take(&mut self.backlog[server]) {
            self.after(0, happening);
        }
    }

    fn arrive(&mut self, token: Token, call: Box<Call>) {
        let Some(route) = self.routes.get(&token).copied() else {
            return;
        };
        let t = self.t;
        match self.servers[route.server].state() {
            State::Down => {
                if self.rng.u32(0..10) < 7 {
                    self.send_back(token, Answer::Unreachable("refused".to_owned()));
                }
            }
            State::Paused => self.backlog[route.server].push(Happening::Arrive { token, call }),
            State::Busy => {
                let retry_after = self.rng.bool().then(|| Duration::from_secs(self.rng.u64(0..60)));
                let status = 503;
                self.send_back(token, Answer::Refused { status, retry_after });
            }
            State::Up => {
                let effects = self.servers[route.server].handle(t, token, &call);
                let done = effects.answers.contains(&(token, Answer::Done));
                let client = &mut self.clients[route.client];
                let begins = matches!(route.asked, Asked::Register | Asked::Renew);
                if done && begins && client.generation == route.generation {
                    client.accepted = t;
                }
                self.say(|| format!("#{token} at server {}: {}", route.server, short(&call)));
                self.carry(route.server, effects);
            }
        }
    }

    /// Sends what a server wants to send.
    fn carry(&mut self, server: usize, effects: Effects) {
        for (token, answer) in effects.answers {
            self.send_back(token, answer);
        }
        for command in effects.copies {
            for to in (0..self.servers.len()).filter(|to| *to != server) {
                self.send_copy(server, to, command.clone());
            }
        }
    }

    fn send_back(&mut self, token: Token, answer: Answer) {
        let Some(route) = self.routes.get(&token).copied() else {
            return;
        };
        let link = self.links[route.client][route.server];
        let bad = self.t < link.loss.1 && self.rng.u32(0..20) == 0;
        let answer = match answer {
            Answer::List { .. } | Answer::Changes { .. } if bad => Answer::Garbage("half of it".to_owned()),
            _ if bad => Answer::Refused {
                status: 502,
                retry_after: None,
            },
            answer => answer,
        };
        match link.pass(self.t, Way::Back, &mut self.rng) {
            Some(delay) => {
                let answer = Box::new(answer);
                self.after(delay, Happening::Answer { token, answer });
            }
            // The connection broke, and somebody noticed; or nobody did.
            None if self.rng.bool() => {
                let answer = Box::new(Answer::Unreachable("reset".to_owned()));
                self.after(20, Happening::Answer { token, answer });
            }
            None => {}
        }
    }

    /// A connection on which a client waited broke; perhaps it notices.
    pub(super) fn broke(&mut self, token: Token) {
        if self.rng.u32(0..10) < 7 {
            self.send_back(token, Answer::Unreachable("reset".to_owned()));
        }
    }

    fn send_copy(&mut self, from: usize, to: usize, command: Command) {
        let sent = self.t;
        if let Some(delay) = self.peers[from][to].pass(sent, Way::There, &mut self.rng) {
            let copy = Happening::Copy {
                from,
                to,
                command: Box::new(command),
                sent,
            };
            self.after(delay, copy);
        }
    }

    fn copy(&mut self, from: usize, to: usize, mut command: Box<Command>, sent: u64) {
        match self.servers[to].state() {
            State::Down => return,
            State::Paused => {
                let copy = Happening::Copy {
                    from,
                    to,
                    command,
                    sent,
                };
                return self.backlog[to].push(copy);
            }
            State::Up | State::Busy => {}
        }
        if let Command::Register { age, .. } = &mut *command {
            *age += Duration::from_millis(self.t - sent);
        }
        let renewed = match &*command {
            Command::Renew { key, .. } => Some(key.clone()),
            _ => None,
        };
        self.say(|| format!("server {to} hears of server {from}: {}", command_text(&command)));
        let (effects, wanted) = self.servers[to].copy(self.t, from, *command);
        self.carry(to, effects);
        if wanted
            && self.servers[from].state() == State::Up
            && let Some(whole) = renewed.and_then(|key| self.servers[from].offer(self.t, &key))
        {
            self.send_copy(from, to, whole);
        }
    }

    // ---- clients

    pub(super) fn with_agent(
        &mut self,
        client: usize,
        act: impl FnOnce(&mut eureka_client::agent::Agent, eureka_registry_core::Now),
    ) {
        let machine = &mut self.clients[client];
        let now = machine.now(self.t);
        if let Some(agent) = machine.touch() {
            act(agent, now);
        }
    }

    fn start_client(&mut self, client: usize) -> Result<(), String> {
        if self.clients[client].agent.is_some() {
            return Ok(());
        }
        let (seed, keep) = (self.rng.u64(..), self.rng.bool());
        let t = self.t;
        self.clients[client].start(t, seed, keep);
        self.say(|| format!("client {client} starts, {:?}", self.clients[client].key));
        self.assess();
        self.pump(client)
    }

    /// Takes out of an agent whatever it has to say.
    pub(super) fn pump(&mut self, client: usize) -> Result<(), String> {
        loop {
            let Some(agent) = self.clients[client].touch() else {
                return Ok(());
            };
            if let Some(request) = agent.poll_request() {
                self.send(client, request)?;
            } else if let Some(event) = agent.poll_event() {
                self.hear(client, event)?;
            } else if agent.is_finished() && self.clients[client].leaving.is_some() {
                self.say(|| format!("client {client} has left"));
                self.end_client(client);
            } else {
                return Ok(());
            }
        }
    }

    /// The agent is no more; some time later there is another.
    pub(super) fn end_client(&mut self, client: usize) {
        let machine = &mut self.clients[client];
        machine.touch();
        machine.agent = None;
        machine.generation += 1;
        machine.leaving = None;
        if let (Some(key), Some(provider)) = (machine.key.clone(), machine.plan.provide) {
            machine.ended.push(Ended {
                key,
                at: self.t,
                duration: u64::from(provider.lease.1) * SECOND,
            });
        }
        let most = if self.calm.is_some() {
            10 * SECOND
        } else {
            8 * MINUTE
        };
        let delay = self.rng.u64(SECOND..most);
        self.after(delay, Happening::ClientStart { client });
    }

    fn send(&mut self, client: usize, request: Request) -> Result<(), String> {
        self.check_request(client, &request)?;
        let asked = Asked::of(&request.call);
        self.report.requests += 1;
        let machine = &mut self.clients[client];
        machine.asked += 1;
        machine.open[usize::from(asked != Asked::Read)] += 1;
        self.serial += 1;
        let token = self.serial;
        let server = client::number(&request.server);
        let within = u64::try_from(request.within.as_millis()).expect("not for ages");
        let route = Route {
            client,
            generation: machine.generation,
            id: request.id,
            server,
            asked,
            deadline: self.t + within,
            open: true,
        };
        self.routes.insert(token, route);
        self.say(|| {
            format!(
                "#{token} client {client} asks server {server}: {}",
                short(&request.call)
            )
        });
        self.after(within, Happening::Deadline { token });
        let way = match self.links[client].get(server) {
            Some(link) => link.pass(self.t, Way::There, &mut self.rng),
            // There is no such server.
            None => None,
        };
        match way {
            Some(delay) => {
                let call = Box::new(request.call);
                self.after(delay, Happening::Arrive { token, call });
            }
            None if self.rng.bool() => {
                let answer = Box::new(Answer::Unreachable("no route".to_owned()));
                self.after(3, Happening::Answer { token, answer });
            }
            None => {}
        }
        Ok(())
    }

    fn answer(&mut self, token: Token, answer: Box<Answer>) -> Result<(), String> {
        let Some(route) = self.routes.get(&token).copied() else {
            return Ok(());
        };
        let machine = &self.clients[route.client];
        if machine.generation != route.generation {
            self.routes.remove(&token);
            return Ok(());
        }
        if self.t < machine.paused {
            let delay = (machine.paused - self.t).min(SECOND);
            self.after(delay, Happening::Answer { token, answer });
            return Ok(());
        }
        if route.open || self.rng.u32(0..4) == 0 {
            // Answers that nobody waits for any more do no harm.
            return self.give(token, *answer);
        }
        Ok(())
    }

    fn give(&mut self, token: Token, answer: Answer) -> Result<(), String> {
        let Some(route) = self.routes.get_mut(&token) else {
            return Ok(());
        };
        let (client, id) = (route.client, route.id);
        let machine = &self.clients[client];
        if machine.generation != route.generation {
            self.routes.remove(&token);
            return Ok(());
        }
        if self.t < machine.paused {
            let delay = (machine.paused - self.t).min(SECOND);
            self.after(delay, Happening::Deadline { token });
            return Ok(());
        }
        let asked = route.asked;
        if std::mem::take(&mut route.open) {
            self.count(client, asked, &answer);
        } else {
            self.clients[client].counted.stray += 1;
        }
        self.say(|| format!("#{token} client {client} is told {}", told(&answer)));
        self.with_agent(client, |agent, now| agent.handle_answer(now, id, answer));
        self.pump(client)
    }

    fn hear(&mut self, client: usize, event: Event) -> Result<(), String> {
        self.say(|| format!("client {client}: {}", heard(&event)));
        match event {
            Event::CheckHealth => {
                let health = self.clients[client].health;
                self.with_agent(client, |agent, now| agent.set_health(now, Some(health)));
            }
            Event::Fetched(Fetched { snapshot, kind, .. }) => self.see(client, &snapshot, kind)?,
            _ => {}
        }
        Ok(())
    }

    // ---- faults

    fn next_fault(&mut self, fault: Fault) {
        let (_, often) = Fault::ALL
            .into_iter()
            .find(|(other, _)| *other == fault)
            .expect("one of them");
        // Exponential: what will happen does not depend on what has.
        let mean = 10 * HOUR * 100 / (often * self.intensity);
        let delay = (-self.rng.f64().max(1e-9).ln() * mean as f64) as u64;
        self.after(delay.max(1), Happening::Fault(fault));
    }

    /// Everything is well again, and nothing happens any more.
    fn heal(&mut self) -> Result<(), String> {
        self.say(|| "calm".to_owned());
        self.calm = Some(self.t);
        self.calms += 1;
        self.queue
            .retain(|_, happening| !matches!(happening, Happening::Fault(_)));
        self.links.iter_mut().flatten().for_each(Link::heal);
        self.peers.iter_mut().flatten().for_each(Link::heal);
        for server in 0..self.servers.len() {
            match self.servers[server].state() {
                State::Down => self.start_server(server),
                State::Paused => self.resume(server),
                State::Busy => self.servers[server].turn(State::Up),
                State::Up => {}
            }
        }
        for client in 0..self.clients.len() {
            self.clients[client].touch();
            self.clients[client].paused = self.t;
            self.list(client, (0..self.servers.len()).collect())?;
        }
        self.assess();
        Ok(())
    }

    pub(super) fn list(&mut self, client: usize, list: Vec<usize>) -> Result<(), String> {
        self.say(|| format!("client {client} has servers {list:?}"));
        let servers = client::servers(&list);
        self.clients[client].list = list;
        self.with_agent(client, |agent, now| agent.set_servers(now, servers));
        self.pump(client)
    }
}
