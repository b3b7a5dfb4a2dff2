//! Which server is asked: zones, failures, sessions, and what a server's URL may look like.

use std::sync::Arc;
use std::time::Duration;

use eureka_client::{Endpoints, EndpointsConfig, Failure, Server, Use};
use eureka_registry_core::{Mono, Now, Wall};

mod url;

const REFUSED: Failure = Failure::Refused {
    status: 503,
    retry_after: None,
};

fn at(seconds: u64) -> Now {
    Now {
        mono: Mono(seconds * 1_000),
        wall: Wall(1_700_000_000_000 + seconds * 1_000),
    }
}

fn server(name: &str, zone: &str) -> Arc<Server> {
    let server = Server::parse(&format!("http://{name}:8761/eureka/")).unwrap();
    Arc::new(server.in_zone(zone))
}

fn servers(names: &[(&str, &str)]) -> Vec<Arc<Server>> {
    names.iter().map(|(name, zone)| server(name, zone)).collect()
}

fn three() -> Vec<Arc<Server>> {
    servers(&[("a", "x"), ("b", "x"), ("c", "x")])
}

fn endpoints(zone: Option<&str>, servers: Vec<Arc<Server>>, seed: u64) -> Endpoints {
    let mut config = EndpointsConfig::default();
    config.zone = zone.map(Arc::from);
    Endpoints::new(at(0), config, servers, seed)
}

#[test]
fn without_servers_there_is_nobody_to_ask() {
    let mut endpoints = endpoints(None, Vec::new(), 1);
    assert!(endpoints.is_empty());
    assert_eq!(endpoints.choose(at(0), Use::Read, &[]), None);
}

#[test]
fn the_own_zone_comes_first_whatever_the_seed() {
    let listed = servers(&[("a", "x"), ("b", "y"), ("c", "x"), ("d", "y"), ("e", "z")]);
    let mut firsts = Vec::new();
    for seed in 0..40 {
        let mut endpoints = endpoints(Some("y"), listed.clone(), seed);
        let mut tried = Vec::new();
        while let Some(server) = endpoints.choose(at(0), Use::Write, &tried) {
            tried.push(server);
        }
        assert_eq!(tried.len(), 5);
        assert!(
            tried[..2].iter().all(|server| server.zone() == Some("y")),
            "{tried:?}"
        );
        firsts.push(tried[0].host().to_owned());
    }
    assert!(
        firsts.contains(&"b".into()) && firsts.contains(&"d".into()),
        "clients spread"
    );
}

#[test]
fn the_same_seed_gives_the_same_choices() {
    let choices = |seed| {
        let mut endpoints = endpoints(None, three(), seed);
        let mut hosts = Vec::new();
        for second in 0..20 {
            let server = endpoints.choose(at(second * 300), Use::Read, &[]).unwrap();
            endpoints.failed(at(second * 300), Use::Read, &server, Failure::Garbage);
            hosts.push(server.host().to_owned());
        }
        hosts
    };
    assert_eq!(choices(7), choices(7));
    assert!((0..10).any(|seed| choices(seed) != choices(7)));
}

#[test]
fn one_server_is_kept_until_it_fails() {
    let mut endpoints = endpoints(None, three(), 3);
    let first = endpoints.choose(at(0), Use::Write, &[]).unwrap();
    for second in 1..500 {
        assert_eq!(endpoints.choose(at(second), Use::Write, &[]), Some(first.clone()));
        endpoints.succeeded(at(second), Use::Write, &first);
    }
    endpoints.failed(at(500), Use::Write, &first, Failure::Unreachable);
    assert_eq!(endpoints.pinned(Use::Write), None);
    let second = endpoints.choose(at(500), Use::Write, &[]).unwrap();
    assert_ne!(second, first);
    assert_eq!(endpoints.pinned(Use::Write), Some(&second));
    let stats = endpoints.stats();
    assert_eq!((stats.failures, stats.switches, stats.sessions), (1, 1, 0));
}

#[test]
fn a_session_ends_between_half_and_one_and_a_half_of_its_time() {
    let mut earliest = u64::MAX;
    let mut latest = 0;
    for seed in 0..60 {
        let mut endpoints = endpoints(None, three(), seed);
        let first = endpoints.choose(at(0), Use::Read, &[]);
        let end = (1..=3_000).find(|second| endpoints.choose(at(*second), Use::Read, &[]) != first);
        let end = end.unwrap();
        assert!((600..=1_800).contains(&end), "{end}");
        assert_eq!(endpoints.stats().sessions, 1);
        earliest = earliest.min(end);
        latest = latest.max(end);
    }
    assert!(earliest < 900 && latest > 1_500, "{earliest} {latest}");
}

#[test]
fn sessions_go_round_all_servers() {
    let mut endpoints = endpoints(None, three(), 5);
    let mut seen = std::collections::BTreeSet::new();
    for second in 0..3 * 1_801 {
        seen.insert(
            endpoints
                .choose(at(second), Use::Read, &[])
                .unwrap()
                .host()
                .to_owned(),
        );
    }
    assert_eq!(seen.len(), 3);
}

#[test]
fn away_from_the_own_zone_only_as_long_as_it_is_set_aside() {
    let mut endpoints = endpoints(Some("x"), servers(&[("own", "x"), ("other", "y")]), 2);
    let own = endpoints.choose(at(0), Use::Write, &[]).unwrap();
    assert_eq!(own.host(), "own");
    endpoints.failed(at(0), Use::Write, &own, Failure::Unreachable);
    let other = endpoints.choose(at(0), Use::Write, &[]).unwrap();
    assert_eq!(other.host(), "other");
    assert_eq!(
        endpoints.choose(at(119), Use::Write, &[]),
        Some(other.clone()),
        "not at once"
    );
    assert_eq!(endpoints.choose(at(120), Use::Write, &[]), Some(own.clone()));

    // While the own one is set aside the session goes on.
    let mut now = 200;
    for _ in 0..12 {
        endpoints.failed(at(now), Use::Write, &own, Failure::Unreachable);
        now += 1;
    }
    endpoints.choose(at(now), Use::Write, &[]);
    assert_eq!(endpoints.choose(at(now + 130), Use::Write, &[]), Some(other));
}

/// How long a server is set aside for this use after such failures at the same moment, in milliseconds.
fn aside(failures: &[(Use, Failure)], purpose: Use, seed: u64) -> u64 {
    let taken_back = |millis: &u64| {
        // Its zone has it chosen as soon as it can be.
        let mut endpoints = endpoints(Some("own"), servers(&[("a", "own"), ("b", "other")]), seed);
        for (purpose, failure) in failures {
            endpoints.failed(at(0), *purpose, &server("a", "own"), *failure);
        }
        let then = Now {
            mono: Mono(*millis),
            wall: Wall(0),
        };
        endpoints.choose(then, purpose, &[]).unwrap().host() == "a"
    };
    (0..400_000).step_by(50).find(taken_back).unwrap()
}

#[test]
fn who_fails_is_set_aside_for_longer_each_time_but_five_minutes_at_most() {
    let mut before = 0;
    for (times, least, most) in [(1, 4_000, 6_050), (2, 8_000, 12_050), (3, 16_000, 24_050)] {
        let failures = vec![(Use::Write, Failure::Unreachable); times];
        let lengths: Vec<u64> = (0..20).map(|seed| aside(&failures, Use::Write, seed)).collect();
        assert!(
            lengths.iter().all(|length| (least..=most).contains(length)),
            "{lengths:?}"
        );
        assert!(
            lengths.iter().min() < lengths.iter().max(),
            "no two clients come back together"
        );
        assert!(before < *lengths.iter().min().unwrap());
        before = *lengths.iter().max().unwrap();
    }
    let failures = vec![(Use::Write, Failure::Garbage); 40];
    assert!((240_000..=300_000).contains(&aside(&failures, Use::Write, 1)));
}

#[test]
fn retry_after_is_respected_within_reason() {
    let asked = |seconds| {
        let refused = Failure::Refused {
            status: 429,
            retry_after: Some(Duration::from_secs(seconds)),
        };
        aside(&[(Use::Write, refused)], Use::Write, 1)
    };
    assert_eq!(asked(60), 60_000);
    assert_eq!(asked(1_000_000), 300_000);
    assert_eq!(asked(u64::MAX), 300_000);
    assert!(
        asked(1) >= 4_000,
        "a second is no reason to come back sooner than after a failure"
    );
}

#[test]
fn a_server_that_only_holds_its_lists_back_is_written_to() {
    for status in [403, 503] {
        let held = Failure::Refused {
            status,
            retry_after: None,
        };
        assert!(aside(&[(Use::Read, held)], Use::Read, 1) >= 4_000);
        assert_eq!(aside(&[(Use::Read, held)], Use::Write, 1), 0);
        assert!(
            aside(&[(Use::Write, held)], Use::Read, 1) >= 4_000,
            "refused writes are a failure"
        );
    }
    for failure in [
        Failure::Unreachable,
        Failure::Garbage,
        Failure::Refused {
            status: 500,
            retry_after: None,
        },
    ] {
        assert!(aside(&[(Use::Read, failure)], Use::Write, 1) >= 4_000);
    }
}

#[test]
fn lists_held_back_leave_the_pinned_writer_alone_and_successful_writes_do_not_call_reads_back() {
    let mut endpoints = endpoints(Some("own"), servers(&[("a", "own"), ("b", "other")]), 1);
    let a = endpoints.choose(at(0), Use::Write, &[]).unwrap();
    assert_eq!(endpoints.choose(at(0), Use::Read, &[]), Some(a.clone()));
    for _ in 0..3 {
        endpoints.failed(at(0), Use::Read, &a, REFUSED);
        endpoints.succeeded(at(0), Use::Write, &a);
    }
    assert_eq!(
        (endpoints.pinned(Use::Write), endpoints.pinned(Use::Read)),
        (Some(&a), None)
    );
    let reads = endpoints.choose(at(14), Use::Read, &[]).unwrap();
    assert_eq!(
        reads.host(),
        "b",
        "three times refused is 16 seconds, whatever was written"
    );
    endpoints.succeeded(at(14), Use::Read, &a);
    endpoints.failed(at(14), Use::Read, &reads, Failure::Unreachable);
    assert_eq!(
        endpoints.choose(at(14), Use::Read, &[]),
        Some(a),
        "an answer ends it"
    );
}

#[test]
fn if_all_are_set_aside_the_one_that_is_free_first_is_asked() {
    let mut endpoints = endpoints(None, three(), 1);
    for (name, times) in [("a", 4), ("b", 1), ("c", 3)] {
        for _ in 0..times {
            endpoints.failed(at(0), Use::Read, &server(name, "x"), Failure::Unreachable);
        }
    }
    let order = |endpoints: &mut Endpoints| {
        let mut tried = Vec::new();
        while let Some(server) = endpoints.choose(at(0), Use::Read, &tried) {
            tried.push(server);
        }
        tried
            .iter()
            .map(|server| server.host().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(order(&mut endpoints), ["b", "c", "a"]);
}

#[test]
fn other_servers_keep_what_is_known_of_those_that_stay() {
    let mut endpoints = endpoints(None, three(), 1);
    let kept = endpoints.choose(at(0), Use::Write, &[]).unwrap();
    for name in ["a", "b", "c"] {
        if name != kept.host() {
            endpoints.failed(at(0), Use::Write, &server(name, "x"), Failure::Unreachable);
        }
    }
    let mut listed = three();
    listed.push(server("d", "x"));
    listed.push(server("d", "x"));
    endpoints.set_servers(at(1), listed);
    assert_eq!(endpoints.len(), 4, "each once");
    assert_eq!(endpoints.pinned(Use::Write), Some(&kept));
    let next = endpoints.choose(at(1), Use::Write, std::slice::from_ref(&kept));
    assert_eq!(next.unwrap().host(), "d", "the other two are set aside still");

    endpoints.set_servers(at(2), servers(&[("e", "x")]));
    assert_eq!(endpoints.pinned(Use::Write), None);
    assert_eq!(endpoints.choose(at(2), Use::Write, &[]).unwrap().host(), "e");
}

#[test]
fn times_without_end_are_no_panic() {
    let mut config = EndpointsConfig::default();
    config.session = Duration::MAX;
    config.quarantine = Duration::MAX;
    config.quarantine_max = Duration::MAX;
    let mut endpoints = Endpoints::new(at(0), config, three(), 1);
    let first = endpoints.choose(at(0), Use::Read, &[]).unwrap();
    endpoints.failed(at(0), Use::Read, &first, Failure::Garbage);
    assert_ne!(endpoints.choose(at(100), Use::Read, &[]), Some(first));
}
