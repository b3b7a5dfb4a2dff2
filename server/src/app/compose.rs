//! What the libraries are told of the configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use eureka_grpc_api as grpc_api;
use eureka_http_api as http_api;
use eureka_http_api::{RegionRules, RemoteRegion, RemoteRegions};
use eureka_registry_core as core;
use eureka_replication as replication;
use eureka_replication::driver::{self, Handle, Own, Sources};
use eureka_replication::resolve::Template;
use eureka_replication::{LinkState, NodeId, PeerFacts, Rules};

use super::own;
use crate::config::{Config, Limits, Peers, Preset, Settings};
use crate::telemetry;

/// The registry's settings: a preset's, and over them every key.
pub(super) fn registry(
    settings: &Settings,
    seed: [u64; 2],
    node: NodeId,
    address: SocketAddr,
) -> core::Config {
    let preset = match settings.compat.preset {
        Preset::None => core::Config::default(),
        Preset::EurekaJava => core::Config::eureka_java(),
        Preset::EurekaNetflix => core::Config::eureka_netflix(),
    };
    let (registry, preservation) = (&settings.registry, &settings.preservation);
    core::Config {
        seed,
        node: node.0[0],
        own_id: Some(own::key(settings, address).id().clone()),
        lease_expiry: registry.lease_expiry,
        silent_peer_hold: registry.silent_peer_hold,
        eviction_interval: registry.eviction_interval,
        called_every: Some(crate::evict::CALLED_EVERY),
        delta_retention: registry.delta_retention,
        preservation: core::PreservationConfig {
            enabled: preservation.enabled,
            measure: preservation.measure,
            threshold: preservation.threshold,
            update_interval: preservation.update_interval,
            tolerated_losses: preservation.tolerated_losses,
            renewal_interval: registry.renewal_interval,
            ..preset.preservation
        },
        override_retention: settings.overrides.retention,
        change_log_limit: settings.limits.changes,
        change_log_bytes: settings.limits.history,
        // A node that missed a cancel must still hear of it in a comparison.
        tombstone_retention: preset
            .tombstone_retention
            .max(2 * settings.replication.digest_interval),
        ..preset
    }
}

/// The mesh's.
pub(super) fn mesh(settings: &Settings, seed: u64, node: NodeId) -> replication::Config {
    let (replication, bootstrap) = (&settings.replication, &settings.bootstrap);
    let expiry = match settings.registry.lease_expiry {
        core::LeaseExpiry::Exact => "exact",
        core::LeaseExpiry::Doubled => "doubled",
    };
    replication::Config {
        seed,
        node,
        rules: Rules {
            lease_expiry: Arc::from(expiry),
            eviction_interval: settings.registry.eviction_interval,
            preservation: settings.preservation.enabled,
        },
        linger: replication.linger,
        queue_limit: replication.queue_limit,
        max_rate: replication.max_rate,
        digest_interval: replication.digest_interval,
        settle: bootstrap.settle.min(bootstrap.wait_when_empty),
        wait_when_empty: bootstrap.wait_when_empty,
        retry_interval: bootstrap.retry_interval,
        refresh_interval: settings.peers.refresh_interval,
        ..replication::Config::default()
    }
}

/// Where the peers are, and how this node is found among them.
pub(super) fn sources(settings: &Settings, address: SocketAddr) -> Sources {
    let is_java = settings.compat.preset != Preset::None;
    let own = Own {
        hosts: own_hosts(settings, address),
        port: address.port(),
        host_only: is_java,
    };
    let Peers { urls, dns, .. } = settings.peers.clone();
    Sources::new(urls, dns, Template::default(), own).expect("the keys take no address that it refuses")
}

/// Under which names this node may be listed among its own peers.
fn own_hosts(settings: &Settings, address: SocketAddr) -> Vec<String> {
    let mut hosts = vec![settings.server.hostname.clone()];
    // Java knows itself by its name alone.
    if settings.compat.preset != Preset::None {
        return hosts;
    }
    hosts.push(own::ip(address).to_string());
    // Another loopback address is another node, perhaps.
    let local = [
        IpAddr::from(Ipv4Addr::LOCALHOST),
        IpAddr::from(Ipv6Addr::LOCALHOST),
    ];
    if address.ip().is_unspecified() || local.contains(&address.ip()) {
        hosts.push("localhost".to_owned());
    }
    if address.ip().is_unspecified() {
        hosts.extend(local.map(|address| address.to_string()));
    }
    hosts
}

/// The driver's.
pub(super) fn driver(settings: &Settings, address: SocketAddr) -> driver::Settings {
    driver::Settings {
        address: Arc::from(own::ip(address).to_string()),
        request_timeout: settings.replication.request_timeout,
        ..driver::Settings::default()
    }
}

/// The API's.
pub(super) fn api(
    config: &Config,
    rules: &core::Config,
    mesh: &Handle,
    address: SocketAddr,
    regions: Option<RemoteRegions>,
) -> http_api::Config {
    let settings = &config.settings;
    let node_id = mesh.node().to_string();
    let preset = match settings.compat.preset {
        Preset::None => http_api::Config::new(&node_id),
        Preset::EurekaJava => http_api::Config::eureka_java(&node_id),
        Preset::EurekaNetflix => http_api::Config::eureka_netflix(&node_id),
    };
    let limiter = &settings.limits.rate_limiter;
    let mut privileged = preset.rate_limits.privileged.clone();
    privileged.extend(limiter.privileged_clients.iter().cloned());
    http_api::Config {
        version: Arc::from(env!("CARGO_PKG_VERSION")),
        summary: config.summary(),
        own: settings.server.register.then(|| own::key(settings, address)),
        facts: {
            let mesh = mesh.clone();
            Arc::new(move || facts(&mesh))
        },
        limits: limits(&settings.limits),
        gzip_level: settings.responses.gzip_level,
        update_interval: settings.responses.update_interval,
        rate_limits: http_api::RateLimits {
            enabled: limiter.enabled,
            throttle_standard_clients: limiter.throttle_standard_clients,
            burst: limiter.burst,
            registry_fetches: limiter.fetch_rate,
            full_fetches: limiter.full_fetch_rate,
            privileged,
        },
        java_errors: settings.compat.java_errors,
        operator: settings.console.actions,
        // Answered 404 by the server itself while no peers are configured: SIGHUP may bring some.
        repair: true,
        regions,
        rules: http_api::Rules::from(rules),
        ..preset
    }
}

/// The other regions, if any are configured.
pub(super) fn regions(settings: &Settings) -> Option<RemoteRegions> {
    let regions = &settings.regions;
    if regions.servers.is_empty() {
        return None;
    }
    let remote = regions.servers.keys().map(|name| RemoteRegion {
        name: name.as_str().into(),
        applications: regions
            .applications_of(name)
            .map(|names| names.iter().map(|name| name.as_str().into()).collect()),
    });
    let rules = RegionRules {
        fallback: regions.fallback,
        wait: regions.wait,
        wait_for_all: settings.compat.preset != Preset::None,
        delta_retention: settings.registry.delta_retention,
    };
    Some(RemoteRegions::new(remote, rules).expect("the keys take no regions that it refuses"))
}

/// gRPC's.
pub(super) fn grpc(limits: &Limits) -> grpc_api::Config {
    grpc_api::Config {
        limits: core::InstanceLimits {
            metadata: limits.metadata,
            text: limits.url,
        },
        message: limits.body,
        ..grpc_api::Config::default()
    }
}

fn limits(limits: &Limits) -> http_api::Limits {
    http_api::Limits {
        body: limits.body,
        batch: limits.batch,
        buffered: limits.bodies,
        metadata: limits.metadata,
        url: limits.url,
        encoded: limits.encoded,
    }
}

fn facts(mesh: &Handle) -> http_api::Facts {
    let memory = telemetry::memory();
    let peers = mesh.facts().peers;
    let url = |peer: &PeerFacts| peer.peer.0.to_string();
    let is_up = |peer: &&PeerFacts| peer.state == LinkState::Up;
    http_api::Facts {
        replicas: peers.iter().map(url).collect(),
        available: peers.iter().filter(is_up).map(url).collect(),
        unavailable: peers.iter().filter(|peer| !is_up(peer)).map(url).collect(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        memory_total: memory.total,
        memory_used: memory.used,
        ..http_api::Facts::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, Sources};

    #[test]
    fn limits_on_memory_are_those_of_the_configuration() {
        let flag = |key: &str, value: &str| ("--set", key.to_owned(), value.to_owned());
        let sources = Sources {
            flags: vec![flag("limits.bodies", "1GiB"), flag("limits.encoded", "8MiB")],
            ..Sources::default()
        };
        let config = Config::load(&sources).expect("a configuration that is right");
        let limits = super::limits(&config.settings.limits);
        assert_eq!((limits.buffered, limits.encoded), (1 << 30, 8 << 20));
    }

    #[test]
    fn a_node_on_another_loopback_address_is_another_node() {
        let config = Config::load(&Sources::default()).expect("a configuration that is right");
        let is_own = |listen: &str, host: &str| {
            let address = listen.parse().expect("an address");
            super::own_hosts(&config.settings, address)
                .iter()
                .any(|own| own == host)
        };
        assert!(is_own("127.0.0.1:1", "127.0.0.1") && is_own("127.0.0.1:1", "localhost"));
        assert!(is_own("0.0.0.0:1", "::1") && is_own("0.0.0.0:1", "localhost"));
        assert!(is_own("127.0.0.2:1", "127.0.0.2"));
        assert!(!is_own("127.0.0.2:1", "127.0.0.1") && !is_own("127.0.0.2:1", "localhost"));
    }
}
