//! Our own endpoints under `/api/v1`, in JSON.

use std::collections::BTreeMap;

use eureka_registry_core::wire::Route;
use eureka_registry_core::{
    DataCenter, Filter, InstanceKey, LeaseView, Measure, Port, Preservation, Reads, Recent, Share,
};
use serde::Serialize;

use crate::Answer;
use crate::outcome::Refusal;
use crate::query::NotUtf8;
use crate::respond::{Call, Part};

/// Instances on a page, unless the request says how many.
const DEFAULT_PAGE: usize = 100;
/// Instances on a page at most.
const MAX_PAGE: usize = 1000;
/// Instances looked at for one page at most: a filter that fits few must not keep the node busy.
const MAX_LOOKED_AT: usize = 20_000;

/// GET `/api/v1/node`
pub(crate) fn node(call: &Call<'_>) -> Result<Answer, Refusal> {
    let (config, stats, now) = (call.config(), call.registry().stats(), call.registry().now());
    json(
        call,
        &NodeBody {
            node_id: &config.node_id,
            version: &config.version,
            uptime_ms: now.mono.0,
            time: now.wall.0,
            registry_version: stats.version,
            instances: stats.instances,
            applications: stats.applications,
            reads: match call.registry().snapshot().reads() {
                Reads::Open => "open",
                Reads::Held(_) => "held",
            },
            own: config.own.as_ref().map(KeyBody::new),
            config: config
                .summary
                .iter()
                .map(|(key, value)| (&**key, &**value))
                .collect(),
        },
    )
}

/// GET `/api/v1/preservation`: why nobody is evicted, or why somebody may be.
pub(crate) fn preservation(call: &Call<'_>) -> Result<Answer, Refusal> {
    json(call, &PreservationBody::new(&call.registry().explain()))
}

/// POST `/api/v1/preservation/accept`: what is missing is really gone. The answer explains the state after it.
pub(crate) fn accept(call: &Call<'_>) -> Result<Answer, Refusal> {
    if !call.config().operator {
        return Err(Refusal::Forbidden("not switched on"));
    }
    call.registry().accept_losses();
    preservation(call)
}

/// GET `/api/v1/lastn`: the last registrations and cancels, newest first.
pub(crate) fn lastn(call: &Call<'_>) -> Result<Answer, Refusal> {
    let registered = call.registry().recent_registrations();
    let cancelled = call.registry().recent_cancels();
    json(
        call,
        &LastnBody {
            registered: registered.iter().map(RecentBody::new).collect(),
            cancelled: cancelled.iter().map(RecentBody::new).collect(),
        },
    )
}

/// GET `/api/v1/instances?filter=&limit=&cursor=`: a page of the instances a filter fits, in the order of (app, id).
pub(crate) fn instances(call: &Call<'_>) -> Result<Answer, Refusal> {
    let get = |name| call.query.get(name).map_err(|NotUtf8| Refusal::QueryNotUtf8);
    let filter = match get("filter")? {
        Some(text) => Some(Filter::parse(&text).map_err(|error| Refusal::Filter(error.to_string()))?),
        None => None,
    };
    let limit = match get("limit")? {
        Some(text) => page_size(&text)?,
        None => DEFAULT_PAGE,
    };
    let after = match get("cursor")? {
        Some(text) => Some(read_cursor(&text)?),
        None => None,
    };
    let listing = call.api.listing()?;
    let snapshot = listing.snapshot();
    let mut page = InstancesBody {
        version: snapshot.version(),
        instances: Vec::new(),
        next: None,
    };
    let mut last_seen: Option<&LeaseView> = None;
    for (position, view) in snapshot.instances_after(after.as_ref()).enumerate() {
        if page.instances.len() == limit || position == MAX_LOOKED_AT {
            page.next = last_seen.map(|view| write_cursor(&view.key()));
            break;
        }
        last_seen = Some(view);
        if filter.as_ref().is_none_or(|filter| filter.matches(view)) {
            page.instances.push(InstanceBody::new(view));
        }
    }
    json(call, &page)
}

fn page_size(text: &str) -> Result<usize, Refusal> {
    let size = text.parse().ok().filter(|size| (1..=MAX_PAGE).contains(size));
    size.ok_or(Refusal::Parameter {
        name: "limit",
        expected: "a number from 1 to 1000",
    })
}

/// A cursor is the path of the last instance of a page: opaque to clients, and it needs no state here.
fn write_cursor(key: &InstanceKey) -> String {
    let route = Route::Instance {
        app: key.app().to_string(),
        id: key.id().to_string(),
    };
    route.to_string()
}

fn read_cursor(text: &str) -> Result<InstanceKey, Refusal> {
    match Route::parse(text) {
        Some(Route::Instance { app, id }) => Ok(InstanceKey::new(&app, &id)),
        Some(_) | None => Err(Refusal::Parameter {
            name: "cursor",
            expected: "the `next` of another page",
        }),
    }
}

fn json(call: &Call<'_>, body: &impl Serialize) -> Result<Answer, Refusal> {
    let text = serde_json::to_vec(body).expect("plain structs are JSON");
    call.short("application/json", text, Part::Other)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeBody<'a> {
    node_id: &'a str,
    version: &'a str,
    uptime_ms: u64,
    time: u64,
    registry_version: u64,
    instances: usize,
    applications: usize,
    reads: &'static str,
    own: Option<KeyBody<'a>>,
    config: BTreeMap<&'a str, &'a str>,
}

#[derive(Serialize)]
struct KeyBody<'a> {
    app: &'a str,
    id: &'a str,
}

impl<'a> KeyBody<'a> {
    fn new(key: &'a InstanceKey) -> Self {
        Self {
            app: key.app(),
            id: key.id(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PreservationBody<'a> {
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
struct ShareBody<'a> {
    name: &'a str,
    expected: usize,
    on_time: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HeartbeatsBody {
    expected_clients: usize,
    threshold: usize,
    last_minute: usize,
    evicts: bool,
}

impl<'a> PreservationBody<'a> {
    fn new(preservation: &'a Preservation) -> Self {
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
    fn new(share: &'a Share) -> Self {
        Self {
            name: &share.name,
            expected: share.expected,
            on_time: share.on_time,
        }
    }
}

#[derive(Serialize)]
struct LastnBody<'a> {
    registered: Vec<RecentBody<'a>>,
    cancelled: Vec<RecentBody<'a>>,
}

#[derive(Serialize)]
struct RecentBody<'a> {
    at: u64,
    app: &'a str,
    id: &'a str,
}

impl<'a> RecentBody<'a> {
    fn new(recent: &'a Recent) -> Self {
        Self {
            at: recent.at.0,
            app: recent.key.app(),
            id: recent.key.id(),
        }
    }
}

#[derive(Serialize)]
struct InstancesBody<'a> {
    version: u64,
    instances: Vec<InstanceBody<'a>>,
    /// Cursor of the next page; with a filter that page may be empty and have a next one itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InstanceBody<'a> {
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
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    amazon: BTreeMap<&'a str, &'a str>,
    metadata: BTreeMap<&'a str, &'a str>,
    renewal_interval_secs: u32,
    duration_secs: u32,
    registered: u64,
    renewed: u64,
    service_up: u64,
    last_updated: u64,
    last_dirty: Option<i64>,
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
    fn new(view: &'a LeaseView) -> Self {
        let instance = &view.instance;
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
                DataCenter::Amazon(machine) => machine.iter().collect(),
                DataCenter::MyOwn | DataCenter::Netflix => BTreeMap::new(),
            },
            metadata: instance.metadata.iter().collect(),
            renewal_interval_secs: view.lease.terms.renewal_interval_secs,
            duration_secs: view.lease.terms.duration_secs,
            registered: view.lease.registered.0,
            renewed: view.lease.renewed.0,
            service_up: view.lease.service_up.0,
            last_updated: view.last_updated.0,
            last_dirty: instance.last_dirty,
        }
    }
}
