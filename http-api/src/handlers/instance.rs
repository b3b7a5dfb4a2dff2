//! Single instances: register, renew, cancel, status, metadata, and looking one up. Never held back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eureka_registry_core::wire;
use eureka_registry_core::{Changed, Excess, Instance, InstanceKey, KeyRef, LeaseView, Origin, Status};

use super::java;
use crate::Answer;
use crate::call::{Call, Part};
use crate::negotiate;
use crate::outcome::{self, Refusal};
use crate::query::{NotUtf8, Query};
use crate::regions::RemoteRegions;

/// PUT `apps/{app}/{id}`: by far the most frequent request.
pub(crate) fn renew(call: &Call<'_>, app: &str, id: &str) -> Result<Answer, Refusal> {
    let accepted = call.accepted()?;
    let key = KeyRef::new(app, id);
    let origin = call.origin();
    let last_dirty = match last_dirty(call.query) {
        Err(Refusal::Parameter { .. }) if call.config().java_errors => {
            return java::renew_without_time(call, key);
        }
        last_dirty => last_dirty?,
    };
    let overridden = match &origin {
        Origin::Peer(_) => status(call.query, "overriddenstatus"),
        Origin::Client | Origin::Operator | Origin::Own => Ok(None),
    };
    let renewed = match overridden {
        Err(Refusal::Parameter { .. }) if call.config().java_errors => {
            java::renew_without_override(call, key, last_dirty)?
        }
        overridden => call.registry().renew(origin, key, last_dirty, overridden?),
    };
    let (status, newer) = outcome::renewed(renewed);
    let Some(newer) = newer else {
        return Ok(outcome::empty(status));
    };
    let format = accepted.for_instances();
    let mut text = Vec::new();
    wire::write_instance(format, &newer, call.config().masked_status, &mut text);
    Ok(outcome::with_body(status, format.content_type(), text.into()))
}

/// POST `apps/{app}`
pub(crate) fn register(call: &Call<'_>, app: &str, body: &Bytes) -> Result<Answer, Refusal> {
    let expected = "Content-Type application/json or application/xml in UTF-8";
    let format = negotiate::body_format(&call.parts.headers).ok_or(Refusal::MediaType(expected))?;
    let accepted = call.accepted()?;
    let config = call.config();
    let body = call.unpacked(body, format, config.limits.body)?;
    let registration = wire::read_registration(format, &body, config.dialect)
        .map_err(|error| Refusal::Unreadable(format, error))?;
    let instance = registration
        .validate(app)
        .map_err(|invalid| Refusal::Invalid(accepted.for_instances(), invalid))?;
    let origin = call.origin();
    if !matches!(origin, Origin::Peer(_)) {
        instance.within(config.limits.of_instances())?;
    }
    let outcome = call
        .registry()
        .register(origin, Arc::new(instance), Duration::ZERO);
    Ok(outcome::empty(outcome::registered(outcome)))
}

/// DELETE `apps/{app}/{id}`
pub(crate) fn cancel(call: &Call<'_>, app: &str, id: &str) -> Result<Answer, Refusal> {
    call.accepted()?;
    let outcome = call.registry().cancel(call.origin(), &InstanceKey::new(app, id));
    Ok(outcome::empty(outcome::changed(outcome)))
}

/// GET `apps/{app}/{id}`
pub(crate) fn get(call: &Call<'_>, app: &str, id: &str) -> Result<Answer, Refusal> {
    let key = InstanceKey::new(app, id);
    let view = match call.registry().find(&key) {
        Some(view) => Some(Arc::new(view)),
        None => elsewhere(call).and_then(|regions| regions.find(&key)),
    };
    single(call, view, Part::BelowApps)
}

/// GET `instances/{id}`
pub(crate) fn get_by_id(call: &Call<'_>, id: &str) -> Result<Answer, Refusal> {
    let view = match call.registry().find_by_id(id) {
        Some(view) => Some(Arc::new(view)),
        None => elsewhere(call).and_then(|regions| regions.find_by_id(id)),
    };
    single(call, view, Part::Other)
}

/// PUT `apps/{app}/{id}/status`
pub(crate) fn set_status(call: &Call<'_>, app: &str, id: &str) -> Result<Answer, Refusal> {
    call.accepted()?;
    let key = InstanceKey::new(app, id);
    let java = call.config().java_errors;
    let value = match status(call.query, "value") {
        Ok(Some(value)) => value,
        Ok(None) | Err(Refusal::Parameter { .. }) if java => {
            return Err(java::status_that_is_none(call, &key));
        }
        Ok(None) => return Err(no_status("value")),
        Err(refusal) => return Err(refusal),
    };
    let last_dirty = match last_dirty(call.query) {
        Err(Refusal::Parameter { .. }) if java => {
            return java::set_status_without_time(call, &key, value);
        }
        last_dirty => last_dirty?,
    };
    let outcome = call
        .registry()
        .set_override(call.origin(), &key, value, last_dirty);
    status_changed(call, &key, outcome)
}

/// DELETE `apps/{app}/{id}/status`
pub(crate) fn clear_status(call: &Call<'_>, app: &str, id: &str) -> Result<Answer, Refusal> {
    call.accepted()?;
    let key = InstanceKey::new(app, id);
    let java = call.config().java_errors;
    let value = match status(call.query, "value") {
        Err(Refusal::Parameter { .. }) if java => {
            return Err(java::status_that_is_none(call, &key));
        }
        value => value?,
    };
    let last_dirty = match last_dirty(call.query) {
        Err(Refusal::Parameter { .. }) if java => {
            return java::clear_status_without_time(call, &key, value);
        }
        last_dirty => last_dirty?,
    };
    let outcome = call
        .registry()
        .clear_override(call.origin(), &key, value, last_dirty);
    status_changed(call, &key, outcome)
}

/// PUT `apps/{app}/{id}/metadata`
pub(crate) fn metadata(call: &Call<'_>, app: &str, id: &str) -> Result<Answer, Refusal> {
    call.accepted()?;
    let mut known: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut entries: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for pair in call.query.pairs() {
        let (key, value) = pair.map_err(|NotUtf8| Refusal::QueryNotUtf8)?;
        let key: Arc<str> = key.into();
        if known.insert(Arc::clone(&key)) {
            entries.push((key, value.into()));
        }
    }
    let key = InstanceKey::new(app, id);
    let view = call.registry().find(&key).ok_or(Refusal::NotFound)?;
    let mut merged = Instance::clone(&view.instance);
    merged.metadata.extend(entries.iter().cloned());
    let limit = call.config().limits.metadata;
    if merged.metadata_bytes() > limit {
        return Err(Excess::Metadata { limit }.into());
    }
    // Java ignores the replication header here.
    let outcome = call.registry().update_metadata(Origin::Client, &key, &entries);
    Ok(outcome::empty(outcome::changed(outcome)))
}

/// Java looks the instance up in other regions, too, and then fails to change it.
fn status_changed(call: &Call<'_>, key: &InstanceKey, outcome: Changed) -> Result<Answer, Refusal> {
    let known = || elsewhere(call).and_then(|regions| regions.find(key)).is_some();
    if outcome == Changed::Missing && call.config().java_errors && known() {
        return Err(Refusal::JavaFailure);
    }
    Ok(outcome::empty(outcome::changed(outcome)))
}

/// The regions in which somebody may look for an instance that is not here, as in Java also without fallback.
fn elsewhere<'a>(call: &Call<'a>) -> Option<&'a RemoteRegions> {
    let regions = call.api.config().regions.as_ref()?;
    (!call.reads_for_a_region()).then_some(regions)
}

fn single(call: &Call<'_>, view: Option<Arc<LeaseView>>, part: Part) -> Result<Answer, Refusal> {
    let format = call.accepted()?.for_instances();
    let view = view.ok_or(Refusal::NotFound)?;
    let mut text = Vec::new();
    wire::write_instance(format, &view, call.config().masked_status, &mut text);
    call.short(format.content_type(), text, part)
}

/// The sender's dirty timestamp.
fn last_dirty(query: Query<'_>) -> Result<Option<i64>, Refusal> {
    let name = "lastDirtyTimestamp";
    let Some(text) = query.get(name).map_err(|NotUtf8| Refusal::QueryNotUtf8)? else {
        return Ok(None);
    };
    let expected = "Unix milliseconds";
    text.parse()
        .map(Some)
        .map_err(|_| Refusal::Parameter { name, expected })
}

/// The status a parameter names exactly.
fn status(query: Query<'_>, name: &'static str) -> Result<Option<Status>, Refusal> {
    let Some(text) = query.get(name).map_err(|NotUtf8| Refusal::QueryNotUtf8)? else {
        return Ok(None);
    };
    Status::parse(&text).map(Some).ok_or_else(|| no_status(name))
}

const fn no_status(name: &'static str) -> Refusal {
    let expected = "UP, DOWN, STARTING, OUT_OF_SERVICE or UNKNOWN";
    Refusal::Parameter { name, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dirty_timestamps_are_whole_numbers() {
        assert_eq!(
            last_dirty(Query::new(Some("lastDirtyTimestamp=-5"))).unwrap(),
            Some(-5)
        );
        assert_eq!(last_dirty(Query::new(Some("status=UP"))).unwrap(), None);
        for bad in ["", "abc", "1.5", "9223372036854775808"] {
            let query = format!("lastDirtyTimestamp={bad}");
            assert!(last_dirty(Query::new(Some(&query))).is_err(), "{bad}");
        }
    }
}
