//! A registry with a clock that tests move, the frontend over it, and a client of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use eureka_grpc_api::proto::registry_client::RegistryClient;
use eureka_grpc_api::proto::{Instance, RegisterRequest};
use eureka_grpc_api::{Config, Grpc, GrpcService};
use eureka_registry_core::{Clock, Event, InstanceKey, Mono, Now, RegistryHandle, Wall};
use http_body_util::Full;
use tonic::Status;
use tonic_types::StatusExt as _;
use tower::ServiceExt as _;

/// When every test begins, in Unix milliseconds.
pub(crate) const BEGIN: u64 = 1_795_000_000_000;

pub(crate) type Client = RegistryClient<GrpcService>;

pub(crate) struct Fixture {
    pub(crate) registry: RegistryHandle,
    pub(crate) grpc: Grpc,
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

impl Fixture {
    /// Reads open, no preservation, the usual limits.
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        let fixture = Self::held(eureka_registry_core::Config::default(), config);
        fixture.registry.open(0, None);
        fixture
    }

    /// A node that has not been opened.
    pub(crate) fn held(mut core: eureka_registry_core::Config, config: Config) -> Self {
        core.preservation.enabled = false;
        let clock = Arc::new(ManualClock::default());
        let registry = RegistryHandle::new(
            core,
            Arc::clone(&clock) as Arc<dyn Clock>,
            Arc::new(|_: &Event| {}),
        );
        Self {
            grpc: Grpc::new(registry.clone(), config),
            registry,
            clock,
        }
    }

    pub(crate) fn client(&self) -> Client {
        RegistryClient::with_origin(self.grpc.service(), origin())
    }

    /// Moves the clock, and has the registry do what is due.
    pub(crate) fn advance(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).expect("tests are short");
        self.clock.0.fetch_add(millis, Ordering::Relaxed);
        while self
            .registry
            .handle_timeout()
            .is_some_and(|(due, _)| due.is_zero())
        {}
    }

    /// Registers over gRPC.
    pub(crate) async fn register(&self, app: &str, id: &str) {
        let request = RegisterRequest {
            instance: Some(instance(app, id)),
        };
        self.client().register(request).await.expect("it is valid");
    }

    /// The instance as the registry has it.
    pub(crate) fn registered(&self, app: &str, id: &str) -> Option<Arc<eureka_registry_core::Instance>> {
        let view = self.registry.find(&InstanceKey::new(app, id))?;
        Some(view.instance)
    }
}

/// Where clients believe that the service is.
pub(crate) fn origin() -> http::Uri {
    http::Uri::from_static("http://registry.test")
}

/// An instance with what is required, and an id.
pub(crate) fn instance(app: &str, id: &str) -> Instance {
    Instance {
        app: app.to_owned(),
        instance_id: id.to_owned(),
        host_name: "host-1".to_owned(),
        ip_address: "10.0.0.1".to_owned(),
        ..Instance::default()
    }
}

/// The reason in a status: its code, the ErrorInfo, and the fields that are named as wrong.
pub(crate) fn told(status: &Status) -> (tonic::Code, String, Vec<String>) {
    let info = status.get_details_error_info();
    if let Some(info) = &info {
        assert_eq!(info.domain, "eureka.v1");
    }
    let fields = status.get_details_bad_request();
    let fields = fields.map(|details| details.field_violations).unwrap_or_default();
    (
        status.code(),
        info.map(|info| info.reason).unwrap_or_default(),
        fields.into_iter().map(|violation| violation.field).collect(),
    )
}

/// A message as it goes over the wire, in one frame.
pub(crate) fn frame(flag: u8, message: &[u8]) -> Bytes {
    let mut frame = vec![flag];
    frame.extend(
        u32::try_from(message.len())
            .expect("messages are short")
            .to_be_bytes(),
    );
    frame.extend(message);
    frame.into()
}

/// A request as a client sends it, to be bent before it is sent.
pub(crate) fn request(method: &str, body: Bytes) -> http::Request<Full<Bytes>> {
    http::Request::post(format!("/eureka.v1.Registry/{method}"))
        .header("content-type", "application/grpc")
        .body(Full::new(body))
        .expect("it is a request")
}

/// The status of an answer that has no message, and its head.
pub(crate) async fn refused<B>(fixture: &Fixture, request: http::Request<B>) -> (Status, http::HeaderMap)
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    let Ok(answer) = fixture.grpc.service().oneshot(request).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/grpc");
    let status = Status::from_header_map(answer.headers()).expect("no message, but a status");
    (status, answer.headers().clone())
}
