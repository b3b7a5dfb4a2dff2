//! The lists: all applications, the delta, one application, one virtual address. They can be held back.

use eureka_registry_core::InstanceKey;
use eureka_registry_core::wire::Codec;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, StatusCode};

use crate::Answer;
use crate::body::Body;
use crate::call::{Call, Part};
use crate::encoder::Form;
use crate::limiter::Target;
use crate::negotiate;
use crate::outcome::{self, Refusal};
use crate::query::NotUtf8;
use crate::regions::{NotRead, Set};
use crate::respond::Lists;
use crate::selections::{Kind, Selections};

/// GET `apps`
pub(crate) fn applications(call: &Call<'_>) -> Result<Answer, Refusal> {
    call.charge(Target::FullFetch)?;
    let list = List::asked_for(call, Part::List, regions_named(call)?)?;
    let (now, form) = (call.registry().now().mono, list.form());
    call.api.encoder().asked(now, form);
    list.answer(|| list.lists.listing.full(now).body(form))
}

/// GET `apps/delta`
pub(crate) fn delta(call: &Call<'_>) -> Result<Answer, Refusal> {
    call.charge(Target::Delta)?;
    let list = List::asked_for(call, Part::List, regions_named(call)?)?;
    list.answer(|| list.lists.listing.delta().body(list.form()))
}

/// GET `apps/{app}`
pub(crate) fn application(call: &Call<'_>, app: &str) -> Result<Answer, Refusal> {
    call.charge(Target::Application)?;
    let name = InstanceKey::new(app, "");
    let own = List::asked_for(call, Part::BelowApps, Set::NONE)?;
    if let Some(answer) = own.application(name.app()) {
        return answer;
    }
    let set = regions_unnamed(call);
    if set == Set::NONE {
        return Err(Refusal::NotFound);
    }
    let others = List::asked_for(call, Part::BelowApps, set)?;
    others.application(name.app()).ok_or(Refusal::NotFound)?
}

/// GET `vips/{address}`
pub(crate) fn vip(call: &Call<'_>, address: &str) -> Result<Answer, Refusal> {
    by_address(call, Kind::Vip, address)
}

/// GET `svips/{address}`
pub(crate) fn secure_vip(call: &Call<'_>, address: &str) -> Result<Answer, Refusal> {
    by_address(call, Kind::SecureVip, address)
}

fn by_address(call: &Call<'_>, kind: Kind, address: &str) -> Result<Answer, Refusal> {
    let list = List::asked_for(call, Part::Other, regions_unnamed(call))?;
    let snapshot = list.lists.listing.snapshot();
    let selection = list.selections().vip(snapshot, kind, address, list.codec);
    list.answer(|| selection.encoded.bytes(list.gzip).into())
}

/// The regions that are shown beside the node's own, by `regions=`.
fn regions_named(call: &Call<'_>) -> Result<Set, Refusal> {
    let Some(regions) = &call.config().regions else {
        return Ok(Set::NONE);
    };
    if call.reads_for_a_region() {
        return Ok(Set::NONE);
    }
    let names = call
        .query
        .get("regions")
        .map_err(|NotUtf8| Refusal::QueryNotUtf8)?;
    match names.filter(|names| !names.is_empty()) {
        None => Ok(regions.fallback()),
        Some(names) => {
            let now = call.registry().now().mono;
            regions.named(now, &names).map_err(|NotRead| Refusal::Held)
        }
    }
}

/// Those that are shown where no reader names any: Java looks at `regions=` nowhere else.
fn regions_unnamed(call: &Call<'_>) -> Set {
    match &call.config().regions {
        Some(regions) if !call.reads_for_a_region() => regions.fallback(),
        Some(_) | None => Set::NONE,
    }
}

/// What a reader of lists asked for, and the list that answers it.
struct List<'a> {
    call: &'a Call<'a>,
    lists: Lists,
    codec: Codec,
    gzip: bool,
}

impl<'a> List<'a> {
    fn asked_for(call: &'a Call<'a>, part: Part, set: Set) -> Result<Self, Refusal> {
        let accepted = call.accepted()?;
        let codec = negotiate::list_codec(accepted, &call.parts.headers);
        let gzip = call.gzip(part)?;
        Ok(Self {
            lists: call.api.lists(set)?,
            call,
            codec,
            gzip,
        })
    }

    fn form(&self) -> Form {
        Form {
            codec: self.codec,
            gzip: self.gzip,
        }
    }

    fn selections(&self) -> &Selections {
        let merged = self.lists.merged.as_ref().map(|merged| merged.selections());
        merged.unwrap_or_else(|| self.call.api.selections())
    }

    /// The answer with the application of this (upper-case) name, if it is in the list.
    fn application(&self, name: &str) -> Option<Result<Answer, Refusal>> {
        let snapshot = self.lists.listing.snapshot();
        let selection = self.selections().application(snapshot, name, self.codec)?;
        Some(self.answer(|| selection.encoded.bytes(self.gzip).into()))
    }

    /// The answer, with a body only if the client does not hold this version of it.
    fn answer(&self, body: impl FnOnce() -> Body) -> Result<Answer, Refusal> {
        let config = self.call.config();
        if !config.conditional {
            let mut answer = outcome::with_body(StatusCode::OK, self.codec.content_type(), body());
            if self.gzip {
                outcome::mark_gzip(&mut answer);
            }
            return Ok(answer);
        }
        let head = self.lists.listing.head(&config.node_id, self.form());
        let unchanged = self.is_held(head);
        let mut answer = if unchanged {
            outcome::empty(StatusCode::NOT_MODIFIED)
        } else {
            Answer::new(body())
        };
        let headers = answer.headers_mut();
        headers.clone_from(head);
        if unchanged {
            headers.remove(CONTENT_TYPE);
            headers.remove(CONTENT_ENCODING);
        }
        Ok(answer)
    }

    /// Whether the client says that it holds this version.
    fn is_held(&self, head: &HeaderMap) -> bool {
        let lines = self.call.parts.headers.get_all(IF_NONE_MATCH);
        lines.into_iter().any(|line| {
            let tag = head.get(ETAG).and_then(|tag| tag.to_str().ok());
            line.to_str().is_ok_and(|line| names(line, tag))
        })
    }
}

/// Whether `If-None-Match` names the tag, compared weakly.
fn names(line: &str, tag: Option<&str>) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    let is_it = |tag: &str| line.split(',').any(|held| opaque(held) == opaque(tag));
    line.trim() == "*" || tag.is_some_and(is_it)
}
