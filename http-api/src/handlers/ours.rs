//! Our own endpoints under `/api/v1`, in JSON.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use eureka_registry_core::wire::Route;
use eureka_registry_core::{Cursor, Filter, Instance, InstanceKey, Point, Reads, Wall};
use serde::Serialize;

use crate::Answer;
use crate::bodies::{
    InstanceBody, InstancesBody, KeyBody, LastnBody, ListedBody, NodeBody, PreservationBody, RecentBody,
    RegionBody, RulesBody,
};
use crate::call::{Call, Part};
use crate::outcome::Refusal;
use crate::query::NotUtf8;
use crate::regions::{RemoteRegions, Set};

const JSON: &str = "application/json";
/// Instances or changes on a page, unless the request says how many.
const DEFAULT_PAGE: usize = 100;
/// Instances or changes on a page at most.
const MAX_PAGE: usize = 1000;
/// Instances looked at for one page at most: a filter that fits few must not keep the node busy.
const MAX_LOOKED_AT: usize = 20_000;

/// GET `/api/v1/node`
pub(crate) fn node(call: &Call<'_>) -> Result<Answer, Refusal> {
    let (config, stats, now) = (call.config(), call.registry().stats(), call.registry().now());
    let regions: Vec<_> = config.regions.iter().flat_map(RemoteRegions::facts).collect();
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
            preserving: stats.preserving,
            rules: RulesBody::new(config.rules),
            own: config.own.as_ref().map(KeyBody::new),
            regions: regions.iter().map(|facts| RegionBody::new(now, facts)).collect(),
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
        return Err(Refusal::Forbidden("operators' actions are not switched on"));
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

/// GET `/api/v1/instances?at=&filter=&limit=&cursor=`: a page of the instances a filter fits, in the order of (app, id);
/// with `at` as they were then, without their leases.
pub(crate) fn instances(call: &Call<'_>) -> Result<Answer, Refusal> {
    let asked = Page {
        filter: filter(call)?,
        limit: page_size(call)?,
        after: match parameter(call, "cursor")? {
            Some(text) => Some(read_cursor(&text)?),
            None => None,
        },
    };
    let point = at(call)?;
    let listing = call.api.lists(Set::NONE)?.listing;
    let after = asked.after.as_ref();
    if let Some(point) = point {
        let pasts = call.api.pasts();
        let past = pasts.at(call.registry(), point)?;
        let all = past.instances_after(after).map(|instance| (&**instance, ()));
        let page = asked.read(call, past.version(), all, |instance, ()| {
            InstanceBody::new(instance)
        });
        let answer = json(call, &page);
        if page.next.is_some() {
            pasts.keep(Arc::clone(&past));
        } else {
            pasts.let_go(&past);
        }
        return answer;
    }
    let snapshot = listing.snapshot();
    let all = snapshot
        .instances_after(after)
        .map(|view| (&*view.instance, &**view));
    json(
        call,
        &asked.read(call, snapshot.version(), all, |_, view| ListedBody::new(view)),
    )
}

/// What is asked of a list.
struct Page {
    filter: Option<Filter>,
    limit: usize,
    after: Option<InstanceKey>,
}

impl Page {
    /// Reads it from `all` behind `after`, which the registry had at a version.
    fn read<'a, T, B>(
        &self,
        call: &Call<'_>,
        version: u64,
        all: impl Iterator<Item = (&'a Instance, T)>,
        body: impl Fn(&'a Instance, T) -> B,
    ) -> InstancesBody<B> {
        let mut page = InstancesBody {
            version,
            changes: call.registry().cursor(version).to_string(),
            instances: Vec::new(),
            next: None,
        };
        let mut last_seen: Option<&Instance> = None;
        for (position, (instance, source)) in all.enumerate() {
            if page.instances.len() == self.limit || position == MAX_LOOKED_AT {
                page.next = last_seen.map(|last| write_cursor(&last.key()));
                break;
            }
            last_seen = Some(instance);
            if self.filter.as_ref().is_none_or(|filter| filter.matches(instance)) {
                page.instances.push(body(instance, source));
            }
        }
        page
    }
}

/// The moment of the past that is asked for.
fn at(call: &Call<'_>) -> Result<Option<Point>, Refusal> {
    let Some(text) = parameter(call, "at")? else {
        return Ok(None);
    };
    let expected = "a cursor, Unix milliseconds or a time such as 2026-11-30T08:15:00Z";
    let name = "at";
    let point = read_point(&text);
    point.map(Some).ok_or(Refusal::Parameter { name, expected })
}

fn read_point(text: &str) -> Option<Point> {
    if let Some(cursor) = Cursor::parse(text) {
        return Some(Point::Cursor(cursor));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().map(|millis| Point::Time(Wall(millis)));
    }
    let time = humantime::parse_rfc3339(text).ok()?;
    let millis = time.duration_since(UNIX_EPOCH).ok()?.as_millis();
    u64::try_from(millis).ok().map(|millis| Point::Time(Wall(millis)))
}

pub(super) fn filter(call: &Call<'_>) -> Result<Option<Filter>, Refusal> {
    let text = parameter(call, "filter")?;
    let filter = text.map(|text| Filter::parse(&text)).transpose();
    filter.map_err(|error| Refusal::Filter(error.to_string()))
}

pub(super) fn parameter<'a>(call: &Call<'a>, name: &str) -> Result<Option<Cow<'a, str>>, Refusal> {
    call.query.get(name).map_err(|NotUtf8| Refusal::QueryNotUtf8)
}

pub(super) fn page_size(call: &Call<'_>) -> Result<usize, Refusal> {
    let Some(text) = parameter(call, "limit")? else {
        return Ok(DEFAULT_PAGE);
    };
    let size = text.parse().ok().filter(|size| (1..=MAX_PAGE).contains(size));
    size.ok_or(Refusal::Parameter {
        name: "limit",
        expected: "a number from 1 to 1000",
    })
}

/// A cursor is the path of the last instance of a page: opaque to clients, and it needs no state here.
fn write_cursor(key: &InstanceKey) -> String {
    let route = Route::Instance {
        app: (&**key.app()).into(),
        id: (&**key.id()).into(),
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
    call.short(JSON, text(body), Part::Other)
}

fn text(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("plain structs are JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_cursors_milliseconds_or_utc() {
        let time = |millis| Some(Point::Time(Wall(millis)));
        assert_eq!(read_point("1795000000000"), time(1_795_000_000_000));
        assert_eq!(read_point("2026-11-18T14:26:40Z"), time(1_795_012_000_000));
        assert_eq!(read_point("2026-11-18T14:26:40.125Z"), time(1_795_012_000_125));
        let cursor = Cursor::parse("0123456789abcdef.7").expect("it is one");
        assert_eq!(read_point("0123456789abcdef.7"), Some(Point::Cursor(cursor)));
        for text in [
            "",
            "yesterday",
            "-1",
            "1.5",
            "99999999999999999999",
            "2026-11-18",
            "2026-11-18T14:26:40",
            "2026-13-18T14:26:40Z",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(read_point(text), None, "{text}");
        }
    }
}
