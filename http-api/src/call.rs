//! A request as handlers see it: what it accepts, who sent it, and its body unpacked.

use std::sync::Arc;

use bytes::Bytes;
use eureka_registry_core::wire::{DecodeError, Format};
use eureka_registry_core::{Origin, PeerId, RegistryHandle};
use http::header::{CONTENT_ENCODING, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};

use crate::config::{Config, Gzip};
use crate::gzip;
use crate::limiter::{Target, Verdict};
use crate::negotiate::{self, Accepted};
use crate::outcome::{Refusal, TooLarge};
use crate::query::Query;
use crate::respond::{Answer, Api};

/// The name of whoever sent a request, as far as the server knows it: put it into the request's extensions. Only
/// requests of peers are named.
#[derive(Clone, Debug)]
pub struct Sender(pub Arc<str>);

/// Marks the request of a peer, if its value is exactly `true`.
const X_REPLICATION: HeaderName = HeaderName::from_static("x-netflix-discovery-replication");
/// The id of a node of ours, on requests to other nodes and on answers to them.
pub(crate) const X_NODE: HeaderName = HeaderName::from_static("x-eureka-node");
/// What a Java client or server calls itself.
const IDENTITY_NAME: HeaderName = HeaderName::from_static("discoveryidentity-name");
/// What servers call themselves that read other regions.
const SERVER: &str = "DefaultServer";
/// Where it says it is.
const IDENTITY_ID: HeaderName = HeaderName::from_static("discoveryidentity-id");

/// Bytes of the longest name of a sender that is believed.
const MAX_SENDER: usize = 255;

/// A request as handlers see it.
pub(crate) struct Call<'a> {
    pub(crate) api: &'a Api,
    pub(crate) parts: &'a Parts,
    pub(crate) query: Query<'a>,
    replicated: bool,
}

/// Which answers Java compresses differ by what they answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// `apps` and `apps/delta`.
    List,
    /// What stands below `apps`.
    BelowApps,
    /// Everything else.
    Other,
}

/// The first value of a header. Requests have few headers, and to compare their names takes less than to hash a long one.
pub(crate) fn header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    headers
        .iter()
        .find(|(other, _)| *other == name)
        .map(|(_, value)| value)
}

impl<'a> Call<'a> {
    pub(crate) fn new(api: &'a Api, parts: &'a Parts) -> Self {
        Self {
            api,
            parts,
            query: Query::new(parts.uri.query()),
            replicated: header(&parts.headers, &X_REPLICATION).is_some_and(|value| value == "true"),
        }
    }
}

impl Call<'_> {
    pub(crate) fn registry(&self) -> &RegistryHandle {
        self.api.registry()
    }

    pub(crate) fn config(&self) -> &Config {
        self.api.config()
    }

    /// What the client accepts; refused if that is neither JSON nor XML.
    pub(crate) fn accepted(&self) -> Result<Accepted, Refusal> {
        Accepted::read(&self.parts.headers).ok_or(Refusal::NotAcceptable)
    }

    /// Whether the answer to this GET is compressed.
    pub(crate) fn gzip(&self, part: Part) -> Result<bool, Refusal> {
        let headers = &self.parts.headers;
        match self.config().gzip {
            Gzip::Asked => Ok(negotiate::accepts_gzip(headers)),
            Gzip::Lists => Ok(part == Part::List && negotiate::mentions_gzip(headers) == Some(true)),
            // Netflix's filter looks at GET alone.
            Gzip::Enforced if self.parts.method == Method::HEAD => Ok(false),
            Gzip::Enforced => match (negotiate::mentions_gzip(headers), part) {
                (Some(false), Part::List | Part::BelowApps) => Err(Refusal::NotAcceptable),
                (mentioned, part) => Ok(mentioned.unwrap_or(part != Part::Other)),
            },
        }
    }

    /// Who asks: a peer if the header says exactly `true`.
    pub(crate) fn origin(&self) -> Origin {
        if self.is_replicated() {
            self.peer()
        } else {
            Origin::Client
        }
    }

    /// Whether a single request says of itself that a server sends it on.
    pub(crate) fn is_replicated(&self) -> bool {
        self.replicated
    }

    /// Whether a server asks for what it is to show of this region. It gets the node's own registry alone: what this node
    /// knows from others would come back to them for ever.
    pub(crate) fn reads_for_a_region(&self) -> bool {
        self.identity() == Some(SERVER)
    }

    fn identity(&self) -> Option<&str> {
        self.parts
            .headers
            .get(IDENTITY_NAME)
            .and_then(|value| value.to_str().ok())
    }

    /// Whether this very node sent the request, by way of an address that leads back to it.
    pub(crate) fn is_own(&self) -> bool {
        let own = self.config().node_id.as_bytes();
        self.parts.headers.get_all(X_NODE).iter().any(|id| id == own)
    }

    /// The sender as a peer: what the server knows of it, else what it says itself.
    pub(crate) fn peer(&self) -> Origin {
        let name = match self.parts.extensions.get::<Sender>() {
            Some(Sender(name)) => Arc::clone(name),
            None => {
                let said = self
                    .parts
                    .headers
                    .get(IDENTITY_ID)
                    .and_then(|value| value.to_str().ok());
                let short = said.filter(|said| said.len() <= MAX_SENDER);
                Arc::from(short.unwrap_or("unnamed"))
            }
        };
        Origin::Peer(PeerId(name))
    }

    /// Charges a read to the rate limiter.
    pub(crate) fn charge(&self, target: Target) -> Result<(), Refusal> {
        let now = self.registry().now().mono;
        match self.api.limiter().charge(now, target, self.identity()) {
            Verdict::Pass => Ok(()),
            Verdict::Candidate => {
                self.api.figures().rate_candidates.increment(1);
                Ok(())
            }
            Verdict::Refused => {
                self.api.figures().rate_refused.increment(1);
                Err(Refusal::RateLimited)
            }
        }
    }

    /// The body unpacked, if it is no longer than `limit` then. `format` is that of the request.
    pub(crate) fn unpacked(&self, body: &Bytes, format: Format, limit: usize) -> Result<Bytes, Refusal> {
        if body.len() > limit {
            return Err(Refusal::TooLarge(TooLarge::Body(limit)));
        }
        let coding = self
            .parts
            .headers
            .get(CONTENT_ENCODING)
            .map(HeaderValue::as_bytes);
        match coding {
            None | Some(b"" | b"identity") => Ok(body.clone()),
            Some(b"gzip" | b"x-gzip") => match gzip::unpack(body, limit) {
                Ok(Some(text)) => Ok(text.into()),
                Ok(None) => Err(Refusal::TooLarge(TooLarge::Body(limit))),
                Err(error) => {
                    let error = DecodeError::Malformed(format!("gzip: {error}"));
                    Err(Refusal::Unreadable(format, error))
                }
            },
            Some(_) => Err(Refusal::MediaType("Content-Encoding gzip or identity")),
        }
    }

    /// A short body made for this answer alone, compressed where that is asked.
    pub(crate) fn short(
        &self,
        content_type: &'static str,
        text: Vec<u8>,
        part: Part,
    ) -> Result<Answer, Refusal> {
        let gzip = self.gzip(part)?;
        Ok(self.api.encoded(content_type, text, gzip))
    }
}
