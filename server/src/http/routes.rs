//! The routes that only the server has; everything else is the API's.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use eureka_registry_core::RegistryHandle;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tower::Service;

use super::{Body, Front, Health, sender};
use crate::console::Console;
use crate::peers::Peers;
use crate::regions::Regions;
use crate::telemetry::{LogWriter, Recorder};

/// The server's own routes before those of `api`.
#[derive(Clone, Debug)]
pub(crate) struct Routes<A> {
    own: Arc<Own>,
    api: A,
}

/// What the server's own routes show.
#[derive(Debug)]
pub(crate) struct Own {
    /// What is shown.
    pub(crate) registry: RegistryHandle,
    /// The other nodes.
    pub(crate) peers: Peers,
    /// Other regions.
    pub(crate) regions: Regions,
    /// What the stack counts.
    pub(crate) front: Arc<Front>,
    /// `/health`
    pub(crate) health: Arc<Health>,
    /// `/metrics`, if it is served.
    pub(crate) metrics: Option<Recorder>,
    /// Where lost log lines are counted.
    pub(crate) log: LogWriter,
    /// `/` and `/lastn`, if they are served.
    pub(crate) console: Option<Console>,
}

/// Nodes of this kind repair each other here.
const REPAIR: &str = "/api/v1/repair/";

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The pages hold text that strangers chose. They have no script; this is the second lock.
const PAGE_HEADERS: [(HeaderName, &str); 2] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

impl<A> Routes<A> {
    /// The server's own routes before those of `api`.
    pub(crate) fn new(own: Own, api: A) -> Self {
        Self {
            own: Arc::new(own),
            api,
        }
    }
}

impl<A, B, T> Service<Request<B>> for Routes<A>
where
    A: Service<Request<B>, Response = Response<T>, Error = Infallible>,
    T: Into<Body>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Routing<A::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.api.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self
            .own
            .answer(request.method(), request.uri().path(), request.uri().query())
        {
            Some(response) => Routing::Own {
                response: Some(response),
            },
            None => {
                if let Some(sender) = sender::sender(&request) {
                    let name = self.own.peers.introduce(&sender);
                    request.extensions_mut().insert(eureka_http_api::Sender(name.0));
                }
                Routing::Api {
                    inner: self.api.call(request),
                }
            }
        }
    }
}

impl Own {
    /// The answer, if the path is the server's own.
    fn answer(&self, method: &Method, path: &str, query: Option<&str>) -> Option<Response<Body>> {
        let answer: fn(&Self, Option<&str>) -> Response<Body> = match path {
            "/" if self.console.is_some() => Self::page,
            "/lastn" if self.console.is_some() => Self::recent,
            "/metrics" if self.metrics.is_some() => Self::metrics,
            "/health/live" => |_, _| answered(StatusCode::OK, JSON, r#"{"status":"UP"}"#.to_owned()),
            "/health/ready" => Self::ready,
            "/api/v1/peers" | "/api/v1/peers/" => Self::peers,
            path if path.starts_with(REPAIR) && !self.peers.are_configured() => {
                let mut response = Response::new(Body::default());
                *response.status_mut() = StatusCode::NOT_FOUND;
                return Some(response);
            }
            _ => return None,
        };
        if method != Method::GET && method != Method::HEAD {
            let mut response = Response::new(Body::default());
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return Some(response);
        }
        Some(answer(self, query))
    }

    fn ready(&self, query: Option<&str>) -> Response<Body> {
        let strictly = query.is_some_and(|query| {
            query
                .split('&')
                .any(|pair| pair.split('=').next() == Some("reads"))
        });
        let (status, text) = self.health.ready(self.registry.snapshot().reads(), strictly);
        answered(status, JSON, text)
    }

    fn metrics(&self, _query: Option<&str>) -> Response<Body> {
        self.front.meters.scrape(
            &self.registry,
            &self.front.pressure,
            self.front.kept_by_streams(),
            self.log.lost(),
        );
        self.regions.scrape();
        let mut text = self.metrics.as_ref().map(Recorder::render).unwrap_or_default();
        self.peers.scrape(&mut text);
        answered(StatusCode::OK, PROMETHEUS, text)
    }

    fn peers(&self, _query: Option<&str>) -> Response<Body> {
        answered(StatusCode::OK, JSON, self.peers.json())
    }

    fn page(&self, _query: Option<&str>) -> Response<Body> {
        let watchers = self.front.pressure.watchers.load(Ordering::Relaxed);
        html(
            self.console
                .as_ref()
                .map(|console| console.page(&self.registry, &self.peers.facts(), &self.regions, watchers)),
        )
    }

    fn recent(&self, _query: Option<&str>) -> Response<Body> {
        html(
            self.console
                .as_ref()
                .map(|console| console.recent(&self.registry)),
        )
    }
}

fn html(text: Option<String>) -> Response<Body> {
    let mut response = answered(StatusCode::OK, HTML, text.unwrap_or_default());
    for (name, value) in PAGE_HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}

fn answered(status: StatusCode, content_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(eureka_http_api::Body::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pin_project! {
    /// An answer of ours, or the API's.
    #[project = Projected]
    #[derive(Debug)]
    pub(crate) enum Routing<F> {
        Own { response: Option<Response<Body>> },
        Api { #[pin] inner: F },
    }
}

impl<F, T> Future for Routing<F>
where
    F: Future<Output = Result<Response<T>, Infallible>>,
    T: Into<Body>,
{
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Own { response } => Poll::Ready(Ok(response.take().unwrap_or_default())),
            Projected::Api { inner } => {
                let answer = ready!(inner.poll(cx));
                Poll::Ready(answer.map(|response| response.map(Into::into)))
            }
        }
    }
}
