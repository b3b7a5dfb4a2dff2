//! The configuration as the program uses it: typed, complete, one struct a section.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use eureka_client::Server as RegionServer;
use eureka_registry_core::{LeaseExpiry, Measure};
use eureka_replication::PeerAddress;
use eureka_replication::resolve::DnsSource;
use tracing::Level;

use super::{Mistake, Source};

/// All sections. The default is blank: [`Config::load`](super::Config::load) fills it from the table of keys.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `compat.*`
    pub compat: Compat,
    /// `server.*`
    pub server: Server,
    /// `grpc.*`
    pub grpc: Grpc,
    /// `registry.*`
    pub registry: Registry,
    /// `preservation.*`
    pub preservation: Preservation,
    /// `responses.*`
    pub responses: Responses,
    /// `bootstrap.*`
    pub bootstrap: Bootstrap,
    /// `peers.*`
    pub peers: Peers,
    /// `replication.*`
    pub replication: Replication,
    /// `regions.*`
    pub regions: Regions,
    /// `overrides.*`
    pub overrides: Overrides,
    /// `limits.*`
    pub limits: Limits,
    /// `metrics.*`
    pub metrics: Metrics,
    /// `log.*`
    pub log: Log,
    /// `console.*`
    pub console: Console,
}

/// How closely to follow Java.
#[derive(Clone, Debug, Default)]
pub struct Compat {
    /// Whose defaults to take.
    pub preset: Preset,
    /// Answer bad input as Java does, with 500.
    pub java_errors: bool,
}

/// A set of defaults.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Preset {
    /// Ours.
    #[default]
    None,
    /// Spring Cloud Netflix.
    EurekaJava,
    /// Netflix's own server.
    EurekaNetflix,
}

impl Preset {
    /// Their names, as `compat.preset` takes them.
    pub const NAMES: [&str; 3] = ["none", "eureka-java", "eureka-netflix"];

    /// The preset of this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "eureka-java" => Some(Self::EurekaJava),
            "eureka-netflix" => Some(Self::EurekaNetflix),
            _ => None,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The node itself.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where the API, the page, the metrics and the health checks are served.
    pub listen: SocketAddr,
    /// The node's name as clients reach it.
    pub hostname: String,
    /// How long requests under way may take to end when the node is told to stop.
    pub drain_timeout: Duration,
    /// Id of the node's own instance.
    pub instance_id: String,
    /// Whether the node registers itself.
    pub register: bool,
    /// Application of the node's own instance.
    pub app_name: String,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            hostname: String::new(),
            drain_timeout: Duration::ZERO,
            instance_id: String::new(),
            register: false,
            app_name: String::new(),
        }
    }
}

/// gRPC.
#[derive(Clone, Debug, Default)]
pub struct Grpc {
    /// Whether it is served.
    pub enabled: bool,
    /// Where, if somebody said so; otherwise see [`Settings::grpc_address`].
    pub given: Option<SocketAddr>,
}

/// Leases and deltas.
#[derive(Clone, Debug)]
pub struct Registry {
    /// When a renewed lease expires.
    pub lease_expiry: LeaseExpiry,
    /// Time between two eviction runs.
    pub eviction_interval: Duration,
    /// How long a change stays in the delta.
    pub delta_retention: Duration,
    /// The interval at which clients are expected to renew.
    pub renewal_interval: Duration,
    /// How much longer a lease is kept that was heard of through a peer that cannot be reached, in lease durations.
    pub silent_peer_hold: u32,
}

impl Default for Registry {
    fn default() -> Self {
        Self {
            lease_expiry: LeaseExpiry::Exact,
            eviction_interval: Duration::ZERO,
            delta_retention: Duration::ZERO,
            renewal_interval: Duration::ZERO,
            silent_peer_hold: 0,
        }
    }
}

/// When nobody is evicted.
#[derive(Clone, Debug)]
pub struct Preservation {
    /// Whether it is on.
    pub enabled: bool,
    /// How it is measured.
    pub measure: Measure,
    /// Share below which nobody is evicted.
    pub threshold: f64,
    /// Time between two updates of what is expected.
    pub update_interval: Duration,
    /// This many missing leases never start it.
    pub tolerated_losses: usize,
}

impl Default for Preservation {
    fn default() -> Self {
        Self {
            enabled: false,
            measure: Measure::LeasesOnTime,
            threshold: 0.0,
            update_interval: Duration::ZERO,
            tolerated_losses: 0,
        }
    }
}

/// Lists.
#[derive(Clone, Debug, Default)]
pub struct Responses {
    /// How old a list may be; zero: always current.
    pub update_interval: Duration,
    /// Effort of compression.
    pub gzip_level: u32,
}

/// What happens before lists are served.
#[derive(Clone, Debug, Default)]
pub struct Bootstrap {
    /// Hold reads after an empty start also when no peers are configured.
    pub hold_alone: bool,
    /// How long reads are held after an empty start at most.
    pub wait_when_empty: Duration,
    /// How long reads are held at least when all peers answered and none had anything.
    pub settle: Duration,
    /// Time between two attempts to copy from a peer.
    pub retry_interval: Duration,
}

/// The other nodes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Peers {
    /// Base URLs, each once.
    pub urls: Vec<PeerAddress>,
    /// Names behind which others are found.
    pub dns: Vec<DnsSource>,
    /// Time between two resolutions of the names.
    pub refresh_interval: Duration,
}

impl Peers {
    /// Whether none are configured: the node stands alone.
    pub fn is_empty(&self) -> bool {
        self.urls.is_empty() && self.dns.is_empty()
    }
}

/// What is sent to peers.
#[derive(Clone, Debug, Default)]
pub struct Replication {
    /// How long renewals alone wait for company.
    pub linger: Duration,
    /// Time a peer has to answer.
    pub request_timeout: Duration,
    /// Time between two comparisons.
    pub digest_interval: Duration,
    /// Instances waiting to be sent to one peer.
    pub queue_limit: usize,
    /// Items a second to one peer.
    pub max_rate: u32,
}

/// Other regions.
#[derive(Clone, Debug, Default)]
pub struct Regions {
    /// Names and servers.
    pub servers: BTreeMap<String, Vec<RegionServer>>,
    /// The applications that are taken of a region; `*` stands for regions that are not here. Without that, all.
    pub applications: BTreeMap<String, BTreeSet<String>>,
    /// Whether readers who name no region are shown all.
    pub fallback: bool,
    /// Time between two reads of a server without a change feed.
    pub fetch_interval: Duration,
    /// How long after the start readers who name a region that has not been read are refused; `None`: until it is read.
    pub wait: Option<Duration>,
}

impl Regions {
    /// The applications that are taken of a region; all of them for `None`.
    pub fn applications_of(&self, region: &str) -> Option<&BTreeSet<String>> {
        let own = self.applications.get(region);
        own.or_else(|| self.applications.get(Self::OTHERS))
    }

    /// Stands for regions without a list of their own.
    pub const OTHERS: &'static str = "*";
}

/// Status overrides.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// How long the override of an evicted instance is kept.
    pub retention: Duration,
}

/// What a client may cost.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Bytes of a request body.
    pub body: usize,
    /// Bytes of a replication batch.
    pub batch: usize,
    /// Bytes of all request bodies being received.
    pub bodies: usize,
    /// Bytes of encoded lists kept for the next reader.
    pub encoded: usize,
    /// Bytes of an instance's metadata.
    pub metadata: usize,
    /// Bytes of a URL.
    pub url: usize,
    /// Bytes of a request head.
    pub headers: usize,
    /// Time for a request head.
    pub header_timeout: Duration,
    /// Time for a request with a body.
    pub body_timeout: Duration,
    /// Time a connection may rest between requests.
    pub idle_timeout: Duration,
    /// Time a reader may leave an answer unread.
    pub write_timeout: Duration,
    /// Open connections.
    pub connections: usize,
    /// Requests at a time on one HTTP/2 connection.
    pub streams: u32,
    /// Requests that stay, such as watches, at a time.
    pub watchers: usize,
    /// Changes kept.
    pub changes: usize,
    /// Bytes of the changes kept.
    pub history: usize,
    /// Requests under way at which shedding is complete.
    pub requests: usize,
    /// Scheduling delay at which shedding begins.
    pub lag: Duration,
    /// `limits.rate-limiter.*`
    pub rate_limiter: RateLimiter,
}

/// Java's rate limiter for lists.
#[derive(Clone, Debug, Default)]
pub struct RateLimiter {
    /// Whether requests over the rate are refused.
    pub enabled: bool,
    /// Requests at once.
    pub burst: u32,
    /// Lists a second.
    pub fetch_rate: u32,
    /// Full lists a second.
    pub full_fetch_rate: u32,
    /// Whether Eureka's standard clients are limited too.
    pub throttle_standard_clients: bool,
    /// Names of clients that are never limited.
    pub privileged_clients: Vec<String>,
}

/// `/metrics`.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Whether it is served.
    pub enabled: bool,
}

/// The log on standard error.
#[derive(Clone, Debug)]
pub struct Log {
    /// The least important level shown.
    pub level: Level,
    /// How lines look.
    pub format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: Level::INFO,
            format: LogFormat::Text,
        }
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The page at `/`.
#[derive(Clone, Debug, Default)]
pub struct Console {
    /// Whether it is served.
    pub enabled: bool,
    /// Whether operators' actions are allowed without authentication.
    pub actions: bool,
}

/// The port of gRPC when nobody says otherwise.
const GRPC_PORT: u16 = 9761;

impl Settings {
    /// Where gRPC is to be served: as was said, or on a port of its own beside `server.listen`.
    pub fn grpc_address(&self) -> SocketAddr {
        let mut beside = self.server.listen;
        if beside.port() != 0 {
            beside.set_port(GRPC_PORT);
        }
        self.grpc.given.unwrap_or(beside)
    }

    /// Whether REST and gRPC share a port.
    pub fn shares_port(&self) -> bool {
        self.grpc.enabled && self.grpc.given == Some(self.server.listen)
    }

    /// What no key alone can know to be wrong.
    pub(super) fn contradictions(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        if self.limits.bodies < self.limits.batch.max(self.limits.body) {
            mistakes.push(Mistake {
                source: Source::Derived,
                message: "limits.bodies: must not be less than limits.body and limits.batch, or no such request would fit"
                    .to_owned(),
            });
        }
        let regions = &self.regions;
        for region in regions.applications.keys() {
            if region != Regions::OTHERS && !regions.servers.contains_key(region) {
                mistakes.push(Mistake {
                    source: Source::Derived,
                    message: format!("regions.applications: there is no region {region:?} in regions.urls"),
                });
            }
        }
        mistakes
    }

    /// Fills in what was left blank, and reports it to `derived` by key.
    pub(super) fn derive(&mut self, mut derived: impl FnMut(&'static str, &str)) {
        if self.grpc.given.is_none() {
            derived("grpc.listen", &self.grpc_address().to_string());
        }
        let server = &mut self.server;
        if server.hostname.is_empty() {
            server.hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
            derived("server.hostname", &server.hostname);
        }
        // With port 0 the id waits for the port that is bound.
        if server.instance_id.is_empty() && server.listen.port() != 0 {
            server.instance_id = format!("{}:{}:{}", server.hostname, server.app_name, server.listen.port());
            derived("server.instance-id", &server.instance_id);
        }
    }
}
