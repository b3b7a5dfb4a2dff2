//! A registry with a clock that tests move, the API over it, and requests as one-liners.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use eureka_http_api::{Answer, Api, Config};
use eureka_registry_core::{Clock, Event, EventSink, Mono, Now, RegistryHandle, Wall};
use http::{HeaderMap, Request, StatusCode};
use http_body::Body as _;
use serde_json::{Value, json};

/// When every test begins, in Unix milliseconds.
pub(crate) const BEGIN: u64 = 1_795_000_000_000;
/// The dirty timestamp of [`instance`].
pub(crate) const DIRTY: i64 = 1_700_000_000_000;

pub(crate) struct Fixture {
    pub(crate) api: Api,
    pub(crate) registry: RegistryHandle,
    clock: Arc<ManualClock>,
}

#[derive(Default)]
struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn now(&self) -> Now {
        let passed = self.0.load(Ordering::Relaxed);
        Now {
            mono: Mono(passed),
            wall: Wall(BEGIN + passed),
        }
    }
}

/// An answer whose body has been read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether the length was known before the body was read.
    pub(crate) len_known: bool,
    /// In how many pieces it came.
    pub(crate) pieces: usize,
}

impl Fixture {
    /// Our own ways, without preservation, reads open.
    pub(crate) fn new() -> Self {
        Self::with(Config::new("boot"))
    }

    pub(crate) fn with(config: Config) -> Self {
        let mut core = eureka_registry_core::Config::default();
        core.preservation.enabled = false;
        Self::over(core, config)
    }

    pub(crate) fn over(core: eureka_registry_core::Config, config: Config) -> Self {
        let fixture = Self::held(core, config);
        fixture.registry.open(0, None);
        fixture
    }

    /// The presets' registry and API, without preservation and without the read cache.
    pub(crate) fn java() -> Self {
        let mut core = eureka_registry_core::Config::eureka_java();
        core.preservation.enabled = false;
        let config = Config {
            update_interval: Duration::ZERO,
            ..Config::eureka_java("boot")
        };
        Self::over(core, config)
    }

    /// A node that has not been opened.
    pub(crate) fn held(core: eureka_registry_core::Config, config: Config) -> Self {
        Self::built(core, config, Arc::new(|_: &Event| {}))
    }

    /// Our own ways, with somebody who listens.
    pub(crate) fn with_sink(config: Config, sink: Arc<dyn EventSink>) -> Self {
        let fixture = Self::built(eureka_registry_core::Config::default(), config, sink);
        fixture.registry.open(0, None);
        fixture
    }

    fn built(core: eureka_registry_core::Config, config: Config, sink: Arc<dyn EventSink>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let registry = RegistryHandle::new(core, Arc::clone(&clock) as Arc<dyn Clock>, sink);
        Self {
            api: Api::new(registry.clone(), config),
            registry,
            clock,
        }
    }

    /// Lets time pass, in steps of a second as a running node sees it.
    pub(crate) fn advance(&self, time: Duration) {
        let mut left = u64::try_from(time.as_millis()).unwrap();
        while left > 0 {
            let step = left.min(1000);
            self.clock.0.fetch_add(step, Ordering::Relaxed);
            while self
                .registry
                .handle_timeout()
                .is_some_and(|(due, _)| due.is_zero())
            {}
            left -= step;
        }
    }

    pub(crate) fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Read {
        let mut request = Request::builder().method(method).uri(format!("/eureka/{target}"));
        if target.starts_with('/') {
            request = Request::builder().method(method).uri(target);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        read(self.api.respond(request.body(body.into()).unwrap()))
    }

    pub(crate) fn get(&self, target: &str) -> Read {
        self.send("GET", target, &[("accept", "application/json")], "")
    }

    pub(crate) fn get_xml(&self, target: &str) -> String {
        let read = self.send("GET", target, &[], "");
        assert_eq!(read.headers["content-type"], "application/xml");
        String::from_utf8(read.body).unwrap()
    }

    pub(crate) fn put(&self, target: &str) -> Read {
        self.send("PUT", target, &[], "")
    }

    pub(crate) fn delete(&self, target: &str) -> Read {
        self.send("DELETE", target, &[], "")
    }

    /// As a peer.
    pub(crate) fn put_as_peer(&self, target: &str) -> Read {
        let headers = [
            ("x-netflix-discovery-replication", "true"),
            ("accept", "application/json"),
        ];
        self.send("PUT", target, &headers, "")
    }

    pub(crate) fn post(&self, app: &str, body: &Value) -> Read {
        let headers = [("content-type", "application/json")];
        self.send("POST", &format!("apps/{app}"), &headers, body.to_string())
    }

    pub(crate) fn post_as_peer(&self, app: &str, body: &Value) -> Read {
        let headers = [
            ("content-type", "application/json"),
            ("x-netflix-discovery-replication", "true"),
        ];
        self.send("POST", &format!("apps/{app}"), &headers, body.to_string())
    }

    pub(crate) fn register(&self, app: &str, id: &str) {
        assert_eq!(self.post(app, &instance(app, id)).status, 204);
    }

    /// The instance as single look-ups show it.
    pub(crate) fn view(&self, app: &str, id: &str) -> Value {
        let read = self.get(&format!("apps/{app}/{id}"));
        assert_eq!(read.status, 200);
        read.json()["instance"].take()
    }
}

impl Read {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.headers["content-type"], "application/json");
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Asserts the exact answer clients want where nothing is to be said.
    #[track_caller]
    pub(crate) fn is_empty_with(&self, status: u16) {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.text(), "");
        assert!(self.len_known, "Content-Length must be 0");
        assert!(!self.headers.contains_key("content-type"), "{:?}", self.headers);
    }
}

/// A root-wrapped registration that is UP.
pub(crate) fn instance(app: &str, id: &str) -> Value {
    json!({"instance": {
        "instanceId": id,
        "hostName": format!("host-{id}"),
        "app": app,
        "ipAddr": "10.0.0.1",
        "status": "UP",
        "port": {"$": 8080, "@enabled": "true"},
        "securePort": {"$": 443, "@enabled": "false"},
        "vipAddress": app.to_lowercase(),
        "secureVipAddress": format!("s-{}", app.to_lowercase()),
        "dataCenterInfo": {
            "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
            "name": "MyOwn",
        },
        "lastDirtyTimestamp": DIRTY.to_string(),
    }})
}

/// The same with other fields.
pub(crate) fn instance_with(app: &str, id: &str, fields: &Value) -> Value {
    let mut body = instance(app, id);
    for (name, value) in fields.as_object().unwrap() {
        body["instance"][name] = value.clone();
    }
    body
}

/// Reads an answer's body to its end, as a connection would.
pub(crate) fn read(answer: Answer) -> Read {
    let (parts, mut body) = answer.into_parts();
    let len = body.size_hint().exact();
    let mut cx = Context::from_waker(Waker::noop());
    let mut bytes = Vec::new();
    let mut pieces = 0;
    loop {
        match Pin::new(&mut body).poll_frame(&mut cx) {
            Poll::Ready(Some(Ok(frame))) => {
                bytes.extend_from_slice(&frame.into_data().unwrap());
                pieces += 1;
            }
            Poll::Ready(None) => break,
            // Others get their turn between pages that are not encoded yet.
            Poll::Pending => {}
        }
    }
    assert!(body.is_end_stream());
    if let Some(len) = len {
        assert_eq!(bytes.len() as u64, len, "the length must be true");
    }
    Read {
        status: parts.status,
        headers: parts.headers,
        body: bytes,
        len_known: len.is_some(),
        pieces,
    }
}
