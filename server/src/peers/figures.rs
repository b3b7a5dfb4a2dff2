//! The facts about the mesh as Prometheus text. The recorder of all other metrics never forgets a label, and the peers of a
//! headless service come and go under new addresses: these are written from the facts, for the peers there are.

use std::fmt::{self, Display, Write as _};

use eureka_replication::driver::DriverCounts;
use eureka_replication::{AlarmKind, Facts, LinkState, PeerFacts};

/// One metric with the label `peer`.
struct Figure {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    /// `None`: not known of this peer.
    value: fn(&PeerFacts) -> Option<f64>,
}

const fn gauge(name: &'static str, help: &'static str, value: fn(&PeerFacts) -> Option<f64>) -> Figure {
    let kind = "gauge";
    Figure {
        name,
        kind,
        help,
        value,
    }
}

const fn counter(name: &'static str, help: &'static str, value: fn(&PeerFacts) -> Option<f64>) -> Figure {
    let kind = "counter";
    Figure {
        name,
        kind,
        help,
        value,
    }
}

const FIGURES: &[Figure] = &[
    gauge("eureka_peer_up", "1 if its last answer was one", |peer| {
        Some(flag(peer.state == LinkState::Up))
    }),
    gauge(
        "eureka_peer_last_success_timestamp_seconds",
        "When it last answered",
        |peer| peer.last_success.map(|wall| wall.0 as f64 / 1e3),
    ),
    gauge(
        "eureka_peer_lag_seconds",
        "Age of the oldest change it has not acknowledged",
        |peer| Some(peer.lag.as_secs_f64()),
    ),
    gauge(
        "eureka_peer_queue",
        "Instances waiting to be sent to it",
        |peer| Some(peer.queue as f64),
    ),
    counter("eureka_peer_sent_total", "Items it acknowledged", |peer| {
        Some(peer.sent as f64)
    }),
    counter("eureka_peer_retries_total", "Requests sent to it again", |peer| {
        Some(peer.retries as f64)
    }),
    counter(
        "eureka_peer_conflicts_total",
        "Its copies that were newer",
        |peer| Some(peer.conflicts as f64),
    ),
    counter(
        "eureka_peer_missing_total",
        "Instances it did not know, sent whole",
        |peer| Some(peer.missing as f64),
    ),
    counter(
        "eureka_peer_failed_total",
        "Items it answered with an error of their own",
        |peer| Some(peer.failed as f64),
    ),
    counter(
        "eureka_peer_overflowed_total",
        "Items left to repair: the queue was full",
        |peer| Some(peer.overflowed as f64),
    ),
    counter(
        "eureka_peer_outdated_total",
        "Items left to repair: they had waited too long",
        |peer| Some(peer.outdated as f64),
    ),
    counter(
        "eureka_peer_poisoned_total",
        "Items set aside because it refuses them",
        |peer| Some(peer.poisoned as f64),
    ),
    counter("eureka_peer_digests_total", "Comparisons with it", |peer| {
        Some(peer.digests as f64)
    }),
    counter(
        "eureka_peer_digests_differing_total",
        "Comparisons that found a difference",
        |peer| Some(peer.differing as f64),
    ),
    counter(
        "eureka_peer_repaired_total",
        "Instances pulled from it or pushed to it by repair",
        |peer| Some(peer.repaired as f64),
    ),
    gauge(
        "eureka_peer_diverged_seconds",
        "How long the two registries have differed; 0: they do not",
        |peer| Some(peer.diverged.unwrap_or_default().as_secs_f64()),
    ),
    gauge(
        "eureka_peer_clock_skew_seconds",
        "Its clock minus that of this node",
        |peer| peer.clock_skew.map(|millis| millis as f64 / 1e3),
    ),
    gauge(
        "eureka_peer_preserving",
        "1 while it evicts nobody, if it says so",
        |peer| peer.preserving.map(flag),
    ),
    gauge(
        "eureka_peer_reaches_us",
        "1 if it can reach this node, if it says so",
        |peer| peer.reaches_us.map(flag),
    ),
    counter(
        "eureka_peer_inbound_requests_total",
        "Batches, replicated requests and repairs that came from it",
        |peer| Some(peer.inbound.requests as f64),
    ),
    gauge(
        "eureka_peer_inbound_timestamp_seconds",
        "When the last of them came",
        |peer| peer.inbound.last.map(|wall| wall.0 as f64 / 1e3),
    ),
];

/// One metric without labels.
struct Total {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    value: fn(&Facts, &DriverCounts) -> u64,
}

const TOTALS: [Total; 7] = [
    Total {
        name: "eureka_mesh_strangers",
        kind: "gauge",
        help: "Senders of batches that are no configured peer, 100 at most",
        value: |facts, _| facts.strangers.len() as u64,
    },
    Total {
        name: "eureka_mesh_unresolved",
        kind: "gauge",
        help: "1 while the names of the peers cannot be resolved",
        value: |facts, _| facts.unresolved.is_some().into(),
    },
    Total {
        name: "eureka_mesh_outcomes_ignored_total",
        kind: "counter",
        help: "Outcomes of requests to peers that nobody waited for any more",
        value: |facts, _| facts.ignored,
    },
    Total {
        name: "eureka_mesh_connections_opened_total",
        kind: "counter",
        help: "Connections opened to the peers there are now",
        value: |_, counts| counts.connections.opened,
    },
    Total {
        name: "eureka_mesh_connections_reused_total",
        kind: "counter",
        help: "Requests to them on a connection that was open",
        value: |_, counts| counts.connections.reused,
    },
    Total {
        name: "eureka_mesh_connections_stale_total",
        kind: "counter",
        help: "Requests sent again because such a connection had been closed",
        value: |_, counts| counts.connections.stale,
    },
    Total {
        name: "eureka_mesh_panics_total",
        kind: "counter",
        help: "Panics that replication survived; each is a bug",
        value: |_, counts| counts.panics,
    },
];

const ALARM: &str = "eureka_mesh_alarm";

/// Every kind of alarm, each shown for each peer, so that one can tell silence from its absence.
const ALARMS: [AlarmKind; 8] = [
    AlarmKind::SelfLoop,
    AlarmKind::SharedAddress,
    AlarmKind::OneWayLink,
    AlarmKind::PeerSilent,
    AlarmKind::PeerMisconfigured,
    AlarmKind::PeerPreserving,
    AlarmKind::DifferentRules,
    AlarmKind::Diverged,
];

/// Appends everything to `out`.
pub(super) fn write(facts: &Facts, counts: DriverCounts, out: &mut String) {
    if !facts.peers.is_empty() {
        figures(facts, out);
        alarms(facts, out);
    }
    for total in &TOTALS {
        head(total.name, total.kind, total.help, out);
        let (name, value) = (total.name, (total.value)(facts, &counts));
        line(out, format_args!("{name} {value}\n"));
    }
}

fn figures(facts: &Facts, out: &mut String) {
    for figure in FIGURES {
        head(figure.name, figure.kind, figure.help, out);
        for peer in &facts.peers {
            if let Some(value) = (figure.value)(peer) {
                let (name, label) = (figure.name, Label(&peer.peer.0));
                line(out, format_args!("{name}{{peer=\"{label}\"}} {value}\n"));
            }
        }
    }
}

fn alarms(facts: &Facts, out: &mut String) {
    head(ALARM, "gauge", "1 while something is wrong with a peer", out);
    for peer in &facts.peers {
        for kind in ALARMS {
            let raised = facts
                .alarms
                .iter()
                .any(|alarm| alarm.kind == kind && alarm.peer == peer.peer);
            let (name, label, value) = (kind.name(), Label(&peer.peer.0), flag(raised));
            line(
                out,
                format_args!("{ALARM}{{name=\"{name}\",peer=\"{label}\"}} {value}\n"),
            );
        }
    }
}

fn head(name: &str, kind: &str, help: &str, out: &mut String) {
    line(out, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
}

fn line(out: &mut String, line: fmt::Arguments<'_>) {
    out.write_fmt(line).expect("writing to a string cannot fail");
}

fn flag(set: bool) -> f64 {
    f64::from(u8::from(set))
}

/// A label's value, escaped.
struct Label<'a>(&'a str);

impl Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
