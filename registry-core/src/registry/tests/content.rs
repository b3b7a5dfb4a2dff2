//! Which copy wins: dirty timestamps, overrides, tombstones, adoption.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Bench, instance, key, peer};
use crate::command::Origin::{Client, Operator};
use crate::command::{Changed, Registered, Renewed};
use crate::config::{Compat, Config, PreservationConfig};
use crate::content::content_hash;
use crate::digest::{bucket, key_hash};
use crate::event::{AppliedKind, Event};
use crate::model::{Instance, InstanceKey, LeaseTerms, Status};
use crate::repair::{Entry, EntryState, Learned, Offer, RepairAnswer, RepairRequest, Stamp, Stamped, Step};
use crate::time::Wall;

fn from(host: &str, dirty: Option<i64>) -> Instance {
    Instance {
        host_name: Arc::from(host),
        last_dirty: dirty,
        ..instance(0)
    }
}

fn held(bench: &Bench) -> (String, i64) {
    let view = bench.registry.lease(bench.now, &key()).expect("registered");
    let dirty = view.instance.last_dirty.expect("it has one");
    (view.instance.host_name.as_ref().into(), dirty)
}

fn put_metadata(bench: &mut Bench) {
    let entries = [(Arc::from("k"), Arc::from("v"))];
    let changed = bench
        .registry
        .update_metadata(bench.now, Client, &key(), &entries);
    assert_eq!(changed, Changed::Ok);
}

#[test]
fn a_change_of_metadata_raises_the_dirty_timestamp_by_one() {
    let mut bench = Bench::new(Config::default());
    bench.register(Client, from("a", Some(100)));
    put_metadata(&mut bench);
    assert_eq!(held(&bench).1, 101);
    let renewed = bench.registry.renew(bench.now, Client, &key(), Some(100), None);
    assert_eq!(renewed, Renewed::Ok, "the client need not know");
    let renewed = bench.registry.renew(bench.now, peer(), &key(), Some(100), None);
    assert!(matches!(renewed, Renewed::Behind(_)), "peers are told");
}

#[test]
fn a_client_is_measured_by_its_own_last_registration() {
    let mut bench = Bench::new(Config::default());
    bench.register(Client, from("a", Some(100)));
    put_metadata(&mut bench);
    assert_eq!(bench.register(Client, from("b", Some(99))), Registered::KeptNewer);
    assert_eq!(held(&bench), ("a".into(), 101));
    assert_eq!(bench.register(Client, from("b", Some(100))), Registered::Accepted);
    assert_eq!(held(&bench), ("b".into(), 102), "other content is newer content");
    assert_eq!(bench.register(Client, from("b", Some(100))), Registered::Accepted);
    assert_eq!(held(&bench), ("b".into(), 102), "the same content is not");
    assert_eq!(bench.register(Client, from("c", Some(200))), Registered::Accepted);
    assert_eq!(held(&bench), ("c".into(), 200));
    assert_eq!(
        bench.register(Client, from("d", Some(150))),
        Registered::KeptNewer
    );
}

#[test]
fn a_registration_without_a_dirty_timestamp_is_newer_than_anything() {
    let mut bench = Bench::new(Config::default());
    bench.register(Client, from("a", None));
    let clock = i64::try_from(bench.now.wall.0).expect("it fits");
    assert_eq!(held(&bench).1, clock);
    bench.register(Client, from("b", Some(clock + 1_000_000)));
    bench.register(Client, from("c", None));
    assert_eq!(held(&bench), ("c".into(), clock + 1_000_001));
}

#[test]
fn a_client_whose_dirty_timestamp_never_moves_can_change_nodes() {
    let mut bench = Bench::new(Config::default());
    bench.register(peer(), from("a", Some(5)));
    assert_eq!(bench.register(Client, from("b", Some(1))), Registered::KeptNewer);
    bench.registry.renew(bench.now, Client, &key(), Some(1), None);
    assert_eq!(bench.register(Client, from("b", Some(1))), Registered::Accepted);
    assert_eq!(held(&bench), ("b".into(), 6));
}

#[test]
fn a_peer_wins_with_an_equal_dirty_timestamp_and_loses_with_an_older_one() {
    let mut bench = Bench::new(Config::default());
    bench.register(Client, from("a", Some(100)));
    assert_eq!(bench.register(peer(), from("b", Some(99))), Registered::KeptNewer);
    assert_eq!(held(&bench), ("a".into(), 100));
    assert_eq!(bench.register(peer(), from("b", Some(100))), Registered::Accepted);
    assert_eq!(held(&bench), ("b".into(), 100));
}

#[test]
fn adoption_takes_the_greater_of_dirty_timestamp_and_content_whoever_came_first() {
    let ends = |first: &str, second: &str| {
        let mut bench = Bench::new(Config::default());
        for host in [first, second] {
            let offered = Arc::new(from(host, Some(100)));
            bench.registry.adopt(bench.now, peer(), offered, Duration::ZERO);
        }
        held(&bench).0
    };
    assert_eq!(ends("a", "b"), ends("b", "a"));

    let mut bench = Bench::new(Config::default());
    bench.register(Client, from("a", Some(100)));
    bench.advance(20_000);
    let offered = Arc::new(from("b", Some(99)));
    let adopted = bench
        .registry
        .adopt(bench.now, peer(), offered, Duration::from_secs(5));
    assert_eq!(adopted, Registered::KeptNewer);
    assert_eq!(held(&bench).0, "a");
    let age = bench.registry.age(bench.now, &key());
    assert_eq!(
        age,
        Some(Duration::from_secs(5)),
        "but it was heard of later there"
    );
    let old = Arc::new(from("c", Some(500)));
    let refused = bench
        .registry
        .adopt(bench.now, peer(), Arc::clone(&old), Duration::from_secs(90));
    assert_eq!(refused, Registered::Refused);
    let adopted = bench
        .registry
        .adopt(bench.now, peer(), old, Duration::from_secs(60));
    assert_eq!((adopted, held(&bench).0), (Registered::Accepted, "c".into()));
    let age = bench.registry.age(bench.now, &key());
    assert_eq!(
        age,
        Some(Duration::from_secs(5)),
        "an older offer does not age the lease"
    );
}

#[test]
fn a_cancel_is_remembered_against_older_copies() {
    let mut bench = Bench::new(Config::default());
    bench.register(Client, from("a", Some(100)));
    bench.registry.cancel(bench.now, Client, &key());
    assert_eq!(bench.register(peer(), from("b", Some(99))), Registered::Refused);
    let heartbeat =
        |bench: &mut Bench, origin, dirty| bench.registry.renew(bench.now, origin, &key(), Some(dirty), None);
    assert_eq!(heartbeat(&mut bench, Client, 100), Renewed::Missing);
    assert_eq!(heartbeat(&mut bench, peer(), 101), Renewed::Missing);
    assert_eq!(
        heartbeat(&mut bench, peer(), 100),
        Renewed::Ok,
        "it is on its way"
    );
    assert_eq!(bench.registry.stats().renewals_ignored, 1);
    assert_eq!(bench.registry.stats().instances, 0);
    bench.advance(10_001);
    assert_eq!(heartbeat(&mut bench, peer(), 100), Renewed::Missing);
    assert_eq!(bench.register(peer(), from("b", Some(100))), Registered::Accepted);
    assert_eq!(bench.registry.stats().tombstones, 0);

    bench.registry.cancel(bench.now, Client, &key());
    assert_eq!(
        bench.register(Client, from("c", Some(1))),
        Registered::Accepted,
        "a client may"
    );
    bench.registry.cancel(bench.now, Client, &key());
    bench.advance(300_000);
    assert_eq!(bench.registry.stats().tombstones, 0);
}

#[test]
fn adopted_copies_lose_against_a_cancel_unless_they_were_heard_of_after_it() {
    let mut bench = Bench::new(Config::default());
    bench.register(Client, from("a", Some(100)));
    bench.registry.cancel(bench.now, Client, &key());
    bench.advance(10_000);
    let adopt = |bench: &mut Bench, dirty, age| {
        let offered = Arc::new(from("b", Some(dirty)));
        bench
            .registry
            .adopt(bench.now, peer(), offered, Duration::from_secs(age))
    };
    assert_eq!(adopt(&mut bench, 99, 0), Registered::Refused);
    assert_eq!(adopt(&mut bench, 100, 11), Registered::Refused);
    assert_eq!(adopt(&mut bench, 100, 9), Registered::Accepted);
}

#[test]
fn java_remembers_no_cancels() {
    let mut bench = Bench::new(Config::eureka_java());
    bench.register(Client, from("a", Some(100)));
    bench.registry.cancel(bench.now, Client, &key());
    assert_eq!(bench.register(peer(), from("b", Some(99))), Registered::Accepted);
    bench
        .registry
        .cancel(bench.now, Client, &InstanceKey::new("X", "y"));
    let cancels = bench.registry.recent_cancels(bench.now);
    assert_eq!(&**cancels[0].key.app(), "X", "nor does it need one to list it");
}

#[test]
fn limits_forget_the_oldest_and_count_it() {
    let mut bench = Bench::new(Config {
        tombstone_limit: 2,
        ..Config::default()
    });
    for id in ["1", "2", "3"] {
        bench.register(
            Client,
            Instance {
                last_dirty: Some(5),
                ..Instance::new("A", id, "h", "ip")
            },
        );
        bench
            .registry
            .cancel(bench.now, Client, &InstanceKey::new("A", id));
    }
    let stats = bench.registry.stats();
    assert_eq!((stats.tombstones, stats.forgotten), (2, 1));
    let old = |id| Instance {
        last_dirty: Some(1),
        ..Instance::new("A", id, "h", "ip")
    };
    assert_eq!(bench.register(peer(), old("1")), Registered::Accepted);
    assert_eq!(bench.register(peer(), old("3")), Registered::Refused);
}

/// Registers, overrides with OUT_OF_SERVICE and lets the lease run out.
fn evicted_with_override(compat: Compat) -> Bench {
    let mut bench = Bench::new(Config {
        eviction_interval: Duration::from_secs(1),
        override_limit: 1,
        preservation: PreservationConfig {
            enabled: false,
            ..PreservationConfig::default()
        },
        compat,
        ..Config::default()
    });
    let short = LeaseTerms {
        renewal_interval_secs: 1,
        duration_secs: 3,
    };
    bench.register(
        Client,
        Instance {
            lease: short,
            ..instance(5)
        },
    );
    let out = Status::OutOfService;
    bench
        .registry
        .set_override(bench.now, Operator, &key(), out, None);
    bench.advance(10_000);
    assert_eq!(bench.registry.stats().instances, 0);
    bench
}

#[test]
fn an_override_outlives_an_eviction() {
    let mut bench = evicted_with_override(Compat::default());
    bench.register(Client, instance(6));
    let view = bench.find(&key()).expect("registered");
    assert_eq!(view.instance.status, Status::OutOfService);
    assert_eq!(view.instance.overridden_status, Status::OutOfService);
    bench.advance(3_600_000);
    assert_eq!(
        bench.registry.stats().overrides,
        1,
        "its hour began when it was evicted again"
    );
    bench.advance(100_000);
    assert_eq!(bench.registry.stats().overrides, 0);

    let mut bench = evicted_with_override(Compat::default());
    bench.advance(3_600_000);
    assert_eq!(bench.registry.stats().overrides, 0);

    let mut bench = evicted_with_override(Compat {
        override_lost_on_eviction: true,
        ..Compat::default()
    });
    bench.register(Client, instance(6));
    assert_eq!(
        bench.find(&key()).expect("registered").instance.status,
        Status::Up
    );
}

#[test]
fn of_too_many_kept_overrides_the_oldest_is_forgotten() {
    let mut bench = evicted_with_override(Compat::default());
    let other = Instance {
        instance_id: Some(Arc::from("i-2")),
        lease: LeaseTerms {
            renewal_interval_secs: 1,
            duration_secs: 3,
        },
        ..instance(5)
    };
    let second = other.key();
    bench.register(Client, other);
    bench
        .registry
        .set_override(bench.now, Operator, &second, Status::Down, None);
    assert_eq!(bench.registry.stats().overrides, 2);
    bench.advance(10_000);
    assert_eq!(bench.registry.overrides(None, 9), [(second, Status::Down)]);
    let (forgotten, limit) = (
        bench.registry.stats().forgotten,
        bench.registry.config().override_limit,
    );
    assert_eq!((forgotten, limit), (1, 1));
}

#[test]
fn a_kept_override_goes_by_cancel_by_a_peer_that_knows_of_none_or_by_an_operator() {
    let mut bench = evicted_with_override(Compat::default());
    assert_eq!(bench.registry.cancel(bench.now, Client, &key()), Changed::Missing);
    assert_eq!(bench.registry.stats().overrides, 0);

    let mut bench = evicted_with_override(Compat::default());
    bench.register(peer(), instance(6));
    assert_eq!(
        bench.find(&key()).expect("registered").instance.status,
        Status::Up
    );

    let mut bench = evicted_with_override(Compat::default());
    let clear = |bench: &mut Bench, origin| {
        bench
            .registry
            .clear_override(bench.now, origin, &key(), None, None)
    };
    assert_eq!(clear(&mut bench, Client), Changed::Missing);
    assert_eq!(bench.registry.overrides(None, 9), [(key(), Status::OutOfService)]);
    assert_eq!(clear(&mut bench, Operator), Changed::Ok);
    assert_eq!(bench.registry.stats().overrides, 0);
}

#[test]
fn an_override_of_the_status_there_is_holds_it() {
    for (config, shown) in [
        (Config::default(), Status::Up),
        (Config::eureka_java(), Status::Down),
    ] {
        let mut bench = Bench::new(config);
        bench.register(Client, instance(5));
        bench
            .registry
            .set_override(bench.now, Operator, &key(), Status::Up, None);
        bench.register(
            Client,
            Instance {
                status: Status::OutOfService,
                ..instance(6)
            },
        );
        assert_eq!(
            bench.find(&key()).expect("registered").instance.status,
            Status::Up
        );
        bench.register(
            Client,
            Instance {
                status: Status::Down,
                ..instance(7)
            },
        );
        bench.register(
            Client,
            Instance {
                status: Status::OutOfService,
                ..instance(8)
            },
        );
        let status = bench.find(&key()).expect("registered").instance.status;
        assert_eq!(status == Status::Up, shown == Status::Up);
    }
}

#[test]
fn overrides_are_by_application_and_id_and_in_java_by_id() {
    for (config, other) in [
        (Config::default(), Status::Up),
        (Config::eureka_java(), Status::OutOfService),
    ] {
        let mut bench = Bench::new(config);
        bench.register(Client, instance(5));
        bench.register(
            Client,
            Instance {
                app: Arc::from("BAR"),
                ..instance(5)
            },
        );
        let out = Status::OutOfService;
        bench
            .registry
            .set_override(bench.now, Operator, &key(), out, None);
        let bar = InstanceKey::new("BAR", "i-1");
        bench.renew(Client, &bar);
        assert_eq!(bench.find(&bar).expect("registered").instance.status, other);
    }
}

#[test]
fn events_tell_what_was_done_by_whom_without_gaps() {
    let mut bench = Bench::new(Config::default());
    bench.register(Client, instance(5));
    bench.renew(peer(), &key());
    bench
        .registry
        .set_override(bench.now, Operator, &key(), Status::Down, Some(7));
    bench
        .registry
        .clear_override(bench.now, Operator, &key(), Some(Status::Up), None);
    put_metadata(&mut bench);
    bench.registry.cancel(bench.now, Client, &key());
    bench.registry.cancel(bench.now, Client, &key());
    bench.drain();
    let applied: Vec<_> = bench
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Applied {
                seq,
                version,
                kind,
                origin,
                after,
                ..
            } => {
                let dirty = after.as_ref().and_then(|after| after.last_dirty);
                Some((*seq, *version, *kind, origin.clone(), dirty))
            }
            Event::Expired { .. } | Event::Late { .. } | Event::Preserving(_) => None,
        })
        .collect();
    let expected = [
        (1, 1, AppliedKind::Registered, Client, Some(5)),
        (2, 1, AppliedKind::Renewed, peer(), Some(5)),
        (3, 2, AppliedKind::Overridden, Operator, Some(7)),
        (4, 3, AppliedKind::OverrideCleared, Operator, Some(7)),
        (5, 4, AppliedKind::MetadataChanged, Client, Some(8)),
        (6, 5, AppliedKind::Cancelled, Client, None),
    ];
    assert_eq!(applied, expected);
}

const DAY: u64 = 24 * 60 * 60 * 1_000;

/// Another node offers what is held, with an override of that moment, and this is what is shown then.
fn offered(bench: &mut Bench, status: Status, at: u64) -> Status {
    let (at, node) = (Wall(at), u64::MAX);
    let copy = Offer::Copy {
        instance: Arc::new(instance(1)),
        age: Duration::ZERO,
        overridden: Some(Stamped {
            status: Some(status),
            stamp: Stamp { at, node },
        }),
    };
    let exchange = RepairRequest::Exchange {
        pull: Vec::new(),
        push: Vec::from([copy]),
    };
    bench.registry.repair_answer(bench.now, peer(), exchange);
    bench.drain();
    bench.find(&key()).expect("it is held").instance.status
}

fn overrule(bench: &mut Bench, status: Status) {
    let changed = bench
        .registry
        .set_override(bench.now, Operator, &key(), status, None);
    assert_eq!(changed, Changed::Ok);
    bench.drain();
}

#[test]
fn an_override_of_a_clock_far_ahead_loses_against_every_other() {
    let far = [u64::MAX, Bench::new(Config::default()).now.wall.0 + 2 * DAY];
    for at in far {
        let mut bench = Bench::new(Config::default());
        bench.register(Client, instance(1));
        let now = bench.now.wall.0;
        assert_eq!(
            offered(&mut bench, Status::OutOfService, at),
            Status::OutOfService,
            "nobody knows better"
        );
        assert_eq!(offered(&mut bench, Status::Starting, now), Status::Starting);
        overrule(&mut bench, Status::Down);
        assert_eq!(offered(&mut bench, Status::OutOfService, at), Status::Down);
        // Nor is it asked for.
        bench.advance(3_000);
        let buckets = Vec::from([bucket(key_hash(&key()))]);
        let entry = Entry {
            key: key(),
            dirty: 1,
            state: EntryState::Held {
                content: content_hash(&instance(1), instance(1).status),
                overridden: Some(Status::OutOfService),
                stamp: Some(Stamp {
                    at: Wall(at),
                    node: 1,
                }),
                age: Duration::ZERO,
            },
        };
        let entries = Vec::from([entry]);
        let (asked, step) = (bench.now.mono, Step::List { buckets });
        let learned = bench
            .registry
            .learn(bench.now, peer(), asked, &step, RepairAnswer::List { entries });
        let plan = Learned::Plan {
            pull: Vec::new(),
            push: Vec::from([key()]),
            left: Vec::new(),
        };
        assert_eq!(learned, plan);
    }
}

#[test]
fn an_override_set_here_wins_over_what_is_held_whatever_the_clocks_say() {
    let mut bench = Bench::new(Config::default());
    bench.register(Client, instance(1));
    let now = bench.now.wall.0;
    assert_eq!(
        offered(&mut bench, Status::OutOfService, now + DAY / 2),
        Status::OutOfService
    );
    overrule(&mut bench, Status::Down);
    assert_eq!(
        offered(&mut bench, Status::OutOfService, now + DAY / 2),
        Status::Down,
        "the clock there is ahead of ours, but ours was set later"
    );
    // The clock here was wrong for a while.
    bench.now.wall = Wall(u64::MAX);
    overrule(&mut bench, Status::OutOfService);
    bench.now.wall = Wall(now);
    assert_eq!(offered(&mut bench, Status::Down, now), Status::Down);
}
