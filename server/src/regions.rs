//! Other regions: who reads them, and what the server shows of that.

mod reader;
mod sent;

use std::sync::Arc;

use eureka_client::Pool;
use eureka_http_api::{RegionFacts, RemoteRegions};
use eureka_registry_core::Clock;
use metrics::{counter, gauge};

use self::reader::Reader;
use crate::config;

/// The regions beside the node's own.
#[derive(Clone)]
pub(crate) struct Regions {
    /// What lists show of them; `None` if none are configured.
    shown: Option<RemoteRegions>,
    clock: Arc<dyn Clock>,
}

impl Regions {
    pub(crate) fn new(shown: Option<RemoteRegions>, clock: Arc<dyn Clock>) -> Self {
        Self { shown, clock }
    }

    /// What lists show of them.
    pub(crate) fn shown(&self) -> Option<&RemoteRegions> {
        self.shown.as_ref()
    }

    /// What is known of each.
    pub(crate) fn facts(&self) -> Vec<RegionFacts> {
        self.shown.as_ref().map(RemoteRegions::facts).unwrap_or_default()
    }

    /// One reader for each.
    pub(crate) fn readers<'a>(&'a self, settings: &'a config::Regions) -> impl Iterator<Item = Reader> + 'a {
        let pool = self.shown.as_ref().map(|_| reader::pool());
        self.shown.iter().flat_map(move |shown| {
            let pool: Pool = pool.clone().unwrap_or_else(reader::pool);
            settings.servers.iter().map(move |(name, servers)| {
                Reader::new(
                    name,
                    servers,
                    settings.fetch_interval,
                    shown.clone(),
                    pool.clone(),
                    Arc::clone(&self.clock),
                )
            })
        })
    }

    /// Takes over what metrics show.
    pub(crate) fn scrape(&self) {
        let now = self.clock.now();
        for region in self.facts() {
            let name = region.name.to_string();
            let age = region.read.map_or(f64::NAN, |read| {
                now.mono.0.saturating_sub(read.mono.0) as f64 / 1000.0
            });
            gauge!("eureka_region_age_seconds", "region" => name.clone()).set(age);
            gauge!("eureka_region_instances", "region" => name.clone()).set(region.instances as f64);
            for (result, count) in [("success", region.successes), ("failure", region.failures)] {
                counter!("eureka_region_reads_total", "region" => name.clone(), "result" => result)
                    .absolute(count);
            }
        }
    }
}

impl std::fmt::Debug for Regions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Regions")
            .field("shown", &self.shown)
            .finish_non_exhaustive()
    }
}
