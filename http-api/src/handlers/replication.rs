//! Batches of peers: the same commands as single requests, item by item.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eureka_registry_core::wire::{
    self, BatchItem, DecodeError, Dialect, Format, Heartbeat, ItemAnswer, ItemError, Registration,
};
use eureka_registry_core::{InstanceKey, Origin, Renewal};
use http::StatusCode;

use crate::Answer;
use crate::call::{Call, Part};
use crate::negotiate;
use crate::outcome::{self, Refusal};

/// POST `peerreplication/batch`. The sender is a peer, whatever its headers say, as in Java.
pub(crate) fn batch(call: &Call<'_>, body: &Bytes) -> Result<Answer, Refusal> {
    let expected = "Content-Type application/json";
    let format = negotiate::body_format(&call.parts.headers).ok_or(Refusal::MediaType(expected))?;
    let answered = call.accepted()?.for_lists();
    let config = call.config();
    if format == Format::Xml {
        let error = DecodeError::Unexpected("batches are JSON".into());
        return Err(Refusal::Unreadable(format, error));
    }
    let body = call.unpacked(body, format, config.limits.batch)?;
    let items =
        wire::read_batch(&body, config.dialect).map_err(|error| Refusal::Unreadable(format, error))?;
    call.api.figures().batch_size.record(items.len() as f64);
    let answers = answer_all(call, items);
    for run in answers.chunk_by(|a, b| a.status == b.status) {
        let status = StatusCode::from_u16(run[0].status).unwrap_or(StatusCode::OK);
        call.api.figures().items(status, run.len());
    }
    let encoded = wire::write_batch_answer(answered, &answers, config.limits.batch);
    let left_out = u64::try_from(encoded.left_out).unwrap_or(u64::MAX);
    call.api.figures().batch_left_out.increment(left_out);
    call.short(answered.content_type(), encoded.text, Part::Other)
}

/// In the order of the items. Renewals that follow each other, and most of them do, are applied together.
fn answer_all(call: &Call<'_>, items: Vec<Result<BatchItem<'_>, ItemError>>) -> Vec<ItemAnswer> {
    let registry = call.registry();
    let origin = call.peer();
    let mut answers = Vec::with_capacity(items.len());
    let mut heartbeats = Vec::with_capacity(items.len());
    for item in items {
        if !matches!(item, Ok(BatchItem::Heartbeat(_))) {
            renew(call, &origin, &mut heartbeats, &mut answers);
        }
        let status = match item {
            Ok(BatchItem::Heartbeat(heartbeat)) => {
                heartbeats.push(heartbeat);
                continue;
            }
            Ok(BatchItem::Register { key, registration }) => {
                register(call, origin.clone(), &key, *registration)
            }
            Ok(BatchItem::Cancel { key }) => outcome::changed(registry.cancel(origin.clone(), &key)),
            Ok(BatchItem::StatusUpdate {
                key,
                status,
                last_dirty,
            }) => outcome::changed(registry.set_override(origin.clone(), &key, status, last_dirty)),
            Ok(BatchItem::DeleteStatusOverride {
                key,
                status,
                last_dirty,
            }) => outcome::changed(registry.clear_override(origin.clone(), &key, status, last_dirty)),
            Err(error) => {
                if let ItemError::Registration { key, last_dirty, .. } = &error {
                    remember(call, key, *last_dirty);
                }
                outcome::unreadable_item(&error, call.config().java_errors)
            }
        };
        answers.push(ItemAnswer {
            status: status.as_u16(),
            newer: None,
        });
    }
    renew(call, &origin, &mut heartbeats, &mut answers);
    answers
}

fn renew(
    call: &Call<'_>,
    origin: &Origin,
    heartbeats: &mut Vec<Heartbeat<'_>>,
    answers: &mut Vec<ItemAnswer>,
) {
    let renewals = heartbeats.iter().map(|heartbeat| Renewal {
        key: heartbeat.key(),
        last_dirty: heartbeat.last_dirty,
        overridden: heartbeat.overridden,
    });
    call.registry().renew_all(origin, renewals, |renewed| {
        let (status, newer) = outcome::renewed(renewed);
        answers.push(ItemAnswer {
            status: status.as_u16(),
            newer,
        });
    });
    heartbeats.clear();
}

/// Always 200, as in Java: anything else would make the sender drop the whole batch, or send it again.
fn register(call: &Call<'_>, origin: Origin, key: &InstanceKey, registration: Registration) -> StatusCode {
    let last_dirty = registration.last_dirty;
    match registration.validate(key.app()) {
        Ok(instance) => {
            call.registry()
                .register(origin, Arc::new(instance), Duration::ZERO);
        }
        Err(_) => {
            call.api.figures().batch_invalid.increment(1);
            remember(call, key, last_dirty);
        }
    }
    StatusCode::OK
}

/// What was not taken is not missing: a 404 to its heartbeats would make Java's server send it again with each of them.
/// Java itself answers so.
fn remember(call: &Call<'_>, key: &InstanceKey, last_dirty: Option<i64>) {
    if let (Dialect::Lenient, Some(last_dirty)) = (call.config().dialect, last_dirty) {
        call.registry().refuse(key, last_dirty);
    }
}
