//! What the frontend is told by whoever composes the server.

use std::time::Duration;

use eureka_registry_core::InstanceLimits;

/// Limits and intervals of the frontend.
#[derive(Clone, Debug)]
pub struct Config {
    /// What one instance may have that is registered here.
    pub limits: InstanceLimits,
    /// Bytes a request message may have, also after it was decompressed.
    pub message: usize,
    /// A `Watch` that had nothing to tell for so long tells that it is alive.
    pub heartbeat: Duration,
    /// Changes that are kept encoded for all watchers; older ones are encoded for each alone.
    pub feed_kept: usize,
}

impl Default for Config {
    /// The limits' own defaults, 10 MiB a message, 15 s, 4,096 changes.
    fn default() -> Self {
        Self {
            limits: InstanceLimits::default(),
            message: 10 << 20,
            heartbeat: Duration::from_secs(15),
            feed_kept: 4_096,
        }
    }
}
