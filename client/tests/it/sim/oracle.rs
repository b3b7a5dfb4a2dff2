//! What must hold, whatever happens.

use std::sync::Arc;

use eureka_client::agent::{Agent, FetchKind};
use eureka_client::call::{Answer, Call, Request};
use eureka_registry_core::{Instance, Snapshot};

use super::client::{self, Counted, View};
use super::scenario::{HOUR, MINUTE, SECOND};
use super::server::{self, State};
use super::words::content;
use super::world::{Asked, TICK, World};

/// Whoever can reach a server all along is registered after this long: a round over all servers takes three time-outs, the
/// pause before it half a minute and a fifth.
const REGISTERED_WITHIN: u64 = 60 * SECOND;
/// For so long an empty list is not believed. So long ago an answer may have been sent at most that told of somebody.
const HOLD_EMPTY: u64 = 80 * SECOND;
/// After the end of a lease an instance may be listed for an eviction interval, and requests and copies that are late may
/// begin a lease again after its client was gone.
const LINGER: u64 = 60 * SECOND;

impl World {
    /// A request that an agent wants to be sent.
    pub(super) fn check_request(&mut self, client: usize, request: &Request) -> Result<(), String> {
        let machine = &mut self.clients[client];
        let number = client::number(&request.server);
        let wait = match &request.call {
            Call::Changes { wait, .. } => *wait,
            _ => std::time::Duration::ZERO,
        };
        let mut wrong = Vec::new();
        // Who leaves does not wait for ever for what is under way.
        let most = u32::from(machine.leaving.is_some());
        if machine.open[usize::from(Asked::of(&request.call) != Asked::Read)] > most {
            wrong.push("while another is under way".to_owned());
        }
        if !machine.list.contains(&number) {
            wrong.push("of a server that is not in its list".to_owned());
        }
        if request.within > wait + machine.plan.request_timeout {
            wrong.push(format!("that may take {:?}", request.within));
        }
        let (key, dirty) = match &request.call {
            Call::Register(instance) => (Some(instance.key()), instance.last_dirty),
            Call::Renew { key, last_dirty, .. } => (Some(key.clone()), Some(*last_dirty)),
            Call::Cancel(key) => (Some(key.clone()), None),
            _ => (None, None),
        };
        if key.is_some() && key != machine.key {
            wrong.push(format!("of {key:?}, not of {:?}", machine.key));
        }
        let last = machine.told.as_ref().map(|(dirty, _)| *dirty);
        let (back, ahead) = (dirty < last, dirty > last);
        match Asked::of(&request.call) {
            Asked::Register if back => wrong.push(format!("with a dirty time before {last:?}")),
            Asked::Renew if ahead => wrong.push(format!("with a dirty time after {last:?}")),
            _ => {}
        }
        if let Call::Register(instance) = &request.call {
            match &machine.told {
                Some((dirty, told)) if Some(*dirty) == instance.last_dirty && told != instance => {
                    wrong.push(format!(
                        "with another content under the same dirty time: {}",
                        content(told)
                    ));
                }
                _ => machine.told = instance.last_dirty.map(|dirty| (dirty, Arc::clone(instance))),
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let call = super::words::short(&request.call);
        Err(self.fault(&format!("client {client}: {call}, {}", wrong.join(", "))))
    }

    /// Counts an answer that its agent waited for.
    pub(super) fn count(&mut self, client: usize, asked: Asked, answer: &Answer) {
        let machine = &mut self.clients[client];
        machine.open[usize::from(asked != Asked::Read)] -= 1;
        let counted = &mut machine.counted;
        match (asked, answer) {
            (Asked::Register, Answer::Done) => counted.registered += 1,
            (Asked::Renew, Answer::Done) => counted.renewed += 1,
            (Asked::Renew, Answer::NotFound) => counted.missing += 1,
            _ => {}
        }
    }

    /// An agent has a view.
    pub(super) fn see(&mut self, client: usize, snapshot: &Snapshot, kind: FetchKind) -> Result<(), String> {
        let machine = &mut self.clients[client];
        let sum = server::sum(snapshot);
        let before = std::mem::take(&mut machine.view);
        let views: Vec<_> = snapshot.instances().map(|view| (**view).clone()).collect();
        machine.view = View {
            sum,
            fresh: before.fresh,
            peopled: if views.is_empty() { before.peopled } else { self.t },
            views,
            old: false,
        };
        let emptied = machine.view.views.is_empty() && !before.views.is_empty();
        if emptied && kind == FetchKind::Full && self.t < before.peopled + HOLD_EMPTY {
            return Err(self.fault(&format!("client {client} believes an empty list at once")));
        }
        let place = match kind {
            FetchKind::Full => 0,
            FetchKind::Unchanged => 1,
            FetchKind::Delta => 2,
            FetchKind::Feed => 3,
            other => panic!("a kind nobody knows: {other:?}"),
        };
        machine.counted.fetched[place] += 1;
        if before.old && matches!(kind, FetchKind::Delta | FetchKind::Unchanged) {
            return Err(self.fault(&format!(
                "client {client}: a {kind:?} upon what another process knew"
            )));
        }
        if kind == FetchKind::Unchanged && before.sum != sum {
            return Err(self.fault(&format!("client {client}: unchanged, and yet another view")));
        }
        let scope = self.scope(client);
        let listed = self.listed(scope, sum);
        // What was told in one piece is what a server listed, no longer ago than an answer may take.
        // Unless it was paused meanwhile.
        let late = self.t < self.clients[client].paused + 31 * SECOND;
        let old = listed.is_none_or(|at| at + 31 * SECOND < self.t);
        if matches!(kind, FetchKind::Full | FetchKind::Feed) && old && !late {
            let what = super::words::list(snapshot);
            return Err(self.fault(&format!(
                "client {client}: no server lists what it was told: {kind:?} {what}"
            )));
        }
        let view = &mut self.clients[client].view;
        view.fresh = view.fresh.max(listed.unwrap_or(0));
        Ok(())
    }

    /// Notes since when each server could have been asked by each client.
    pub(super) fn assess(&mut self) {
        for (number, server) in self.servers.iter_mut().enumerate() {
            let up = server.state() == State::Up;
            let shows = [0, 1].map(|scope| up && server.shows(self.t, scope));
            for (client, links) in self.clients.iter_mut().zip(&self.links) {
                let scope = usize::from(client.plan.consume.is_some_and(|consume| !consume.all));
                let asked = up
                    && client.agent.is_some()
                    && self.t >= client.paused
                    && client.list.contains(&number)
                    && links[number].is_good(self.t);
                for (good, holds) in client.good[number].iter_mut().zip([asked, asked && shows[scope]]) {
                    *good = if holds { good.or(Some(self.t)) } else { None };
                }
            }
        }
    }

    /// Looks at everything.
    pub(super) fn look(&mut self) -> Result<(), String> {
        for client in 0..self.clients.len() {
            self.look_at_view(client)?;
            self.look_at_lease(client)?;
            self.look_at_ghosts(client)?;
            self.look_at_counters(client)?;
        }
        if let Some(calm) = self.calm
            && self.report.agreed.len() < self.calms
            && self.disagreement().is_none()
        {
            self.report.agreed.push(self.t - calm);
        }
        if self.t % HOUR < TICK {
            let old = self.t.saturating_sub(10 * MINUTE);
            self.routes.retain(|_, route| route.deadline > old);
        }
        Ok(())
    }

    /// The end of a calm: everybody agrees.
    pub(super) fn conclude(&mut self) -> Result<(), String> {
        match self.disagreement() {
            Some(what) => Err(self.fault(&format!("after the calm: {what}"))),
            None => Ok(()),
        }
    }

    fn scope(&self, client: usize) -> usize {
        let consume = self.clients[client].plan.consume;
        usize::from(consume.is_some_and(|consume| !consume.all))
    }

    /// When any server last listed this.
    fn listed(&self, scope: usize, sum: u64) -> Option<u64> {
        let servers = self.servers.iter();
        servers
            .filter_map(|server| server.last_listed(self.t, scope, sum))
            .max()
    }

    /// For how long some server could have been asked all along.
    fn good(&self, client: usize, read: bool) -> u64 {
        let good = self.clients[client].good.iter();
        let since = good.filter_map(|since| since[usize::from(read)]).min();
        since.map_or(0, |since| self.t - since)
    }

    fn look_at_view(&mut self, client: usize) -> Result<(), String> {
        if self.clients[client].plan.consume.is_none() {
            return Ok(());
        }
        let scope = self.scope(client);
        let listed = self.listed(scope, self.clients[client].view.sum).unwrap_or(0);
        let good = self.good(client, true);
        let view = &mut self.clients[client].view;
        view.fresh = view.fresh.max(listed);
        let machine = &self.clients[client];
        let Some(agent) = &machine.agent else {
            return Ok(());
        };
        let bound = millis(agent.staleness_bound());
        let stale = self.t - machine.view.fresh;
        if good > bound + 2 * TICK {
            if stale > self.report.stalest.0 {
                self.report.stalest = (stale, bound);
            }
            if stale > bound + 2 * TICK {
                let good = &machine.good;
                return Err(self.fault(&format!(
                    "client {client}: its view is {} s old, the bound is {} s, servers were good since {good:?}",
                    stale / SECOND,
                    bound / SECOND
                )));
            }
        }
        Ok(())
    }

    fn look_at_lease(&mut self, client: usize) -> Result<(), String> {
        let good = self.good(client, false);
        let machine = &mut self.clients[client];
        let registration = machine.agent.as_ref().and_then(Agent::registration);
        let dirty = registration.and_then(|registration| registration.instance.last_dirty);
        if machine.changed.0 != dirty {
            machine.changed = (dirty, self.t);
        }
        let machine = &self.clients[client];
        let (Some(provider), Some(key), Some(agent), None) = (
            machine.plan.provide,
            &machine.key,
            &machine.agent,
            machine.leaving,
        ) else {
            return Ok(());
        };
        let t = self.t;
        let duration = u64::from(provider.lease.1) * SECOND;
        if good > duration.max(REGISTERED_WITHIN) && t - machine.accepted > duration {
            let accepted = machine.accepted / SECOND;
            return Err(self.fault(&format!("client {client}: no renewal since {accepted} s")));
        }
        // Its registration may have been where nobody is now: the next renewal finds out.
        let bound = u64::from(provider.lease.0) * SECOND + REGISTERED_WITHIN;
        let registration = agent.registration().ok_or("a provider has a registration")?;
        let instance = registration.instance;
        let up = self.servers.iter().filter(|server| server.state() == State::Up);
        let found: Vec<_> = up.filter_map(|server| server.find(t, key)).collect();
        let placed = if found.is_empty() { machine.placed.0 } else { t };
        let known = if found.iter().any(|found| same(found, &instance)) {
            t
        } else {
            machine.placed.1.max(machine.changed.1)
        };
        if good > bound && t - placed > bound {
            return Err(self.fault(&format!("client {client}: {key} is registered nowhere")));
        }
        if good > bound && t - known > bound {
            let content = content(&instance);
            return Err(self.fault(&format!(
                "client {client}: no server knows it as it is: {content}"
            )));
        }
        let key = key.clone();
        self.clients[client].placed = (placed, known);
        for server in &mut self.servers {
            let found = server.by_id(t, key.id());
            if found > 1 {
                return Err(self.fault(&format!("client {client}: {key} is registered {found} times")));
            }
        }
        Ok(())
    }

    /// Who has left or died is gone some time later.
    fn look_at_ghosts(&mut self, client: usize) -> Result<(), String> {
        let (t, machine) = (self.t, &mut self.clients[client]);
        let key = machine.key.clone().filter(|_| machine.agent.is_some());
        machine.ended.retain(|ended| Some(&ended.key) != key.as_ref());
        let machine = &self.clients[client];
        for ended in &machine.ended {
            for (number, server) in self.servers.iter().enumerate() {
                // A server that was paused may do only now what it was asked before, and tell others.
                let since = self.disturbed.iter().copied().fold(ended.at, u64::max);
                let held = server.state() == State::Up && server.find(t, &ended.key).is_some();
                if held && t > since + ended.duration + LINGER {
                    let (key, at) = (&ended.key, ended.at / SECOND);
                    return Err(self.fault(&format!(
                        "client {client}: {key} ended at {at} s and is at server {number}"
                    )));
                }
            }
        }
        let machine = &mut self.clients[client];
        machine.ended.retain(|ended| t < ended.at + 20 * MINUTE);
        if machine
            .leaving
            .is_some_and(|since| t > since.max(machine.paused) + 5 * SECOND + TICK)
        {
            return Err(self.fault(&format!("client {client} does not come to an end")));
        }
        Ok(())
    }

    fn look_at_counters(&mut self, client: usize) -> Result<(), String> {
        let machine = &mut self.clients[client];
        if self.t % HOUR < TICK {
            self.report.most_in_an_hour = self.report.most_in_an_hour.max(machine.asked);
            let asked = std::mem::take(&mut machine.asked);
            if asked > most_in_an_hour(machine.plan) {
                return Err(self.fault(&format!("client {client}: {asked} requests in an hour")));
            }
        }
        let Some(agent) = &machine.agent else {
            return Ok(());
        };
        let stats = agent.stats();
        let counted = Counted {
            registered: stats.registrations,
            renewed: stats.renewals,
            missing: stats.renewals_missing,
            fetched: [stats.full, stats.unchanged, stats.delta, stats.feed],
            stray: stats.stray_answers,
        };
        // What it does on its way out is no registration.
        if counted != machine.counted && machine.leaving.is_none() {
            let right = machine.counted;
            return Err(self.fault(&format!(
                "client {client} counts {counted:?}, and it is {right:?}"
            )));
        }
        Ok(())
    }

    /// Who does not agree with whom, if there is anybody.
    fn disagreement(&mut self) -> Option<String> {
        let t = self.t;
        let mut providers = 0;
        for (number, machine) in self.clients.iter().enumerate() {
            let Some(agent) = &machine.agent else {
                return Some(format!("client {number} does not run"));
            };
            if machine.plan.provide.is_none() {
                continue;
            }
            providers += 1;
            let instance = agent.registration()?.instance;
            for (at, server) in self.servers.iter().enumerate() {
                let found = server.find(t, &instance.key());
                if found.as_deref().is_none_or(|found| !same(found, &instance)) {
                    let found = found.map(|found| content(&found));
                    return Some(format!(
                        "server {at} has {found:?}, and it is {}",
                        content(&instance)
                    ));
                }
            }
        }
        for (at, server) in self.servers.iter_mut().enumerate() {
            let snapshot = server.snapshot(t);
            if snapshot.len() != providers {
                let list = super::words::list(&snapshot);
                return Some(format!("server {at} lists {list}, and there are {providers}"));
            }
        }
        for (number, machine) in self.clients.iter().enumerate() {
            let scope = self.scope(number);
            let listed = |server: &server::Machine| server.last_listed(t, scope, machine.view.sum) == Some(t);
            if machine.plan.consume.is_some() && !self.servers.iter().all(listed) {
                let view: Vec<_> = machine
                    .view
                    .views
                    .iter()
                    .map(|view| content(&view.instance))
                    .collect();
                return Some(format!("client {number} sees {}", view.join("; ")));
            }
        }
        None
    }
}

/// Whether a server has an instance as it is. It may have raised the version: it does so where a registration that was late
/// came between.
fn same(held: &Instance, instance: &Instance) -> bool {
    let mut expected = instance.clone();
    expected.last_dirty = held.last_dirty;
    *held == expected && held.last_dirty >= instance.last_dirty
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).expect("not for ages")
}

/// Rounds of three each time a lease's third is over, for an hour, and as much for reads; changes that a feed tells of come
/// on top.
fn most_in_an_hour(plan: super::scenario::Plan) -> u64 {
    let writes = plan.provide.map_or(0, |provider| {
        3 * HOUR / (u64::from(provider.lease.1) * SECOND / 3)
    });
    let reads = plan.consume.map_or(0, |consume| {
        6 * HOUR / (consume.interval * SECOND).min(5 * SECOND)
    });
    writes + reads + 600
}
