//! The conformance vectors of Eureka that concern the registry itself, under the preset of the Spring server.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Bench, instance, key, peer};
use crate::command::Origin::Client;
use crate::command::{Changed, Registered, Renewed};
use crate::config::{Config, PreservationConfig, Settle};
use crate::model::{Action, Instance, LeaseTerms, Status};
use crate::snapshot::{Hold, Reads};
use crate::time::Wall;

const T: i64 = 1_700_000_000_000;

#[test]
fn v1_an_unknown_instance_is_missing_until_it_registers() {
    let mut bench = Bench::new(Config::eureka_java());
    assert_eq!(bench.renew(Client, &key()), Renewed::Missing);
    assert_eq!(bench.register(Client, instance(T)), Registered::Accepted);
    assert_eq!(bench.renew(Client, &key()), Renewed::Ok);
}

#[test]
fn v2_the_last_renewal_lies_one_duration_ahead_once_renewed() {
    let mut bench = Bench::new(Config::eureka_java());
    bench.register(Client, instance(T));
    let lease = bench.find(&key()).expect("registered").lease;
    assert_eq!(lease.renewed, lease.registered);
    bench.advance(10_000);
    bench.renew(Client, &key());
    let renewed = bench.find(&key()).expect("registered").lease.renewed;
    assert_eq!(renewed, Wall(bench.now.wall.0 + 90_000));
}

#[test]
fn v3_dirty_timestamps_decide_what_a_renewal_answers() {
    let mut bench = Bench::new(Config::eureka_java());
    bench.register(Client, instance(T));
    let mut renew = |origin, dirty| bench.registry.renew(bench.now, origin, &key(), Some(dirty), None);
    assert_eq!(renew(Client, T), Renewed::Ok);
    assert_eq!(renew(Client, T + 1), Renewed::Ahead);
    assert_eq!(renew(Client, T - 1), Renewed::Ok);
    let Renewed::Behind(copy) = renew(peer(), T - 1) else {
        panic!("the peer is behind");
    };
    assert_eq!(copy.instance.last_dirty, Some(T));
}

#[test]
fn v4_a_peer_ahead_leaves_its_override_which_the_next_renewal_applies() {
    let mut bench = Bench::new(Config::eureka_java());
    bench.register(Client, instance(T));
    let out = Some(Status::OutOfService);
    let renewed = bench.registry.renew(bench.now, peer(), &key(), Some(T + 1), out);
    assert_eq!(renewed, Renewed::Ahead);
    let view = bench.find(&key()).expect("registered");
    assert_eq!(view.instance.status, Status::Up);
    assert_eq!(view.instance.overridden_status, Status::OutOfService);
    assert_eq!(bench.renew(Client, &key()), Renewed::Ok);
    let view = bench.find(&key()).expect("registered");
    assert_eq!(view.instance.status, Status::OutOfService);
    assert_eq!(view.action, Action::Added);
}

#[test]
fn v5_a_removed_override_leaves_unknown_until_the_client_registers_again() {
    let mut bench = Bench::new(Config::eureka_java());
    bench.register(Client, instance(T));
    let up_since = bench.find(&key()).expect("registered").lease.service_up;
    let registry = &mut bench.registry;
    registry.set_override(bench.now, Client, &key(), Status::OutOfService, None);
    let cleared = registry.clear_override(bench.now, Client, &key(), None, None);
    assert_eq!(cleared, Changed::Ok);
    let view = bench.find(&key()).expect("registered");
    assert_eq!(view.instance.status, Status::Unknown);
    assert_eq!(view.action, Action::Modified);
    assert_eq!(bench.renew(Client, &key()), Renewed::Missing);

    bench.advance(5);
    let older = Instance {
        host_name: Arc::from("new"),
        ..instance(T - 5)
    };
    assert_eq!(bench.register(Client, older), Registered::KeptNewer);
    let view = bench.find(&key()).expect("registered");
    assert_eq!(
        (view.instance.status, &*view.instance.host_name),
        (Status::Unknown, "host-1")
    );
    assert_eq!(view.lease.registered, bench.now.wall);

    bench.advance(5);
    let equal = Instance {
        host_name: Arc::from("new"),
        ..instance(T)
    };
    assert_eq!(bench.register(Client, equal), Registered::Accepted);
    let view = bench.find(&key()).expect("registered");
    assert_eq!(
        (view.instance.status, &*view.instance.host_name),
        (Status::Up, "new")
    );
    assert_eq!(view.lease.service_up, up_since);
    assert_eq!(view.lease.registered, bench.now.wall);
}

#[test]
fn v6_overrides_and_what_the_instance_says_itself() {
    let mut bench = Bench::new(Config::eureka_java());
    bench.register(Client, instance(T));
    let set = |bench: &mut Bench, status, dirty| {
        let changed = bench
            .registry
            .set_override(bench.now, Client, &key(), status, dirty);
        assert_eq!(changed, Changed::Ok);
        bench.find(&key()).expect("registered").instance
    };
    assert_eq!(
        set(&mut bench, Status::OutOfService, None).status,
        Status::OutOfService
    );
    let again = set(&mut bench, Status::OutOfService, Some(T + 100));
    assert_eq!(
        again.last_dirty,
        Some(T),
        "an override equal to the status does nothing"
    );
    let down = set(&mut bench, Status::Down, Some(T + 100));
    assert_eq!((down.status, down.last_dirty), (Status::Down, Some(T + 100)));

    bench.register(Client, instance(T + 200));
    let view = bench.find(&key()).expect("registered");
    assert_eq!(view.instance.status, Status::Down, "the override wins over UP");
    bench.register(
        Client,
        Instance {
            status: Status::Starting,
            ..instance(T + 300)
        },
    );
    let view = bench.find(&key()).expect("registered");
    assert_eq!(view.instance.status, Status::Starting);
    assert_eq!(view.instance.overridden_status, Status::Down);
    assert_eq!(bench.renew(Client, &key()), Renewed::Ok);
    assert_eq!(
        bench.find(&key()).expect("registered").instance.status,
        Status::Starting
    );
}

#[test]
fn v7_removing_an_override_twice_is_fine() {
    let mut bench = Bench::new(Config::eureka_java());
    bench.register(Client, instance(T));
    for _ in 0..2 {
        let up = Some(Status::Up);
        let cleared = bench.registry.clear_override(bench.now, Client, &key(), up, None);
        assert_eq!(cleared, Changed::Ok);
    }
    assert_eq!(
        bench.find(&key()).expect("registered").instance.status,
        Status::Up
    );
}

#[test]
fn v8_a_client_cannot_move_itself_between_up_and_out_of_service() {
    let mut bench = Bench::new(Config::eureka_java());
    let steps = [
        (Client, Status::OutOfService, Status::OutOfService),
        (Client, Status::Up, Status::OutOfService),
        (peer(), Status::Up, Status::Up),
        (Client, Status::OutOfService, Status::Up),
        (Client, Status::Down, Status::Down),
        (Client, Status::OutOfService, Status::OutOfService),
    ];
    for (origin, reported, shown) in steps {
        bench.register(
            origin,
            Instance {
                status: reported,
                ..instance(T)
            },
        );
        assert_eq!(bench.find(&key()).expect("registered").instance.status, shown);
    }
}

#[test]
fn v9_metadata_is_added_and_keeps_the_dirty_timestamp() {
    let mut bench = Bench::new(Config::eureka_java());
    let entries = [("k", "v"), ("a", "1"), ("e", "")].map(|(k, v)| (Arc::from(k), Arc::from(v)));
    let registry = &mut bench.registry;
    let missing = registry.update_metadata(bench.now, Client, &key(), &entries);
    assert_eq!(missing, Changed::Missing);
    bench.register(Client, instance(T));
    let changed = bench
        .registry
        .update_metadata(bench.now, Client, &key(), &entries);
    assert_eq!(changed, Changed::Ok);
    let view = bench.find(&key()).expect("registered");
    let metadata: Vec<_> = view.instance.metadata.iter().collect();
    assert_eq!(metadata, [("k", "v"), ("a", "1"), ("e", "")]);
    assert_eq!((view.instance.last_dirty, view.action), (Some(T), Action::Added));
}

#[test]
fn v10_a_cancelled_instance_is_gone_and_in_the_delta() {
    let mut bench = Bench::new(Config::eureka_java());
    bench.register(Client, instance(T));
    assert_eq!(bench.registry.cancel(bench.now, Client, &key()), Changed::Ok);
    assert_eq!(bench.registry.cancel(bench.now, Client, &key()), Changed::Missing);
    assert_eq!(bench.find(&key()), None);
    let snapshot = bench.registry.snapshot(bench.now);
    assert!(snapshot.application("FOO").is_none() && snapshot.is_empty());
    let delta = snapshot.delta();
    assert_eq!(delta.len(), 1);
    assert_eq!(
        (delta[0].action, delta[0].lease.evicted),
        (Action::Deleted, bench.now.wall)
    );
    assert_eq!(snapshot.hash(), "");
}

#[test]
fn v14_a_run_evicts_what_the_renewal_threshold_leaves_and_never_more() {
    for (size, taken) in [(1, 1), (2, 1), (10, 2), (20, 3), (50, 8), (100, 15)] {
        let java = Config::eureka_java();
        let mut bench = Bench::new(Config {
            preservation: PreservationConfig {
                enabled: false,
                ..java.preservation
            },
            ..java
        });
        for index in 0..size {
            let one = Instance {
                instance_id: Some(Arc::from(format!("i-{index}"))),
                lease: LeaseTerms {
                    renewal_interval_secs: 1,
                    duration_secs: 4,
                },
                ..instance(T)
            };
            bench.register(Client, one);
        }
        bench.advance(60_000);
        assert_eq!(bench.registry.stats().instances, size - taken, "of {size}");
    }
}

#[test]
fn v14_the_threshold_follows_every_new_id_cancel_and_eviction() {
    // What Spring's server showed for 0 to 10 clients: it counts one that does not exist.
    let mut bench = Bench::new(Config::eureka_java());
    let threshold = |bench: &Bench| bench.registry.explain(bench.now).heartbeats.threshold;
    let mut seen = Vec::from([threshold(&bench)]);
    for index in 0..10 {
        let id = Some(Arc::from(format!("i-{index}")));
        bench.register(
            Client,
            Instance {
                instance_id: id,
                ..instance(T)
            },
        );
        seen.push(threshold(&bench));
    }
    assert_eq!(seen, [1, 3, 5, 6, 8, 10, 11, 13, 15, 17, 18]);
    let id = Some(Arc::from("i-3"));
    let again = Instance {
        instance_id: id,
        ..instance(T)
    };
    let cancelled = again.key();
    bench.register(Client, again);
    assert_eq!(
        threshold(&bench),
        18,
        "a registration of the same id changes nothing"
    );
    bench.registry.cancel(bench.now, Client, &cancelled);
    assert_eq!(threshold(&bench), 17);
}

#[test]
fn v14_the_hash_counts_each_status_by_name() {
    let mut bench = Bench::new(Config::eureka_java());
    assert_eq!(bench.registry.snapshot(bench.now).hash(), "");
    for (index, status) in Status::ALL.into_iter().chain([Status::Up]).enumerate() {
        let id = Some(Arc::from(format!("i-{index}")));
        bench.register(
            Client,
            Instance {
                instance_id: id,
                status,
                ..instance(T)
            },
        );
    }
    let hash = bench.registry.snapshot(bench.now).hash();
    assert_eq!(hash, "DOWN_1_OUT_OF_SERVICE_1_STARTING_1_UNKNOWN_1_UP_2_");
}

#[test]
fn v18_an_empty_start_holds_lists_and_nothing_else() {
    let mut bench = Bench::starting(Config::eureka_netflix());
    bench
        .registry
        .open(bench.now, 0, Some(Settle::exactly(Duration::from_secs(300))));
    assert_eq!(bench.register(Client, instance(T)), Registered::Accepted);
    assert_eq!(bench.renew(Client, &key()), Renewed::Ok);
    assert!(bench.find(&key()).is_some());
    let reads = |bench: &mut Bench| bench.registry.snapshot(bench.now).reads();
    assert_eq!(reads(&mut bench), Reads::Held(Hold::EmptySync));
    bench.advance(300_001);
    assert_eq!(reads(&mut bench), Reads::Open);
}
