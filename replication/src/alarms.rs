//! What is wrong with the mesh: each alarm is raised once with its evidence, and ended once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Now, PeerId};

use crate::config::Config;
use crate::facts::{Alarm, AlarmKind, LinkState, PeerKind};
use crate::message::{Output, Rules};

/// An address that was answered by changing nodes is suspicious for so long.
const SHARED_CALM: Duration = Duration::from_secs(300);
/// A peer in preservation is reported after so many answers in a row that say so.
const PRESERVING_PROBES: u32 = 2;

const ALL: [AlarmKind; 8] = [
    AlarmKind::SelfLoop,
    AlarmKind::SharedAddress,
    AlarmKind::OneWayLink,
    AlarmKind::PeerSilent,
    AlarmKind::PeerMisconfigured,
    AlarmKind::PeerPreserving,
    AlarmKind::DifferentRules,
    AlarmKind::Diverged,
];

/// The alarms that are raised now.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    raised: BTreeMap<(PeerId, AlarmKind), Alarm>,
}

/// What is known of one peer, as ages.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) kind: PeerKind,
    pub(crate) state: LinkState,
    /// How long it is configured.
    pub(crate) known: Duration,
    /// Since it last answered anything.
    pub(crate) success: Option<Duration>,
    /// Since anything last came from it.
    pub(crate) inbound: Option<Duration>,
    /// It was heard of while it could not be reached, and still could not be reached afterwards.
    pub(crate) heard_in_vain: bool,
    /// Since this very node last answered behind its address.
    pub(crate) own: Option<Duration>,
    /// Since a node answered that had been replaced by another before.
    pub(crate) returned: Option<Duration>,
    /// It has refused what we send and taken nothing since.
    pub(crate) refuses: bool,
    /// How it says that it can reach this node (see `Probed::reaches_us`), and for how long it has said so.
    pub(crate) reaches_us: (Option<bool>, Duration),
    /// So many answers in a row said that it evicts nobody, while we would.
    pub(crate) preserving: u32,
    pub(crate) rules: Option<Rules>,
    pub(crate) diverged: Option<Duration>,
    /// Last thing that went wrong.
    pub(crate) error: Option<Arc<str>>,
}

impl Alarms {
    /// Raises and ends what the evidence says.
    pub(crate) fn look(
        &mut self,
        now: Now,
        config: &Config,
        peer: &PeerId,
        evidence: &Evidence,
        mut tell: impl FnMut(Output),
    ) {
        for kind in ALL {
            let key = (peer.clone(), kind);
            match (evidence.speaks_for(kind, config), self.raised.get(&key)) {
                (Some(text), None) => {
                    let alarm = Alarm {
                        kind,
                        peer: peer.clone(),
                        since: now.wall,
                        text: text.into(),
                    };
                    self.raised.insert(key, alarm.clone());
                    tell(Output::Alarm { alarm, raised: true });
                }
                (None, Some(_)) => self.end(&key, &mut tell),
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
    }

    /// The peer is none any more.
    pub(crate) fn forget(&mut self, peer: &PeerId, mut tell: impl FnMut(Output)) {
        for kind in ALL {
            self.end(&(peer.clone(), kind), &mut tell);
        }
    }

    /// In the order of peers.
    pub(crate) fn list(&self) -> Vec<Alarm> {
        self.raised.values().cloned().collect()
    }

    fn end(&mut self, key: &(PeerId, AlarmKind), tell: &mut impl FnMut(Output)) {
        if let Some(alarm) = self.raised.remove(key) {
            tell(Output::Alarm { alarm, raised: false });
        }
    }
}

impl Evidence {
    /// The sentence, if the alarm is to be raised or kept.
    fn speaks_for(&self, kind: AlarmKind, config: &Config) -> Option<String> {
        match kind {
            AlarmKind::SelfLoop => self.self_loop(config),
            AlarmKind::SharedAddress => self.shared_address(),
            AlarmKind::OneWayLink => self.one_way(config),
            AlarmKind::PeerSilent => self.silent(config),
            AlarmKind::PeerMisconfigured => self.refuses.then(|| {
                format!("it answers, but refuses what this node sends{}: nothing reaches it", self.last_error())
            }),
            AlarmKind::PeerPreserving => (self.preserving >= PRESERVING_PROBES).then(|| {
                String::from(
                    "it evicts nobody (preservation) while this node does: it misses heartbeats that arrive here, and lists \
                     instances that are gone here",
                )
            }),
            AlarmKind::DifferentRules => self.different_rules(config),
            AlarmKind::Diverged => self.diverged(config),
        }
    }

    /// Retried every 30 s, so it stays raised as long as it is so.
    fn self_loop(&self, config: &Config) -> Option<String> {
        self.own.filter(|age| *age < config.silence_bound).map(|_| {
            String::from(
                "the address leads back to this very node, which answered with its own id: nothing is sent there. It is this \
                 node's own address, or a balancer in front of several nodes",
            )
        })
    }

    fn shared_address(&self) -> Option<String> {
        self.returned.filter(|age| *age < SHARED_CALM).map(|_| {
            String::from(
                "the address is answered by changing nodes, as that of a balancer is: each change reaches only one of them. \
                 List the nodes by addresses of their own",
            )
        })
    }

    fn one_way(&self, config: &Config) -> Option<String> {
        let bound = config.silence_bound;
        let heard = self.inbound.unwrap_or(self.known);
        let reached = self.success.unwrap_or(self.known);
        if self.state == LinkState::Own || self.refuses {
            return None;
        }
        if reached >= bound {
            let inbound = self.inbound.filter(|age| *age < bound && self.heard_in_vain)?;
            return Some(format!(
                "requests come from it, the last {} s ago, but this node has not reached it for {} s{}",
                inbound.as_secs(),
                reached.as_secs(),
                self.last_error()
            ));
        }
        match (self.kind, self.reaches_us, self.inbound) {
            (PeerKind::Ours, (Some(false), since), _) if since >= bound / 3 && heard >= bound / 3 => {
                Some(format!(
                    "it answers this node, but says that it cannot reach it, and nothing has come from it for {} s",
                    heard.as_secs()
                ))
            }
            (PeerKind::Ours, (None, since), _) if since >= bound * 2 && heard >= bound * 2 => Some(format!(
                "it answers this node, but none of its peers is this node, and nothing has come from it for {} s: its list of \
                 peers lacks this node, or leads elsewhere",
                heard.as_secs()
            )),
            (PeerKind::Java, _, Some(age)) if age >= bound => Some(format!(
                "it answers this node, but nothing has come from it for {} s, and something did before: it cannot reach this \
                 node, or no client uses it any more",
                age.as_secs()
            )),
            (PeerKind::Java, _, None) if self.known >= bound * 2 => Some(format!(
                "it answers this node, but nothing ever came from it in {} s: it does not have this node among its peers, or \
                 cannot reach it, or no client uses it",
                self.known.as_secs()
            )),
            _ => None,
        }
    }

    fn silent(&self, config: &Config) -> Option<String> {
        let least = |age: Option<Duration>| age.unwrap_or(self.known);
        let silence = least(self.success).min(least(self.inbound));
        let silent = silence >= config.silence_bound && self.state != LinkState::Own && !self.refuses;
        silent.then(|| {
            let ever = if self.success.is_some() || self.inbound.is_some() {
                ""
            } else {
                " ever"
            };
            format!(
                "nothing{ever} went to it or came from it for {} s{}",
                silence.as_secs(),
                self.last_error()
            )
        })
    }

    fn different_rules(&self, config: &Config) -> Option<String> {
        let (theirs, ours) = (self.rules.as_ref()?, &config.rules);
        (theirs != ours).then(|| {
            format!(
                "its leases have other rules (expiry {}, eviction every {} s, preservation {}) than this node's ({}, {} s, {}): \
                 one evicts what the other lists",
                theirs.lease_expiry,
                theirs.eviction_interval.as_secs(),
                on_off(theirs.preservation),
                ours.lease_expiry,
                ours.eviction_interval.as_secs(),
                on_off(ours.preservation)
            )
        })
    }

    /// While it cannot be reached, that is the news, and not how old the difference is.
    fn diverged(&self, config: &Config) -> Option<String> {
        let age = self.diverged.filter(|age| *age >= config.diverged_bound)?;
        let reached = self.success.is_some_and(|age| age < config.silence_bound);
        reached.then(|| {
            format!(
                "its content has differed from this node's for {} s, longer than repair takes",
                age.as_secs()
            )
        })
    }

    fn last_error(&self) -> String {
        self.error
            .as_ref()
            .map_or_else(String::new, |error| format!(" ({error})"))
    }
}

fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

#[cfg(test)]
mod tests;
