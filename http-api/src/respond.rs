//! One request, one answer, without waiting for anything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use eureka_registry_core::wire::Route;
use eureka_registry_core::{Feed, PageCache, Reads, RegistryHandle, Snapshot};
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body as _;
use parking_lot::Mutex;

use crate::body::Body;
use crate::call::{Call, X_NODE, header};
use crate::class::Class;
use crate::config::Config;
use crate::encoder::Encoder;
use crate::figures::{Figures, Operation};
use crate::gzip::Compressors;
use crate::handlers::{changes, instance, lists, ours, repair, replication, server};
use crate::limiter::Limiter;
use crate::outcome::{self, Refusal};
use crate::pages::{Listing, Pages};
use crate::past::Pasts;
use crate::regions::{Merged, Set};
use crate::selections::Selections;
use crate::watch::{Forms, LongPoll, Text};

/// What a request is answered with.
pub type Answer = Response<Body>;

/// What can be said of a request when it has come.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The answer.
    Now(Answer),
    /// It is answered when there is something to tell.
    Later(Box<LongPoll>),
}

/// What answers a reader of lists.
pub(crate) struct Lists {
    pub(crate) listing: Arc<Listing>,
    /// Where the list shows other regions, too.
    pub(crate) merged: Option<Arc<Merged>>,
}

/// Eureka's REST API, and ours, over a registry. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: RegistryHandle,
    /// The node's id as told to nodes of ours.
    node: Option<HeaderValue>,
    config: Config,
    encoder: Arc<Encoder>,
    pages: Pages,
    selections: Selections,
    limiter: Limiter,
    feed: Arc<Feed<Forms>>,
    event_pages: PageCache<Text>,
    pasts: Pasts,
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
            node: HeaderValue::from_str(&config.node_id).ok(),
            pages: Pages::new(Arc::clone(&encoder)),
            selections: Selections::new(Arc::clone(&encoder)),
            limiter: Limiter::new(config.rate_limits.clone()),
            feed: Feed::new(registry.clone(), config.feed_kept),
            event_pages: PageCache::default(),
            pasts: Pasts::default(),
            buffered: AtomicUsize::new(0),
            lagging: Mutex::new(None),
            registry,
            encoder,
            config,
        }))
    }

    /// Answers a request whose body is there. What is refused as wrong (400, 403, 405, 406, 413, 414, 415) changed
    /// nothing; a renewal that is answered 404 or 409 because of its timestamp did renew, as in Java. A long poll is
    /// answered as if its `wait` were 0: [`ApiService`](crate::ApiService) waits.
    pub fn respond(&self, request: Request<Bytes>) -> Answer {
        let (parts, body) = request.into_parts();
        match self.begin(&parts, body) {
            Reply::Now(answer) => answer,
            Reply::Later(poll) => poll.at_once(),
        }
    }

    /// Answers a request whose body is there, if it can be answered now.
    pub(crate) fn begin(&self, parts: &Parts, body: Bytes) -> Reply {
        let (operation, result) = self.route(parts, body);
        let is_head = parts.method == Method::HEAD;
        let mut answer = match result {
            Ok(Reply::Later(poll)) if is_head => {
                let mut answer = poll.at_once();
                drop_body(&mut answer);
                return Reply::Now(answer);
            }
            Ok(Reply::Later(poll)) => return Reply::Later(poll),
            Ok(Reply::Now(answer)) => answer,
            Err(refusal) => refusal.into_answer(self.config(), is_ours(parts)),
        };
        if is_head {
            drop_body(&mut answer);
        }
        self.finish(operation, is_from_node(parts), &mut answer);
        Reply::Now(answer)
    }

    /// Answers a request of which the body did not come whole.
    pub(crate) fn refuse(&self, parts: &Parts, refusal: Refusal) -> Answer {
        let mut answer = refusal.into_answer(self.config(), is_ours(parts));
        self.finish(operation(parts), is_from_node(parts), &mut answer);
        answer
    }

    /// Counts an answer, and tells a node of ours who answers, whatever it is answered.
    pub(crate) fn finish(&self, operation: Operation, from_node: bool, answer: &mut Answer) {
        self.figures().answered(operation, answer.status());
        if let Some(node) = &self.0.node
            && from_node
        {
            answer.headers_mut().insert(X_NODE, node.clone());
        }
    }

    /// A body made for this answer alone.
    pub(crate) fn encoded(&self, content_type: &'static str, text: Vec<u8>, gzip: bool) -> Answer {
        let bytes = if gzip {
            self.compressors().member(&text)
        } else {
            text.into()
        };
        let mut answer = outcome::with_body(StatusCode::OK, content_type, bytes.into());
        if gzip {
            outcome::mark_gzip(&mut answer);
        }
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

    /// Ends all who follow the changes, now and in future: the node stops. Streams end, and who waits is answered.
    pub fn close_feeds(&self) {
        self.0.feed.close();
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

    pub(crate) fn feed(&self) -> &Arc<Feed<Forms>> {
        &self.0.feed
    }

    pub(crate) fn pasts(&self) -> &Pasts {
        &self.0.pasts
    }

    pub(crate) fn event_pages(&self) -> &PageCache<Text> {
        &self.0.event_pages
    }

    pub(crate) fn encoder(&self) -> &Arc<Encoder> {
        &self.0.encoder
    }

    pub(crate) fn figures(&self) -> &Figures {
        &self.0.encoder.figures
    }

    pub(crate) fn compressors(&self) -> &Compressors {
        &self.0.encoder.compressors
    }

    pub(crate) fn limiter(&self) -> &Limiter {
        &self.0.limiter
    }

    pub(crate) fn selections(&self) -> &Selections {
        &self.0.selections
    }

    /// The lists of the node and these regions, unless reads are held. Everything in one answer comes from one listing.
    pub(crate) fn lists(&self, set: Set) -> Result<Lists, Refusal> {
        let snapshot = self.readable()?;
        let now = self.registry().now().mono;
        let regions = self.config().regions.as_ref();
        let merged = regions.and_then(|regions| Some((regions, regions.merged(set, self.encoder())?)));
        Ok(match merged {
            None => Lists {
                listing: {
                    let version = || snapshot.version().to_string().into();
                    self.0.pages.listing(now, &snapshot, version)
                },
                merged: None,
            },
            Some((regions, merged)) => Lists {
                listing: merged.listing(now, regions, &snapshot),
                merged: Some(merged),
            },
        })
    }

    fn readable(&self) -> Result<Snapshot, Refusal> {
        let snapshot = self.listed_snapshot();
        match snapshot.reads() {
            Reads::Open => Ok(snapshot),
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

    fn route(&self, parts: &Parts, body: Bytes) -> (Operation, Result<Reply, Refusal>) {
        let uri = &parts.uri;
        if uri.path().len() + uri.query().map_or(0, str::len) > self.config().limits.url {
            return (Operation::Other, Err(Refusal::UriTooLong));
        }
        let Some(route) = Route::parse(uri.path()) else {
            return (Operation::Other, Err(Refusal::NotFound));
        };
        let call = Call::new(self, parts);
        let from_peer = matches!(route, Route::Batch | Route::Repair(_)) || call.is_replicated();
        if from_peer && call.is_own() {
            return (operation(parts), Err(Refusal::Own));
        }
        let method = match &parts.method {
            head if head == Method::HEAD => &Method::GET,
            method => method,
        };
        if (method, &route) == (&Method::GET, &Route::Changes) {
            return (Operation::Changes, changes::changes(&call));
        }
        let (operation, result) = dispatch(&call, route, method, body);
        (operation, result.map(Reply::Now))
    }
}

/// Whether a node of ours asks.
fn is_from_node(parts: &Parts) -> bool {
    header(&parts.headers, &X_NODE).is_some()
}

/// Whether Java has no such path.
fn is_ours(parts: &Parts) -> bool {
    parts.uri.path().starts_with("/api/")
}

/// What a request would have been.
fn operation(parts: &Parts) -> Operation {
    match Class::of(&parts.method, parts.uri.path()) {
        Class::Registration => Operation::Register,
        Class::Peer => match Route::parse(parts.uri.path()) {
            Some(Route::Repair(_)) => Operation::Repair,
            Some(_) | None => Operation::Batch,
        },
        Class::FullFetch | Class::Read | Class::Watch | Class::Renewal | Class::Other => Operation::Other,
    }
}

/// From route and method to the handler: the table of the API, but for the change feed, which may have to wait.
fn dispatch(
    call: &Call<'_>,
    route: Route<'_>,
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
        ("GET", Route::Healthcheck) => (Op::Healthcheck, server::healthcheck(call)),
        // The server knows its peers.
        (_, Route::Peers) => (Op::Other, Err(Refusal::NotFound)),
        (_, Route::Repair(_)) if !call.config().repair => (Op::Repair, Err(Refusal::NotFound)),
        ("POST", Route::Repair(kind)) => (Op::Repair, repair::answer(call, kind, &body)),
        ("OPTIONS", route) => (Op::Other, Ok(server::options(call, &route))),
        (_, route) => (Op::Other, Err(Refusal::Method(route.methods()))),
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
