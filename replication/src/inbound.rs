//! Who sends to this node: what came from whom, also from senders that are no configured peer.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Mono, Now, PeerId};

use crate::facts::Inbound;

/// At most this many strangers are told apart; all others share one name.
const STRANGERS: usize = 100;
/// A stranger not heard of for this long is not shown any more.
const SHOWN: Duration = Duration::from_secs(300);
/// A stranger not heard of for this long makes room for another.
const FORGOTTEN: Duration = Duration::from_secs(3_600);

/// What came from one sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    pub(crate) last: Option<Mono>,
    requests: u64,
}

/// Senders that are no peer of this node.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    senders: BTreeMap<PeerId, Arrivals>,
}

impl Arrivals {
    pub(crate) fn note(&mut self, now: Mono) {
        self.last = Some(now);
        self.requests += 1;
    }

    pub(crate) fn facts(&self, now: Now) -> Inbound {
        Inbound {
            last: self.last.map(|last| now.wall_at(last)),
            requests: self.requests,
        }
    }
}

impl Strangers {
    /// Notes a request and names its sender.
    pub(crate) fn note(&mut self, now: Mono, address: Option<IpAddr>) -> PeerId {
        let name = match address {
            Some(address) => format!("stranger@{}", address.to_canonical()),
            None => String::from("stranger@unknown"),
        };
        let mut name = PeerId(Arc::from(name));
        if !self.senders.contains_key(&name) && self.senders.len() >= STRANGERS - 1 {
            self.senders
                .retain(|_, arrivals| arrivals.last.is_some_and(|last| now.since(last) < FORGOTTEN));
            if self.senders.len() >= STRANGERS - 1 {
                name = PeerId(Arc::from("stranger@elsewhere"));
            }
        }
        self.senders.entry(name.clone()).or_default().note(now);
        name
    }

    /// Those heard of lately, in the order of their names: a peer may be a stranger for as long as it has not been probed.
    pub(crate) fn facts(&self, now: Now) -> Vec<(PeerId, Inbound)> {
        let lately = |arrivals: &Arrivals| arrivals.last.is_some_and(|last| now.mono.since(last) < SHOWN);
        let senders = self.senders.iter().filter(|(_, arrivals)| lately(arrivals));
        senders
            .map(|(name, arrivals)| (name.clone(), arrivals.facts(now)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_are_bounded() {
        let mut strangers = Strangers::default();
        for n in 0..500_u32 {
            let name = strangers.note(Mono(u64::from(n)), Some(IpAddr::V4(n.into())));
            let expected = if n < 99 {
                format!("stranger@0.0.0.{n}")
            } else {
                String::from("stranger@elsewhere")
            };
            assert_eq!(&*name.0, expected);
        }
        assert_eq!(strangers.senders.len(), STRANGERS);
        assert_eq!(
            strangers.senders[&PeerId("stranger@elsewhere".into())].requests,
            401
        );
    }

    #[test]
    fn who_was_long_silent_makes_room() {
        let mut strangers = Strangers::default();
        for n in 0..99_u32 {
            strangers.note(Mono(0), Some(IpAddr::V4(n.into())));
        }
        strangers.note(Mono(1), Some(IpAddr::V4(0.into())));
        let hour = Mono(3_600_000);
        let name = strangers.note(hour, Some(IpAddr::V4(1_000.into())));
        assert_eq!(&*name.0, "stranger@0.0.3.232");
        assert_eq!(
            strangers.senders.len(),
            2,
            "the one that came again, and the new one"
        );
    }

    #[test]
    fn who_was_a_stranger_for_a_moment_is_not_shown_for_long() {
        let mut strangers = Strangers::default();
        strangers.note(Mono(0), None);
        let shown = |secs: u64| {
            let mono = Mono(secs * 1_000);
            strangers
                .facts(Now {
                    mono,
                    ..Now::default()
                })
                .len()
        };
        assert_eq!((shown(299), shown(300)), (1, 0));
    }

    #[test]
    fn an_address_has_one_name() {
        let mut strangers = Strangers::default();
        let mapped: IpAddr = "::ffff:10.0.0.1".parse().expect("an address");
        assert_eq!(&*strangers.note(Mono(0), Some(mapped)).0, "stranger@10.0.0.1");
        assert_eq!(&*strangers.note(Mono(0), None).0, "stranger@unknown");
    }
}
