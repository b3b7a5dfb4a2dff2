//! The mesh alone, its outputs answered by hand.

// Of the outputs each test looks at a few.
#![allow(clippy::wildcard_enum_match_arm)]

use eureka_registry_core::{AppliedKind, InstanceKey, Origin};

use super::*;
use crate::facts::LinkState;
use crate::message::{Action, Item, ItemOutcome, Probed};

const NORTH: &str = "http://north";
const SOUTH: &str = "http://south";
const OWN: NodeId = NodeId([9, 9]);

fn peer(name: &str) -> PeerId {
    PeerId(name.into())
}

fn at(millis: u64) -> Now {
    let wall = eureka_registry_core::Wall(1_000_000 + millis);
    Now {
        mono: Mono(millis),
        wall,
    }
}

fn mesh(peers: &[&str]) -> Mesh {
    let config = Config {
        node: OWN,
        ..Config::default()
    };
    let mut mesh = Mesh::new(at(0), config);
    mesh.set_peers(at(0), peers.iter().map(|name| peer(name)).collect());
    mesh
}

fn drain(mesh: &mut Mesh) -> Vec<Output> {
    std::iter::from_fn(|| mesh.poll_output()).collect()
}

/// Lets time pass until there is something to do, at most until `until`.
fn next(mesh: &mut Mesh, until: u64) -> (Now, Vec<Output>) {
    for _ in 0..1_000 {
        let due = mesh.poll_timeout().expect("something is always waited for").0;
        let now = at(due.min(until));
        mesh.handle_timeout(now);
        let outputs = drain(mesh);
        if !outputs.is_empty() || due >= until {
            return (now, outputs);
        }
    }
    panic!("what is due is not done");
}

fn ours(node: u64) -> Probed {
    Probed {
        node: Some(NodeId([node, 1])),
        wall: None,
        preserving: None,
        rules: None,
        reaches_us: None,
    }
}

fn java() -> Probed {
    Probed {
        node: None,
        ..ours(0)
    }
}

fn failed(failure: Failure) -> Outcome {
    Outcome::Failed {
        failure,
        text: "test".into(),
        retry_after: None,
    }
}

fn probe_id(outputs: &[Output], name: &str) -> RequestId {
    let probe = outputs.iter().find_map(|output| match output {
        Output::Probe { peer, id } if &*peer.0 == name => Some(*id),
        _ => None,
    });
    probe.unwrap_or_else(|| panic!("no probe of {name} among {outputs:?}"))
}

/// Answers the first probe of a peer.
fn probe(now: Now, mesh: &mut Mesh, name: &str, probed: Probed) -> Vec<Output> {
    let id = probe_id(&drain(mesh), name);
    mesh.handle_outcome(now, &peer(name), id, probed.node, Outcome::Probed(probed));
    drain(mesh)
}

/// A mesh with one peer of ours that was empty, and which is open.
fn settled() -> Mesh {
    let mut mesh = mesh(&[NORTH]);
    let outputs = probe(at(0), &mut mesh, NORTH, ours(1));
    let [
        Output::Repair {
            id,
            step: Step::Copy { after: None },
            ..
        },
    ] = outputs.as_slice()
    else {
        panic!("{outputs:?}");
    };
    let nothing = Learned::Copied {
        received: 0,
        next: None,
        total: 0,
        held: false,
    };
    mesh.handle_outcome(
        at(1),
        &peer(NORTH),
        *id,
        Some(NodeId([1, 1])),
        Outcome::Learned(nothing),
    );
    let outputs = drain(&mut mesh);
    assert!(
        matches!(
            outputs.as_slice(),
            [Output::Open {
                synced: 0,
                settle: Some(_)
            }]
        ),
        "{outputs:?}"
    );
    mesh
}

fn registered(id: &str) -> Event {
    let instance = Arc::new(Instance::new("APP", id, "host", "10.0.0.1"));
    Event::Applied {
        seq: 1,
        version: 1,
        key: instance.key(),
        kind: AppliedKind::Registered,
        before: None,
        after: Some(instance),
        origin: Origin::Client,
    }
}

fn send_id(outputs: &[Output]) -> Option<RequestId> {
    outputs.iter().find_map(|output| match output {
        Output::Send { id, .. } => Some(*id),
        _ => None,
    })
}

#[test]
fn nothing_is_sent_before_it_is_known_to_whom() {
    let mut mesh = mesh(&[NORTH]);
    mesh.handle_event(at(0), &registered("1"));
    mesh.handle_timeout(at(0));
    let outputs = drain(&mut mesh);
    assert!(
        matches!(outputs.as_slice(), [Output::Probe { .. }]),
        "{outputs:?}"
    );
    let id = probe_id(&outputs, NORTH);
    mesh.handle_outcome(at(5), &peer(NORTH), id, None, Outcome::Probed(java()));
    let outputs = drain(&mut mesh);
    let key = InstanceKey::new("APP", "1");
    let item = Item {
        key,
        action: Action::Register,
    };
    assert!(
        outputs.iter().any(|output| matches!(output, Output::Pull { .. })),
        "{outputs:?}"
    );
    assert!(
        outputs
            .iter()
            .any(|output| matches!(output, Output::Send { items, .. } if *items == [item.clone()]))
    );
}

#[test]
fn an_outcome_that_nobody_waits_for_is_ignored_and_counted() {
    let mut mesh = mesh(&[NORTH]);
    let id = probe_id(&drain(&mut mesh), NORTH);
    let outcome = Outcome::Probed(ours(1));
    mesh.handle_outcome(at(1), &peer(SOUTH), id, None, outcome.clone());
    mesh.handle_outcome(at(1), &peer(NORTH), RequestId(id.0 + 1), None, outcome.clone());
    assert_eq!(drain(&mut mesh), []);
    mesh.handle_outcome(at(1), &peer(NORTH), id, None, outcome.clone());
    assert_eq!(drain(&mut mesh).len(), 1);
    mesh.handle_outcome(at(1), &peer(NORTH), id, None, outcome);
    assert_eq!((drain(&mut mesh), mesh.facts(at(1)).ignored), (Vec::new(), 3));
}

#[test]
fn a_comparison_follows_each_probe_of_ours() {
    let mut mesh = settled();
    let (now, outputs) = next(&mut mesh, 15_000);
    assert!(now.mono.0 <= 11_000, "within the interval: {now:?}");
    let id = probe_id(&outputs, NORTH);
    mesh.handle_outcome(now, &peer(NORTH), id, None, Outcome::Probed(ours(1)));
    let outputs = drain(&mut mesh);
    let [
        Output::Repair {
            id,
            step: Step::Compare,
            ..
        },
    ] = outputs.as_slice()
    else {
        panic!("{outputs:?}");
    };
    mesh.handle_outcome(now, &peer(NORTH), *id, None, Outcome::Learned(Learned::Equal));
    assert_eq!(drain(&mut mesh), [], "one round trip");
    let (later, outputs) = next(&mut mesh, 60_000);
    probe_id(&outputs, NORTH);
    let interval = later.mono.0 - now.mono.0;
    assert!((9_000..=11_000).contains(&interval), "{interval}");
}

#[test]
fn java_is_probed_every_thirty_seconds_and_never_compared() {
    let mut mesh = mesh(&[NORTH]);
    let outputs = probe(at(0), &mut mesh, NORTH, java());
    let [Output::Pull { id, .. }] = outputs.as_slice() else {
        panic!("{outputs:?}");
    };
    let pulled = Pulled {
        instances: 2,
        checked: true,
        held: false,
    };
    mesh.handle_outcome(at(1), &peer(NORTH), *id, None, Outcome::Pulled(pulled));
    assert_eq!(
        drain(&mut mesh),
        [Output::Open {
            synced: 2,
            settle: None
        }]
    );
    let (now, outputs) = next(&mut mesh, 40_000);
    assert_eq!(now.mono.0, 30_000);
    let id = probe_id(&outputs, NORTH);
    mesh.handle_outcome(now, &peer(NORTH), id, None, Outcome::Probed(java()));
    assert_eq!(drain(&mut mesh), []);
}

#[test]
fn who_is_no_peer_any_more_is_not_waited_for() {
    let mut mesh = settled();
    let (now, outputs) = next(&mut mesh, 15_000);
    let id = probe_id(&outputs, NORTH);
    mesh.handle_outcome(now, &peer(NORTH), id, None, failed(Failure::Unreachable));
    drain(&mut mesh);
    mesh.set_peers(now, Vec::new());
    let told = Output::Reachable {
        peer: peer(NORTH),
        reachable: true,
    };
    assert_eq!(
        drain(&mut mesh),
        [told],
        "what was held for its sake is not held any more"
    );
    assert!(mesh.facts(now).peers.is_empty());
}

#[test]
fn this_very_node_behind_an_address() {
    for own in [
        Outcome::Probed(Probed {
            node: Some(OWN),
            ..ours(0)
        }),
        failed(Failure::Own),
    ] {
        let mut mesh = mesh(&[NORTH]);
        let id = probe_id(&drain(&mut mesh), NORTH);
        mesh.handle_outcome(at(1), &peer(NORTH), id, None, own);
        assert_eq!(
            drain(&mut mesh),
            [Output::Open {
                synced: 0,
                settle: None
            }],
            "it does not count"
        );
        mesh.handle_event(at(1), &registered("1"));
        let (now, outputs) = next(&mut mesh, 40_000);
        assert!(
            matches!(outputs.as_slice(), [Output::Alarm { raised: true, .. }]),
            "{outputs:?}"
        );
        assert!(now.mono.0 <= 5_000);
        let (now, outputs) = next(&mut mesh, 40_000);
        assert_eq!(now.mono.0, 30_001, "tried again after thirty seconds");
        let id = probe_id(&outputs, NORTH);
        mesh.handle_outcome(now, &peer(NORTH), id, None, Outcome::Probed(ours(1)));
        let outputs = drain(&mut mesh);
        assert!(
            matches!(
                outputs.as_slice(),
                [Output::Repair {
                    step: Step::Compare,
                    ..
                }]
            ),
            "what waited is too old, and repaired: {outputs:?}"
        );
    }
}

#[test]
fn a_batch_that_comes_back_to_its_sender_is_not_taken_for_sent() {
    let mut mesh = settled();
    mesh.handle_event(at(100), &registered("1"));
    mesh.handle_timeout(at(100));
    let id = send_id(&drain(&mut mesh)).expect("a batch");
    mesh.handle_outcome(
        at(101),
        &peer(NORTH),
        id,
        Some(OWN),
        Outcome::Answered(vec![ItemOutcome::Ok]),
    );
    let facts = mesh.facts(at(101)).peers.remove(0);
    assert_eq!((facts.state, facts.queue, facts.sent), (LinkState::Own, 1, 0));
}

#[test]
fn senders_and_their_names() {
    let mut mesh = mesh(&[NORTH, SOUTH]);
    let outputs = drain(&mut mesh);
    let id = probe_id(&outputs, NORTH);
    mesh.handle_outcome(at(1), &peer(NORTH), id, None, Outcome::Probed(ours(1)));
    let id = probe_id(&outputs, SOUTH);
    mesh.handle_outcome(at(1), &peer(SOUTH), id, None, Outcome::Probed(java()));
    let address = |text: &str| text.parse().expect("an address");
    mesh.set_addresses(&peer(NORTH), vec![address("10.0.0.1")]);
    mesh.set_addresses(&peer(SOUTH), vec![address("10.0.0.1"), address("10.0.0.2")]);
    let mut name = |node: Option<u64>, from: &str| {
        let sender = Sender {
            node: node.map(|node| NodeId([node, 1])),
            address: Some(address(from)),
            identity: None,
        };
        mesh.handle_inbound(at(2), &sender).0.to_string()
    };
    assert_eq!(
        name(Some(1), "10.0.0.9"),
        NORTH,
        "by its id, wherever it comes from"
    );
    assert_eq!(name(None, "10.0.0.2"), SOUTH, "by its address");
    assert_eq!(
        name(None, "::ffff:10.0.0.1"),
        SOUTH,
        "north would have said its id"
    );
    assert_eq!(name(Some(3), "10.0.0.2"), "stranger@10.0.0.2", "Java has none");
    assert_eq!(name(None, "10.0.0.3"), "stranger@10.0.0.3");
    let facts = mesh.facts(at(2));
    assert_eq!(
        facts
            .peers
            .iter()
            .map(|peer| peer.inbound.requests)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(facts.strangers.len(), 2);
}

#[test]
fn an_address_of_two_peers_names_neither() {
    let mut mesh = mesh(&[NORTH, SOUTH]);
    let address: IpAddr = "10.0.0.1".parse().expect("an address");
    for name in [NORTH, SOUTH] {
        mesh.set_addresses(&peer(name), vec![address]);
    }
    let sender = Sender {
        address: Some(address),
        ..Sender::default()
    };
    assert_eq!(&*mesh.handle_inbound(at(0), &sender).0, "stranger@10.0.0.1");
}

#[test]
fn who_is_heard_of_in_a_back_off_is_tried_at_once() {
    let mut mesh = settled();
    let (mut now, outputs) = next(&mut mesh, 15_000);
    let mut id = probe_id(&outputs, NORTH);
    for _ in 0..10 {
        mesh.handle_outcome(now, &peer(NORTH), id, None, failed(Failure::Busy));
        loop {
            let (then, outputs) = next(&mut mesh, now.mono.0 + 60_000);
            now = then;
            if outputs
                .iter()
                .any(|output| matches!(output, Output::Probe { .. }))
            {
                id = probe_id(&outputs, NORTH);
                break;
            }
        }
    }
    mesh.handle_outcome(now, &peer(NORTH), id, None, failed(Failure::Busy));
    drain(&mut mesh);
    let now = at(now.mono.0 + 6_000);
    mesh.handle_timeout(now);
    assert_eq!(drain(&mut mesh), [], "the back-off is longer by now");
    let sender = Sender {
        node: Some(NodeId([1, 1])),
        ..Sender::default()
    };
    mesh.handle_inbound(now, &sender);
    mesh.handle_timeout(now);
    let id = probe_id(&drain(&mut mesh), NORTH);
    mesh.handle_outcome(now, &peer(NORTH), id, None, failed(Failure::Busy));
    mesh.handle_inbound(at(now.mono.0 + 100), &sender);
    mesh.handle_timeout(at(now.mono.0 + 100));
    assert_eq!(drain(&mut mesh), [], "but not for every request");
}

#[test]
fn of_two_addresses_of_one_node_the_first_is_used() {
    let mut mesh = mesh(&[NORTH, SOUTH]);
    let outputs = drain(&mut mesh);
    for name in [SOUTH, NORTH] {
        let id = probe_id(&outputs, name);
        mesh.handle_outcome(at(1), &peer(name), id, None, Outcome::Probed(ours(1)));
    }
    drain(&mut mesh);
    mesh.handle_event(at(2), &registered("1"));
    mesh.handle_timeout(at(2));
    let outputs = drain(&mut mesh);
    let sent = |name| {
        outputs
            .iter()
            .any(|output| matches!(output, Output::Send { peer, .. } if &*peer.0 == name))
    };
    assert_eq!((sent(NORTH), sent(SOUTH)), (true, false), "{outputs:?}");
    let facts = mesh.facts(at(2)).peers.remove(1);
    assert_eq!(
        facts.error.as_deref(),
        Some("the same node as http://north, which is used")
    );
}

#[test]
fn a_newer_copy_in_an_answer_is_adopted_with_an_age() {
    let mut mesh = settled();
    mesh.handle_event(at(100), &registered("1"));
    mesh.handle_timeout(at(100));
    let id = send_id(&drain(&mut mesh)).expect("a batch");
    let newer = Arc::new(Instance::new("APP", "1", "other", "10.0.0.2"));
    let outcome = Outcome::Answered(vec![ItemOutcome::Conflict(Arc::clone(&newer))]);
    mesh.handle_outcome(at(101), &peer(NORTH), id, None, outcome);
    let age = Duration::from_secs(30);
    let adopt = Output::Adopt {
        peer: peer(NORTH),
        command: Command::Adopt { instance: newer, age },
    };
    assert_eq!(drain(&mut mesh), [adopt]);
}

#[test]
fn a_node_of_ours_that_serves_no_repair_is_pulled_from_until_it_starts_again() {
    let mut mesh = mesh(&[NORTH]);
    let outputs = probe(at(0), &mut mesh, NORTH, ours(1));
    let [Output::Repair { id, .. }] = outputs.as_slice() else {
        panic!("{outputs:?}");
    };
    mesh.handle_outcome(at(1), &peer(NORTH), *id, None, failed(Failure::Misconfigured));
    let outputs = drain(&mut mesh);
    let [Output::Pull { id, .. }] = outputs.as_slice() else {
        panic!("at once: {outputs:?}");
    };
    let pulled = Pulled {
        instances: 1,
        checked: true,
        held: false,
    };
    mesh.handle_outcome(at(2), &peer(NORTH), *id, None, Outcome::Pulled(pulled));
    assert_eq!(
        drain(&mut mesh),
        [Output::Open {
            synced: 1,
            settle: None
        }]
    );
    let facts = mesh.facts(at(2)).peers.remove(0);
    assert_eq!(
        (facts.kind, facts.state),
        (PeerKind::Ours, LinkState::Up),
        "it is no failure"
    );
    let (now, outputs) = next(&mut mesh, 40_000);
    let id = probe_id(&outputs, NORTH);
    mesh.handle_outcome(now, &peer(NORTH), id, None, Outcome::Probed(ours(1)));
    assert_eq!(drain(&mut mesh), [], "not compared");
    let (now, outputs) = next(&mut mesh, 80_000);
    let id = probe_id(&outputs, NORTH);
    mesh.handle_outcome(now, &peer(NORTH), id, None, Outcome::Probed(ours(2)));
    let outputs = drain(&mut mesh);
    assert!(
        matches!(
            outputs.as_slice(),
            [Output::Repair {
                step: Step::Compare,
                ..
            }]
        ),
        "{outputs:?}"
    );
}

#[test]
fn names_are_resolved_again_and_again() {
    let mut mesh = mesh(&[]);
    assert_eq!(
        drain(&mut mesh),
        [Output::Open {
            synced: 0,
            settle: None
        }]
    );
    let (now, outputs) = next(&mut mesh, 70_000);
    assert_eq!((now.mono.0, outputs), (60_000, vec![Output::Resolve]));
    let (_, outputs) = next(&mut mesh, 200_000);
    assert_eq!(outputs, [], "not while it is under way");
    mesh.resolve_failed(at(200_000), "no such name");
    assert_eq!(
        mesh.facts(at(200_000)).unresolved.as_deref(),
        Some("no such name")
    );
    let (now, outputs) = next(&mut mesh, 300_000);
    assert_eq!((now.mono.0, outputs), (260_000, vec![Output::Resolve]));
    mesh.set_peers(now, vec![peer(NORTH)]);
    assert_eq!(mesh.facts(now).unresolved, None);
    let outputs = probe(now, &mut mesh, NORTH, ours(1));
    let [
        Output::Repair {
            step: Step::Compare, ..
        },
    ] = outputs.as_slice()
    else {
        panic!("a peer that comes later is compared, there is no second start-up: {outputs:?}");
    };
}

/// Whatever peers answer: never two requests of a kind under way with one, nothing due that is not done, few outputs.
#[test]
fn random_peers() {
    for seed in 0..200 {
        play(seed);
    }
}

fn play(seed: u64) {
    let mut random = Random(seed);
    let mut mesh = mesh(&[NORTH, SOUTH]);
    let mut under_way: Vec<(PeerId, RequestId, Output)> = Vec::new();
    let mut now = at(0);
    for turn in 0..400 {
        for output in drain(&mut mesh) {
            let (Output::Send { peer, id, .. }
            | Output::Probe { peer, id }
            | Output::Repair { peer, id, .. }
            | Output::Pull { peer, id }) = &output
            else {
                continue;
            };
            let alike = |other: &Output| std::mem::discriminant(other) == std::mem::discriminant(&output);
            let twice = under_way
                .iter()
                .any(|(known, _, other)| known == peer && alike(other));
            assert!(!twice, "seed {seed}, turn {turn}: {output:?} besides another");
            under_way.push((peer.clone(), *id, output));
        }
        assert!(under_way.len() <= 8, "seed {seed}: {under_way:?}");
        if random.below(3) == 0 {
            mesh.handle_event(now, &registered(&random.below(20).to_string()));
        }
        if random.below(4) == 0 {
            let node = Some(NodeId([random.below(4), 1]));
            mesh.handle_inbound(
                now,
                &Sender {
                    node,
                    ..Sender::default()
                },
            );
        }
        if !under_way.is_empty() && random.below(2) == 0 {
            let index = usize::try_from(random.below(under_way.len() as u64)).expect("small");
            let (peer, id, output) = under_way.swap_remove(index);
            let node = Some(random.below(4))
                .filter(|node| *node > 0)
                .map(|node| NodeId([node, 1]));
            let node = if random.below(20) == 0 { Some(OWN) } else { node };
            mesh.handle_outcome(now, &peer, id, node, outcome(&mut random, &output, node));
            continue;
        }
        mesh.handle_timeout(now);
        let due = mesh.poll_timeout().expect("something is always waited for");
        assert!(
            due > now.mono,
            "seed {seed}, turn {turn}: {due:?} was due and is not done"
        );
        now = at(if random.below(2) == 0 {
            due.0
        } else {
            now.mono.0 + random.below(3_000)
        });
    }
}

/// What may become of a request.
fn outcome(random: &mut Random, output: &Output, node: Option<NodeId>) -> Outcome {
    let failures = [
        Failure::Busy,
        Failure::Rejected,
        Failure::TooLarge,
        Failure::Misconfigured,
        Failure::Unreachable,
        Failure::Own,
    ];
    if random.below(3) == 0 {
        return failed(failures[usize::try_from(random.below(6)).expect("small")]);
    }
    match output {
        Output::Probe { .. } => Outcome::Probed(Probed { node, ..java() }),
        Output::Pull { .. } => Outcome::Pulled(Pulled {
            instances: 1,
            checked: random.below(2) == 0,
            held: false,
        }),
        Output::Send { items, .. } => Outcome::Answered(vec![ItemOutcome::Ok; items.len()]),
        _ => Outcome::Learned(match random.below(5) {
            0 => Learned::Equal,
            1 => Learned::Differ { buckets: vec![1, 2] },
            2 => Learned::Plan {
                pull: vec![InstanceKey::new("APP", "1")],
                push: Vec::new(),
                left: Vec::new(),
            },
            3 => Learned::Exchanged {
                adopted: 0,
                received: 1,
                sent: 0,
            },
            _ => Learned::Copied {
                received: 1,
                next: None,
                total: 1,
                held: false,
            },
        }),
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = crate::link::mixed(self.0);
        self.0 % bound
    }
}
