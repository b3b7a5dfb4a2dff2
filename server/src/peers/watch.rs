//! What the log says of the mesh: alarms and the state of links, when they change, and not too often.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Mono, PeerId};
use eureka_replication::{AlarmKind, Facts, LinkState};
use tracing::{info, warn};

use super::body;

/// A link or alarm that keeps changing is logged once in this time; the last state is always logged in the end.
const QUIET: Duration = Duration::from_secs(10);

/// Remembers what was logged last of whatever the facts name now, so it is as bounded as they are.
#[derive(Debug, Default)]
pub(super) struct Watch {
    links: BTreeMap<PeerId, Said<LinkState>>,
    alarms: BTreeMap<(PeerId, AlarmKind), Said<bool>>,
    names: Option<Said<bool>>,
}

#[derive(Clone, Copy, Debug)]
struct Said<T> {
    what: T,
    /// When it was logged; `None`: never.
    at: Option<Mono>,
}

/// A line for the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Notice {
    /// The way to a peer changed.
    Link {
        peer: PeerId,
        state: LinkState,
        error: Option<Arc<str>>,
    },
    /// Something is wrong.
    Raised {
        peer: PeerId,
        kind: AlarmKind,
        text: Arc<str>,
    },
    /// It is no longer.
    Ended { peer: PeerId, kind: AlarmKind },
    /// The names of the peers cannot be resolved.
    Unresolved { text: Arc<str> },
    /// They can again.
    Resolved,
}

impl Watch {
    /// What is new since the last look.
    pub(super) fn look(&mut self, now: Mono, facts: &Facts) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.links
            .retain(|peer, _| facts.peers.iter().any(|known| known.peer == *peer));
        for known in &facts.peers {
            // Who has not been spoken to is not news.
            let said = self.links.entry(known.peer.clone()).or_insert(Said {
                what: LinkState::Starting,
                at: None,
            });
            if said.changes(now, known.state) {
                notices.push(Notice::Link {
                    peer: known.peer.clone(),
                    state: known.state,
                    error: known.error.clone().filter(|_| known.state != LinkState::Up),
                });
            }
        }
        self.alarms(now, facts, &mut notices);
        let never = Said {
            what: false,
            at: None,
        };
        let said = self.names.get_or_insert(never);
        match &facts.unresolved {
            Some(text) if said.changes(now, true) => notices.push(Notice::Unresolved { text: text.clone() }),
            None if said.changes(now, false) => notices.push(Notice::Resolved),
            Some(_) | None => {}
        }
        notices
    }

    fn alarms(&mut self, now: Mono, facts: &Facts, notices: &mut Vec<Notice>) {
        for alarm in &facts.alarms {
            let said = self.alarms.entry((alarm.peer.clone(), alarm.kind));
            let never = Said {
                what: false,
                at: None,
            };
            if said.or_insert(never).changes(now, true) {
                notices.push(Notice::Raised {
                    peer: alarm.peer.clone(),
                    kind: alarm.kind,
                    text: Arc::clone(&alarm.text),
                });
            }
        }
        self.alarms.retain(|(peer, kind), said| {
            let stands = facts
                .alarms
                .iter()
                .any(|alarm| alarm.peer == *peer && alarm.kind == *kind);
            if stands {
                return true;
            }
            if said.changes(now, false) {
                let (peer, kind) = (peer.clone(), *kind);
                notices.push(Notice::Ended { peer, kind });
            }
            // Kept for as long as it could begin again too soon.
            said.what || !said.is_due(now)
        });
    }
}

impl<T: Copy + Eq> Said<T> {
    /// Whether `what` is to be logged now; then it counts as logged.
    fn changes(&mut self, now: Mono, what: T) -> bool {
        let changes = what != self.what && self.is_due(now);
        if changes {
            *self = Self { what, at: Some(now) };
        }
        changes
    }

    fn is_due(&self, now: Mono) -> bool {
        self.at.is_none_or(|at| now.since(at) >= QUIET)
    }
}

impl Notice {
    /// Writes the line.
    pub(super) fn log(&self) {
        match self {
            Self::Link { peer, state, error } => {
                let peer = &*peer.0;
                let name = body::state(*state);
                match (state, error) {
                    (LinkState::Up | LinkState::Starting, _) => info!(peer, state = name, "link to a peer"),
                    (_, Some(error)) => warn!(peer, state = name, error = ?&**error, "link to a peer"),
                    (_, None) => warn!(peer, state = name, "link to a peer"),
                }
            }
            Self::Raised { peer, kind, text } => {
                warn!(peer = &*peer.0, alarm = kind.name(), text = ?&**text, "alarm began");
            }
            Self::Ended { peer, kind } => {
                info!(peer = &*peer.0, alarm = kind.name(), "alarm ended");
            }
            Self::Unresolved { text } => warn!(text = ?&**text, "the names of the peers cannot be resolved"),
            Self::Resolved => info!("the names of the peers are resolved again"),
        }
    }
}

#[cfg(test)]
mod tests {
    use eureka_registry_core::Wall;
    use eureka_replication::Alarm;

    use super::*;
    use crate::peers::tests::{facts, peer};

    fn at(seconds: u64) -> Mono {
        Mono(seconds * 1000)
    }

    fn link(state: LinkState) -> Facts {
        facts(vec![eureka_replication::PeerFacts {
            state,
            ..peer("http://b:1/eureka")
        }])
    }

    fn states(notices: &[Notice]) -> Vec<LinkState> {
        let state = |notice: &Notice| match notice {
            Notice::Link { state, .. } => Some(*state),
            Notice::Raised { .. } | Notice::Ended { .. } | Notice::Unresolved { .. } | Notice::Resolved => {
                None
            }
        };
        notices.iter().filter_map(state).collect()
    }

    #[test]
    fn a_flapping_link_is_logged_seldom_and_in_the_end() {
        let mut watch = Watch::default();
        assert_eq!(watch.look(at(0), &link(LinkState::Starting)), []);
        let up = watch.look(at(1), &link(LinkState::Up));
        assert_eq!(states(&up), [LinkState::Up]);
        let mut logged = Vec::new();
        for second in 2..60 {
            let state = if second % 2 == 0 {
                LinkState::Up
            } else {
                LinkState::Unreachable
            };
            logged.extend(states(&watch.look(at(second), &link(state))));
        }
        assert!(logged.len() <= 6, "{logged:?}");
        let end = watch.look(at(80), &link(LinkState::Up));
        let last = states(&end).first().copied().or_else(|| logged.last().copied());
        assert_eq!(last, Some(LinkState::Up));
    }

    #[test]
    fn an_alarm_is_logged_when_it_begins_and_ends() {
        let mut watch = Watch::default();
        let quiet = link(LinkState::Starting);
        let mut raised = quiet.clone();
        raised.alarms.push(Alarm {
            kind: AlarmKind::Diverged,
            peer: PeerId("http://b:1/eureka".into()),
            since: Wall(7),
            text: "for 61 s".into(),
        });
        assert_eq!(watch.look(at(0), &quiet), []);
        assert!(matches!(
            &watch.look(at(1), &raised)[..],
            [Notice::Raised {
                kind: AlarmKind::Diverged,
                ..
            }]
        ));
        assert_eq!(watch.look(at(2), &raised), []);
        assert_eq!(watch.look(at(3), &quiet), [], "it began two seconds ago");
        assert!(matches!(&watch.look(at(11), &quiet)[..], [Notice::Ended { .. }]));
        assert_eq!(watch.look(at(12), &quiet), []);
    }
}
