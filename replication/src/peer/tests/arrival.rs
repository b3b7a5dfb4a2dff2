//! Whatever a peer does to batches, in the end it knows what happened here.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use eureka_registry_core::{AppliedKind, Mono};

use super::Bench;
use crate::config::Config;
use crate::facts::PeerKind;
use crate::message::{Action, Failure, ItemOutcome};
use crate::shaper::random;

/// Instances by their ids, and whether they have an override.
type World = BTreeMap<String, bool>;

/// A peer that knows a world with its leases, refuses batches with some instances in them, and fails now and then.
struct Remote {
    world: World,
    heard: BTreeMap<String, Mono>,
    poison: BTreeSet<String>,
    largest: usize,
    state: u64,
}

impl Remote {
    fn take(
        &mut self,
        now: Mono,
        here: &World,
        batch: &[(String, Action)],
    ) -> Result<Vec<ItemOutcome>, Failure> {
        let failures = [Failure::Busy, Failure::Unreachable];
        if random(&mut self.state).is_multiple_of(5) {
            // The failure hides whether the batch was applied.
            if random(&mut self.state).is_multiple_of(2) && !self.refuses(batch) {
                self.apply(now, here, batch);
            }
            return Err(failures[(random(&mut self.state) % 2) as usize]);
        }
        if batch.len() > self.largest {
            return Err(Failure::TooLarge);
        }
        if self.refuses(batch) {
            return Err(Failure::Rejected);
        }
        Ok(self.apply(now, here, batch))
    }

    fn refuses(&self, batch: &[(String, Action)]) -> bool {
        batch
            .iter()
            .any(|(id, action)| *action == Action::Register && self.poison.contains(id))
    }

    /// Items are what the instance is when they are sent.
    fn apply(&mut self, now: Mono, here: &World, batch: &[(String, Action)]) -> Vec<ItemOutcome> {
        let apply = |(id, action): &(String, Action)| {
            self.heard.insert(id.clone(), now);
            let Some(&overridden) = here.get(id).filter(|_| *action != Action::Cancel) else {
                let gone = *action == Action::Cancel;
                return match gone.then(|| self.world.remove(id)) {
                    Some(Some(_)) => ItemOutcome::Ok,
                    Some(None) => ItemOutcome::Missing,
                    None => ItemOutcome::Void,
                };
            };
            match (action, self.world.get_mut(id)) {
                (Action::Register, _) => {
                    self.world.entry(id.clone()).or_insert(false);
                    ItemOutcome::Ok
                }
                (_, None) => ItemOutcome::Missing,
                (Action::Override | Action::ClearOverride, Some(held)) => {
                    *held = overridden;
                    ItemOutcome::Ok
                }
                (Action::Renew | Action::Cancel, Some(_)) => ItemOutcome::Ok,
            }
        };
        batch.iter().map(apply).collect()
    }
}

/// Gives the peer what is due, for so long.
fn exchange(bench: &mut Bench, remote: &mut Remote, here: &World, time: Duration) {
    let end = bench.now.mono.after(time);
    while let Some(due) = bench.peer.poll_timeout().filter(|due| *due < end) {
        bench.pass(due.since(bench.now.mono));
        let Some(batch) = bench.poll() else {
            continue;
        };
        in_order(&batch);
        match remote.take(bench.now.mono, here, &batch) {
            Ok(outcomes) => assert!(bench.answer(outcomes).is_empty()),
            Err(failure) => bench.fail(failure),
        }
    }
    bench.pass(end.since(bench.now.mono));
}

fn in_order(batch: &[(String, Action)]) {
    let rank = |action| match action {
        Action::Register | Action::Cancel => 0,
        Action::Override | Action::ClearOverride => 1,
        Action::Renew => 2,
    };
    for (place, (id, action)) in batch.iter().enumerate() {
        let mut later = batch[place + 1..].iter().filter(|(other, _)| other == id);
        assert!(later.all(|(_, other)| rank(*other) > rank(*action)), "{batch:?}");
    }
}

/// A client does something.
fn happen(bench: &mut Bench, here: &mut World, state: &mut u64) {
    let id = (random(state) % 60).to_string();
    match (random(state) % 8, here.contains_key(&id)) {
        (0..=2, held) => {
            here.entry(id.clone()).or_insert(false);
            bench.says(
                &id,
                if held {
                    AppliedKind::MetadataChanged
                } else {
                    AppliedKind::Registered
                },
            );
        }
        (_, false) => {}
        (3, true) => {
            here.remove(&id);
            bench.says(&id, AppliedKind::Cancelled);
        }
        (4, true) => {
            here.insert(id.clone(), true);
            bench.says(&id, AppliedKind::Overridden);
        }
        (5, true) => {
            here.insert(id.clone(), false);
            bench.says(&id, AppliedKind::OverrideCleared);
        }
        (_, true) => bench.says(&id, AppliedKind::Renewed),
    }
}

fn run(seed: u64) {
    let config = Config {
        batch_items_java: 40,
        ..Config::default()
    };
    let mut bench = Bench::with(PeerKind::Java, &config);
    let mut state = seed;
    let poison = (0..random(&mut state) % 3).map(|_| (random(&mut state) % 60).to_string());
    let mut remote = Remote {
        poison: poison.collect(),
        world: World::new(),
        heard: BTreeMap::new(),
        largest: [1, 7, 40][(seed % 3) as usize],
        state: seed,
    };
    let mut here = World::new();
    for _ in 0..600 {
        happen(&mut bench, &mut here, &mut state);
        exchange(
            &mut bench,
            &mut remote,
            &here,
            Duration::from_millis(random(&mut state) % 300),
        );
    }
    // A few leases long nothing but heartbeats.
    for _ in 0..20 {
        for id in here.keys() {
            bench.says(id, AppliedKind::Renewed);
        }
        exchange(&mut bench, &mut remote, &here, Duration::from_secs(30));
    }
    exchange(&mut bench, &mut remote, &here, Duration::from_secs(200));
    assert!(bench.peer.is_idle(), "seed {seed}");
    // What was not heard of for so long has run out there.
    let alive = bench.now.mono.before(Duration::from_secs(300));
    remote.world.retain(|id, _| remote.heard[id] > alive);
    for world in [&mut here, &mut remote.world] {
        world.retain(|id, _| !remote.poison.contains(id));
    }
    if bench.facts().outdated > 0 {
        // A heartbeat brings an instance back, but not its override.
        for overridden in here.values_mut().chain(remote.world.values_mut()) {
            *overridden = false;
        }
    }
    assert_eq!(remote.world, here, "seed {seed}: {:?}", bench.facts());
}

#[test]
fn in_the_end_the_peer_knows_what_happened_here() {
    for seed in 0..150 {
        run(seed);
    }
}
