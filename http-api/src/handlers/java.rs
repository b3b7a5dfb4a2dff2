//! What Java does with parameters it cannot read: it fails with 500, after the half of the work that comes before.
//! Asked for by `compat.java-errors`.

use eureka_registry_core::{Changed, InstanceKey, KeyRef, Renewed, Status};

use crate::Answer;
use crate::call::Call;
use crate::outcome::{self, Refusal};

/// A renewal with an unreadable dirty timestamp renews first.
pub(super) fn renew_without_time(call: &Call<'_>, key: KeyRef<'_>) -> Result<Answer, Refusal> {
    match call.registry().renew(call.origin(), key, None, None) {
        Renewed::Missing => Err(Refusal::NotFound),
        Renewed::Ok | Renewed::Ahead | Renewed::Behind(_) => Err(Refusal::JavaFailure),
    }
}

/// A peer's renewal with an override that does not exist fails where it would have been stored.
pub(super) fn renew_without_override(
    call: &Call<'_>,
    key: KeyRef<'_>,
    last_dirty: Option<i64>,
) -> Result<Renewed, Refusal> {
    match call.registry().renew(call.origin(), key, last_dirty, None) {
        Renewed::Ahead => Err(Refusal::JavaFailure),
        renewed @ (Renewed::Ok | Renewed::Missing | Renewed::Behind(_)) => Ok(renewed),
    }
}

/// A status that does not exist fails once the instance was found.
pub(super) fn status_that_is_none(call: &Call<'_>, key: &InstanceKey) -> Refusal {
    match call.registry().find(key) {
        Some(_) => Refusal::JavaFailure,
        None => Refusal::NotFound,
    }
}

/// A status change with an unreadable dirty timestamp is made, but for the timestamp; it succeeds if there is nothing
/// to change.
pub(super) fn set_status_without_time(
    call: &Call<'_>,
    key: &InstanceKey,
    status: Status,
) -> Result<Answer, Refusal> {
    let view = call.registry().find(key).ok_or(Refusal::NotFound)?;
    let outcome = call.registry().set_override(call.origin(), key, status, None);
    failed_if(view.instance.status != status, outcome)
}

/// The same for the removal of an override.
pub(super) fn clear_status_without_time(
    call: &Call<'_>,
    key: &InstanceKey,
    status: Option<Status>,
) -> Result<Answer, Refusal> {
    let view = call.registry().find(key).ok_or(Refusal::NotFound)?;
    let outcome = call.registry().clear_override(call.origin(), key, status, None);
    failed_if(view.instance.overridden_status != Status::Unknown, outcome)
}

fn failed_if(something_changed: bool, outcome: Changed) -> Result<Answer, Refusal> {
    if something_changed {
        Err(Refusal::JavaFailure)
    } else {
        Ok(outcome::empty(outcome::changed(outcome)))
    }
}
