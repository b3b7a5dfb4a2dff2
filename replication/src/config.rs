//! How the mesh behaves.

use std::time::Duration;

use crate::message::{NodeId, Rules};

/// The settings of a [`Mesh`](crate::Mesh).
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of the jitter of retries; `server` draws it from the operating system.
    pub seed: u64,
    /// This node, this boot.
    pub node: NodeId,
    /// The rules of this node's leases, to be compared with those of peers.
    pub rules: Rules,
    /// How long renewals alone wait for company, towards a peer of ours.
    pub linger: Duration,
    /// The same towards Java.
    pub linger_java: Duration,
    /// Most items in one batch to a Java server.
    pub batch_items_java: usize,
    /// Most bytes in one batch to a node of ours, estimated.
    pub batch_bytes: usize,
    /// Most instances in the queue of one peer.
    pub queue_limit: usize,
    /// Most items a second to one peer, repairs included.
    pub max_rate: u32,
    /// Time between two digests.
    pub digest_interval: Duration,
    /// How long reads are held when all peers answered and nobody had anything.
    pub settle: Duration,
    /// How long they are held at most, and when nobody could be asked.
    pub wait_when_empty: Duration,
    /// Time between two attempts to copy from a peer at start.
    pub retry_interval: Duration,
    /// Time between two resolutions of the peers' names.
    pub refresh_interval: Duration,
    /// A difference older than this is an alarm.
    pub diverged_bound: Duration,
    /// A peer not heard of in either direction for this long is an alarm.
    pub silence_bound: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 0,
            node: NodeId::default(),
            rules: Rules::default(),
            linger: Duration::from_millis(100),
            linger_java: Duration::from_millis(500),
            batch_items_java: 250,
            batch_bytes: 1 << 20,
            queue_limit: 100_000,
            max_rate: 20_000,
            digest_interval: Duration::from_secs(10),
            settle: Duration::from_secs(40),
            wait_when_empty: Duration::from_secs(300),
            retry_interval: Duration::from_secs(5),
            refresh_interval: Duration::from_secs(60),
            diverged_bound: Duration::from_secs(60),
            silence_bound: Duration::from_secs(90),
        }
    }
}
