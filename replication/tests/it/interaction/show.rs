//! What transcripts print.

use std::fmt::Write as _;
use std::time::Duration;

use eureka_registry_core::{LeaseView, Mono, Status, Wall};
use eureka_replication::{PeerFacts, PeerKind};

/// Of an instance, what all nodes have to agree on.
pub(crate) fn instance(view: &LeaseView) -> String {
    let instance = &view.instance;
    let mut text = format!("{}={}", view.key(), instance.status);
    if instance.overridden_status != Status::Unknown {
        write!(text, " override={}", instance.overridden_status).expect("a string takes all");
    }
    if let Some(dirty) = instance.last_dirty {
        write!(text, " dirty={dirty}").expect("a string takes all");
    }
    for (key, value) in instance.metadata.iter() {
        write!(text, " {key}:{value}").expect("a string takes all");
    }
    text
}

/// `+1.5s`: since the beginning.
pub(crate) fn moment(mono: Mono) -> String {
    format!("+{}", seconds(Duration::from_millis(mono.0)))
}

pub(crate) fn seconds(duration: Duration) -> String {
    let (whole, part) = (duration.as_secs(), duration.subsec_millis());
    if part == 0 {
        format!("{whole}s")
    } else {
        format!("{whole}.{part:03}s")
    }
}

/// What is not as usual between two nodes, and the counters that are not zero.
pub(crate) fn peer(now: Wall, facts: &PeerFacts) -> String {
    let kind = match facts.kind {
        PeerKind::Ours => "ours",
        PeerKind::Java => "java",
        PeerKind::Unknown => "unknown",
    };
    let mut text = format!("{} {kind} {:?}", facts.peer.0, facts.state);
    for (name, count) in [
        ("queue", facts.queue as u64),
        ("conflicts", facts.conflicts),
        ("missing", facts.missing),
        ("failed", facts.failed),
        ("overflowed", facts.overflowed),
        ("outdated", facts.outdated),
        ("poisoned", facts.poisoned),
        ("differing", facts.differing),
        ("repaired", facts.repaired),
    ] {
        if count > 0 {
            write!(text, " {name}={count}").expect("a string takes all");
        }
    }
    if let Some(skew) = facts.clock_skew.filter(|skew| skew.unsigned_abs() > 100) {
        write!(text, " skew={skew}ms").expect("a string takes all");
    }
    if let Some(diverged) = facts.diverged {
        write!(text, " diverged={}", seconds(diverged)).expect("a string takes all");
    }
    match facts.reaches_us {
        Some(true) => text += " reaches-us",
        Some(false) => text += " does-not-reach-us",
        None => {}
    }
    match facts.inbound.last {
        Some(last) => {
            let age = Duration::from_millis(now.0.saturating_sub(last.0));
            write!(text, " heard={}", seconds(age)).expect("a string takes all");
        }
        None => text += " never-heard",
    }
    if let Some(error) = &facts.error {
        write!(text, " ({error})").expect("a string takes all");
    }
    text
}
