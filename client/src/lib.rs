//! A Eureka client for Rust services: registers an instance and keeps it registered, and knows who else is there, also
//! while every server is down.
//!
//! ```
//! use std::time::Duration;
//!
//! use eureka_client::Client;
//! use eureka_registry_core::Instance;
//!
//! # mod server {
//! #     use std::{error::Error, sync::Arc};
//! #     use eureka_http_api::{Api, ApiService, Config};
//! #     use eureka_registry_core::{Clock, Event, Mono, Now, RegistryHandle, Wall};
//! #     use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
//! #     use tokio::time::Instant;
//! #     use tower::Service as _;
//! #     struct Since(Instant);
//! #     impl Clock for Since {
//! #         fn now(&self) -> Now {
//! #             let millis = self.0.elapsed().as_millis() as u64;
//! #             Now { mono: Mono(millis), wall: Wall(1_700_000_000_000 + millis) }
//! #         }
//! #     }
//! #     pub async fn start() -> Result<String, Box<dyn Error>> {
//! #         let clock = Arc::new(Since(Instant::now()));
//! #         let registry = RegistryHandle::new(Default::default(), clock, Arc::new(|_: &Event| {}));
//! #         registry.open(0, None);
//! #         let api = ApiService::new(Api::new(registry, Config::new("this-boot")));
//! #         let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! #         let url = format!("http://{}/eureka/", listener.local_addr()?);
//! #         tokio::spawn(async move {
//! #             while let Ok((stream, _)) = listener.accept().await {
//! #                 let api = api.clone();
//! #                 tokio::spawn(async move {
//! #                     let service = service_fn(move |request: Request<Incoming>| api.clone().call(request));
//! #                     let stream = hyper_util::rt::TokioIo::new(stream);
//! #                     http1::Builder::new().serve_connection(stream, service).await
//! #                 });
//! #             }
//! #         });
//! #         Ok(url)
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let eureka = server::start().await?;
//! // A provider. `eureka` is the URL of a server, "http://127.0.0.1:8761/eureka/" for example; there may be several.
//! let instance = Instance::new("orders", "host-1:orders:8080", "host-1", "10.0.0.1");
//! let orders = Client::builder().server(&eureka).register(instance).start()?;
//! orders.registration().wait_registered().await;
//!
//! // A consumer. Look-ups are answered from memory; what changes arrives by itself.
//! let shop = Client::builder().server(&eureka).discover().start()?;
//! let cache = shop.cache();
//! let view = tokio::time::timeout(Duration::from_secs(10), cache.ready()).await?.expect("the client lives");
//! let found = view.application("orders");
//! assert_eq!(found.up().count(), 1);
//! assert_eq!(&*found[0].instance.host_name, "host-1");
//!
//! // Leaving: DOWN, then cancelled. Dropping the client does the same in the background.
//! assert!(orders.shutdown().await);
//! # Ok(())
//! # }
//! ```
//!
//! Any Eureka server will do, Java's included. From servers of this project a consumer learns of a change as it happens,
//! within milliseconds; others are asked for deltas each 30 seconds. Nothing has to be configured for that.
//!
//! # What is here
//!
//! * [`Client`], made by its [`Builder`], is a task on the tokio runtime around. It ends when the client is dropped, and
//!   leaves nothing behind: there is no global state, and no other task but those that it owns.
//! * [`RegistrationHandle`] changes the own status and metadata, and tells how the registration stands.
//! * [`Cache`] has the newest [`View`] of the registry: look-ups by application, virtual address, id and metadata, its
//!   age ([`Cache::age`]) and origin ([`View::origin`]), and [`watch`](Cache::watch) streams of changes. It stays readable whatever
//!   happens to servers and client; [`Builder::disk_copy`] makes it survive a restart, too.
//! * [`balance`] picks an instance: turns, own zone first, outliers left out.
//! * [`agent::Agent`] is what decides: a state machine without clock, thread or socket. [`Client`] gives it the time and
//!   sends its requests; who has a runtime of another kind can do the same.
//!
//! # When things go wrong
//!
//! * A server that fails is set aside, and the next one is asked at once, in the same round: a renewal is never put off until
//!   the next interval. A server that does not know the instance (404) is told again.
//! * While no server answers, [`Cache`] keeps what was known last, for ever. Its age says how much that is worth.
//! * A panic or an endless wait in a health hook ([`Builder::health`]) makes the instance DOWN. A panic in a
//!   listener ([`Cache::on_change`]) is logged. Both run as tasks of their own: on a runtime of several threads not even one that
//!   blocks its thread keeps a renewal from being sent.
//! * If the runtime is shut down while a client lives, nothing panics: the client has ended, and its lease runs out.
//!
//! # Many clients in one process
//!
//! A client that only registers is one small task, without a cache. Clients that are given clones of one [`Pool`]
//! ([`Builder::pool`]) share its connections; that is how ten thousand of them fit into a process.
//!
//! # Features
//!
//! * `http` (default): the client itself, on tokio and hyper. Without it there are the machine, [`View`] and [`balance`]:
//!   what a client for another runtime is made of.

pub mod agent;
pub mod balance;
pub mod cache;
pub mod call;
#[cfg(feature = "caller")]
pub mod caller;
#[cfg(feature = "tower")]
pub mod discover;
#[cfg(feature = "http")]
mod driver;
mod endpoints;
mod server;

pub use agent::{Agent, AgentConfig, Consume, Provide, Regions};
#[cfg(feature = "http")]
pub use cache::Cache;
pub use cache::View;
#[cfg(feature = "http")]
pub use driver::{BuildError, Builder, Client, Facts, Pool, PoolConfig, PoolStats, RegistrationHandle};
#[cfg(feature = "dns")]
pub use driver::{DnsError, Resolved, Resolver, ServerSource, Servers};
#[cfg(feature = "grpc")]
pub use driver::{GrpcAddressError, GrpcFeed, GrpcFeedStats};
#[cfg(feature = "tls")]
pub use driver::{Tls, TlsError};
pub use endpoints::{EndpointStats, Endpoints, EndpointsConfig, Failure, Use};
pub use server::{Server, ServerError};
