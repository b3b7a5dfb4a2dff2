//! What the libraries are told of the configuration.

use std::net::SocketAddr;
use std::sync::Arc;

use eureka_http_api as http_api;
use eureka_registry_core as core;

use super::own;
use crate::config::{Config, Preset, Settings};
use crate::telemetry;

/// The registry's settings: a preset's, and over them every key.
pub(super) fn registry(settings: &Settings, seed: [u64; 2], address: SocketAddr) -> core::Config {
    let preset = match settings.compat.preset {
        Preset::None => core::Config::default(),
        Preset::EurekaJava => core::Config::eureka_java(),
        Preset::EurekaNetflix => core::Config::eureka_netflix(),
    };
    let (registry, preservation) = (&settings.registry, &settings.preservation);
    core::Config {
        seed,
        own_id: Some(Arc::from(own::id(settings, address))),
        lease_expiry: registry.lease_expiry,
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
        ..preset
    }
}

/// The API's settings, likewise.
pub(super) fn api(config: &Config, [high, low]: [u64; 2]) -> http_api::Config {
    let settings = &config.settings;
    let node_id = format!("{high:016x}{low:016x}");
    let preset = match settings.compat.preset {
        Preset::None => http_api::Config::new(&node_id),
        Preset::EurekaJava => http_api::Config::eureka_java(&node_id),
        Preset::EurekaNetflix => http_api::Config::eureka_netflix(&node_id),
    };
    let (limits, limiter) = (&settings.limits, &settings.limits.rate_limiter);
    let mut privileged = preset.rate_limits.privileged.clone();
    privileged.extend(limiter.privileged_clients.iter().cloned());
    http_api::Config {
        version: Arc::from(env!("CARGO_PKG_VERSION")),
        summary: config.summary(),
        facts: Arc::new(facts),
        limits: http_api::Limits {
            body: limits.body,
            batch: limits.batch,
            buffered: limits.bodies,
            metadata: limits.metadata,
            url: limits.url,
            encoded: limits.encoded,
        },
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
        ..preset
    }
}

fn facts() -> http_api::Facts {
    let memory = telemetry::memory();
    http_api::Facts {
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
        let limits = super::api(&config, [0, 0]).limits;
        assert_eq!((limits.buffered, limits.encoded), (1 << 30, 8 << 20));
    }
}
