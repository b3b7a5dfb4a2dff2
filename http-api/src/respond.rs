//! One request, one answer, without waiting for anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use eureka_registry_core::wire::{DecodeError, Format, Route};
use eureka_registry_core::{Origin, PeerId, Reads, RegistryHandle, Snapshot};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderName};
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response};
use http_body::Body as _;
use parking_lot::Mutex;

use crate::body::Body;
use crate::class::Class;
use crate::config::{Config, Gzip};
use crate::encoder::Encoder;
use crate::figures::{Figures, Operation};
use crate::gzip;
use crate::handlers::{instance, lists, ours, replication, server};
use crate::limiter::{Limiter, Target, Verdict};
use crate::negotiate::{self, Accepted};
use crate::outcome::{self, Refusal, TooLarge};
use crate::pages::{Listing, Pages};
use crate::query::Query;
use crate::selections::Selections;

/// What a request is answered with.
pub type Answer = Response<Body>;

/// The name of whoever sent a request, as far as the server knows it: put it into the request's extensions. Only
/// requests of peers are named.
#[derive(Clone, Debug)]
pub struct Sender(pub Arc<str>);

/// Marks the request of a peer, if its value is exactly `true`.
const X_REPLICATION: HeaderName = HeaderName::from_static("x-netflix-discovery-replication");
/// What a Java client or server calls itself.
const IDENTITY_NAME: HeaderName = HeaderName::from_static("discoveryidentity-name");
/// Where it says it is.
const IDENTITY_ID: HeaderName = HeaderName::from_static("discoveryidentity-id");

/// Eureka's REST API, and ours, over a registry. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: RegistryHandle,
    config: Config,
    encoder: Arc<Encoder>,
    pages: Pages,
    selections: Selections,
    limiter: Limiter,
    /// Bytes of bodies that are being collected.
    buffered: AtomicUsize,
    /// The snapshot that lists show while they may lag, and the interval it was taken in.
    lagging: Mutex<Option<(u64, Snapshot)>>,
}

impl Api {
    /// The API over `registry`. A `metrics` recorder must be installed before.
    pub fn new(registry: RegistryHandle, config: Config) -> Self {
        let encoder = Arc::new(Encoder::new(&config));
        Self(Arc::new(Inner {
            registry,
            pages: Pages::new(Arc::clone(&encoder)),
            selections: Selections::new(Arc::clone(&encoder)),
            limiter: Limiter::new(config.rate_limits.clone()),
            buffered: AtomicUsize::new(0),
            lagging: Mutex::new(None),
            encoder,
            config,
        }))
    }

    /// Answers a request whose body is there. Changes the registry at most as the request says, and not at all where
    /// it answers 4xx.
    pub fn respond(&self, request: Request<Bytes>) -> Answer {
        let (parts, body) = request.into_parts();
        let (operation, result) = self.route(&parts, body);
        let mut answer = result.unwrap_or_else(|refusal| refusal.into_answer(self.config()));
        self.figures().answered(operation, answer.status());
        if parts.method == Method::HEAD {
            drop_body(&mut answer);
        }
        answer
    }

    /// Answers a request of which the body did not come whole.
    pub(crate) fn refuse(&self, parts: &Parts, refusal: Refusal) -> Answer {
        let answer = refusal.into_answer(self.config());
        self.figures().answered(operation(parts), answer.status());
        answer
    }

    /// How it is configured.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Bytes of encoded answers that are kept for further readers.
    pub fn encoded_bytes(&self) -> usize {
        self.0.encoder.kept()
    }

    /// Whether `len` more bytes of bodies may be held; if so they count until [`forget`](Self::forget).
    pub(crate) fn hold(&self, len: usize) -> bool {
        let before = self.0.buffered.fetch_add(len, Ordering::Relaxed);
        let fits = before.saturating_add(len) <= self.config().limits.buffered;
        if !fits {
            self.forget(len);
        }
        fits
    }

    pub(crate) fn forget(&self, len: usize) {
        self.0.buffered.fetch_sub(len, Ordering::Relaxed);
    }

    pub(crate) fn registry(&self) -> &RegistryHandle {
        &self.0.registry
    }

    pub(crate) fn figures(&self) -> &Figures {
        &self.0.encoder.figures
    }

    pub(crate) fn selections(&self) -> &Selections {
        &self.0.selections
    }

    /// The list that readers are shown, unless reads are held. Everything in one answer comes from it.
    pub(crate) fn listing(&self) -> Result<Arc<Listing>, Refusal> {
        let snapshot = self.listed_snapshot();
        match snapshot.reads() {
            Reads::Open => Ok(self.0.pages.listing(&snapshot)),
            Reads::Held(_) => Err(Refusal::Held),
        }
    }

    fn listed_snapshot(&self) -> Snapshot {
        let interval = u64::try_from(self.config().update_interval.as_millis()).unwrap_or(u64::MAX);
        if interval == 0 {
            return self.registry().snapshot();
        }
        // Java renews its cache at multiples of the wall clock.
        let tick = self.registry().now().wall.0 / interval;
        let mut lagging = self.0.lagging.lock();
        match &*lagging {
            Some((taken, snapshot)) if *taken == tick && snapshot.reads() == Reads::Open => snapshot.clone(),
            _ => {
                let snapshot = self.registry().snapshot();
                *lagging = Some((tick, snapshot.clone()));
                snapshot
            }
        }
    }

    fn route(&self, parts: &Parts, body: Bytes) -> (Operation, Result<Answer, Refusal>) {
        let uri = &parts.uri;
        if uri.path().len() + uri.query().map_or(0, str::len) > self.config().limits.url {
            return (Operation::Other, Err(Refusal::UriTooLong));
        }
        let Some(route) = Route::parse(uri.path()) else {
            return (Operation::Other, Err(Refusal::NotFound));
        };
        let call = Call {
            api: self,
            parts,
            query: Query::new(uri.query()),
        };
        let method = match &parts.method {
            head if head == Method::HEAD => &Method::GET,
            method => method,
        };
        dispatch(&call, route, method, body)
    }
}

/// What a request would have been.
fn operation(parts: &Parts) -> Operation {
    match Class::of(&parts.method, parts.uri.path()) {
        Class::Registration => Operation::Register,
        Class::Peer => Operation::Batch,
        Class::FullFetch | Class::Read | Class::Renewal | Class::Other => Operation::Other,
    }
}

/// From route and method to the handler: the table of the API.
fn dispatch(
    call: &Call<'_>,
    route: Route,
    method: &Method,
    body: Bytes,
) -> (Operation, Result<Answer, Refusal>) {
    use Operation as Op;
    match (method.as_str(), route) {
        ("PUT", Route::Instance { app, id }) => (Op::Renew, instance::renew(call, &app, &id)),
        ("POST", Route::App { app }) => (Op::Register, instance::register(call, &app, &body)),
        ("DELETE", Route::Instance { app, id }) => (Op::Cancel, instance::cancel(call, &app, &id)),
        ("GET", Route::Instance { app, id }) => (Op::Instance, instance::get(call, &app, &id)),
        ("GET", Route::InstanceById { id }) => (Op::Instance, instance::get_by_id(call, &id)),
        ("PUT", Route::InstanceStatus { app, id }) => (Op::SetStatus, instance::set_status(call, &app, &id)),
        ("DELETE", Route::InstanceStatus { app, id }) => {
            (Op::ClearStatus, instance::clear_status(call, &app, &id))
        }
        ("PUT", Route::InstanceMetadata { app, id }) => (Op::Metadata, instance::metadata(call, &app, &id)),
        ("GET", Route::Apps) => (Op::Applications, lists::applications(call)),
        ("GET", Route::Delta) => (Op::Delta, lists::delta(call)),
        ("GET", Route::App { app }) => (Op::Application, lists::application(call, &app)),
        ("GET", Route::Vip { address }) => (Op::Vip, lists::vip(call, &address)),
        ("GET", Route::SecureVip { address }) => (Op::Vip, lists::secure_vip(call, &address)),
        ("POST", Route::Batch) => (Op::Batch, replication::batch(call, &body)),
        ("PUT", Route::AsgStatus { .. }) => (Op::Asg, Err(Refusal::Unsupported)),
        ("GET", Route::Status) => (Op::Status, server::status(call)),
        ("GET", Route::StatusOverrides) => (Op::Status, server::overrides(call)),
        ("GET", Route::Node) => (Op::Node, ours::node(call)),
        ("GET", Route::Preservation) => (Op::Preservation, ours::preservation(call)),
        ("POST", Route::PreservationAccept) => (Op::Accept, ours::accept(call)),
        ("GET", Route::Lastn) => (Op::Lastn, ours::lastn(call)),
        ("GET", Route::Instances) => (Op::List, ours::instances(call)),
        ("GET", Route::Changes) => (Op::Changes, ours::changes(call)),
        ("GET", Route::Healthcheck) => (Op::Healthcheck, server::healthcheck(call)),
        // Peers come with replication.
        (_, Route::Peers) => (Op::Other, Err(Refusal::NotFound)),
        ("OPTIONS", route) => (Op::Other, Ok(server::options(call, &route))),
        (_, route) => (Op::Other, Err(Refusal::Method(route.methods()))),
    }
}

/// A request as handlers see it.
pub(crate) struct Call<'a> {
    pub(crate) api: &'a Api,
    parts: &'a Parts,
    pub(crate) query: Query<'a>,
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

impl Call<'_> {
    pub(crate) fn registry(&self) -> &RegistryHandle {
        self.api.registry()
    }

    pub(crate) fn config(&self) -> &Config {
        self.api.config()
    }

    pub(crate) fn parts(&self) -> &Parts {
        self.parts
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
        match self.parts.headers.get(X_REPLICATION) {
            Some(value) if value == "true" => self.peer(),
            Some(_) | None => Origin::Client,
        }
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
                Arc::from(said.unwrap_or("unnamed"))
            }
        };
        Origin::Peer(PeerId(name))
    }

    /// Charges a read to the rate limiter.
    pub(crate) fn charge(&self, target: Target) -> Result<(), Refusal> {
        let name = self
            .parts
            .headers
            .get(IDENTITY_NAME)
            .and_then(|value| value.to_str().ok());
        match self
            .api
            .0
            .limiter
            .charge(self.registry().now().mono, target, name)
        {
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
        let bytes = if gzip {
            self.api.0.encoder.compressors.member(&text)
        } else {
            text.into()
        };
        let mut answer = outcome::with_body(http::StatusCode::OK, content_type, bytes.into());
        if gzip {
            outcome::mark_gzip(&mut answer);
        }
        Ok(answer)
    }
}

/// Leaves the length of the body for HEAD, where it is known without encoding anything.
fn drop_body(answer: &mut Answer) {
    let body = std::mem::replace(answer.body_mut(), Body::empty());
    if let Some(len) = body.size_hint().exact() {
        answer
            .headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from(len));
    }
}
