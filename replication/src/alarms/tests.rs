//! Each alarm: what raises it, and what ends it.

use super::*;

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A peer of ours with which all is well, as it is after an hour.
fn well() -> Evidence {
    Evidence {
        kind: PeerKind::Ours,
        state: LinkState::Up,
        known: secs(3_600),
        success: Some(secs(3)),
        inbound: Some(secs(4)),
        heard_in_vain: false,
        own: None,
        returned: None,
        refuses: false,
        reaches_us: (Some(true), secs(3_600)),
        preserving: 0,
        rules: Some(Rules::default()),
        diverged: None,
        error: None,
    }
}

fn java() -> Evidence {
    Evidence {
        kind: PeerKind::Java,
        reaches_us: (None, secs(3_600)),
        rules: None,
        ..well()
    }
}

/// The alarms this evidence speaks for.
fn raised(evidence: &Evidence) -> Vec<AlarmKind> {
    let config = Config::default();
    ALL.into_iter()
        .filter(|kind| evidence.speaks_for(*kind, &config).is_some())
        .collect()
}

fn text(evidence: &Evidence, kind: AlarmKind) -> String {
    evidence.speaks_for(kind, &Config::default()).expect("raised")
}

#[test]
fn nothing_is_wrong() {
    assert_eq!(raised(&well()), []);
    assert_eq!(raised(&java()), []);
}

#[test]
fn raised_and_ended_once_each() {
    let (mut alarms, config, now) = (Alarms::default(), Config::default(), Now::default());
    let peer = PeerId("http://p".into());
    let mut told = Vec::new();
    let bad = Evidence {
        diverged: Some(secs(60)),
        ..well()
    };
    for evidence in [well(), bad.clone(), bad.clone(), well(), well(), bad] {
        alarms.look(now, &config, &peer, &evidence, |output| {
            let Output::Alarm { alarm, raised } = output else {
                panic!("{output:?}");
            };
            told.push((alarm.kind, raised));
        });
    }
    let kind = AlarmKind::Diverged;
    assert_eq!(told, [(kind, true), (kind, false), (kind, true)]);
    assert_eq!(alarms.list().len(), 1);
    let mut ended = 0;
    alarms.forget(&peer, |output| {
        assert!(matches!(output, Output::Alarm { raised: false, .. }));
        ended += 1;
    });
    assert_eq!((ended, alarms.list().len()), (1, 0), "with a peer its alarms go");
}

#[test]
fn own_address() {
    let looped = Evidence {
        state: LinkState::Own,
        own: Some(secs(29)),
        success: None,
        inbound: None,
        ..well()
    };
    assert_eq!(
        raised(&looped),
        [AlarmKind::SelfLoop],
        "and it is not silent besides"
    );
    let over = Evidence {
        own: Some(secs(90)),
        ..well()
    };
    assert_eq!(raised(&over), []);
}

#[test]
fn shared_address() {
    assert_eq!(
        raised(&Evidence {
            returned: Some(secs(299)),
            ..well()
        }),
        [AlarmKind::SharedAddress]
    );
    assert_eq!(
        raised(&Evidence {
            returned: Some(secs(300)),
            ..well()
        }),
        []
    );
}

#[test]
fn ours_that_cannot_reach_us() {
    let deaf = Evidence {
        reaches_us: (Some(false), secs(30)),
        inbound: Some(secs(30)),
        ..well()
    };
    assert_eq!(raised(&deaf), [AlarmKind::OneWayLink]);
    let young = Evidence {
        reaches_us: (Some(false), secs(29)),
        ..deaf.clone()
    };
    assert_eq!(raised(&young), [], "it may only just have started");
    let arriving = Evidence {
        inbound: Some(secs(1)),
        ..deaf
    };
    assert_eq!(raised(&arriving), [], "what arrives is better evidence");
}

#[test]
fn ours_that_does_not_know_us() {
    let stranger = Evidence {
        reaches_us: (None, secs(180)),
        inbound: None,
        ..well()
    };
    assert_eq!(raised(&stranger), [AlarmKind::OneWayLink]);
    assert!(text(&stranger, AlarmKind::OneWayLink).contains("none of its peers is this node"));
    assert_eq!(
        raised(&Evidence {
            reaches_us: (None, secs(179)),
            ..stranger
        }),
        []
    );
}

#[test]
fn ours_that_we_cannot_reach() {
    let mute = Evidence {
        state: LinkState::Unreachable,
        success: Some(secs(90)),
        heard_in_vain: true,
        error: Some("connection refused".into()),
        ..well()
    };
    assert_eq!(raised(&mute), [AlarmKind::OneWayLink]);
    let sentence = "requests come from it, the last 4 s ago, but this node has not reached it for 90 s (connection refused)";
    assert_eq!(text(&mute, AlarmKind::OneWayLink), sentence);
    assert_eq!(
        raised(&Evidence {
            success: Some(secs(89)),
            ..mute.clone()
        }),
        []
    );
    let just_back = Evidence {
        heard_in_vain: false,
        ..mute
    };
    assert_eq!(raised(&just_back), [], "it is tried at once, and may be back");
}

#[test]
fn java_from_which_nothing_comes() {
    let quiet = Evidence {
        inbound: Some(secs(90)),
        ..java()
    };
    assert_eq!(raised(&quiet), [AlarmKind::OneWayLink]);
    assert!(
        text(&quiet, AlarmKind::OneWayLink).contains("or no client uses it"),
        "it may be harmless"
    );
    let never = Evidence {
        inbound: None,
        known: secs(180),
        ..java()
    };
    assert_eq!(raised(&never), [AlarmKind::OneWayLink]);
    assert!(text(&never, AlarmKind::OneWayLink).contains("ever came"));
    assert_eq!(
        raised(&Evidence {
            known: secs(179),
            ..never
        }),
        []
    );
}

#[test]
fn silence() {
    let silent = Evidence {
        state: LinkState::Unreachable,
        success: Some(secs(90)),
        inbound: Some(secs(91)),
        ..well()
    };
    assert_eq!(raised(&silent), [AlarmKind::PeerSilent]);
    assert_eq!(
        raised(&Evidence {
            inbound: Some(secs(89)),
            heard_in_vain: true,
            ..silent.clone()
        }),
        [AlarmKind::OneWayLink]
    );
    let in_vain = Evidence {
        heard_in_vain: true,
        ..silent
    };
    assert_eq!(raised(&in_vain), [AlarmKind::PeerSilent], "one at a time");
    let never = Evidence {
        known: secs(90),
        success: None,
        inbound: None,
        kind: PeerKind::Unknown,
        ..well()
    };
    assert!(text(&never, AlarmKind::PeerSilent).starts_with("nothing ever went"));
    assert_eq!(
        raised(&Evidence {
            known: secs(89),
            ..never
        }),
        []
    );
}

#[test]
fn refusal() {
    let refusing = Evidence {
        refuses: true,
        state: LinkState::Misconfigured,
        success: Some(secs(500)),
        error: Some("401".into()),
        ..well()
    };
    assert_eq!(
        raised(&refusing),
        [AlarmKind::PeerMisconfigured],
        "and nothing else"
    );
    assert!(text(&refusing, AlarmKind::PeerMisconfigured).contains("(401)"));
}

#[test]
fn preservation_of_one_side() {
    assert_eq!(
        raised(&Evidence {
            preserving: 1,
            ..well()
        }),
        [],
        "one answer may be a moment"
    );
    assert_eq!(
        raised(&Evidence {
            preserving: 2,
            ..well()
        }),
        [AlarmKind::PeerPreserving]
    );
}

#[test]
fn other_rules() {
    let rules = Rules {
        lease_expiry: "doubled".into(),
        eviction_interval: secs(60),
        preservation: true,
    };
    let other = Evidence {
        rules: Some(rules),
        ..well()
    };
    assert_eq!(raised(&other), [AlarmKind::DifferentRules]);
    assert!(
        text(&other, AlarmKind::DifferentRules)
            .contains("(expiry doubled, eviction every 60 s, preservation on)")
    );
    assert_eq!(
        raised(&Evidence {
            rules: None,
            ..well()
        }),
        [],
        "not told is not different"
    );
}

#[test]
fn divergence() {
    let differing = Evidence {
        diverged: Some(secs(60)),
        ..well()
    };
    assert_eq!(raised(&differing), [AlarmKind::Diverged]);
    assert_eq!(
        raised(&Evidence {
            diverged: Some(secs(59)),
            ..well()
        }),
        []
    );
    let unreachable = Evidence {
        success: Some(secs(90)),
        inbound: None,
        ..differing
    };
    assert_eq!(
        raised(&unreachable),
        [AlarmKind::PeerSilent],
        "one piece of news at a time"
    );
}
