//! How leases end, and what keeps them.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

use super::{Bench, key, peer};
use crate::command::Origin::Client;
use crate::command::{Registered, Renewed};
use crate::config::{Config, LeaseExpiry, PreservationConfig};
use crate::event::Event;
use crate::model::{Instance, InstanceKey, LeaseTerms};

/// Nothing is preserved, and eviction runs every second.
fn eager() -> Config {
    Config {
        eviction_interval: Duration::from_secs(1),
        preservation: PreservationConfig {
            enabled: false,
            ..PreservationConfig::default()
        },
        ..Config::default()
    }
}

fn lasting(id: &str, seconds: u32) -> Instance {
    Instance {
        lease: LeaseTerms {
            renewal_interval_secs: 1,
            duration_secs: seconds,
        },
        last_dirty: Some(1),
        ..Instance::new("FOO", id, "host", "10.0.0.1")
    }
}

/// Milliseconds from now until the lease is gone, to within a tenth of a second.
fn time_until_gone(bench: &mut Bench, key: &InstanceKey) -> u64 {
    let start = bench.now.mono.0;
    while bench.registry.lease(bench.now, key).is_some() {
        bench.advance(100);
        assert!(bench.now.mono.0 - start < 1_000_000, "it never goes");
    }
    bench.now.mono.0 - start
}

#[test]
fn a_lease_ends_one_duration_after_it_was_last_heard_of() {
    let mut bench = Bench::new(eager());
    bench.register(Client, lasting("i-1", 10));
    let gone = time_until_gone(&mut bench, &key());
    assert!((10_000..=12_000).contains(&gone), "{gone}");

    bench.register(Client, lasting("i-1", 10));
    bench.advance(9_000);
    assert_eq!(bench.renew(Client, &key()), Renewed::Ok);
    let gone = time_until_gone(&mut bench, &key());
    assert!((10_000..=12_000).contains(&gone), "{gone}");
}

#[test]
fn under_javas_rule_a_renewed_lease_lasts_twice_as_long() {
    let config = Config {
        lease_expiry: LeaseExpiry::Doubled,
        ..eager()
    };
    let mut bench = Bench::new(config);
    bench.register(Client, lasting("i-1", 10));
    let gone = time_until_gone(&mut bench, &key());
    assert!((10_000..=12_000).contains(&gone), "{gone}");

    bench.register(Client, lasting("i-1", 10));
    bench.renew(Client, &key());
    let gone = time_until_gone(&mut bench, &key());
    assert!((20_000..=22_000).contains(&gone), "{gone}");

    bench.register(Client, lasting("i-1", 10));
    bench.renew(Client, &key());
    bench.register(Client, lasting("i-1", 10));
    let gone = time_until_gone(&mut bench, &key());
    assert!(
        (10_000..=12_000).contains(&gone),
        "a registration takes the credit away: {gone}"
    );
}

#[test]
fn a_lease_is_late_at_two_thirds_and_told_once() {
    let mut bench = Bench::new(eager());
    bench.register(Client, lasting("i-1", 30));
    bench.events.clear();
    bench.advance(19_900);
    assert_eq!(bench.events, []);
    bench.advance(1_200);
    assert_eq!(bench.events, [Event::Late { key: key() }]);
    bench.renew(Client, &key());
    bench.drain();
    bench.events.clear();
    bench.advance(19_900);
    assert_eq!(bench.events, [], "a renewal puts it on time again");
    bench.advance(1_200);
    assert_eq!(bench.events, [Event::Late { key: key() }]);
}

#[test]
fn an_expired_lease_is_hidden_but_listed_until_it_is_evicted_and_a_renewal_revives_it() {
    let mut bench = Bench::new(Config {
        eviction_interval: Duration::from_secs(60),
        ..eager()
    });
    bench.register(Client, lasting("i-1", 3));
    bench.advance(3_000);
    assert!(bench.find(&key()).is_some(), "exactly one duration is not over");
    bench.advance(1);
    assert_eq!(bench.find(&key()), None);
    assert_eq!(bench.registry.find_by_id(bench.now, "i-1"), None);
    assert_eq!(bench.registry.snapshot(bench.now).len(), 1);
    assert!(bench.registry.lease(bench.now, &key()).is_some());
    bench.advance(5_000);
    assert_eq!(bench.renew(Client, &key()), Renewed::Ok);
    assert!(bench.find(&key()).is_some());
}

#[test]
fn a_run_evicts_no_more_than_its_quota_and_not_always_the_same() {
    let survivors = |seed| {
        let mut bench = Bench::new(Config {
            seed: [seed, 0],
            eviction_interval: Duration::from_secs(10),
            ..eager()
        });
        for index in 0..21 {
            bench.register(Client, lasting(&format!("i-{index}"), 5));
        }
        let mut sizes = Vec::new();
        for _ in 0..11 {
            bench.advance(10_000);
            sizes.push(bench.registry.stats().instances);
        }
        assert_eq!(sizes, [17, 14, 11, 9, 7, 5, 4, 3, 2, 1, 0]);
        let evicted = bench.events.iter().filter_map(|event| match event {
            Event::Expired { key, .. } => Some(key.clone()),
            Event::Applied { .. } | Event::Late { .. } | Event::Preserving(_) => None,
        });
        evicted.collect::<Vec<_>>()
    };
    assert_eq!(survivors(1), survivors(1));
    assert_ne!(survivors(1), survivors(2));
}

#[test]
fn a_pause_of_ours_evicts_nobody() {
    let mut bench = Bench::new(eager());
    bench.register(Client, lasting("i-1", 10));
    bench.register(Client, lasting("i-2", 10));
    bench.advance(2_000);
    bench.sleep(60_000);
    let other = InstanceKey::new("FOO", "i-2");
    assert!(bench.find(&key()).is_some(), "reads know it too");
    // Whatever comes first after a pause, a renewal or the owner's call.
    bench.renew(Client, &other);
    bench.advance(0);
    assert_eq!(bench.registry.stats().instances, 2);
    let gone = time_until_gone(&mut bench, &key());
    assert!(
        (6_000..=10_000).contains(&gone),
        "what was left of the lease: {gone}"
    );
    assert!(bench.registry.lease(bench.now, &other).is_some());
}

#[test]
fn being_late_by_a_second_is_no_pause() {
    let mut bench = Bench::new(eager());
    bench.register(Client, lasting("i-1", 10));
    for _ in 0..30 {
        bench.sleep(900);
        bench.registry.handle_timeout(bench.now);
    }
    assert_eq!(bench.registry.stats().instances, 0);
}

#[test]
fn a_lease_heard_through_a_silent_peer_is_held() {
    let crate::command::Origin::Peer(through) = peer() else {
        panic!("it is a peer");
    };
    let mut bench = Bench::new(eager());
    let through_peer = |bench: &mut Bench| {
        bench.register(Client, lasting("i-1", 10));
        bench.renew(peer(), &key());
    };
    through_peer(&mut bench);
    let gone = time_until_gone(&mut bench, &key());
    assert!((10_000..=12_000).contains(&gone), "{gone}");

    through_peer(&mut bench);
    bench.registry.peer_reachable(bench.now, &through, false);
    let gone = time_until_gone(&mut bench, &key());
    assert!((30_000..=32_000).contains(&gone), "two more durations: {gone}");

    through_peer(&mut bench);
    bench.advance(15_000);
    bench.registry.peer_reachable(bench.now, &through, true);
    let gone = time_until_gone(&mut bench, &key());
    assert!(
        (10_000..=12_000).contains(&gone),
        "one more duration when it speaks again: {gone}"
    );

    bench.registry.peer_reachable(bench.now, &through, false);
    through_peer(&mut bench);
    bench.renew(Client, &key());
    let gone = time_until_gone(&mut bench, &key());
    assert!((10_000..=12_000).contains(&gone), "it was heard itself: {gone}");
}

#[test]
fn an_offer_is_as_old_as_it_says() {
    let mut bench = Bench::new(eager());
    let offer = |bench: &mut Bench, age| {
        let offered = Arc::new(lasting("i-1", 10));
        bench
            .registry
            .register(bench.now, peer(), offered, Duration::from_secs(age))
    };
    assert_eq!(offer(&mut bench, 10), Registered::Refused);
    assert_eq!(bench.registry.stats().instances, 0);
    assert_eq!(offer(&mut bench, 7), Registered::Accepted);
    let age = bench.registry.age(bench.now, &key());
    assert_eq!(age, Some(Duration::from_secs(7)), "older than this node is");
    let gone = time_until_gone(&mut bench, &key());
    assert!((3_000..=5_000).contains(&gone), "{gone}");

    bench.register(Client, lasting("i-1", 10));
    assert_eq!(offer(&mut bench, 7), Registered::Accepted);
    let age = bench.registry.age(bench.now, &key());
    assert_eq!(age, Some(Duration::ZERO), "we have heard it later than they");
}

#[test]
fn a_late_run_takes_nobody_who_ran_out_in_the_delay() {
    for delay in [10, 400, 999, 1_001, 50_000] {
        let mut bench = Bench::new(Config {
            eviction_interval: Duration::from_secs(60),
            ..eager()
        });
        bench.advance(50_000);
        bench.register(Client, lasting("early", 9));
        bench.register(Client, lasting("late", 10));
        bench.advance(9_999);
        bench.sleep(1 + delay);
        let gone = |bench: &Bench, id| {
            let key = InstanceKey::new("FOO", id);
            bench.registry.lease(bench.now, &key).is_none()
        };
        bench.advance(0);
        assert!(gone(&bench, "early") && !gone(&bench, "late"), "{delay}");
        bench.advance(60_000);
        assert!(gone(&bench, "late"), "{delay}");
    }
}

#[test]
fn copies_taken_at_start_and_never_confirmed_do_not_start_preservation() {
    let mut bench = Bench::starting(Config {
        eviction_interval: Duration::from_secs(1),
        ..Config::default()
    });
    for index in 0..20 {
        bench.register(peer(), lasting(&format!("ghost-{index}"), 10));
    }
    bench.registry.open(bench.now, 20, None);
    for index in 0..20 {
        bench.register(Client, lasting(&format!("i-{index}"), 10));
    }
    for second in 0..40 {
        for index in 0..20 {
            bench.renew(Client, &InstanceKey::new("FOO", &format!("i-{index}")));
        }
        let preserving = bench.registry.explain(bench.now).active;
        assert_eq!(preserving, (7..=20).contains(&second), "{second}");
        bench.advance(1_000);
    }
    assert_eq!(bench.registry.stats().instances, 20, "the ghosts are gone");
}

#[test]
fn when_preservation_ends_overdue_leases_get_one_more_duration() {
    let mut bench = Bench::new(Config {
        eviction_interval: Duration::from_secs(1),
        ..Config::default()
    });
    for index in 0..10 {
        bench.register(Client, lasting(&format!("i-{index}"), 10));
    }
    bench.advance(30_000);
    assert!(bench.registry.explain(bench.now).active);
    assert_eq!(bench.registry.stats().instances, 10);
    // All but two come back, and then there is one missing at most.
    for index in 0..9 {
        bench.renew(Client, &InstanceKey::new("FOO", &format!("i-{index}")));
    }
    assert!(!bench.registry.explain(bench.now).active);
    let missing = InstanceKey::new("FOO", "i-9");
    let start = bench.now.mono.0;
    while bench.registry.lease(bench.now, &missing).is_some() {
        bench.advance(500);
        for index in 0..9 {
            bench.renew(Client, &InstanceKey::new("FOO", &format!("i-{index}")));
        }
    }
    let gone = bench.now.mono.0 - start;
    assert!((10_000..=12_500).contains(&gone), "{gone}");
}

#[test]
fn an_operator_who_accepts_the_losses_gives_no_grace() {
    let mut bench = Bench::new(Config {
        eviction_interval: Duration::from_secs(1),
        ..Config::default()
    });
    for index in 0..10 {
        bench.register(Client, lasting(&format!("i-{index}"), 10));
    }
    bench.advance(30_000);
    bench.registry.accept_losses(bench.now);
    bench.advance(20_000);
    assert_eq!(bench.registry.stats().instances, 0);
}

/// Registers many and lets time pass to where something is due for all of them; tells how many events each call brought.
fn calls(config: Config, until: u64, wanted: fn(&Event) -> bool) -> Vec<usize> {
    let mut bench = Bench::new(config);
    for index in 0..3_000 {
        bench.register(Client, lasting(&format!("i-{index}"), 30));
    }
    let reader = bench.registry.snapshot(bench.now);
    let mut calls = Vec::new();
    let end = bench.now.mono.0 + until;
    while let Some((due, _)) = bench.registry.poll_timeout()
        && due.0 <= end
    {
        bench.sleep(due.0.saturating_sub(bench.now.mono.0));
        bench.events.clear();
        bench.registry.handle_timeout(bench.now);
        bench.drain();
        let count = bench.events.iter().filter(|event| wanted(event)).count();
        calls.extend(Some(count).filter(|count| *count > 0));
    }
    assert_eq!(reader.len(), 3_000);
    calls
}

#[test]
fn a_call_looks_at_few_leases_and_the_rest_is_due_at_once() {
    let late = calls(eager(), 21_000, |event| matches!(event, Event::Late { .. }));
    assert_eq!((late.len(), late[0], late[11]), (12, 256, 184));
}

#[test]
fn a_call_evicts_only_as_many_as_copy_few_pages_that_readers_hold() {
    let quota = Config {
        eviction_interval: Duration::from_secs(32),
        ..eager()
    };
    let evicted = calls(quota, 32_000, |event| matches!(event, Event::Expired { .. }));
    assert_eq!(evicted.iter().sum::<usize>(), 450, "15 % of them");
    assert!(evicted.len() > 1 && evicted[0] < 450, "{evicted:?}");
}
