//! The sending side against a naive model, by random calls.

use std::time::Duration;

use eureka_registry_core::{AppliedKind, Mono, Origin};

use super::{Bench, peer_origin};
use crate::config::Config;
use crate::facts::PeerKind;
use crate::message::{Action, Failure, ItemOutcome};
use crate::shaper::random;

const LIMIT: usize = 6;
const ITEMS: usize = 5;

/// A slot that is filled: everything in one list, looked through every time.
#[derive(Clone, Debug, PartialEq)]
struct Cell {
    id: String,
    slot: usize,
    action: Action,
    noted: Mono,
    place: u64,
    again: bool,
}

#[derive(Default)]
struct Model {
    waiting: Vec<Cell>,
    flying: Vec<Cell>,
    /// What became of flying ones meanwhile: they are answered, but mean nothing any more.
    void: Vec<(String, usize)>,
    next: u64,
    outdated: u64,
    overflowed: u64,
    failed: u64,
}

impl Model {
    fn put(&mut self, now: Mono, id: &str, action: Action, again: bool) {
        let slot = slot(action);
        if action == Action::Cancel {
            let place = self.place(id);
            self.waiting.retain(|cell| cell.id != id);
            self.spoil(id, |_| true);
            self.push(now, id, action, again, place);
        } else {
            let place = self.place(id);
            let uncancels = self.life(id) == Some(Action::Cancel) && action == Action::Register;
            self.waiting.retain(|cell| cell.id != id || cell.slot != slot);
            self.push(now, id, action, again, place);
            if uncancels {
                self.clear(now, id);
            }
        }
        self.trim();
    }

    fn push(&mut self, now: Mono, id: &str, action: Action, again: bool, place: Option<u64>) {
        let place = place.unwrap_or_else(|| {
            self.next += 1;
            self.next
        });
        self.waiting.push(Cell {
            id: id.to_owned(),
            slot: slot(action),
            action,
            noted: now,
            place,
            again,
        });
        self.sort();
    }

    fn sort(&mut self) {
        self.waiting.sort_by_key(|cell| (cell.place, cell.slot));
    }

    fn place(&self, id: &str) -> Option<u64> {
        self.waiting
            .iter()
            .find(|cell| cell.id == id)
            .map(|cell| cell.place)
    }

    fn spoil(&mut self, id: &str, which: impl Fn(Action) -> bool) {
        for cell in self
            .flying
            .iter()
            .filter(|cell| cell.id == id && which(cell.action))
        {
            self.void.push((cell.id.clone(), cell.slot));
        }
    }

    fn forget(&mut self, id: &str, which: impl Fn(Action) -> bool) {
        self.waiting.retain(|cell| cell.id != id || !which(cell.action));
        self.spoil(id, which);
    }

    fn trim(&mut self) {
        while self.ids() > LIMIT {
            let first = self.waiting[0].id.clone();
            let before = self.waiting.len();
            self.waiting.retain(|cell| cell.id != first);
            self.overflowed += (before - self.waiting.len()) as u64;
        }
    }

    fn ids(&self) -> usize {
        let mut ids: Vec<_> = self.waiting.iter().map(|cell| &cell.id).collect();
        ids.dedup();
        ids.len()
    }

    /// What a batch has to be now, if one is due at all.
    fn take(&mut self, now: Mono) -> Vec<(String, Action)> {
        let mut rest = Vec::new();
        for cell in std::mem::take(&mut self.waiting) {
            let patience = if cell.slot == 2 { 30_000 } else { 90_000 };
            let covered = cell.slot == 2
                && self
                    .flying
                    .iter()
                    .any(|life| life.id == cell.id && life.action == Action::Register);
            // Behind the first that has no room nothing is looked at.
            if !rest.is_empty() {
                rest.push(cell);
            } else if covered {
            } else if now.0 - cell.noted.0 > patience {
                self.outdated += 1;
            } else if self.flying.len() < ITEMS {
                self.flying.push(cell);
            } else {
                rest.push(cell);
            }
        }
        // A registration that goes renews, also if the renewal has no room.
        rest.retain(|cell| {
            let covered = |life: &Cell| life.id == cell.id && life.action == Action::Register;
            cell.slot != 2 || !self.flying.iter().any(covered)
        });
        self.waiting = rest;
        self.flying
            .iter()
            .map(|cell| (cell.id.clone(), cell.action))
            .collect()
    }

    fn life(&self, id: &str) -> Option<Action> {
        let mut life = self.waiting.iter().filter(|cell| cell.id == id && cell.slot == 0);
        life.next().map(|cell| cell.action)
    }

    /// A registration took the place of a cancel.
    fn clear(&mut self, now: Mono, id: &str) {
        if !self.waiting.iter().any(|cell| cell.id == id && cell.slot == 1) {
            self.push(now, id, Action::ClearOverride, false, self.place(id));
        }
    }

    fn give_back(&mut self, cell: Cell) {
        if self.void.contains(&(cell.id.clone(), cell.slot)) {
            return;
        }
        let place = self
            .place(&cell.id)
            .map_or(cell.place, |place| place.min(cell.place));
        for waiting in self.waiting.iter_mut().filter(|waiting| waiting.id == cell.id) {
            waiting.place = place;
        }
        if !self
            .waiting
            .iter()
            .any(|other| other.id == cell.id && other.slot == cell.slot)
        {
            self.waiting.push(Cell { place, ..cell });
        } else if cell.action == Action::Cancel && self.life(&cell.id) == Some(Action::Register) {
            let newer = self
                .waiting
                .iter()
                .find(|other| other.id == cell.id && other.slot == 0);
            let noted = newer.map_or(cell.noted, |newer| newer.noted);
            self.clear(noted, &cell.id);
        }
        self.sort();
    }

    fn answered(&mut self, now: Mono, outcomes: &[ItemOutcome]) {
        for (cell, outcome) in std::mem::take(&mut self.flying).into_iter().zip(outcomes) {
            let is_void = self.void.contains(&(cell.id.clone(), cell.slot));
            match outcome {
                ItemOutcome::Failed(503) => self.give_back(cell),
                ItemOutcome::Failed(_) => self.failed += 1,
                ItemOutcome::Missing if cell.action == Action::Register || cell.again => self.failed += 1,
                ItemOutcome::Missing if !is_void && cell.action != Action::Cancel => {
                    self.put_if_empty(now, &cell.id, Action::Register, false);
                    if cell.slot == 1 {
                        self.put_if_empty(now, &cell.id, cell.action, true);
                    }
                }
                ItemOutcome::Missing | ItemOutcome::Ok | ItemOutcome::Void | ItemOutcome::Conflict(_) => {}
            }
        }
        self.void.clear();
        self.trim();
    }

    fn put_if_empty(&mut self, now: Mono, id: &str, action: Action, again: bool) {
        let slot = slot(action);
        if !self.waiting.iter().any(|cell| cell.id == id && cell.slot == slot) {
            self.put(now, id, action, again);
        }
    }

    fn failed(&mut self) {
        for cell in std::mem::take(&mut self.flying) {
            self.give_back(cell);
        }
        self.void.clear();
        self.trim();
    }
}

fn slot(action: Action) -> usize {
    match action {
        Action::Register | Action::Cancel => 0,
        Action::Override | Action::ClearOverride => 1,
        Action::Renew => 2,
    }
}

/// What happens to an instance, by a number.
fn happen(bench: &mut Bench, model: &mut Model, id: &str, what: u64) {
    let now = bench.now.mono;
    let (kind, action) = match what % 12 {
        0 | 1 => (AppliedKind::Registered, Action::Register),
        2 => (AppliedKind::MetadataChanged, Action::Register),
        3 => (AppliedKind::Cancelled, Action::Cancel),
        4 => (AppliedKind::Overridden, Action::Override),
        5 => (AppliedKind::OverrideCleared, Action::ClearOverride),
        6 => {
            bench.expires(id);
            return model.forget(id, |_| true);
        }
        7 => {
            bench.hears(id, AppliedKind::Cancelled, peer_origin());
            return model.forget(id, |action| action != Action::Cancel);
        }
        8 => {
            let kinds = [AppliedKind::Registered, AppliedKind::Adopted];
            bench.hears(id, kinds[usize::from(what >= 12)], peer_origin());
            return model.forget(id, |action| action == Action::Cancel);
        }
        9 => {
            bench.hears(id, AppliedKind::Renewed, peer_origin());
            return bench.hears(id, AppliedKind::Overridden, peer_origin());
        }
        _ => (AppliedKind::Renewed, Action::Renew),
    };
    bench.hears(id, kind, Origin::Client);
    model.put(now, id, action, false);
}

fn outcome(number: u64) -> ItemOutcome {
    match number % 10 {
        0 => ItemOutcome::Missing,
        1 => ItemOutcome::Missing,
        2 => ItemOutcome::Failed(503),
        3 => ItemOutcome::Failed(500),
        4 => ItemOutcome::Void,
        _ => ItemOutcome::Ok,
    }
}

fn run(seed: u64) {
    let config = Config {
        queue_limit: LIMIT,
        batch_items_java: ITEMS,
        ..Config::default()
    };
    let mut bench = Bench::with(PeerKind::Java, &config);
    let mut model = Model::default();
    let mut state = seed;
    for _ in 0..400 {
        match random(&mut state) % 10 {
            0..=5 => {
                let id = (random(&mut state) % 9).to_string();
                happen(&mut bench, &mut model, &id, random(&mut state) % 24);
            }
            6 => {
                // Now and then long enough for something to be late.
                let longest = [200, 2_000, 20_000, 60_000][(random(&mut state) % 4) as usize];
                bench.pass(Duration::from_millis(random(&mut state) % longest));
            }
            7 | 8 => send(&mut bench, &mut model),
            _ if model.flying.is_empty() => {}
            _ => {
                if random(&mut state).is_multiple_of(3) {
                    let failure = [Failure::Busy, Failure::Unreachable, Failure::Misconfigured];
                    bench.fail(failure[(random(&mut state) % 3) as usize]);
                    model.failed();
                } else {
                    let outcomes: Vec<_> = model.flying.iter().map(|_| outcome(random(&mut state))).collect();
                    bench.answer(outcomes.clone());
                    model.answered(bench.now.mono, &outcomes);
                }
            }
        }
        let facts = bench.facts();
        assert_eq!(facts.queue, model.ids(), "seed {seed}");
        assert_eq!(facts.overflowed, model.overflowed, "seed {seed}");
        assert_eq!(facts.outdated, model.outdated, "seed {seed}");
        assert_eq!(facts.failed, model.failed, "seed {seed}");
    }
    drain(&mut bench, &mut model);
}

fn send(bench: &mut Bench, model: &mut Model) {
    let in_flight = !model.flying.is_empty();
    let due = bench.peer.poll_timeout();
    let batch = bench.poll();
    if in_flight {
        assert_eq!((due, batch), (None, None), "never a second batch");
    } else if due.is_some_and(|due| due <= bench.now.mono) {
        assert_eq!(batch.unwrap_or_default(), model.take(bench.now.mono));
    } else {
        assert_eq!(batch, None);
    }
}

/// Whatever still waits arrives.
fn drain(bench: &mut Bench, model: &mut Model) {
    for _ in 0..100 {
        if !model.flying.is_empty() {
            let outcomes = vec![ItemOutcome::Ok; model.flying.len()];
            bench.answer(outcomes.clone());
            model.answered(bench.now.mono, &outcomes);
        }
        let Some(due) = bench.peer.poll_timeout() else {
            break;
        };
        bench.pass(due.since(bench.now.mono));
        send(bench, model);
    }
    assert!(model.waiting.is_empty() && bench.peer.is_idle());
    assert_eq!(bench.peer.queue.holds(), 0);
}

#[test]
fn it_does_what_a_naive_model_does() {
    for seed in 0..1_000 {
        run(seed);
    }
}
