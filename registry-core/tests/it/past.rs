//! The registry as it was: by cursor and by time, as far back as changes are kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use eureka_registry_core::{
    Clock, Config, Event, Instance, InstanceKey, Mono, Now, Origin, Past, PastError, Point, RegistryHandle,
    Status, Wall,
};

use crate::numbers::Numbers;

const START: u64 = 1_700_000_000_000;

/// A clock that stands until it is moved.
#[derive(Default)]
struct Stopped(AtomicU64);

impl Clock for Stopped {
    fn now(&self) -> Now {
        let millis = self.0.load(Ordering::SeqCst);
        Now {
            mono: Mono(millis),
            wall: Wall(START + millis),
        }
    }
}

struct Bench {
    clock: Arc<Stopped>,
    registry: RegistryHandle,
}

impl Bench {
    fn new(config: Config) -> Self {
        let clock = Arc::new(Stopped::default());
        let registry = RegistryHandle::new(config, Arc::clone(&clock) as _, Arc::new(|_: &Event| {}));
        registry.open(1, None);
        Self { clock, registry }
    }

    fn at(&self, millis: u64) {
        self.clock.0.store(millis, Ordering::SeqCst);
    }

    fn register(&self, id: &str, version: &str) {
        let mut instance = Instance::new("A", id, version, "10.0.0.1");
        instance.lease.duration_secs = 10_000;
        self.registry
            .register(Origin::Client, Arc::new(instance), Duration::ZERO);
    }

    fn past(&self, version: u64) -> Result<Past, PastError> {
        self.registry.past(Point::Cursor(self.registry.cursor(version)))
    }

    fn at_time(&self, millis: u64) -> Result<u64, PastError> {
        let past = self.registry.past(Point::Time(Wall(START + millis)))?;
        Ok(past.version())
    }
}

fn key(id: &str) -> InstanceKey {
    InstanceKey::new("A", id)
}

/// Ids, host names and statuses, in order.
fn shown(past: &Past) -> Vec<(String, String, Status)> {
    let shown = |instance: &Arc<Instance>| {
        (
            instance.id().to_owned(),
            (*instance.host_name).to_owned(),
            instance.status,
        )
    };
    past.instances_after(None).map(shown).collect()
}

#[test]
fn each_version_is_shown_as_it_was() {
    let bench = Bench::new(Config::default());
    bench.register("b", "one");
    bench.register("a", "one");
    bench.register("b", "two");
    bench
        .registry
        .set_override(Origin::Operator, &key("a"), Status::OutOfService, None);
    bench.registry.cancel(Origin::Client, &key("b"));
    bench.register("c", "one");
    bench.register("b", "three");

    let entry = |id: &str, host: &str| (id.to_owned(), host.to_owned(), Status::Up);
    let out = ("a".to_owned(), "one".to_owned(), Status::OutOfService);
    let stages = [
        vec![],
        vec![entry("b", "one")],
        vec![entry("a", "one"), entry("b", "one")],
        vec![entry("a", "one"), entry("b", "two")],
        vec![out.clone(), entry("b", "two")],
        vec![out.clone()],
        vec![out.clone(), entry("c", "one")],
        vec![out, entry("b", "three"), entry("c", "one")],
    ];
    for (version, stage) in (0..).zip(stages) {
        let past = bench.past(version).expect("it is kept");
        assert_eq!(past.version(), version);
        assert_eq!(shown(&past), stage, "at {version}");
        assert_eq!((past.len(), past.is_empty()), (stage.len(), stage.is_empty()));
        for (passed, (id, ..)) in stage.iter().enumerate() {
            let rest: Vec<_> = past.instances_after(Some(&key(id))).collect();
            assert_eq!(rest.len(), stage.len() - passed - 1, "behind {id} at {version}");
            assert_eq!(
                rest.first().map(|next| next.id()),
                stage.get(passed + 1).map(|(id, ..)| &**id)
            );
        }
        // Behind what is not there, in any version.
        let rest = past.instances_after(Some(&key("bb"))).count();
        assert_eq!(rest, stage.iter().filter(|(id, ..)| &**id > "bb").count());
    }
    assert_eq!(bench.past(8).unwrap_err(), PastError::Future);
}

#[test]
fn a_time_is_the_last_version_until_then() {
    let bench = Bench::new(Config {
        change_log_limit: 3,
        ..Config::default()
    });
    bench.at(10);
    assert_eq!(bench.at_time(0), Ok(0), "it was there, and empty");
    bench.register("a", "one");
    bench.at(20);
    bench.register("b", "one");
    bench.register("c", "one");
    assert_eq!([9, 10, 19, 20].map(|at| bench.at_time(at).unwrap()), [0, 1, 1, 3]);
    assert_eq!(bench.at_time(21), Err(PastError::Future));
    bench.at(30);
    assert_eq!(bench.at_time(30), Ok(3));
    let start = bench.registry.past(Point::Time(Wall(START - 1)));
    assert_eq!(start.unwrap_err(), PastError::TooOld, "it had not started");

    // The fourth change pushes the first out: what was before that cannot be told any more, what was after it can.
    bench.register("d", "one");
    assert_eq!(bench.at_time(9), Err(PastError::TooOld));
    assert_eq!(
        [10, 19, 20, 29].map(|at| bench.at_time(at).unwrap()),
        [1, 1, 3, 3]
    );
    assert_eq!(bench.past(0).unwrap_err(), PastError::TooOld);
    assert_eq!(bench.past(1).unwrap().len(), 1);
}

#[test]
fn the_past_of_another_start_is_not_ours() {
    let bench = Bench::new(Config::default());
    let other = Bench::new(Config {
        seed: [1, 2],
        ..Config::default()
    });
    let foreign = Point::Cursor(other.registry.cursor(0));
    assert_eq!(bench.registry.past(foreign).unwrap_err(), PastError::Foreign);
}

#[test]
fn many_changes_are_undone() {
    let bench = Bench::new(Config::default());
    for number in 0..1_000 {
        bench.register(&format!("{number:04}"), "one");
    }
    for number in (0..1_000).step_by(2) {
        bench
            .registry
            .cancel(Origin::Client, &key(&format!("{number:04}")));
    }
    let past = bench.past(1_000).unwrap();
    assert_eq!(past.len(), 1_000);
    let ids = past.instances_after(None).map(|held| held.id().to_owned());
    assert!(ids.eq((0..1_000).map(|number| format!("{number:04}"))));
    // What is held stays what it was, whatever comes.
    bench.register("0000", "two");
    assert_eq!(past.instances_after(None).count(), 1_000);
}

/// Whatever happens, each version that is kept is shown as its own snapshot showed it.
#[test]
fn the_past_is_what_snapshots_of_then_showed() {
    let mut too_old = 0;
    for seed in 0..20 {
        let mut random = Numbers::new(seed);
        let bench = Bench::new(Config {
            change_log_limit: 20 + random.below(30),
            ..Config::default()
        });
        let mut stages = vec![bench.registry.snapshot()];
        for _ in 0..120 {
            bench.at(bench.registry.now().mono.0 + random.below(3) as u64);
            let id = random.below(9).to_string();
            match random.below(6) {
                0 => {
                    bench.registry.cancel(Origin::Client, &key(&id));
                }
                1 => {
                    let status = [Status::Down, Status::OutOfService][random.below(2)];
                    bench
                        .registry
                        .set_override(Origin::Operator, &key(&id), status, None);
                }
                _ => bench.register(&id, ["one", "two", "three"][random.below(3)]),
            }
            let snapshot = bench.registry.snapshot();
            if snapshot.version() as usize == stages.len() {
                stages.push(snapshot);
            }
        }
        let kept = bench.registry.stats().changes;
        for (version, stage) in stages.iter().enumerate() {
            let is_kept = version + kept >= stages.len() - 1;
            match bench.past(version as u64) {
                Ok(past) => {
                    assert!(is_kept, "{version} of seed {seed}");
                    assert_eq!(past.len(), stage.len());
                    let then = stage.instances().map(|view| &view.instance);
                    assert!(past.instances_after(None).eq(then), "{version} of seed {seed}");
                    let after = key(&random.below(9).to_string());
                    let then = stage.instances_after(Some(&after)).map(|view| &view.instance);
                    assert!(
                        past.instances_after(Some(&after)).eq(then),
                        "{version} of seed {seed}"
                    );
                }
                Err(error) => {
                    assert_eq!(error, PastError::TooOld);
                    assert!(!is_kept, "{version} of seed {seed}");
                    too_old += 1;
                }
            }
        }
    }
    assert!(too_old > 100);
}
