//! The JSON of our own endpoints. Names are ours: nothing here is read by Eureka's clients.

use std::borrow::Cow;
use std::collections::BTreeMap;

use eureka_registry_core::{
    Action, Author, Cause, Change, DataCenter, Instance, InstanceKey, LeaseExpiry, LeaseView, Measure,
    Metadata, Now, Port, Preservation, Recent, Seen, Share,
};
use serde::{Serialize, Serializer};

use crate::config::Rules;
use crate::regions::RegionFacts;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NodeBody<'a> {
    pub(crate) node_id: &'a str,
    pub(crate) version: &'a str,
    pub(crate) uptime_ms: u64,
    pub(crate) time: u64,
    pub(crate) registry_version: u64,
    pub(crate) instances: usize,
    pub(crate) applications: usize,
    pub(crate) reads: &'static str,
    /// Nobody is evicted now.
    pub(crate) preserving: bool,
    pub(crate) rules: RulesBody,
    pub(crate) own: Option<KeyBody<'a>>,
    /// Left out where none are configured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) regions: Vec<RegionBody<'a>>,
    pub(crate) config: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RulesBody {
    lease_expiry: &'static str,
    eviction_interval_ms: u128,
    preservation: bool,
}

/// Another region as this node knows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegionBody<'a> {
    name: &'a str,
    instances: usize,
    applications: usize,
    /// When it was read last, in Unix milliseconds, and how long ago that is; `null` if never.
    read: Option<u64>,
    age_ms: Option<u64>,
    server: Option<&'a str>,
    successes: u64,
    failures: u64,
    error: Option<&'a str>,
}

impl<'a> RegionBody<'a> {
    pub(crate) fn new(now: Now, facts: &'a RegionFacts) -> Self {
        Self {
            name: &facts.name,
            instances: facts.instances,
            applications: facts.applications,
            read: facts.read.map(|read| read.wall.0),
            age_ms: facts.read.map(|read| now.mono.0.saturating_sub(read.mono.0)),
            server: facts.server.as_deref(),
            successes: facts.successes,
            failures: facts.failures,
            error: facts.error.as_deref(),
        }
    }
}

impl RulesBody {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            lease_expiry: match rules.lease_expiry {
                LeaseExpiry::Exact => "exact",
                LeaseExpiry::Doubled => "doubled",
            },
            eviction_interval_ms: rules.eviction_interval.as_millis(),
            preservation: rules.preservation,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct KeyBody<'a> {
    app: &'a str,
    id: &'a str,
}

impl<'a> KeyBody<'a> {
    pub(crate) fn new(key: &'a InstanceKey) -> Self {
        Self {
            app: key.app(),
            id: key.id(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PreservationBody<'a> {
    enabled: bool,
    active: bool,
    measure: &'static str,
    threshold: f64,
    expected: usize,
    on_time: usize,
    tolerated_losses: usize,
    /// At most this many go in one eviction run.
    quota: usize,
    /// Leases that have run out.
    overdue: usize,
    /// The first hundred of them.
    would_go: Vec<KeyBody<'a>>,
    applications: Vec<ShareBody<'a>>,
    zones: Vec<ShareBody<'a>>,
    /// Java's figures.
    heartbeats: HeartbeatsBody,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShareBody<'a> {
    name: &'a str,
    expected: usize,
    on_time: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeartbeatsBody {
    expected_clients: usize,
    threshold: usize,
    last_minute: usize,
    evicts: bool,
}

impl<'a> PreservationBody<'a> {
    pub(crate) fn new(preservation: &'a Preservation) -> Self {
        let shares = |shares: &'a [Share]| shares.iter().map(ShareBody::new).collect();
        let heartbeats = &preservation.heartbeats;
        Self {
            enabled: preservation.enabled,
            active: preservation.active,
            measure: match preservation.measure {
                Measure::LeasesOnTime => "leases-on-time",
                Measure::Heartbeats => "heartbeats",
            },
            threshold: preservation.threshold,
            expected: preservation.expected,
            on_time: preservation.on_time,
            tolerated_losses: preservation.tolerated_losses,
            quota: preservation.quota,
            overdue: preservation.overdue,
            would_go: preservation.overdue_named.iter().map(KeyBody::new).collect(),
            applications: shares(&preservation.applications),
            zones: shares(&preservation.zones),
            heartbeats: HeartbeatsBody {
                expected_clients: heartbeats.expected_clients,
                threshold: heartbeats.threshold,
                last_minute: heartbeats.last_minute,
                evicts: heartbeats.evicts,
            },
        }
    }
}

impl<'a> ShareBody<'a> {
    pub(crate) fn new(share: &'a Share) -> Self {
        Self {
            name: &share.name,
            expected: share.expected,
            on_time: share.on_time,
        }
    }
}

#[derive(Serialize)]
pub(crate) struct LastnBody<'a> {
    pub(crate) registered: Vec<RecentBody<'a>>,
    pub(crate) cancelled: Vec<RecentBody<'a>>,
}

#[derive(Serialize)]
pub(crate) struct RecentBody<'a> {
    at: u64,
    app: &'a str,
    id: &'a str,
}

impl<'a> RecentBody<'a> {
    pub(crate) fn new(recent: &'a Recent) -> Self {
        Self {
            at: recent.at.0,
            app: recent.key.app(),
            id: recent.key.id(),
        }
    }
}

#[derive(Serialize)]
pub(crate) struct InstancesBody<T> {
    pub(crate) version: u64,
    /// For `/api/v1/changes`: what follows this page's version.
    pub(crate) changes: String,
    pub(crate) instances: Vec<T>,
    /// Cursor of the next page; with a filter that page may be empty and have a next one itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// A change as those who follow are told it.
#[derive(Serialize)]
pub(crate) struct ChangeBody<'a> {
    version: u64,
    at: u64,
    action: &'static str,
    by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer: Option<Cow<'a, str>>,
    why: &'static str,
    #[serde(flatten)]
    instance: InstanceBody<'a>,
}

impl<'a> ChangeBody<'a> {
    /// What a filter lets through of a change; `None` if that is nothing.
    pub(crate) fn new(change: &'a Change, seen: Seen) -> Option<Self> {
        let (action, why, instance) = match seen {
            Seen::Hidden => return None,
            Seen::Whole => (change.action, why(change.cause), &change.instance),
            Seen::Entered => (Action::Added, "filtered", &change.instance),
            Seen::Left => (Action::Deleted, "filtered", change.before.as_ref()?),
        };
        let (by, peer) = match &change.author {
            Author::Client => ("client", None),
            Author::Operator => ("operator", None),
            Author::Own => ("own", None),
            Author::Peer(peer) => ("peer", Some(peer.without_credentials())),
            Author::Eviction => ("eviction", None),
        };
        Some(Self {
            version: change.version,
            at: change.at.0,
            action: action.as_str(),
            by,
            peer,
            why,
            instance: InstanceBody::new(instance),
        })
    }
}

const fn why(cause: Cause) -> &'static str {
    match cause {
        Cause::Registered => "registered",
        Cause::Renewed => "renewed",
        Cause::Cancelled => "cancelled",
        Cause::Expired => "expired",
        Cause::Overridden => "overridden",
        Cause::OverrideCleared => "override-cleared",
        Cause::MetadataChanged => "metadata-changed",
        Cause::Adopted => "adopted",
    }
}

/// An instance with its lease.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedBody<'a> {
    #[serde(flatten)]
    instance: InstanceBody<'a>,
    registered: u64,
    renewed: u64,
    service_up: u64,
    last_updated: u64,
}

impl<'a> ListedBody<'a> {
    pub(crate) fn new(view: &'a LeaseView) -> Self {
        Self {
            instance: InstanceBody::new(&view.instance),
            registered: view.lease.registered.0,
            renewed: view.lease.renewed.0,
            service_up: view.lease.service_up.0,
            last_updated: view.last_updated.0,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstanceBody<'a> {
    app: &'a str,
    id: &'a str,
    host: &'a str,
    ip: &'a str,
    status: &'static str,
    overridden_status: &'static str,
    port: PortBody,
    secure_port: PortBody,
    vip: Option<&'a str>,
    secure_vip: Option<&'a str>,
    zone: Option<&'a str>,
    group: Option<&'a str>,
    data_center: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    amazon: Option<Pairs<'a>>,
    metadata: Pairs<'a>,
    renewal_interval_secs: u32,
    duration_secs: u32,
    last_dirty: Option<i64>,
    /// As it was sent, where that is not `id`: `null` if it was absent, or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_id: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    home_page: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_page: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    health_check: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    secure_health_check: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asg: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    country_id: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sid: Option<&'a str>,
}

/// An object of texts, in the order in which they were given.
struct Pairs<'a>(&'a Metadata);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter())
    }
}

#[derive(Serialize)]
struct PortBody {
    number: i32,
    enabled: bool,
}

impl From<Port> for PortBody {
    fn from(port: Port) -> Self {
        Self {
            number: port.number,
            enabled: port.enabled,
        }
    }
}

impl<'a> InstanceBody<'a> {
    pub(crate) fn new(instance: &'a Instance) -> Self {
        Self {
            app: &instance.app,
            id: instance.id(),
            host: &instance.host_name,
            ip: &instance.ip_address,
            status: instance.status.as_str(),
            overridden_status: instance.overridden_status.as_str(),
            port: instance.port.into(),
            secure_port: instance.secure_port.into(),
            vip: instance.vip_address.as_deref(),
            secure_vip: instance.secure_vip_address.as_deref(),
            zone: instance.zone(),
            group: instance.app_group.as_deref(),
            data_center: instance.data_center.as_str(),
            amazon: match &instance.data_center {
                DataCenter::Amazon(machine) => Some(machine).filter(|machine| !machine.is_empty()).map(Pairs),
                DataCenter::MyOwn | DataCenter::Netflix => None,
            },
            metadata: Pairs(&instance.metadata),
            renewal_interval_secs: instance.lease.renewal_interval_secs,
            duration_secs: instance.lease.duration_secs,
            last_dirty: instance.last_dirty,
            instance_id: match instance.instance_id.as_deref() {
                Some(id) if !id.is_empty() => None,
                sent => Some(sent),
            },
            home_page: instance.home_page_url.as_deref(),
            status_page: instance.status_page_url.as_deref(),
            health_check: instance.health_check_url.as_deref(),
            secure_health_check: instance.secure_health_check_url.as_deref(),
            asg: instance.asg_name.as_deref(),
            country_id: Some(instance.country_id).filter(|country| *country != 1),
            sid: instance.sid.as_deref(),
        }
    }
}
