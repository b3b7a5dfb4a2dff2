//! What needs more than one look. The causes themselves are in the tests of the binary, on scripted servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Action, Instance, InstanceKey, LeaseTerms, LeaseTimes, LeaseView, Wall};

use super::super::observation::{Answering, Answers, Identity, Kind, List, Look, Observations, Peer, Server};
use super::{examine, joined, seconds};

/// When the last look was, Unix milliseconds.
const NOW: i64 = 1_000_000_000;

#[test]
fn figures_and_names_are_for_people() {
    assert_eq!(seconds(1_240), "1.2 s");
    assert_eq!(seconds(-300), "-0.3 s");
    assert_eq!(seconds(65_000), "65 s");
    assert_eq!(joined(&["a", "b", "c"]), "a, b and c");
}

#[test]
fn a_lease_that_moves_at_one_end_only_while_we_watch_shows_the_broken_way() {
    // Seconds before now: (when looked, when last heard then). One heartbeat was lost so far.
    let moves = [(34, 40), (0, 10)];
    let stays = [(34, 40), (0, 40)];
    let seen = watched(&[&moves, &stays], Duration::from_secs(34));
    assert_eq!(names(&seen), ["one-way-link"]);
    assert_eq!(
        examine(&seen).findings[0].servers,
        ["http://s0/eureka", "http://s1/eureka"]
    );
    // Too short a time to say so.
    let seen = watched(&[&moves, &stays], Duration::from_secs(20));
    assert!(names(&seen).is_empty());
}

#[test]
fn a_heartbeat_that_is_on_its_way_shows_nothing() {
    let ahead = [(34, 40), (0, 1)];
    let behind = [(34, 39), (0, 30)];
    let seen = watched(&[&ahead, &behind], Duration::from_secs(34));
    assert!(names(&seen).is_empty());
}

#[test]
fn a_server_that_was_started_after_the_last_heartbeat_waits_for_the_next_one() {
    let mut seen = watched(&[&[(0, 20)], &[(0, 20)]], Duration::ZERO);
    let answers = seen.servers[1].answers.as_mut().unwrap();
    for look in answers.looks.values_mut().flatten() {
        look.seen = None;
    }
    answers.list = List::Open(Vec::new());
    answers.started = Some(NOW - 10_000);
    assert_eq!(names(&seen), ["just-started"]);
    let answers = seen.servers[1].answers.as_mut().unwrap();
    answers.started = Some(NOW - 30_000);
    assert_eq!(names(&seen), ["one-way-link"]);
}

#[test]
fn two_machines_that_take_turns_at_one_server_are_seen() {
    let mut seen = watched(&[&[(3, 5), (0, 1)]], Duration::from_secs(3));
    let answers = seen.servers[0].answers.as_mut().unwrap();
    let look = answers.looks.values_mut().next().unwrap().last_mut().unwrap();
    let view = look.seen.as_mut().unwrap();
    let other = Instance {
        host_name: Arc::from("h2"),
        ..Instance::clone(&view.instance)
    };
    view.instance = Arc::new(other);
    answers.list = List::Open(vec![view.clone()]);
    assert_eq!(names(&seen), ["id-of-two-hosts"]);
}

fn names(seen: &Observations) -> Vec<&'static str> {
    let report = examine(seen);
    report.findings.iter().map(|finding| finding.name).collect()
}

/// Java servers that know each other, and one instance as looks showed it there.
fn watched(servers: &[&[(i64, i64)]], watched: Duration) -> Observations {
    let name = |index: usize| format!("http://s{index}/eureka");
    let identity = |index: usize| Identity::Java {
        id: format!("s{index}"),
        host: format!("s{index}"),
        place: String::new(),
    };
    let all = 0..servers.len();
    let key = InstanceKey::new("ORDERS", "o-1");
    let seen = servers.iter().enumerate().map(|(index, looks)| {
        let looks: Vec<_> = looks.iter().map(|(at, heard)| look(*at, *heard)).collect();
        let last = looks.last().and_then(|look| look.seen.clone());
        let peers = all.clone().filter(|peer| *peer != index).map(|peer| Peer {
            address: name(peer),
            ..Peer::default()
        });
        Server {
            name: name(index),
            host: format!("s{index}"),
            answers: Ok(Answers {
                kind: Kind::Java,
                identities: vec![identity(index)],
                clock_offset: 0,
                started: None,
                list: List::Open(last.into_iter().collect()),
                peers: Some(peers.collect()),
                alarms: Vec::new(),
                preserving: Some(false),
                renewals_ahead: true,
                looks: BTreeMap::from([(key.clone(), looks)]),
                by_id: None,
            }),
        }
    });
    let answering = |index| Answering {
        identities: vec![identity(index)],
        failure: None,
    };
    Observations {
        servers: seen.collect(),
        addresses: all.clone().map(|index| (name(index), answering(index))).collect(),
        subject: Some(key.clone()),
        watched,
    }
}

fn look(seconds_ago: i64, heard_ago: i64) -> Look {
    let wall = |at: i64| Wall(at.unsigned_abs());
    let mut instance = Instance::new("ORDERS", "o-1", "h1", "10.0.0.1");
    instance.last_dirty = Some(1);
    let terms = LeaseTerms::default();
    let view = LeaseView {
        instance: Arc::new(instance),
        action: Action::Added,
        last_updated: wall(NOW - 600_000),
        lease: LeaseTimes {
            terms,
            registered: wall(NOW - 600_000),
            renewed: wall(NOW - heard_ago * 1000 + i64::from(terms.duration_secs) * 1000),
            evicted: wall(0),
            service_up: wall(NOW - 600_000),
        },
        coordinating: false,
    };
    Look {
        at: NOW - seconds_ago * 1000,
        seen: Some(view),
    }
}
