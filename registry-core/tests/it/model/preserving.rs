//! Preservation counted from scratch each time.

use std::collections::{BTreeMap, BTreeSet};

use eureka_registry_core::{Heartbeats, InstanceKey, Measure, PreservationConfig};

use super::reference::{Held, Millis, Standing, length};

pub(super) struct Expected {
    config: PreservationConfig,
    /// Evicted since the last update and not seen again, with their zone.
    pub(super) evicted: BTreeMap<InstanceKey, String>,
    opened: Option<Millis>,
    next_update: Millis,
    clients: usize,
    beats: Vec<Millis>,
    preserving: bool,
}

impl Expected {
    pub(super) fn new(config: PreservationConfig) -> Self {
        Self {
            config,
            evicted: BTreeMap::new(),
            opened: None,
            next_update: 0,
            clients: config.initial_clients,
            beats: Vec::new(),
            preserving: false,
        }
    }

    pub(super) fn opened(&mut self, ticks: Millis, synced: usize) {
        self.opened = Some(ticks);
        self.next_update = ticks + length(self.config.update_interval);
        self.clients = if synced == 0 {
            self.config.initial_clients
        } else {
            synced
        };
    }

    pub(super) fn joined(&mut self, key: &InstanceKey) {
        self.evicted.remove(key);
        if self.clients > 0 {
            self.clients += 1;
        }
    }

    pub(super) fn left(&mut self) {
        self.clients = self.clients.saturating_sub(1);
    }

    pub(super) fn beat(&mut self, ticks: Millis) {
        self.beats.push(ticks);
    }

    pub(super) fn update_if_due(&mut self, ticks: Millis, up: usize) {
        if self.opened.is_some() && ticks >= self.next_update {
            self.next_update = ticks + length(self.config.update_interval);
            self.evicted.clear();
            if !self.config.enabled || up as f64 > self.clients as f64 * self.config.threshold {
                self.clients = up;
            }
        }
    }

    pub(super) fn heartbeats(&self, ticks: Millis) -> Heartbeats {
        let minute = |at: Millis| {
            self.opened
                .map_or(0, |opened| (at - opened).div_euclid(60_000).max(0))
        };
        let now = minute(ticks);
        let last_minute = self.beats.iter().filter(|at| minute(**at) == now - 1).count();
        let per_minute = 60.0 / self.config.renewal_interval.as_secs_f64();
        let threshold = (self.clients as f64 * per_minute * self.config.threshold).floor() as usize;
        Heartbeats {
            expected_clients: self.clients,
            threshold,
            last_minute,
            evicts: !self.config.enabled || threshold > 0 && last_minute > threshold,
        }
    }

    /// `on time, expected`, of those for which `counts` holds of application and zone.
    pub(super) fn share(
        &self,
        leases: &BTreeMap<InstanceKey, Held>,
        counts: impl Fn(&str, &str) -> bool,
    ) -> (usize, usize) {
        let held = leases
            .iter()
            .filter(|(key, held)| counts(key.app(), held.instance.zone().unwrap_or("")))
            .map(|(_, held)| held.standing);
        let (mut on_time, mut late) = (0, 0);
        for standing in held {
            match standing {
                Standing::OnTime => on_time += 1,
                Standing::Late { accepted: false } => late += 1,
                Standing::Late { accepted: true } | Standing::WrittenOff => {}
            }
        }
        let evicted = self.evicted.iter().filter(|(key, zone)| counts(key.app(), zone));
        (on_time, on_time + late + evicted.count())
    }

    /// Names of applications and zones of which something is expected.
    pub(super) fn groups(
        &self,
        leases: &BTreeMap<InstanceKey, Held>,
    ) -> (BTreeSet<String>, BTreeSet<String>) {
        let held = leases
            .iter()
            .map(|(key, held)| (key.app(), held.instance.zone().unwrap_or("")));
        let evicted = self.evicted.iter().map(|(key, zone)| (key.app(), zone.as_str()));
        let mut groups = (BTreeSet::new(), BTreeSet::new());
        for (app, zone) in held.chain(evicted) {
            if self.share(leases, |other, _| *other == **app).1 > 0 {
                groups.0.insert(String::from(&**app));
            }
            if self.share(leases, |_, other| other == zone).1 > 0 {
                groups.1.insert(String::from(zone));
            }
        }
        groups
    }

    pub(super) fn evicts(&self, ticks: Millis, leases: &BTreeMap<InstanceKey, Held>) -> bool {
        if self.config.measure == Measure::Heartbeats {
            return self.heartbeats(ticks).evicts;
        }
        let (on_time, expected) = self.share(leases, |_, _| true);
        let enough = on_time as f64 >= expected as f64 * self.config.threshold;
        !self.config.enabled || enough || expected - on_time <= self.config.tolerated_losses
    }

    pub(super) fn quota(&self, size: usize) -> usize {
        size - (size as f64 * self.config.threshold).floor() as usize
    }

    /// Whether this is news.
    pub(super) fn turned(&mut self, preserving: bool) -> bool {
        std::mem::replace(&mut self.preserving, preserving) != preserving
    }

    pub(super) fn gives_grace(&self) -> bool {
        self.config.measure == Measure::LeasesOnTime
    }
}
