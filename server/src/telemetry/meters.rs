//! Metrics: what the server counts itself, and what it reads off the registry when somebody asks.

use std::sync::atomic::Ordering;
use std::time::Duration;

use eureka_http_api::{BATCH_SIZE, Class};
use eureka_registry_core::{Reads, RegistryHandle, Status};
use metrics::{Counter, Gauge, counter, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use super::durations::{self, Durations};
use super::process;
use crate::clock;
use crate::http::Pressure;

/// Bounds of the buckets of batch sizes, in items; a Java peer sends at most 250.
const BATCH_BUCKETS: [f64; 7] = [1.0, 5.0, 25.0, 100.0, 250.0, 1_000.0, 10_000.0];

/// Collects the metrics of this process.
#[derive(Clone)]
pub struct Recorder {
    handle: PrometheusHandle,
}

impl Recorder {
    /// Takes over the metrics of this process. Once per process, before anything is counted.
    pub fn install() -> Result<Self, BuildError> {
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Full(BATCH_SIZE.into()), &BATCH_BUCKETS)?
            .install_recorder()?;
        Ok(Self { handle })
    }

    /// Folds what was measured into the buckets; without it measurements pile up while nobody scrapes.
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// Everything, as Prometheus text.
    pub fn render(&self) -> String {
        self.handle.render()
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

/// Why a connection was closed by the node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Closed {
    /// There were too many.
    Limit,
    /// No first bytes, or no complete head, in time.
    Head,
    /// At rest for too long.
    Idle,
    /// Its reader was too slow.
    Unread,
}

/// Handles of what the server counts; the names are documented in docs/operating.md.
pub struct Meters {
    durations: [Durations; CLASSES.len()],
    shed: [Counter; CLASSES.len()],
    /// Panics caught.
    pub(crate) panics: Counter,
    /// Requests whose body did not come in time.
    pub(crate) body_timeouts: Counter,
    /// Requests whose body would have been too much at once.
    pub(crate) bodies_refused: Counter,
    /// Streams that would have kept too much together.
    pub(crate) streams_refused: Counter,
    /// Requests that would have been too many that stay.
    pub(crate) watchers_refused: Counter,
    /// Connections accepted.
    pub(crate) connections: Counter,
    closed: [Counter; 4],
    /// Errors in accepting a connection.
    pub(crate) accept_errors: Counter,
    /// Leases that became late.
    pub(crate) late: Counter,
    /// Times that preservation began.
    pub(crate) preservations: Counter,
    /// Events that were not logged because the log was behind.
    pub(crate) events_unlogged: Counter,
    scraped: Scraped,
}

/// The classes of requests with their names in metrics.
const CLASSES: [(Class, &str); 7] = [
    (Class::FullFetch, "full_fetch"),
    (Class::Read, "read"),
    (Class::Watch, "watch"),
    (Class::Registration, "registration"),
    (Class::Renewal, "renewal"),
    (Class::Peer, "peer"),
    (Class::Other, "other"),
];

/// Values that are read when somebody asks.
struct Scraped {
    open_connections: Gauge,
    requests_under_way: Gauge,
    requests_that_stay: Gauge,
    stream_bytes: Gauge,
    lag: Gauge,
    instances: [Gauge; Status::ALL.len()],
    applications: Gauge,
    registrations: Counter,
    renewals: Counter,
    renewals_missing: Counter,
    renewals_ignored: Counter,
    refused: Counter,
    cancels: Counter,
    evictions: Counter,
    overrides: Gauge,
    tombstones: Gauge,
    forgotten: Counter,
    changes: Gauge,
    change_bytes: Gauge,
    delta: Gauge,
    version: Gauge,
    reads_held: Gauge,
    preserving: Gauge,
    leases_expected: Gauge,
    leases_on_time: Gauge,
    leases_overdue: Gauge,
    heartbeats: Gauge,
    heartbeats_threshold: Gauge,
    lines_lost: Counter,
    resident: Gauge,
    files: Gauge,
    processor: Gauge,
}

impl Meters {
    /// Takes the handles; a [`Recorder`] must be installed before, or nothing is counted.
    pub fn new() -> Self {
        describe();
        gauge!("eureka_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1);
        gauge!("process_start_time_seconds").set(clock::since_epoch().as_secs_f64());
        Self {
            durations: CLASSES.map(|_| Durations::default()),
            shed: CLASSES.map(|(_, name)| counter!("eureka_requests_shed_total", "class" => name)),
            panics: counter!("eureka_panics_total"),
            body_timeouts: counter!("eureka_body_timeouts_total"),
            bodies_refused: counter!("eureka_bodies_refused_total"),
            streams_refused: counter!("eureka_streams_refused_total"),
            watchers_refused: counter!("eureka_watchers_refused_total"),
            connections: counter!("eureka_connections_total"),
            closed: ["limit", "head", "idle", "unread"]
                .map(|reason| counter!("eureka_connections_closed_total", "reason" => reason)),
            accept_errors: counter!("eureka_accept_errors_total"),
            late: counter!("eureka_leases_late_total"),
            preservations: counter!("eureka_preservations_total"),
            events_unlogged: counter!("eureka_events_unlogged_total"),
            scraped: Scraped::new(),
        }
    }

    /// A request of this class was answered.
    pub(crate) fn answered(&self, class: Class, took: Duration) {
        self.durations[class as usize].add(took);
    }

    /// Appends how long the answers took, as Prometheus text.
    pub(crate) fn write_durations(&self, out: &mut String) {
        let names = CLASSES.iter().map(|(_, name)| *name);
        durations::write(names.zip(&self.durations), out);
    }

    /// A request of this class was refused because there was too much to do.
    pub(crate) fn shed(&self, class: Class) {
        self.shed[class as usize].increment(1);
    }

    /// The node closed a connection.
    pub(crate) fn closed(&self, reason: Closed) {
        self.closed[reason as usize].increment(1);
    }

    /// Reads what is only read when somebody asks.
    pub(crate) fn scrape(
        &self,
        registry: &RegistryHandle,
        pressure: &Pressure,
        kept_by_streams: usize,
        lines_lost: u64,
    ) {
        let scraped = &self.scraped;
        scraped
            .open_connections
            .set(pressure.connections.load(Ordering::Relaxed) as f64);
        scraped
            .requests_under_way
            .set(pressure.requests.load(Ordering::Relaxed) as f64);
        scraped
            .requests_that_stay
            .set(pressure.watchers.load(Ordering::Relaxed) as f64);
        scraped.stream_bytes.set(kept_by_streams as f64);
        scraped.lag.set(pressure.lag().as_secs_f64());
        scraped.lines_lost.absolute(lines_lost);
        scraped.registry(registry);
        scraped.process();
    }
}

impl Default for Meters {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Meters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meters").finish_non_exhaustive()
    }
}

impl Scraped {
    fn new() -> Self {
        Self {
            open_connections: gauge!("eureka_connections"),
            requests_under_way: gauge!("eureka_requests_under_way"),
            requests_that_stay: gauge!("eureka_requests_that_stay"),
            stream_bytes: gauge!("eureka_stream_bytes"),
            lag: gauge!("eureka_lag_seconds"),
            instances: Status::ALL.map(|status| gauge!("eureka_instances", "status" => status.as_str())),
            applications: gauge!("eureka_applications"),
            registrations: counter!("eureka_registrations_total"),
            renewals: counter!("eureka_renewals_total"),
            renewals_missing: counter!("eureka_renewals_missing_total"),
            renewals_ignored: counter!("eureka_renewals_ignored_total"),
            refused: counter!("eureka_registrations_refused_total"),
            cancels: counter!("eureka_cancels_total"),
            evictions: counter!("eureka_evictions_total"),
            overrides: gauge!("eureka_overrides"),
            tombstones: gauge!("eureka_tombstones"),
            forgotten: counter!("eureka_forgotten_total"),
            changes: gauge!("eureka_changes_kept"),
            change_bytes: gauge!("eureka_changes_bytes"),
            delta: gauge!("eureka_delta_entries"),
            version: gauge!("eureka_registry_version"),
            reads_held: gauge!("eureka_reads_held"),
            preserving: gauge!("eureka_preserving"),
            leases_expected: gauge!("eureka_leases_expected"),
            leases_on_time: gauge!("eureka_leases_on_time"),
            leases_overdue: gauge!("eureka_leases_overdue"),
            heartbeats: gauge!("eureka_heartbeats_last_minute"),
            heartbeats_threshold: gauge!("eureka_heartbeats_threshold"),
            lines_lost: counter!("eureka_log_lines_lost_total"),
            resident: gauge!("process_resident_memory_bytes"),
            files: gauge!("process_open_fds"),
            processor: gauge!("process_cpu_seconds_total"),
        }
    }

    fn registry(&self, registry: &RegistryHandle) {
        let stats = registry.stats();
        for (gauge, count) in self.instances.iter().zip(stats.by_status) {
            gauge.set(count as f64);
        }
        self.applications.set(stats.applications as f64);
        self.registrations.absolute(stats.registrations);
        self.renewals.absolute(stats.renewals);
        self.renewals_missing.absolute(stats.renewals_missing);
        self.renewals_ignored.absolute(stats.renewals_ignored);
        self.refused.absolute(stats.refused);
        self.cancels.absolute(stats.cancels);
        self.evictions.absolute(stats.evictions);
        self.overrides.set(stats.overrides as f64);
        self.tombstones.set(stats.tombstones as f64);
        self.forgotten.absolute(stats.forgotten);
        self.changes.set(stats.changes as f64);
        self.change_bytes.set(stats.change_bytes as f64);
        self.delta.set(stats.delta as f64);
        self.version.set(stats.version as f64);
        let held = registry.snapshot().reads() != Reads::Open;
        self.reads_held.set(f64::from(u8::from(held)));
        let preservation = registry.explain();
        self.preserving.set(f64::from(u8::from(preservation.active)));
        self.leases_expected.set(preservation.expected as f64);
        self.leases_on_time.set(preservation.on_time as f64);
        self.leases_overdue.set(preservation.overdue as f64);
        self.heartbeats.set(preservation.heartbeats.last_minute as f64);
        self.heartbeats_threshold
            .set(preservation.heartbeats.threshold as f64);
    }

    fn process(&self) {
        self.resident.set(process::memory().used as f64);
        if let Some(files) = process::open_files() {
            self.files.set(files as f64);
        }
        if let Some(seconds) = process::processor_seconds() {
            self.processor.set(seconds);
        }
    }
}

/// What `# HELP` says.
fn describe() {
    for (name, text) in COUNTERS {
        metrics::describe_counter!(name, text);
    }
    for (name, text) in GAUGES {
        metrics::describe_gauge!(name, text);
    }
}

/// Counters and what they count.
const COUNTERS: [(&str, &str); 21] = [
    (
        "eureka_requests_shed_total",
        "Requests answered 503 or UNAVAILABLE because there was too much to do, by class",
    ),
    (
        "eureka_panics_total",
        "Panics caught, in requests or in eviction; each is a bug",
    ),
    (
        "eureka_body_timeouts_total",
        "Requests answered 408, calls ended DEADLINE_EXCEEDED: their body, or a message, did not come in time",
    ),
    (
        "eureka_bodies_refused_total",
        "Requests answered 503 or UNAVAILABLE: all bodies together exceeded limits.bodies",
    ),
    (
        "eureka_streams_refused_total",
        "Streams ended UNAVAILABLE: what all keep for their longest messages exceeded limits.bodies",
    ),
    (
        "eureka_watchers_refused_total",
        "Watches, streams and feeds refused: there were limits.watchers already",
    ),
    ("eureka_connections_total", "Connections accepted"),
    (
        "eureka_connections_closed_total",
        "Connections the node closed, by reason",
    ),
    (
        "eureka_accept_errors_total",
        "Errors in accepting a connection, such as no free file",
    ),
    (
        "eureka_leases_late_total",
        "Leases not heard of for two thirds of their duration",
    ),
    ("eureka_preservations_total", "Times that preservation began"),
    (
        "eureka_events_unlogged_total",
        "Events not logged because the log was behind",
    ),
    (
        "eureka_log_lines_lost_total",
        "Log lines lost because standard error was not read",
    ),
    (
        "eureka_registrations_total",
        "Registrations accepted or refreshed",
    ),
    ("eureka_renewals_total", "Renewals of a lease that was there"),
    ("eureka_renewals_missing_total", "Renewals answered 404"),
    (
        "eureka_renewals_ignored_total",
        "Renewals of peers for what was cancelled seconds before: answered 200 and ignored",
    ),
    (
        "eureka_registrations_refused_total",
        "Registrations of peers refused: cancelled since, or too old",
    ),
    ("eureka_cancels_total", "Cancels of a lease that was there"),
    ("eureka_evictions_total", "Leases evicted"),
    (
        "eureka_forgotten_total",
        "Overrides, tombstones and changes in the delta forgotten early because of their limits",
    ),
];

/// Gauges and what they show.
const GAUGES: [(&str, &str); 20] = [
    ("eureka_connections", "Connections open"),
    ("eureka_requests_under_way", "Requests not answered to the end"),
    (
        "eureka_requests_that_stay",
        "Watches, streams and feeds, which do not count as under way",
    ),
    (
        "eureka_stream_bytes",
        "Bytes that streams keep for their longest messages, where these are long",
    ),
    ("eureka_lag_seconds", "Scheduling delay: how late a timer fires"),
    ("eureka_instances", "Instances, by effective status"),
    ("eureka_applications", "Applications with an instance"),
    ("eureka_overrides", "Status overrides held"),
    ("eureka_tombstones", "Cancels remembered"),
    ("eureka_changes_kept", "Changes kept for readers with a cursor"),
    (
        "eureka_changes_bytes",
        "Memory that these changes take, by an estimate",
    ),
    ("eureka_delta_entries", "Instances in the delta"),
    ("eureka_registry_version", "Changes since boot"),
    ("eureka_reads_held", "1 while lists are answered 403"),
    ("eureka_preserving", "1 while nobody is evicted"),
    (
        "eureka_leases_expected",
        "Leases held, and evicted since the last update of what is expected",
    ),
    (
        "eureka_leases_on_time",
        "Leases heard of within two thirds of their duration",
    ),
    ("eureka_leases_overdue", "Leases that have run out"),
    (
        "eureka_heartbeats_last_minute",
        "Renewals of the last whole minute, as Java counts",
    ),
    (
        "eureka_heartbeats_threshold",
        "Renewals per minute that Java would ask for",
    ),
];
