//! Whether the node is alive, ready, and fit to be read from.

use std::sync::atomic::{AtomicBool, Ordering};

use eureka_registry_core::{Hold, Reads};
use http::StatusCode;
use serde_json::json;

/// What the probes of an orchestrator ask.
#[derive(Debug, Default)]
pub(crate) struct Health {
    stopping: AtomicBool,
}

impl Health {
    /// From now on the node is not ready: it takes leave.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Ready as soon as writes are served, even while reads are held: an orchestrator that hid the node until its lists
    /// are complete would hide it from the clients and peers that must complete them. With `strictly`, held reads count.
    pub(super) fn ready(&self, reads: Reads, strictly: bool) -> (StatusCode, String) {
        let stopping = self.stopping.load(Ordering::Relaxed);
        let because = match reads {
            Reads::Open => None,
            Reads::Held(Hold::Starting) => Some("the node is starting: it has not copied from its peers yet"),
            Reads::Held(Hold::EmptySync) => Some(
                "the node started with nothing; clients keep their copies until everybody has registered again",
            ),
        };
        let ready = !stopping && (because.is_none() || !strictly);
        let mut answer = json!({
            "status": if ready { "UP" } else { "OUT_OF_SERVICE" },
            "writes": if stopping { "stopping" } else { "served" },
            "reads": if because.is_some() { "held" } else { "open" },
        });
        if let Some(because) = because {
            answer["because"] = because.into();
        }
        let status = if ready {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        (status, answer.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_stops_is_not_ready() {
        let health = Health::default();
        assert_eq!(health.ready(Reads::Open, false).0, StatusCode::OK);
        health.stop();
        let (status, text) = health.ready(Reads::Open, false);
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(text.contains("\"writes\":\"stopping\""), "{text}");
    }
}
