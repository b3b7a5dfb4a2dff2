//! Repair between nodes of ours: each request is one question to the registry.

use bytes::Bytes;
use eureka_registry_core::wire::{self, Format, RepairKind};

use crate::Answer;
use crate::call::Call;
use crate::negotiate;
use crate::outcome::{Refusal, TooLarge};

/// POST `/api/v1/repair/{kind}`. Nothing is held back from peers, and answers are compressed as they ask, whatever Java
/// does about its own.
pub(crate) fn answer(call: &Call<'_>, kind: RepairKind, body: &Bytes) -> Result<Answer, Refusal> {
    let headers = &call.parts.headers;
    if negotiate::body_format(headers) != Some(Format::Json) {
        return Err(Refusal::MediaType("Content-Type application/json"));
    }
    let limit = call.config().limits.batch;
    let body = call.unpacked(body, Format::Json, limit)?;
    let request =
        wire::read_repair_request(kind, &body).map_err(|error| Refusal::Unreadable(Format::Json, error))?;
    let answer = call.registry().repair_answer(call.peer(), request);
    let text = wire::write_repair_answer(&answer);
    if text.len() > limit {
        // Who asks takes no more either: it has to ask for fewer buckets.
        return Err(Refusal::TooLarge(TooLarge::Answer(limit)));
    }
    let gzip = negotiate::accepts_gzip(headers);
    Ok(call.api.encoded(Format::Json.content_type(), text, gzip))
}
