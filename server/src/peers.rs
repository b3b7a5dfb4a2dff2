//! The node's peers as the server sees them: the mesh behind its lock, what it is told, and what it tells.

mod body;
mod figures;
mod watch;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eureka_registry_core::{PeerId, Reads, RegistryHandle};
use eureka_replication::driver::{Handle, Sources};
use eureka_replication::{Facts, Sender};

use self::body::PeersBody;
use self::watch::Watch;
use crate::config::Peers as Settings;

pub(crate) use self::body::{kind, state};

/// Time between two looks at the mesh for the log.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The peers of this node.
#[derive(Clone)]
pub(crate) struct Peers {
    mesh: Handle,
    registry: RegistryHandle,
    configured: Arc<AtomicBool>,
}

impl Peers {
    /// What `mesh` knows, for readers; whether there are any in the configuration.
    pub(crate) fn new(mesh: Handle, registry: RegistryHandle, configured: bool) -> Self {
        Self {
            mesh,
            registry,
            configured: Arc::new(AtomicBool::new(configured)),
        }
    }

    /// Notes a request of a peer, and tells under which name to apply it.
    pub(crate) fn introduce(&self, sender: &Sender) -> PeerId {
        self.mesh.inbound(sender)
    }

    /// Whether peers are configured. Without any, nobody has to repair anything with this node.
    pub(crate) fn are_configured(&self) -> bool {
        self.configured.load(Ordering::Relaxed)
    }

    /// Other peers, or none, at `sources`.
    pub(crate) fn configure(&self, settings: &Settings, sources: Sources) {
        self.configured.store(!settings.is_empty(), Ordering::Relaxed);
        self.mesh.set_refresh_interval(settings.refresh_interval);
        self.mesh.set_peer_sources(sources);
    }

    /// What there is to know of the mesh.
    pub(crate) fn facts(&self) -> Facts {
        self.mesh.facts()
    }

    /// `/api/v1/peers`
    pub(crate) fn json(&self) -> String {
        let reads = match self.registry.snapshot().reads() {
            Reads::Open => "open",
            Reads::Held(_) => "held",
        };
        let (node, facts) = (self.mesh.node().to_string(), self.facts());
        serde_json::to_string(&PeersBody::new(&node, reads, &facts)).expect("plain structs are JSON")
    }

    /// Appends the metrics of the mesh.
    pub(crate) fn scrape(&self, out: &mut String) {
        figures::write(&self.facts(), self.mesh.counts(), out);
    }

    /// Logs what changes, for ever.
    pub(crate) async fn watch(self) {
        let mut watch = Watch::default();
        let mut interval = tokio::time::interval(LOOK_INTERVAL);
        loop {
            interval.tick().await;
            for notice in watch.look(self.registry.now().mono, &self.facts()) {
                notice.log();
            }
        }
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use eureka_registry_core::Wall;
    use eureka_replication::driver::DriverCounts;
    use eureka_replication::{Alarm, AlarmKind, Inbound, LinkState, NodeId, PeerFacts, PeerKind, Rules};
    use serde_json::json;

    use super::*;

    pub(crate) fn facts(peers: Vec<PeerFacts>) -> Facts {
        Facts {
            peers,
            strangers: Vec::new(),
            alarms: Vec::new(),
            unresolved: None,
            ignored: 0,
        }
    }

    /// A peer of which nothing is known yet.
    pub(crate) fn peer(url: &str) -> PeerFacts {
        PeerFacts {
            peer: PeerId(url.into()),
            kind: PeerKind::Unknown,
            node: None,
            state: LinkState::Starting,
            error: None,
            last_success: None,
            lag: Duration::ZERO,
            queue: 0,
            sent: 0,
            retries: 0,
            failed: 0,
            conflicts: 0,
            missing: 0,
            overflowed: 0,
            outdated: 0,
            poisoned: 0,
            digests: 0,
            differing: 0,
            repaired: 0,
            diverged: None,
            clock_skew: None,
            preserving: None,
            rules: None,
            reaches_us: None,
            inbound: Inbound::default(),
        }
    }

    /// One that is known well, with an alarm and a stranger.
    pub(crate) fn busy() -> Facts {
        let known = PeerFacts {
            kind: PeerKind::Ours,
            node: Some(NodeId([0xabc, 0x1])),
            state: LinkState::Busy,
            error: Some("503".into()),
            last_success: Some(Wall(1000)),
            lag: Duration::from_millis(1500),
            queue: 3,
            sent: 4,
            diverged: Some(Duration::from_secs(61)),
            clock_skew: Some(-250),
            preserving: Some(false),
            rules: Some(Rules {
                lease_expiry: "exact".into(),
                eviction_interval: Duration::from_secs(60),
                preservation: true,
            }),
            reaches_us: Some(true),
            inbound: Inbound {
                last: Some(Wall(2000)),
                requests: 9,
            },
            ..peer("http://b:1/eureka")
        };
        let stranger = Inbound {
            last: Some(Wall(3000)),
            requests: 1,
        };
        Facts {
            strangers: vec![(PeerId("stranger@10.0.0.9".into()), stranger)],
            alarms: vec![Alarm {
                kind: AlarmKind::Diverged,
                peer: known.peer.clone(),
                since: Wall(5),
                text: "for 61 s".into(),
            }],
            unresolved: Some("no answer".into()),
            ..facts(vec![known, peer("http://\"c\":2/eureka")])
        }
    }

    #[test]
    fn json_has_every_field_and_null_for_what_is_not_known() {
        let facts = busy();
        let body =
            serde_json::to_value(PeersBody::new("me", "open", &facts)).expect("plain structs are JSON");
        let known = json!({
            "url": "http://b:1/eureka", "kind": "ours", "nodeId": "0000000000000abc0000000000000001", "state": "busy",
            "error": "503", "lastSuccess": 1000, "lagMs": 1500, "queue": 3, "sent": 4, "retries": 0, "conflicts": 0,
            "missing": 0, "failed": 0, "overflowed": 0, "outdated": 0, "poisoned": 0, "digests": 0, "differing": 0, "repaired": 0,
            "divergedMs": 61000, "clockSkewMs": -250, "preserving": false,
            "rules": {"leaseExpiry": "exact", "evictionIntervalMs": 60000, "preservation": true},
            "reachesUs": true, "inbound": {"last": 2000, "requests": 9},
        });
        assert_eq!(body["nodeId"], "me");
        assert_eq!(body["reads"], "open");
        assert_eq!(body["unresolved"], "no answer");
        assert_eq!(body["peers"][0], known);
        for unknown in [
            "nodeId",
            "error",
            "lastSuccess",
            "divergedMs",
            "clockSkewMs",
            "preserving",
            "rules",
            "reachesUs",
        ] {
            assert_eq!(
                body["peers"][1].get(unknown),
                Some(&serde_json::Value::Null),
                "{unknown}"
            );
        }
        assert_eq!(
            body["strangers"],
            json!([{"name": "stranger@10.0.0.9", "last": 3000, "requests": 1}])
        );
        let alarm = json!([{"name": "diverged", "url": "http://b:1/eureka", "since": 5, "text": "for 61 s"}]);
        assert_eq!(body["alarms"], alarm);
    }

    #[test]
    fn metrics_are_escaped_and_leave_out_what_is_not_known() {
        let mut text = String::new();
        figures::write(&busy(), DriverCounts::default(), &mut text);
        for line in [
            "# TYPE eureka_peer_sent_total counter",
            "eureka_peer_sent_total{peer=\"http://b:1/eureka\"} 4",
            "eureka_peer_lag_seconds{peer=\"http://b:1/eureka\"} 1.5",
            "eureka_peer_clock_skew_seconds{peer=\"http://b:1/eureka\"} -0.25",
            "eureka_peer_queue{peer=\"http://\\\"c\\\":2/eureka\"} 0",
            "eureka_mesh_alarm{name=\"diverged\",peer=\"http://b:1/eureka\"} 1",
            "eureka_mesh_alarm{name=\"self-loop\",peer=\"http://b:1/eureka\"} 0",
            "eureka_mesh_strangers 1",
            "eureka_mesh_unresolved 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
        }
        let skews = text
            .lines()
            .filter(|line| line.starts_with("eureka_peer_clock_skew_seconds{"));
        assert_eq!(skews.count(), 1, "{text}");
    }
}
