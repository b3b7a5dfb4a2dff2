//! The table of keys: name, default, presets and documentation of each, and how its value is taken.

use eureka_registry_core::{LeaseExpiry, Measure};
use tracing::Level;

use super::settings::{LogFormat, Preset, Settings};
use super::value::{address, boolean, choice, count, duration, interval, list, share, size, text};
use super::{Mistake, Source};

/// One key of the configuration.
#[derive(Debug)]
pub struct Key {
    /// `section.key`, kebab-case.
    pub name: &'static str,
    /// What its values look like.
    pub kind: Kind,
    /// The value when nothing and no preset says otherwise.
    pub default: &'static str,
    /// The value under `eureka-java`, if it differs.
    pub java: Option<&'static str>,
    /// The value under `eureka-netflix`, if it differs.
    pub netflix: Option<&'static str>,
    /// What it does and how to choose it.
    pub doc: &'static str,
    /// Takes a value, or says what it is not.
    pub(super) set: fn(&mut Settings, &str) -> Result<(), String>,
}

/// What values look like.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `"0.0.0.0:8761"`
    Address,
    /// `true` or `false`
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number.
    Count,
    /// `"90s"`
    Duration,
    /// `["a", "b"]`, or `a,b` outside the file.
    List,
    /// A number from 0 to 1.
    Share,
    /// `"10MiB"`
    Size,
    /// Any text.
    Text,
}

impl Key {
    /// Its value under a preset when no source names it.
    pub(super) fn fallback(&self, preset: Preset) -> (String, Source) {
        let differing = match preset {
            Preset::None => None,
            Preset::EurekaJava => self.java,
            Preset::EurekaNetflix => self.netflix,
        };
        match differing {
            Some(value) => (value.to_owned(), Source::Preset(preset.name())),
            None => (self.default.to_owned(), Source::Default),
        }
    }
}

/// The key of this name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Says why a key that is not in the table is refused: a key that would do nothing is never taken silently.
pub(super) fn not_ours(name: &str, source: Source) -> Mistake {
    let later = LATER
        .iter()
        .find(|(prefix, _)| name == *prefix || (prefix.ends_with('.') && name.starts_with(prefix)));
    let message = match (later, closest(name)) {
        (Some((_, matter)), _) => format!("{name}: not available in this version: it has no {matter}"),
        (None, Some(close)) => format!("{name}: there is no such key; did you mean {close}?"),
        (None, None) => format!("{name}: there is no such key; `eureka config` lists all of them"),
    };
    Mistake { source, message }
}

/// Names that are reserved for what this version cannot do.
const LATER: &[(&str, &str)] = &[
    ("auth.", "authentication"),
    ("bootstrap.retry-interval", "peers"),
    ("bootstrap.settle", "peers"),
    ("dns.", "DNS server"),
    ("grpc.", "gRPC"),
    ("peers.", "peers"),
    ("registry.silent-peer-hold", "peers"),
    ("replication.", "peers"),
    ("snapshot.", "snapshot file"),
    ("tls.", "TLS"),
];

fn closest(name: &str) -> Option<&'static str> {
    let last = name.rsplit('.').next().unwrap_or(name);
    KEYS.iter()
        .map(|key| key.name)
        .filter(|known| known.rsplit('.').next() == Some(last) || distance(known, name) <= 2)
        .min_by_key(|known| distance(known, name))
}

/// How many characters must be put in, taken out or replaced to turn one name into the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

fn put<T>(slot: &mut T, value: Result<T, String>) -> Result<(), String> {
    *slot = value?;
    Ok(())
}

const LEASE_EXPIRY: &[&str] = &["exact", "doubled"];
const MEASURE: &[&str] = &["leases-on-time", "heartbeats"];
const LEVEL: &[&str] = &["error", "warn", "info", "debug", "trace"];
const FORMAT: &[&str] = &["text", "json"];
/// Smallest useful head: hyper's buffer does not get smaller.
const LEAST_HEAD: u64 = 8192;

/// Every key there is, in the order in which they are shown.
pub const KEYS: &[Key] = &[
    Key {
        name: "compat.preset",
        kind: Kind::Choice(&Preset::NAMES),
        default: "none",
        java: None,
        netflix: None,
        doc: "Whose behaviour to follow where Java and this server differ on purpose: `eureka-java` is Spring Cloud Netflix, `eureka-netflix` Netflix's own server. A preset changes the defaults of other keys; keys that are set win.",
        set: |s, t| put(&mut s.compat.preset, choice(t, &Preset::NAMES, Preset::parse(t))),
    },
    Key {
        name: "compat.java-errors",
        kind: Kind::Boolean,
        default: "false",
        java: Some("true"),
        netflix: Some("true"),
        doc: "Answer bad input as Java does: often 500, sometimes after half of the change was made. Off: a 4xx that says why, and nothing changed.",
        set: |s, t| put(&mut s.compat.java_errors, boolean(t)),
    },
    Key {
        name: "server.listen",
        kind: Kind::Address,
        default: "0.0.0.0:8761",
        java: None,
        netflix: None,
        doc: "Where the Eureka API, the page, `/metrics` and `/health` are served, HTTP/1.1 and HTTP/2 without TLS on one port. Port 0 takes a free one. Also `--listen`.",
        set: |s, t| put(&mut s.server.listen, address(t)),
    },
    Key {
        name: "server.hostname",
        kind: Kind::Text,
        default: "",
        java: None,
        netflix: None,
        doc: "The node's name as clients reach it; blank: the host's own name.",
        set: |s, t| put(&mut s.server.hostname, text(t)),
    },
    Key {
        name: "server.instance-id",
        kind: Kind::Text,
        default: "",
        java: None,
        netflix: None,
        doc: "Id of the node's own instance; blank: `hostname:app-name:port`.",
        set: |s, t| put(&mut s.server.instance_id, text(t)),
    },
    Key {
        name: "server.app-name",
        kind: Kind::Text,
        default: "eureka",
        java: None,
        netflix: None,
        doc: "Application of the node's own instance. Java peers call a node available only while an instance of their own application name with its host name is registered.",
        set: |s, t| {
            put(
                &mut s.server.app_name,
                text(t).and_then(|name| {
                    if name.is_empty() {
                        Err("must not be blank".to_owned())
                    } else {
                        Ok(name)
                    }
                }),
            )
        },
    },
    Key {
        name: "server.register",
        kind: Kind::Boolean,
        default: "false",
        java: None,
        netflix: None,
        doc: "Register the node itself and renew it, like any other instance.",
        set: |s, t| put(&mut s.server.register, boolean(t)),
    },
    Key {
        name: "server.drain-timeout",
        kind: Kind::Duration,
        default: "10s",
        java: None,
        netflix: None,
        doc: "How long requests under way may take to end after SIGTERM or SIGINT. Keep it under what the orchestrator waits before it kills.",
        set: |s, t| put(&mut s.server.drain_timeout, duration(t)),
    },
    Key {
        name: "registry.lease-expiry",
        kind: Kind::Choice(LEASE_EXPIRY),
        default: "exact",
        java: Some("doubled"),
        netflix: Some("doubled"),
        doc: "When a renewed lease runs out: `exact`, one lease duration after it was last heard of, or `doubled`, two, as in Java.",
        set: |s, t| {
            let expiry = match t {
                "exact" => Some(LeaseExpiry::Exact),
                "doubled" => Some(LeaseExpiry::Doubled),
                _ => None,
            };
            put(&mut s.registry.lease_expiry, choice(t, LEASE_EXPIRY, expiry))
        },
    },
    Key {
        name: "registry.eviction-interval",
        kind: Kind::Duration,
        default: "60s",
        java: None,
        netflix: None,
        doc: "Time between two eviction runs.",
        set: |s, t| put(&mut s.registry.eviction_interval, interval(t)),
    },
    Key {
        name: "registry.delta-retention",
        kind: Kind::Duration,
        default: "3m",
        java: None,
        netflix: None,
        doc: "How long a change stays in the delta. Must be longer than the interval at which clients fetch, several times.",
        set: |s, t| put(&mut s.registry.delta_retention, interval(t)),
    },
    Key {
        name: "registry.renewal-interval",
        kind: Kind::Duration,
        default: "30s",
        java: None,
        netflix: None,
        doc: "The interval at which clients are expected to renew; only the measure `heartbeats` and Java's figures use it.",
        set: |s, t| put(&mut s.registry.renewal_interval, interval(t)),
    },
    Key {
        name: "preservation.enabled",
        kind: Kind::Boolean,
        default: "true",
        java: None,
        netflix: None,
        doc: "Evict nobody while too many leases are missing at once: that is the network, not the instances. Off suits test set-ups where few instances come and go.",
        set: |s, t| put(&mut s.preservation.enabled, boolean(t)),
    },
    Key {
        name: "preservation.measure",
        kind: Kind::Choice(MEASURE),
        default: "leases-on-time",
        java: Some("heartbeats"),
        netflix: Some("heartbeats"),
        doc: "What is measured: `leases-on-time`, leases heard of within two thirds of their duration against leases expected, or `heartbeats`, those of the last whole minute against a threshold, as in Java.",
        set: |s, t| {
            let measure = match t {
                "leases-on-time" => Some(Measure::LeasesOnTime),
                "heartbeats" => Some(Measure::Heartbeats),
                _ => None,
            };
            put(&mut s.preservation.measure, choice(t, MEASURE, measure))
        },
    },
    Key {
        name: "preservation.threshold",
        kind: Kind::Share,
        default: "0.85",
        java: None,
        netflix: None,
        doc: "Share of what is expected below which nobody is evicted. One eviction run takes at most the rest (15 %).",
        set: |s, t| put(&mut s.preservation.threshold, share(t)),
    },
    Key {
        name: "preservation.update-interval",
        kind: Kind::Duration,
        default: "15m",
        java: None,
        netflix: None,
        doc: "Time between two updates of what is expected.",
        set: |s, t| put(&mut s.preservation.update_interval, interval(t)),
    },
    Key {
        name: "preservation.tolerated-losses",
        kind: Kind::Count,
        default: "1",
        java: None,
        netflix: None,
        doc: "This many missing leases never start preservation, however few there are; only for the measure `leases-on-time`.",
        set: |s, t| put(&mut s.preservation.tolerated_losses, count(t, 0, 1_000_000)),
    },
    Key {
        name: "responses.update-interval",
        kind: Kind::Duration,
        default: "0s",
        java: Some("30s"),
        netflix: Some("30s"),
        doc: "How old a list may be. `0s`: lists are always current; Java caches them for 30 s.",
        set: |s, t| put(&mut s.responses.update_interval, duration(t)),
    },
    Key {
        name: "responses.gzip-level",
        kind: Kind::Count,
        default: "4",
        java: None,
        netflix: None,
        doc: "Effort of compression, 1 (fast) to 9 (small).",
        set: |s, t| put(&mut s.responses.gzip_level, count(t, 1, 9)),
    },
    Key {
        name: "bootstrap.hold-alone",
        kind: Kind::Boolean,
        default: "false",
        java: None,
        netflix: Some("true"),
        doc: "Hold reads (403) after a start with nothing also when no peers are configured, as Netflix's server does, so that clients keep what they know until everybody has registered again.",
        set: |s, t| put(&mut s.bootstrap.hold_alone, boolean(t)),
    },
    Key {
        name: "bootstrap.wait-when-empty",
        kind: Kind::Duration,
        default: "5m",
        java: None,
        netflix: None,
        doc: "How long reads are held after a start with nothing (see `bootstrap.hold-alone`). Writes are always served.",
        set: |s, t| put(&mut s.bootstrap.wait_when_empty, duration(t)),
    },
    Key {
        name: "overrides.retention",
        kind: Kind::Duration,
        default: "1h",
        java: None,
        netflix: None,
        doc: "How long the status override of an evicted instance is kept, should it come back.",
        set: |s, t| put(&mut s.overrides.retention, duration(t)),
    },
    Key {
        name: "limits.body",
        kind: Kind::Size,
        default: "10MiB",
        java: None,
        netflix: None,
        doc: "Largest request body; more is answered 413.",
        set: |s, t| put(&mut s.limits.body, size(t, 1024)),
    },
    Key {
        name: "limits.batch",
        kind: Kind::Size,
        default: "64MiB",
        java: None,
        netflix: None,
        doc: "Largest replication batch; more is answered 413. Also how long the answer may become before newer copies are left out of it.",
        set: |s, t| put(&mut s.limits.batch, size(t, 1024)),
    },
    Key {
        name: "limits.bodies",
        kind: Kind::Size,
        default: "256MiB",
        java: None,
        netflix: None,
        doc: "All request bodies being received together; a request that would exceed it is answered 503.",
        set: |s, t| put(&mut s.limits.bodies, size(t, 1024)),
    },
    Key {
        name: "limits.encoded",
        kind: Kind::Size,
        default: "512MiB",
        java: None,
        netflix: None,
        doc: "Encoded and compressed lists that are kept for the next reader, all together; beyond that they are encoded for each reader.",
        set: |s, t| put(&mut s.limits.encoded, size(t, 0)),
    },
    Key {
        name: "limits.metadata",
        kind: Kind::Size,
        default: "64KiB",
        java: None,
        netflix: None,
        doc: "Metadata of one instance, keys and values, that of its Amazon machine included; more is answered 413.",
        set: |s, t| put(&mut s.limits.metadata, size(t, 0)),
    },
    Key {
        name: "limits.url",
        kind: Kind::Size,
        default: "8KiB",
        java: None,
        netflix: None,
        doc: "Longest URL; a longer one is answered 414. Also the longest id, address or other text of a registration; a longer one is answered 413.",
        set: |s, t| put(&mut s.limits.url, size(t, 256)),
    },
    Key {
        name: "limits.headers",
        kind: Kind::Size,
        default: "32KiB",
        java: None,
        netflix: None,
        doc: "Largest request head; more is answered 431. At least 8 KiB.",
        set: |s, t| put(&mut s.limits.headers, size(t, LEAST_HEAD)),
    },
    Key {
        name: "limits.header-timeout",
        kind: Kind::Duration,
        default: "10s",
        java: None,
        netflix: None,
        doc: "Time a connection has for its first bytes, and a request for its head; then the connection is closed.",
        set: |s, t| put(&mut s.limits.header_timeout, interval(t)),
    },
    Key {
        name: "limits.body-timeout",
        kind: Kind::Duration,
        default: "30s",
        java: None,
        netflix: None,
        doc: "Time for receiving a request's body; then it is answered 408.",
        set: |s, t| put(&mut s.limits.body_timeout, interval(t)),
    },
    Key {
        name: "limits.idle-timeout",
        kind: Kind::Duration,
        default: "2m",
        java: None,
        netflix: None,
        doc: "Time a connection may rest between two requests. Longer than clients' renewal interval, so that heartbeats need no new connection, and longer than a load balancer in between waits.",
        set: |s, t| put(&mut s.limits.idle_timeout, interval(t)),
    },
    Key {
        name: "limits.write-timeout",
        kind: Kind::Duration,
        default: "30s",
        java: None,
        netflix: None,
        doc: "Time a client may leave an answer unread before its connection is closed.",
        set: |s, t| put(&mut s.limits.write_timeout, interval(t)),
    },
    Key {
        name: "limits.connections",
        kind: Kind::Count,
        default: "10000",
        java: None,
        netflix: None,
        doc: "Open connections; further ones are closed at once, so that clients try another node.",
        set: |s, t| put(&mut s.limits.connections, count(t, 1, 1_000_000)),
    },
    Key {
        name: "limits.streams",
        kind: Kind::Count,
        default: "256",
        java: None,
        netflix: None,
        doc: "Requests at a time on one HTTP/2 connection.",
        set: |s, t| put(&mut s.limits.streams, count(t, 1, 100_000)),
    },
    Key {
        name: "limits.requests",
        kind: Kind::Count,
        default: "4096",
        java: None,
        netflix: None,
        doc: "Requests under way, answers being sent included, from which on the node sheds: at half of it full fetches are answered 503, at three quarters also deltas, applications and VIPs, at all of it also registrations. Renewals, cancels and batches never.",
        set: |s, t| put(&mut s.limits.requests, count(t, 1, 1_000_000)),
    },
    Key {
        name: "limits.lag",
        kind: Kind::Duration,
        default: "100ms",
        java: None,
        netflix: None,
        doc: "The same by scheduling delay, which grows when the processor is short: at this much full fetches, at twice deltas, applications and VIPs, at four times registrations are answered 503.",
        set: |s, t| put(&mut s.limits.lag, interval(t)),
    },
    Key {
        name: "limits.rate-limiter.enabled",
        kind: Kind::Boolean,
        default: "false",
        java: None,
        netflix: None,
        doc: "Refuse lists over a rate with 503, as Netflix's rate limiter does. Off, it only counts.",
        set: |s, t| put(&mut s.limits.rate_limiter.enabled, boolean(t)),
    },
    Key {
        name: "limits.rate-limiter.burst",
        kind: Kind::Count,
        default: "10",
        java: None,
        netflix: None,
        doc: "Lists at once; 0: no limit.",
        set: |s, t| put(&mut s.limits.rate_limiter.burst, count(t, 0, 1_000_000)),
    },
    Key {
        name: "limits.rate-limiter.fetch-rate",
        kind: Kind::Count,
        default: "500",
        java: None,
        netflix: None,
        doc: "Lists of any kind a second; 0: no limit.",
        set: |s, t| put(&mut s.limits.rate_limiter.fetch_rate, count(t, 0, 1_000_000)),
    },
    Key {
        name: "limits.rate-limiter.full-fetch-rate",
        kind: Kind::Count,
        default: "100",
        java: None,
        netflix: None,
        doc: "Full lists a second; 0: no limit.",
        set: |s, t| put(&mut s.limits.rate_limiter.full_fetch_rate, count(t, 0, 1_000_000)),
    },
    Key {
        name: "limits.rate-limiter.throttle-standard-clients",
        kind: Kind::Boolean,
        default: "false",
        java: None,
        netflix: None,
        doc: "Limit clients that call themselves `DefaultClient` or `DefaultServer` too.",
        set: |s, t| put(&mut s.limits.rate_limiter.throttle_standard_clients, boolean(t)),
    },
    Key {
        name: "limits.rate-limiter.privileged-clients",
        kind: Kind::List,
        default: "",
        java: None,
        netflix: None,
        doc: "Names (`DiscoveryIdentity-Name`) of clients that are never limited.",
        set: |s, t| put(&mut s.limits.rate_limiter.privileged_clients, list(t)),
    },
    Key {
        name: "metrics.enabled",
        kind: Kind::Boolean,
        default: "true",
        java: None,
        netflix: None,
        doc: "Serve `/metrics` (Prometheus text).",
        set: |s, t| put(&mut s.metrics.enabled, boolean(t)),
    },
    Key {
        name: "log.level",
        kind: Kind::Choice(LEVEL),
        default: "info",
        java: None,
        netflix: None,
        doc: "The least important level written to standard error. `debug` logs every request.",
        set: |s, t| {
            let level = LEVEL.contains(&t).then(|| t.parse::<Level>().ok()).flatten();
            put(&mut s.log.level, choice(t, LEVEL, level))
        },
    },
    Key {
        name: "log.format",
        kind: Kind::Choice(FORMAT),
        default: "text",
        java: None,
        netflix: None,
        doc: "`text`, or `json` for one object a line.",
        set: |s, t| {
            let format = match t {
                "text" => Some(LogFormat::Text),
                "json" => Some(LogFormat::Json),
                _ => None,
            };
            put(&mut s.log.format, choice(t, FORMAT, format))
        },
    },
    Key {
        name: "console.enabled",
        kind: Kind::Boolean,
        default: "true",
        java: None,
        netflix: None,
        doc: "Serve the page at `/` and `/lastn`.",
        set: |s, t| put(&mut s.console.enabled, boolean(t)),
    },
    Key {
        name: "console.actions",
        kind: Kind::Boolean,
        default: "false",
        java: None,
        netflix: None,
        doc: "Allow operators' actions (`POST /api/v1/preservation/accept`) to everybody who reaches the node, since this version has no authentication.",
        set: |s, t| put(&mut s.console.actions, boolean(t)),
    },
];
