//! What readers see: snapshots, the delta, the log of changes.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Bench, instance, key, peer};
use crate::changes::Changes;
use crate::command::Changed;
use crate::command::Origin::Client;
use crate::config::{Config, Settle};
use crate::model::{Action, Instance, InstanceKey, LeaseTerms, Status};
use crate::snapshot::{Hold, Reads};

fn listed(bench: &mut Bench) -> Vec<String> {
    let snapshot = bench.registry.snapshot(bench.now);
    let keys = snapshot.instances().map(|view| format!("{}", view.key()));
    keys.collect()
}

fn delta(bench: &mut Bench) -> Vec<(String, Action)> {
    let snapshot = bench.registry.snapshot(bench.now);
    let delta = snapshot.delta();
    let entries = delta.iter().map(|view| (format!("{}", view.key()), view.action));
    entries.collect()
}

fn named(app: &str, id: &str) -> Instance {
    Instance {
        last_dirty: Some(1),
        lease: LeaseTerms {
            renewal_interval_secs: 30,
            duration_secs: 10_000,
        },
        ..Instance::new(app, id, "host", "10.0.0.1")
    }
}

#[test]
fn instances_are_in_the_order_of_application_and_id() {
    let mut bench = Bench::new(Config::default());
    for (app, id) in [("b", "2"), ("a", "9"), ("b", "1"), ("a-b", "1"), ("a", "10")] {
        bench.register(Client, named(app, id));
    }
    assert_eq!(listed(&mut bench), ["A/10", "A/9", "A-B/1", "B/1", "B/2"]);
    let snapshot = bench.registry.snapshot(bench.now);
    let applications: Vec<_> = snapshot
        .applications()
        .map(|application| (&**application.name(), application.instances().len()))
        .collect();
    assert_eq!(applications, [("A", 2), ("A-B", 1), ("B", 2)]);
    assert_eq!(snapshot.application_count(), 3);
    let application = snapshot.application("B").expect("it has instances");
    let ids: Vec<_> = application.instances().map(|view| view.instance.id()).collect();
    assert_eq!(ids, ["1", "2"]);
    assert!(snapshot.application("C").is_none() && snapshot.application("A-").is_none());
    let behind = InstanceKey::new("A-B", "1");
    assert_eq!(snapshot.instances_after(Some(&behind)).count(), 2);
    assert_eq!(snapshot.instances_after(None).count(), 5);
}

#[test]
fn a_snapshot_stays_as_it_was_and_is_taken_again_only_after_a_change() {
    let mut bench = Bench::new(Config::default());
    bench.register(Client, named("a", "1"));
    let first = bench.registry.snapshot(bench.now);
    bench.renew(Client, &InstanceKey::new("A", "1"));
    let second = bench.registry.snapshot(bench.now);
    assert_eq!(first.edition(), second.edition(), "heartbeats change nothing");
    bench.register(Client, named("a", "2"));
    let third = bench.registry.snapshot(bench.now);
    assert_ne!(third.edition(), second.edition());
    assert_eq!(third.edition(), bench.registry.edition());
    assert_eq!([first.len(), second.len(), third.len()], [1, 1, 2]);
    assert_eq!([first.version(), third.version()], [1, 2]);
    assert_eq!((&*first.hash(), &*third.hash()), ("UP_1_", "UP_2_"));
}

#[test]
fn ids_and_virtual_addresses_are_found_exactly() {
    let mut bench = Bench::new(Config::default());
    let with = |app: &str, vip: &str, secure: &str| Instance {
        vip_address: Some(Arc::from(vip)),
        secure_vip_address: Some(Arc::from(secure)),
        ..named(app, "i")
    };
    bench.register(Client, with("b", "x,y", "s"));
    bench.register(Client, with("a", "y,y,,X", "s"));
    let snapshot = bench.registry.snapshot(bench.now);
    let apps = |views: Vec<Arc<crate::LeaseView>>| {
        let apps = views.iter().map(|view| String::from(&*view.instance.app));
        apps.collect::<Vec<_>>()
    };
    assert_eq!(apps(snapshot.by_vip("y")), ["A", "B"]);
    assert_eq!(apps(snapshot.by_vip("x")), ["B"]);
    assert_eq!(apps(snapshot.by_vip("X")), ["A"]);
    assert!(snapshot.by_vip("x,y").is_empty() && snapshot.by_vip("").is_empty());
    assert_eq!(apps(snapshot.by_secure_vip("s")), ["A", "B"]);
    assert_eq!(apps(snapshot.by_id("i")), ["A", "B"]);
    assert!(snapshot.by_id("I").is_empty());
    let first = bench.registry.find_by_id(bench.now, "i").expect("both have it");
    assert_eq!(&*first.instance.app, "A");

    bench.register(
        Client,
        Instance {
            last_dirty: Some(2),
            ..with("a", "z", "s")
        },
    );
    bench
        .registry
        .cancel(bench.now, Client, &InstanceKey::new("B", "i"));
    let snapshot = bench.registry.snapshot(bench.now);
    assert_eq!(apps(snapshot.by_vip("z")), ["A"]);
    assert!(snapshot.by_vip("y").is_empty() && snapshot.by_vip("x").is_empty());
    assert_eq!(apps(snapshot.by_id("i")), ["A"]);
}

#[test]
fn plain_and_secure_addresses_of_the_same_name_are_told_apart() {
    let mut bench = Bench::new(Config::default());
    let with = |dirty: i64, vip: &str, secure: &str| Instance {
        vip_address: Some(Arc::from(vip)),
        secure_vip_address: Some(Arc::from(secure)),
        last_dirty: Some(dirty),
        ..instance(dirty)
    };
    let mut found = |dirty, vip, secure| {
        bench.register(Client, with(dirty, vip, secure));
        let snapshot = bench.registry.snapshot(bench.now);
        ["a", "b", "c"].map(|name| (snapshot.by_vip(name).len(), snapshot.by_secure_vip(name).len()))
    };
    assert_eq!(found(1, "a,b", "a"), [(1, 1), (1, 0), (0, 0)]);
    assert_eq!(found(2, "a,b", "c,b"), [(1, 0), (1, 1), (0, 1)]);
    assert_eq!(found(3, "c", "c,b"), [(0, 0), (0, 1), (1, 1)]);
    bench.registry.cancel(bench.now, Client, &key());
    let snapshot = bench.registry.snapshot(bench.now);
    assert!(snapshot.by_vip("c").is_empty() && snapshot.by_secure_vip("b").is_empty());
}

#[test]
fn texts_are_in_memory_once() {
    let mut bench = Bench::new(Config::default());
    let with = |id: &str, zone: &str, dirty| Instance {
        vip_address: Some(Arc::from("vip")),
        secure_vip_address: Some(Arc::from("vip")),
        home_page_url: Some(Arc::from("http://home/")),
        metadata: [("zone", zone)].into_iter().collect(),
        last_dirty: Some(dirty),
        ..Instance::new("foo", id, "host", "10.0.0.1")
    };
    let mut held = |id, zone, dirty| {
        bench.register(Client, with(id, zone, dirty));
        let view = bench.find(&InstanceKey::new("FOO", id)).expect("it registered");
        Arc::clone(&view.instance)
    };
    let at = |text: &Option<Arc<str>>| text.as_ref().map(|text| text.as_ptr());
    let zone = |of: &Instance| of.metadata.get("zone").map(str::as_ptr);
    let first = held("i-1", "a", 1);
    let neighbour = held("i-2", "a", 1);
    assert_eq!(at(&first.vip_address), at(&first.secure_vip_address));
    assert_eq!(at(&neighbour.vip_address), at(&first.vip_address));
    assert_eq!(zone(&neighbour), zone(&first));
    let again = held("i-1", "b", 2);
    assert_ne!(again, first);
    assert_eq!(at(&again.instance_id), at(&first.instance_id));
    assert_eq!(at(&again.home_page_url), at(&first.home_page_url));
    assert!(Arc::ptr_eq(&again.host_name, &first.host_name) && Arc::ptr_eq(&again.app, &first.app));
}

#[test]
fn who_has_gone_is_nobodys_neighbour() {
    let mut bench = Bench::new(Config::default());
    for id in 0..10 {
        bench.register(Client, named("a", &format!("{id}")));
    }
    for id in 0..10 {
        let key = InstanceKey::new("A", &format!("{id}"));
        bench.registry.cancel(bench.now, Client, &key);
        bench.register(Client, named("a", &format!("new-{id}")));
        assert_eq!(bench.registry.stats().instances, 10);
    }
}

#[test]
fn of_a_long_list_of_virtual_addresses_the_first_can_be_asked_for() {
    let mut bench = Bench::new(Config::default());
    let list: Vec<_> = (0..100).map(|index| format!("v{index}")).collect();
    let mut with_vips = named("a", "1");
    with_vips.vip_address = Some(Arc::from(list.join(",")));
    bench.register(Client, with_vips);
    let snapshot = bench.registry.snapshot(bench.now);
    let found = |vip| snapshot.by_vip(vip).len();
    assert_eq!(
        [found("v0"), found("v31"), found("v32"), found("v99")],
        [1, 1, 0, 0]
    );
    bench
        .registry
        .cancel(bench.now, Client, &InstanceKey::new("A", "1"));
    assert!(bench.registry.snapshot(bench.now).by_vip("v0").is_empty());
}

#[test]
fn the_delta_has_each_instance_once_for_its_retention_after_the_last_change() {
    let mut bench = Bench::new(Config::default());
    bench.register(Client, named("a", "1"));
    bench.register(Client, named("a", "2"));
    bench.advance(100_000);
    bench.renew(Client, &InstanceKey::new("A", "1"));
    let changed =
        bench
            .registry
            .set_override(bench.now, Client, &InstanceKey::new("A", "2"), Status::Down, None);
    assert_eq!(changed, Changed::Ok);
    let one = (String::from("A/1"), Action::Added);
    let two = (String::from("A/2"), Action::Modified);
    assert_eq!(delta(&mut bench), [one, two.clone()]);
    bench.advance(79_999);
    assert_eq!(delta(&mut bench).len(), 2);
    bench.advance(1);
    assert_eq!(delta(&mut bench), [two], "three minutes after its only change");
    bench
        .registry
        .cancel(bench.now, Client, &InstanceKey::new("A", "2"));
    bench.advance(100_000);
    assert_eq!(delta(&mut bench), [(String::from("A/2"), Action::Deleted)]);
    bench.register(
        Client,
        Instance {
            last_dirty: Some(9),
            ..named("a", "2")
        },
    );
    assert_eq!(delta(&mut bench), [(String::from("A/2"), Action::Added)]);
    bench.advance(179_999);
    assert_eq!(delta(&mut bench).len(), 1);
    bench.advance(1);
    assert_eq!(delta(&mut bench), []);
}

#[test]
fn flips_by_rule_are_in_the_delta_unless_java_hides_them() {
    for (config, shown) in [(Config::default(), 1), (Config::eureka_java(), 0)] {
        let mut bench = Bench::new(Config {
            delta_retention: Duration::from_secs(1),
            ..config
        });
        bench.register(Client, instance(10));
        let out = Some(Status::OutOfService);
        bench.registry.renew(bench.now, peer(), &key(), Some(11), out);
        bench.advance(2_000);
        let before = bench.registry.snapshot(bench.now);
        bench.renew(Client, &key());
        let after = bench.registry.snapshot(bench.now);
        assert_eq!(&*after.hash(), "OUT_OF_SERVICE_1_");
        assert!(
            after.version() > before.version(),
            "lists have changed all the same"
        );
        assert_eq!(delta(&mut bench).len(), shown);
    }
}

#[test]
fn a_hidden_flip_shows_in_a_delta_that_has_the_instance_anyway() {
    let mut bench = Bench::new(Config::eureka_java());
    bench.register(Client, instance(10));
    let out = Some(Status::OutOfService);
    bench.registry.renew(bench.now, peer(), &key(), Some(11), out);
    bench.renew(Client, &key());
    let delta = bench.registry.snapshot(bench.now).delta();
    assert_eq!(delta[0].instance.status, Status::OutOfService);
    assert_eq!(delta[0].action, Action::Added);
}

#[test]
fn changes_are_followed_by_version() {
    let mut bench = Bench::new(Config {
        change_log_limit: 3,
        ..Config::default()
    });
    for id in ["1", "2"] {
        bench.register(Client, named("a", id));
    }
    let follow = |bench: &Bench, version, limit| match bench.registry.changes(bench.now, version, limit) {
        Changes::Since { changes, current } => {
            let seen = changes.iter().map(|change| change.version);
            Some((seen.collect::<Vec<_>>(), current))
        }
        Changes::Lost { .. } => None,
    };
    assert_eq!(follow(&bench, 0, 1), Some((Vec::from([1]), 2)));
    assert_eq!(follow(&bench, 0, 9), Some((Vec::from([1, 2]), 2)));
    bench
        .registry
        .cancel(bench.now, Client, &InstanceKey::new("A", "1"));
    assert_eq!(follow(&bench, 0, 9), Some((Vec::from([1, 2, 3]), 3)));
    bench.register(Client, named("a", "4"));
    assert_eq!(follow(&bench, 0, 9), None, "the first change has left the log");
    assert_eq!(follow(&bench, 1, 9), Some((Vec::from([2, 3, 4]), 4)));
    assert_eq!(follow(&bench, 4, 9), Some((Vec::new(), 4)));
    assert_eq!(follow(&bench, 5, 9), None);
    assert_eq!(follow(&bench, u64::MAX, 9), None);
    assert_eq!(delta(&mut bench).len(), 3, "the delta ends where the log does");
    let stats = bench.registry.stats();
    assert_eq!((stats.changes, stats.forgotten), (3, 1));
}

#[test]
fn changes_are_kept_by_bytes_as_well() {
    let large = |id: &str, letter: &str| {
        let mut instance = named("a", id);
        instance.metadata.insert("large", &letter.repeat(10_000));
        instance
    };
    let mut bench = Bench::new(Config {
        change_log_bytes: 43_000,
        ..Config::default()
    });
    let figures = |bench: &Bench| {
        let stats = bench.registry.stats();
        (stats.changes, stats.change_bytes, stats.forgotten)
    };
    bench.register(Client, large("1", "a"));
    let (_, one, _) = figures(&bench);
    assert!(
        (10_000..11_500).contains(&one),
        "its texts and little more: {one}"
    );
    bench.register(Client, large("1", "b"));
    let (_, two, _) = figures(&bench);
    assert!((20_000..23_000).contains(&(two - one)), "with the one before it");
    bench
        .registry
        .cancel(bench.now, Client, &InstanceKey::new("A", "1"));
    assert_eq!(
        figures(&bench),
        (3, two + one, 0),
        "a cancel has one instance, before and after"
    );
    bench.register(Client, named("b", "small"));
    bench.register(Client, named("b", "other"));
    let (kept, four, forgotten) = figures(&bench);
    assert_eq!((kept, forgotten), (4, 1), "the first has left, the delta too");
    assert!(four <= 43_000);
    assert_eq!(delta(&mut bench).len(), 3);
    // One that is larger than all that may be kept displaces everything but itself.
    let mut huge = named("c", "huge");
    huge.metadata.insert("large", &"x".repeat(50_000));
    bench.register(Client, huge);
    let (kept, bytes, forgotten) = figures(&bench);
    assert_eq!((kept, forgotten), (1, 5));
    assert!(bytes > 43_000);
    assert!(matches!(
        bench.registry.changes(bench.now, 5, 9),
        Changes::Since { current: 6, .. }
    ));
    bench.register(Client, named("b", "small"));
    assert_eq!(figures(&bench).0, 1, "and makes room for the next");
    assert!(figures(&bench).1 < 1_000);
}

#[test]
fn a_change_displaces_a_bounded_number_of_others() {
    let mut bench = Bench::new(Config {
        change_log_bytes: 1 << 20,
        ..Config::default()
    });
    for id in 0..1_000 {
        bench.register(Client, named("a", &alloc::format!("{id}")));
    }
    let mut huge = named("b", "huge");
    huge.metadata.insert("large", &"x".repeat(1 << 20));
    bench.register(Client, huge);
    let kept = |bench: &Bench| bench.registry.stats().changes;
    assert_eq!(kept(&bench), 1_001 - 512);
    bench.register(Client, named("b", "next"));
    assert_eq!(kept(&bench), 1, "the rest goes with the next changes");
}

#[test]
fn reads_are_held_until_opened_and_settled() {
    let mut bench = Bench::starting(Config::default());
    let reads = |bench: &mut Bench| bench.registry.snapshot(bench.now).reads();
    assert_eq!(reads(&mut bench), Reads::Held(Hold::Starting));
    bench
        .registry
        .open(bench.now, 0, Some(Settle::exactly(Duration::from_secs(40))));
    assert_eq!(reads(&mut bench), Reads::Held(Hold::EmptySync));
    let edition = bench.registry.edition();
    bench.advance(40_000);
    assert_eq!(reads(&mut bench), Reads::Held(Hold::EmptySync));
    bench.advance(1);
    assert_ne!(
        bench.registry.edition(),
        edition,
        "who keeps a snapshot must notice"
    );
    assert_eq!(reads(&mut bench), Reads::Open);
}

#[test]
fn lease_times_in_lists_are_never_older_than_allowed() {
    let mut bench = Bench::new(Config::default());
    for index in 0..1_000 {
        bench.register(Client, named("a", &format!("i-{index:04}")));
    }
    let mut oldest = 0;
    for _ in 0..60 {
        bench.advance(10_000);
        for index in 0..1_000 {
            let key = InstanceKey::new("A", &format!("i-{index:04}"));
            bench.renew(Client, &key);
        }
        bench.advance(0);
        let snapshot = bench.registry.snapshot(bench.now);
        let ages = snapshot
            .instances()
            .map(|view| bench.now.wall.0 - view.lease.renewed.0);
        oldest = oldest.max(ages.max().expect("there are instances"));
    }
    assert!((100_000..=180_000).contains(&oldest), "{oldest}");
}

#[test]
fn the_nodes_own_instance_is_coordinating() {
    let mut bench = Bench::new(Config {
        own_id: Some(Arc::from("i-1")),
        ..Config::default()
    });
    bench.register(Client, instance(1));
    bench.register(Client, named("a", "other"));
    let snapshot = bench.registry.snapshot(bench.now);
    let coordinating: Vec<_> = snapshot.instances().map(|view| view.coordinating).collect();
    assert_eq!(coordinating, [false, true]);
}

#[test]
fn recent_registrations_and_cancels_are_listed_newest_first() {
    let mut bench = Bench::new(Config::default());
    for index in 0..1_001 {
        bench.register(Client, named("a", &format!("{index}")));
        bench.advance(1);
    }
    let recent = bench.registry.recent_registrations(bench.now);
    assert_eq!(recent.len(), 1_000);
    assert_eq!(&**recent[0].key.id(), "1000");
    assert_eq!(recent[0].at.0, bench.now.wall.0 - 1);
    bench
        .registry
        .cancel(bench.now, Client, &InstanceKey::new("A", "3"));
    bench
        .registry
        .cancel(bench.now, Client, &InstanceKey::new("A", "3"));
    assert_eq!(bench.registry.recent_cancels(bench.now).len(), 1);
}
