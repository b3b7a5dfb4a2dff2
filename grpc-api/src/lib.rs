//! A gRPC frontend for a Eureka registry: the service `eureka.v1.Registry`, with health and reflection beside it.

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
