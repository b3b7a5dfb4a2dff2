//! A gRPC frontend for a Eureka registry: `eureka.v1.Registry` for services outside the JVM, with health and reflection.
//!
//! [`Grpc`] is the frontend of one registry, and [`GrpcService`] the tower service that answers its requests. It opens no
//! socket: whoever composes a server puts it behind one. The API is documented where it is defined, in
//! `proto/eureka/v1/registry.proto`.
//!
//! ```
//! use std::sync::Arc;
//!
//! use eureka_grpc_api::proto::registry_client::RegistryClient;
//! use eureka_grpc_api::proto::{GetApplicationRequest, Instance, RegisterRequest, Status};
//! use eureka_grpc_api::{Config, Grpc};
//! use eureka_registry_core::{Clock, Event, Now, RegistryHandle};
//!
//! struct Stopped;
//!
//! impl Clock for Stopped {
//!     fn now(&self) -> Now {
//!         Now::default()
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = RegistryHandle::new(Default::default(), Arc::new(Stopped), Arc::new(|_: &Event| {}));
//! registry.open(0, None);
//! let grpc = Grpc::new(registry, Config::default());
//!
//! // A client of this process. Others speak to the same service over HTTP/2.
//! let mut client = RegistryClient::with_origin(grpc.service(), "http://here".parse()?);
//! let instance = Instance {
//!     app: "orders".into(),
//!     host_name: "orders-1.example".into(),
//!     ip_address: "10.0.0.1".into(),
//!     ..Instance::default()
//! };
//! client.register(RegisterRequest { instance: Some(instance) }).await?;
//!
//! let found = client.get_application(GetApplicationRequest { app: "orders".into() }).await?;
//! let orders = found.into_inner().application.unwrap_or_default();
//! assert_eq!(orders.name, "ORDERS");
//! assert_eq!(orders.instances[0].instance_id, "orders-1.example");
//! assert_eq!(orders.instances[0].status(), Status::Up);
//!
//! // What fails says why, for people and for programs, and has changed nothing.
//! let refused = client.register(RegisterRequest::default()).await.unwrap_err();
//! assert_eq!(refused.code(), tonic::Code::InvalidArgument);
//! assert_eq!(refused.message(), "instance: required");
//! # Ok(())
//! # }
//! ```
//!
//! # How it is made
//!
//! * [`proto`] is generated from the .proto and committed (`cargo xtask codegen`); conversion, both ways, is in one module.
//! * Every call but the streams is answered at once from the registry or from one immutable snapshot of it.
//! * Changes are encoded once for all watchers, and queued for none. Streams own no task: the connection polls them.
//! * A registration makes exactly the instance that REST makes of the same content.
//! * Refusals have a code, a reason in `google.rpc.ErrorInfo` ([`Reason`], domain [`DOMAIN`]), and the fields that are wrong.

pub mod encoded;
pub mod proto;

mod config;
mod convert;
mod figures;
mod keep_alive;
mod node;
mod page_token;
mod refusal;
mod service;
mod watch;

pub use config::Config;
pub use figures::{REQUESTS, WATCH_CHANGES, WATCH_ENCODINGS, WATCH_SNAPSHOTS, WATCHERS};
pub use node::Grpc;
pub use refusal::{DOMAIN, Reason};
pub use service::GrpcService;
