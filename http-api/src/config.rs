//! How the API behaves: limits, compression, and Java's ways, one switch each.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::wire::Dialect;
use eureka_registry_core::{InstanceKey, InstanceLimits, LeaseExpiry};

use crate::regions::RemoteRegions;

/// The settings of an [`Api`](crate::Api).
#[derive(Clone)]
pub struct Config {
    /// Random name of this boot of the node: part of every `ETag`, shown at `/api/v1/node`, and told in `x-eureka-node` to
    /// nodes of ours, for which it must be visible ASCII.
    pub node_id: Arc<str>,
    /// Version of the software, shown at `/api/v1/node`.
    pub version: Arc<str>,
    /// Settings shown at `/api/v1/node`, in this order. Whoever fills it leaves secrets out.
    pub summary: Vec<(String, String)>,
    /// The node's own instance, if it registers itself: shown at `/status`.
    pub own: Option<InstanceKey>,
    /// What the process knows about itself, asked for `/status`.
    pub facts: Arc<dyn Fn() -> Facts + Send + Sync>,
    /// What a request may ask of the node.
    pub limits: Limits,
    /// Which answers are compressed.
    pub gzip: Gzip,
    /// How OPTIONS is answered and what `Allow` says.
    pub allow: Allow,
    /// The last changes that are kept encoded for all who follow the feed.
    pub feed_kept: usize,
    /// Level of compression, 0 (none) to 9.
    pub gzip_level: u32,
    /// How long lists may lag behind the registry; zero: not at all. Java: 30 s, at multiples of the wall clock.
    pub update_interval: Duration,
    /// Java's rate limiter for reads of the registry.
    pub rate_limits: RateLimits,
    /// Whose rules bodies are read by.
    pub dialect: Dialect,
    /// Answers 500 where Java does (after doing the half that Java does) instead of 400, with Java's texts only.
    pub java_errors: bool,
    /// Shows `OUT_OF_SERVICE` and `UNKNOWN` as `DOWN` in the XML of single instances, as Java does.
    pub masked_status: bool,
    /// Answers 304 to `If-None-Match`; Java never does.
    pub conditional: bool,
    /// Serves `serverinfo/statusoverrides`; Spring does not.
    pub status_overrides: bool,
    /// Says in compact lists whether they are empty, as eureka 2.0.6 does.
    pub tell_empty: bool,
    /// Allows `POST /api/v1/preservation/accept`.
    pub operator: bool,
    /// Serves `/api/v1/repair/...`, for peers of our kind.
    pub repair: bool,
    /// Other regions, if lists are to show them.
    pub regions: Option<RemoteRegions>,
    /// The rules of the registry, told to peers at `/api/v1/node`.
    pub rules: Rules,
}

/// Lease rules that must be the same on all nodes: where they differ, some evict what others hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    /// When a lease runs out.
    pub lease_expiry: LeaseExpiry,
    /// Time between two eviction runs.
    pub eviction_interval: Duration,
    /// Whether evictions stop when too many are missing.
    pub preservation: bool,
}

/// What a request may ask of the node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Bytes of a body, also after decompression (413).
    pub body: usize,
    /// Bytes of the body of a batch, also after decompression (413).
    pub batch: usize,
    /// Bytes of bodies on their way in, of all requests together (503).
    pub buffered: usize,
    /// Bytes of all metadata keys and values of an instance that a client registers, its Amazon machine's included (413).
    pub metadata: usize,
    /// Bytes of path and query (414), and of any one text of an instance that a client registers (413).
    pub url: usize,
    /// Bytes of encoded answers that are kept for the next reader; beyond that answers are encoded for each reader.
    pub encoded: usize,
}

/// Which answers are compressed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Gzip {
    /// Every list, application and instance, when the client accepts it.
    Asked,
    /// As Spring: `apps` and `apps/delta`, when `Accept-Encoding` contains the word `gzip`.
    Lists,
    /// As Netflix: everything when it contains the word; below `apps` also when there is no `Accept-Encoding`, and 406
    /// when there is one without the word.
    Enforced,
}

/// How OPTIONS is answered and what `Allow` says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Allow {
    /// OPTIONS is 200; `Allow` names every method that is served.
    Full,
    /// As Spring: a 405 does not name HEAD.
    Spring,
    /// As Netflix: OPTIONS is 204.
    Netflix,
}

/// Java's rate limiter: two token buckets for GET of `apps`, `apps/delta` and `apps/{app}`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RateLimits {
    /// Off: what would have been refused is counted.
    pub enabled: bool,
    /// Also limits clients with a privileged name.
    pub throttle_standard_clients: bool,
    /// Requests that may come at once.
    pub burst: u32,
    /// Requests per second, of all three kinds.
    pub registry_fetches: u32,
    /// Full fetches per second.
    pub full_fetches: u32,
    /// Values of `DiscoveryIdentity-Name` that are not limited.
    pub privileged: BTreeSet<String>,
}

/// What the process knows about itself.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Facts {
    /// CPUs it may use.
    pub cpus: usize,
    /// Bytes of memory it may use.
    pub memory_total: u64,
    /// Bytes of memory it uses.
    pub memory_used: u64,
    /// URLs of its peers.
    pub replicas: Vec<String>,
    /// Those of them that are there.
    pub available: Vec<String>,
    /// The others.
    pub unavailable: Vec<String>,
    /// Whether enough are there, if anybody asked for a number.
    pub healthy: Option<bool>,
}

impl Config {
    /// Our own ways, for a node with this id.
    pub fn new(node_id: &str) -> Self {
        Self {
            node_id: Arc::from(node_id),
            version: Arc::from(env!("CARGO_PKG_VERSION")),
            summary: Vec::new(),
            own: None,
            facts: Arc::new(Facts::default),
            limits: Limits::default(),
            gzip: Gzip::Asked,
            allow: Allow::Full,
            feed_kept: 4096,
            gzip_level: 5,
            update_interval: Duration::ZERO,
            rate_limits: RateLimits::default(),
            dialect: Dialect::Lenient,
            java_errors: false,
            masked_status: false,
            conditional: true,
            status_overrides: true,
            tell_empty: false,
            operator: false,
            repair: false,
            regions: None,
            rules: Rules::from(&eureka_registry_core::Config::default()),
        }
    }

    /// Spring Cloud Netflix 5.0.3 as measured.
    pub fn eureka_java(node_id: &str) -> Self {
        Self {
            gzip: Gzip::Lists,
            allow: Allow::Spring,
            update_interval: Duration::from_secs(30),
            dialect: Dialect::Java,
            java_errors: true,
            masked_status: true,
            conditional: false,
            status_overrides: false,
            tell_empty: true,
            ..Self::new(node_id)
        }
    }

    /// Netflix's own server.
    pub fn eureka_netflix(node_id: &str) -> Self {
        Self {
            gzip: Gzip::Enforced,
            allow: Allow::Netflix,
            tell_empty: false,
            ..Self::eureka_java(node_id)
        }
    }
}

impl Limits {
    /// What a client may register.
    pub(crate) fn of_instances(self) -> InstanceLimits {
        InstanceLimits {
            metadata: self.metadata,
            text: self.url,
        }
    }
}

impl From<&eureka_registry_core::Config> for Rules {
    fn from(config: &eureka_registry_core::Config) -> Self {
        Self {
            lease_expiry: config.lease_expiry,
            eviction_interval: config.eviction_interval,
            preservation: config.preservation.enabled,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("node_id", &self.node_id)
            .field("limits", &self.limits)
            .field("gzip", &self.gzip)
            .field("update_interval", &self.update_interval)
            .field("dialect", &self.dialect)
            .field("java_errors", &self.java_errors)
            .finish_non_exhaustive()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 10 << 20,
            batch: 64 << 20,
            buffered: 512 << 20,
            metadata: 64 << 10,
            url: 8 << 10,
            encoded: 512 << 20,
        }
    }
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            enabled: false,
            throttle_standard_clients: false,
            burst: 10,
            registry_fetches: 500,
            full_fetches: 100,
            privileged: ["DefaultClient", "DefaultServer"].map(String::from).into(),
        }
    }
}
