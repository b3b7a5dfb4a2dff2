//! `/api/v1/peers`: the facts about the mesh as JSON.

use std::time::Duration;

use eureka_replication::{Alarm, Facts, Inbound, LinkState, PeerFacts, PeerKind, Rules};
use serde::Serialize;

/// What a node knows of its peers. Times are Unix milliseconds, names ending in `Ms` durations.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PeersBody<'a> {
    node_id: &'a str,
    reads: &'static str,
    peers: Vec<PeerBody<'a>>,
    strangers: Vec<StrangerBody<'a>>,
    alarms: Vec<AlarmBody<'a>>,
    /// Why the names of the peers could not be resolved the last time.
    unresolved: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PeerBody<'a> {
    url: &'a str,
    kind: &'static str,
    node_id: Option<String>,
    state: &'static str,
    error: Option<&'a str>,
    last_success: Option<u64>,
    lag_ms: u64,
    queue: usize,
    sent: u64,
    retries: u64,
    conflicts: u64,
    missing: u64,
    failed: u64,
    overflowed: u64,
    outdated: u64,
    poisoned: u64,
    digests: u64,
    differing: u64,
    repaired: u64,
    diverged_ms: Option<u64>,
    clock_skew_ms: Option<i64>,
    preserving: Option<bool>,
    rules: Option<RulesBody<'a>>,
    reaches_us: Option<bool>,
    inbound: InboundBody,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RulesBody<'a> {
    lease_expiry: &'a str,
    eviction_interval_ms: u64,
    preservation: bool,
}

#[derive(Serialize)]
struct InboundBody {
    last: Option<u64>,
    requests: u64,
}

#[derive(Serialize)]
struct StrangerBody<'a> {
    name: &'a str,
    #[serde(flatten)]
    inbound: InboundBody,
}

#[derive(Serialize)]
struct AlarmBody<'a> {
    name: &'static str,
    url: &'a str,
    since: u64,
    text: &'a str,
}

impl<'a> PeersBody<'a> {
    pub(super) fn new(node_id: &'a str, reads: &'static str, facts: &'a Facts) -> Self {
        let stranger = |(name, inbound): &'a (_, _)| StrangerBody::new(name, inbound);
        Self {
            node_id,
            reads,
            peers: facts.peers.iter().map(PeerBody::new).collect(),
            strangers: facts.strangers.iter().map(stranger).collect(),
            alarms: facts.alarms.iter().map(AlarmBody::new).collect(),
            unresolved: facts.unresolved.as_deref(),
        }
    }
}

impl<'a> PeerBody<'a> {
    fn new(peer: &'a PeerFacts) -> Self {
        Self {
            url: &peer.peer.0,
            kind: kind(peer.kind),
            node_id: peer.node.map(|node| node.to_string()),
            state: state(peer.state),
            error: peer.error.as_deref(),
            last_success: peer.last_success.map(|wall| wall.0),
            lag_ms: millis(peer.lag),
            queue: peer.queue,
            sent: peer.sent,
            retries: peer.retries,
            conflicts: peer.conflicts,
            missing: peer.missing,
            failed: peer.failed,
            overflowed: peer.overflowed,
            outdated: peer.outdated,
            poisoned: peer.poisoned,
            digests: peer.digests,
            differing: peer.differing,
            repaired: peer.repaired,
            diverged_ms: peer.diverged.map(millis),
            clock_skew_ms: peer.clock_skew,
            preserving: peer.preserving,
            rules: peer.rules.as_ref().map(RulesBody::new),
            reaches_us: peer.reaches_us,
            inbound: InboundBody::new(&peer.inbound),
        }
    }
}

impl<'a> RulesBody<'a> {
    fn new(rules: &'a Rules) -> Self {
        Self {
            lease_expiry: &rules.lease_expiry,
            eviction_interval_ms: millis(rules.eviction_interval),
            preservation: rules.preservation,
        }
    }
}

impl InboundBody {
    fn new(inbound: &Inbound) -> Self {
        Self {
            last: inbound.last.map(|wall| wall.0),
            requests: inbound.requests,
        }
    }
}

impl<'a> StrangerBody<'a> {
    fn new(name: &'a eureka_registry_core::PeerId, inbound: &Inbound) -> Self {
        Self {
            name: &name.0,
            inbound: InboundBody::new(inbound),
        }
    }
}

impl<'a> AlarmBody<'a> {
    fn new(alarm: &'a Alarm) -> Self {
        Self {
            name: alarm.kind.name(),
            url: &alarm.peer.0,
            since: alarm.since.0,
            text: &alarm.text,
        }
    }
}

/// What a peer is, in a word.
pub(crate) const fn kind(kind: PeerKind) -> &'static str {
    match kind {
        PeerKind::Unknown => "unknown",
        PeerKind::Ours => "ours",
        PeerKind::Java => "java",
    }
}

/// How the way to a peer is, in a word.
pub(crate) const fn state(state: LinkState) -> &'static str {
    match state {
        LinkState::Starting => "starting",
        LinkState::Up => "up",
        LinkState::Busy => "busy",
        LinkState::Unreachable => "unreachable",
        LinkState::Misconfigured => "misconfigured",
        LinkState::Own => "own",
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
