//! The routes that only the server has; everything else is the API's.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use eureka_registry_core::RegistryHandle;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};

use super::{Body, Front, Health};
use crate::console::Console;
use crate::peers::Peers;
use crate::regions::Regions;
use crate::telemetry::{LogWriter, Recorder};

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

impl Own {
    /// The answer, if the path is the server's own.
    pub(super) fn answer(&self, method: &Method, path: &str, query: Option<&str>) -> Option<Response<Body>> {
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
        self.front.meters.write_durations(&mut text);
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
