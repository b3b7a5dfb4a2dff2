//! Many instances: lists of many pages, the age of listed lease times, and how much one call does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    Changed, Config, Event, Instance, InstanceKey, Mono, Now, Origin, Registered, Registry, Renewed,
    Snapshot, Status, Wall,
};

struct Fleet {
    registry: Registry,
    now: Now,
}

impl Fleet {
    fn new(config: Config) -> Self {
        let now = Now {
            mono: Mono(0),
            wall: Wall(1_700_000_000_000),
        };
        let mut registry = Registry::new(now, config);
        registry.open(now, 1, None);
        Self { registry, now }
    }

    fn register(&mut self, number: usize, status: Status, duration: u32) {
        let key = key(number);
        let mut instance = Instance::new(key.app(), key.id(), "host", "10.0.0.1");
        instance.status = status;
        instance.last_dirty = Some(1);
        instance.lease.duration_secs = duration;
        let registered = self
            .registry
            .register(self.now, Origin::Client, Arc::new(instance), Duration::ZERO);
        assert_eq!(registered, Registered::Accepted);
        self.drain();
    }

    fn drain(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.registry.poll_event()).collect()
    }

    fn pass(&mut self, millis: u64) {
        self.now.mono.0 += millis;
        self.now.wall.0 += millis;
    }

    /// Lets time pass to `end`, doing what is due when it is due.
    fn advance_to(&mut self, end: u64) {
        while let Some((due, _)) = self.registry.poll_timeout().filter(|(due, _)| due.0 <= end) {
            self.pass(due.0.saturating_sub(self.now.mono.0));
            self.registry.handle_timeout(self.now);
            self.drain();
        }
        self.pass(end - self.now.mono.0);
    }
}

/// Spread over 12 applications.
fn key(number: usize) -> InstanceKey {
    InstanceKey::new(&format!("APP-{}", number % 12), &format!("i-{number:04}"))
}

fn listed(snapshot: &Snapshot) -> Vec<(InstanceKey, Status)> {
    snapshot
        .instances()
        .map(|view| (view.key(), view.instance.status))
        .collect()
}

#[test]
fn lists_of_many_pages_are_a_sorted_map_and_old_ones_stay() {
    let mut fleet = Fleet::new(Config::default());
    let mut expected = BTreeMap::new();
    let mut kept: Vec<(Snapshot, Vec<(InstanceKey, Status)>)> = Vec::new();
    let mut number = 1_usize;
    for step in 0..6_000 {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let (instance, choice) = ((number >> 33) % 1_500, (number >> 50) % 3);
        if choice == 0 && step > 1_500 {
            let changed = fleet.registry.cancel(fleet.now, Origin::Client, &key(instance));
            let was_there = expected.remove(&key(instance)).is_some();
            assert_eq!(changed == Changed::Ok, was_there);
            fleet.drain();
        } else {
            let status = [Status::Down, Status::Starting, Status::Up][(number >> 40) % 3];
            fleet.registry.cancel(fleet.now, Origin::Client, &key(instance));
            fleet.register(instance, status, 90);
            expected.insert(key(instance), status);
        }
        if step % 200 == 0 {
            let snapshot = fleet.registry.snapshot(fleet.now);
            let now: Vec<_> = expected
                .iter()
                .map(|(key, status)| (key.clone(), *status))
                .collect();
            assert_eq!(listed(&snapshot), now, "step {step}");
            assert_eq!(snapshot.len(), now.len());
            assert_eq!(
                snapshot.instance(&key(instance)).is_some(),
                expected.contains_key(&key(instance))
            );
            let by_application: usize = snapshot.applications().map(|app| app.instances().count()).sum();
            assert_eq!(by_application, now.len());
            assert!(
                snapshot
                    .pages()
                    .all(|page| (1..=320).contains(&page.instance_count()))
            );
            kept.push((snapshot, now));
        }
    }
    assert!(expected.len() > 500);
    for (snapshot, then) in kept {
        assert_eq!(listed(&snapshot), then);
    }
}

#[test]
fn a_change_replaces_one_page_and_a_renewal_none() {
    let mut fleet = Fleet::new(Config::default());
    (0..1_500).for_each(|number| fleet.register(number, Status::Up, 90));
    let before = fleet.registry.snapshot(fleet.now);
    let renewed = fleet
        .registry
        .renew(fleet.now, Origin::Client, &key(700), Some(1), None);
    assert_eq!(renewed, Renewed::Ok);
    assert_eq!(fleet.registry.snapshot(fleet.now).edition(), before.edition());

    fleet
        .registry
        .set_override(fleet.now, Origin::Client, &key(700), Status::Down, None);
    let after = fleet.registry.snapshot(fleet.now);
    let numbers = |snapshot: &Snapshot| -> Vec<_> { snapshot.pages().map(|page| page.number()).collect() };
    let (before, after) = (numbers(&before), numbers(&after));
    assert_eq!(before.len(), after.len());
    assert_eq!(
        before.iter().zip(&after).filter(|(old, new)| old != new).count(),
        1
    );
}

#[test]
fn listed_lease_times_are_no_older_than_configured() {
    let mut fleet = Fleet::new(Config::default());
    (0..700).for_each(|number| fleet.register(number, Status::Up, 90));
    let (mut oldest, mut taken_again) = (0, 0);
    for second in 1..=600 {
        fleet.advance_to(second * 1_000);
        for number in (0..700).filter(|number| *number as u64 % 30 == second % 30) {
            let renewed = fleet
                .registry
                .renew(fleet.now, Origin::Client, &key(number), Some(1), None);
            assert_eq!(renewed, Renewed::Ok);
            fleet.drain();
        }
        let version = fleet.registry.snapshot(fleet.now).version();
        assert_eq!(version, 700, "taking lease times again is no change");
        for view in fleet.registry.snapshot(fleet.now).instances() {
            let age = fleet.now.wall.0 - view.lease.renewed.0;
            oldest = oldest.max(age);
            taken_again += usize::from(second == 600 && age < 300_000);
        }
    }
    assert_eq!(taken_again, 700);
    // Renewed every 30 s, and listed as it was at most 180 s ago.
    assert!(oldest <= 210_000, "{oldest}");
}

#[test]
fn one_call_does_a_bounded_part_and_asks_for_the_next_at_once() {
    let config = Config {
        preservation: eureka_registry_core::PreservationConfig {
            enabled: false,
            threshold: 0.0,
            ..Config::default().preservation
        },
        ..Config::default()
    };
    let mut fleet = Fleet::new(config);
    (0..5_000).for_each(|number| fleet.register(number, Status::Up, 90));
    fleet.advance_to(119_999);
    fleet.pass(1);
    let (mut calls, mut gone) = (0, 0);
    while gone < 5_000 {
        fleet.registry.handle_timeout(fleet.now);
        let expired = fleet.drain().into_iter();
        let expired = expired
            .filter(|event| matches!(event, Event::Expired { .. }))
            .count();
        assert!(expired <= 256);
        gone += expired;
        calls += 1;
        assert!(calls < 1_000, "it gets on");
        let (due, _) = fleet.registry.poll_timeout().expect("the next run at least");
        assert!(
            gone == 5_000 || due <= fleet.now.mono,
            "{gone} gone, but nothing is due"
        );
    }
    assert!(calls >= 5);
    assert_eq!(fleet.registry.snapshot(fleet.now).len(), 0);
}
