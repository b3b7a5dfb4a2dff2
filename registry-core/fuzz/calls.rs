//! What must hold for any bytes as the message of any gRPC call: it is answered, a refusal changes nothing and is not the
//! server's fault, and what was registered survives being read and registered again.
//!
//! The fuzz target `proto` searches for bytes that break it; the tests of grpc-api replay the ones found so far.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use eureka_grpc_api::proto::{GetInstanceRequest, GetInstanceResponse, RegisterRequest};
use eureka_grpc_api::{Config, Grpc};
use eureka_registry_core::{Clock, Event, Instance, InstanceLimits, Mono, Now, Origin, RegistryHandle, Wall};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use prost::Message;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt as _;

/// The first byte of an input chooses; order is for ever, or the corpus means something else.
const CALLS: [&str; 11] = [
    "Register",
    "Renew",
    "Cancel",
    "SetStatus",
    "ClearStatus",
    "UpdateMetadata",
    "GetInstance",
    "GetApplication",
    "ListApplications",
    "Watch",
    "KeepAlive",
];
const STATUS: &str = "grpc-status";
const OK: &str = "0";
const INTERNAL: &str = "13";

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Now {
        Now {
            mono: Mono(0),
            wall: Wall(1_795_000_000_000),
        }
    }
}

struct Node {
    registry: RegistryHandle,
    grpc: Grpc,
    runtime: Runtime,
}

/// One call with these bytes as its message.
pub(crate) fn proto(data: &[u8]) {
    let Some((choice, message)) = data.split_first() else {
        return;
    };
    let call = CALLS[usize::from(*choice) % CALLS.len()];
    let node = Node::new();
    let held = Instance::new("orders", "orders-1", "host-1", "10.0.0.1");
    node.registry
        .register(Origin::Client, Arc::new(held), Duration::ZERO);
    let before = (node.registry.version(), node.registry.snapshot().edition());
    let code = node.call(call, message).0;
    assert_ne!(code, INTERNAL, "{call}");
    let after = (node.registry.version(), node.registry.snapshot().edition());
    if code != OK {
        assert_eq!(after, before, "{call} was answered {code}");
    }
    for view in node.registry.snapshot().instances() {
        assert!(view.instance.within(InstanceLimits::default()).is_ok());
        node.survives(&view.instance);
    }
}

impl Node {
    fn new() -> Self {
        let registry = RegistryHandle::new(
            eureka_registry_core::Config::default(),
            Arc::new(Stopped),
            Arc::new(|_: &Event| {}),
        );
        registry.open(0, None);
        Self {
            grpc: Grpc::new(registry.clone(), Config::default()),
            registry,
            runtime: Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime without sockets needs nothing"),
        }
    }

    /// Status and message of the answer; of a stream what is there at once.
    fn call(&self, call: &str, message: &[u8]) -> (String, Bytes) {
        let mut body = vec![0];
        body.extend(
            u32::try_from(message.len())
                .expect("inputs are short")
                .to_be_bytes(),
        );
        body.extend(message);
        let request = http::Request::post(format!("/eureka.v1.Registry/{call}"))
            .header("content-type", "application/grpc")
            .body(Full::new(Bytes::from(body)))
            .expect("it is a request");
        self.runtime.block_on(async {
            let Ok(answer) = self.grpc.service().oneshot(request).await;
            let (head, mut body) = answer.into_parts();
            if let Some(status) = head.headers.get(STATUS) {
                let status = status.to_str().expect("a number").to_owned();
                return (status, Bytes::new());
            }
            if ["Watch", "KeepAlive"].contains(&call) {
                return (first(&mut body), Bytes::new());
            }
            let answer = body.collect().await.expect("it comes from here");
            let trailers = answer.trailers().cloned().unwrap_or_default();
            let status = trailers[STATUS].to_str().expect("a number").to_owned();
            (status, answer.to_bytes())
        })
    }

    /// What was registered is read, and registered elsewhere the same.
    fn survives(&self, instance: &Instance) {
        let question = GetInstanceRequest {
            app: instance.app.to_string(),
            instance_id: instance.id().to_owned(),
        };
        let (code, answer) = self.call("GetInstance", &question.encode_to_vec());
        assert_eq!(code, OK, "{instance:?}");
        let answer = GetInstanceResponse::decode(&answer[5..]).expect("it was encoded here");
        let request = RegisterRequest {
            instance: answer.instance,
        };
        let other = Self::new();
        let (code, _) = other.call("Register", &request.encode_to_vec());
        assert_eq!(code, OK, "{instance:?}");
        let again = other.registry.find(&instance.key()).expect("the key is the same");
        let again = &again.instance;
        let comparable = |instance: &Instance| Instance {
            // Answers name the id also where it was derived, and an override is none of the instance's.
            instance_id: Some(instance.id().into()),
            status: eureka_registry_core::Status::Up,
            overridden_status: eureka_registry_core::Status::Unknown,
            metadata: sorted(&instance.metadata),
            ..instance.clone()
        };
        assert_eq!(comparable(again), comparable(instance));
    }
}

/// In order, and without Java's marker: a change of metadata may bring it, a registration does not.
fn sorted(metadata: &eureka_registry_core::Metadata) -> eureka_registry_core::Metadata {
    let pairs = metadata.iter().filter(|(key, _)| *key != "@class");
    let pairs: std::collections::BTreeMap<_, _> = pairs.collect();
    pairs.into_iter().collect()
}

/// The status a stream ends with, if it does at once.
fn first(body: &mut tonic::body::Body) -> String {
    let mut context = Context::from_waker(Waker::noop());
    while let std::task::Poll::Ready(Some(Ok(frame))) = Pin::new(&mut *body).poll_frame(&mut context) {
        if let Some(trailers) = frame.trailers_ref() {
            return trailers[STATUS].to_str().expect("a number").to_owned();
        }
    }
    OK.to_owned()
}
