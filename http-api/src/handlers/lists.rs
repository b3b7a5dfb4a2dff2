//! The lists: all applications, the delta, one application, one virtual address. They can be held back.

use std::sync::Arc;

use eureka_registry_core::InstanceKey;
use eureka_registry_core::wire::Codec;
use http::HeaderValue;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};

use crate::Answer;
use crate::body::Body;
use crate::call::{Call, Part};
use crate::limiter::Target;
use crate::negotiate;
use crate::outcome::{self, Refusal};
use crate::pages::Listing;
use crate::selections::Kind;

/// GET `apps`
pub(crate) fn applications(call: &Call<'_>) -> Result<Answer, Refusal> {
    call.charge(Target::FullFetch)?;
    let list = List::asked_for(call, Part::List)?;
    list.answer(|| Body::list(list.listing.full.body(list.codec, list.gzip)))
}

/// GET `apps/delta`
pub(crate) fn delta(call: &Call<'_>) -> Result<Answer, Refusal> {
    call.charge(Target::Delta)?;
    let list = List::asked_for(call, Part::List)?;
    list.answer(|| Body::list(list.listing.delta.body(list.codec, list.gzip)))
}

/// GET `apps/{app}`
pub(crate) fn application(call: &Call<'_>, app: &str) -> Result<Answer, Refusal> {
    call.charge(Target::Application)?;
    let list = List::asked_for(call, Part::BelowApps)?;
    let name = InstanceKey::new(app, "");
    let selection = call
        .api
        .selections()
        .application(list.listing.snapshot(), name.app(), list.codec)
        .ok_or(Refusal::NotFound)?;
    list.answer(|| selection.encoded.bytes(list.gzip).into())
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
    let list = List::asked_for(call, Part::Other)?;
    let snapshot = list.listing.snapshot();
    let selection = call.api.selections().vip(snapshot, kind, address, list.codec);
    list.answer(|| selection.encoded.bytes(list.gzip).into())
}

/// What a reader of lists asked for, and the list that answers it.
struct List<'a> {
    call: &'a Call<'a>,
    listing: Arc<Listing>,
    codec: Codec,
    gzip: bool,
}

impl<'a> List<'a> {
    fn asked_for(call: &'a Call<'a>, part: Part) -> Result<Self, Refusal> {
        let accepted = call.accepted()?;
        Ok(Self {
            codec: negotiate::list_codec(accepted, &call.parts.headers),
            gzip: call.gzip(part)?,
            listing: call.api.listing()?,
            call,
        })
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
        let version = self.listing.snapshot().version();
        let tag = format!("W/\"{}-{version}-{}\"", config.node_id, name(self.codec));
        let held = self.call.parts.headers.get_all(IF_NONE_MATCH).iter();
        let unchanged = held
            .into_iter()
            .any(|line| line.to_str().is_ok_and(|line| names(line, &tag)));
        let mut answer = if unchanged {
            outcome::empty(StatusCode::NOT_MODIFIED)
        } else {
            outcome::with_body(StatusCode::OK, self.codec.content_type(), body())
        };
        let headers = answer.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(
            VARY,
            HeaderValue::from_static("Accept, Accept-Encoding, X-Eureka-Accept"),
        );
        if let Ok(tag) = HeaderValue::try_from(tag) {
            headers.insert(ETAG, tag);
        }
        if unchanged {
            headers.remove(CONTENT_TYPE);
        } else if self.gzip {
            outcome::mark_gzip(&mut answer);
        }
        Ok(answer)
    }
}

/// Whether `If-None-Match` names the tag, compared weakly.
fn names(line: &str, tag: &str) -> bool {
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    line.trim() == "*" || line.split(',').any(|held| opaque(held) == opaque(tag))
}

const fn name(codec: Codec) -> &'static str {
    match codec {
        Codec::CompactJson => "cjson",
        Codec::CompactXml => "cxml",
        Codec::Json => "json",
        Codec::Xml => "xml",
    }
}
