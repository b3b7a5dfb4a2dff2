//! A Eureka client for Rust services: registers an instance and keeps it registered, and knows who else is there, also
//! while every server is down.
//!
//! ```
//! use std::time::Duration;
//!
//! use eureka_client::balance::{BalanceConfig, Balancer, Feedback, Target};
//! use eureka_client::{Client, Instance};
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
//! // A provider. `eureka` is the URL of a server, "http://127.0.0.1:8761/eureka/" for example; for several servers call
//! // `server` once for each. The port is where the service itself listens.
//! let instance = Instance {
//!     port: 8080.into(),
//!     ..Instance::new("orders", "host-1:orders:8080", "host-1", "10.0.0.1")
//! };
//! let provider = Client::builder().server(&eureka).register(instance).start()?;
//! tokio::time::timeout(Duration::from_secs(10), provider.registration().wait_registered()).await?;
//!
//! // A consumer. Look-ups are answered from memory; what changes arrives by itself.
//! let consumer = Client::builder().server(&eureka).discover().start()?;
//! let cache = consumer.cache();
//! let view = tokio::time::timeout(Duration::from_secs(10), cache.ready()).await?.expect("the client lives");
//! let found = view.application("orders");
//! assert_eq!(found.up().count(), 1);
//! assert_eq!(&*found[0].instance.host_name, "host-1");
//!
//! // Whom to call: all that are UP, in turns.
//! let orders = Balancer::new(cache, Target::app("orders"), BalanceConfig::default());
//! let pick = orders.pick()?;
//! assert_eq!(pick.endpoint().to_string(), "http://host-1:8080");
//! // Call it, and say how that went: an instance that keeps failing is left out for a while.
//! pick.feedback(Feedback::Ok);
//!
//! // Leaving: DOWN, then cancelled. Dropping the client does the same in the background, as long as the runtime goes on:
//! // at the end of `main` it does not, so a service waits for this before it ends.
//! assert!(provider.shutdown().await);
//! # Ok(())
//! # }
//! ```
//!
//! What it needs besides is a tokio runtime with its timer and network enabled, as `#[tokio::main]` makes it; the service's own
//! `tokio` needs the feature `signal` to leave at Ctrl-C. The types of the registry that this crate speaks of
//! ([`Instance`], [`LeaseView`], [`Status`] and others) are those of `eureka-registry-core`.
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
//! * [`balance`] picks an instance: turns, own zone first, outliers left out. With the feature `tower` there is a
//!   `discover::Discover` for tower's balancers, with `caller` a `caller::Caller` that calls `http://PAYMENTS/path`.
//! * [`cache::Publisher`] makes a [`Cache`] without client and server: for tests of whoever reads one.
//! * [`agent::Agent`] is what decides: a state machine without clock, thread or socket. [`Client`] gives it the time and
//!   sends its requests; who has a runtime of another kind can do the same.
//!
//! Programs to begin with are in `examples`: `provider`, `consumer`, `cache_without_servers`, `axum_graceful` (leaves without
//! losing a request), `tower_balance`, `hyper_call` and `reqwest_call`.
//!
//! # When things go wrong
//!
//! * [`Builder::start`] fails if what it was told cannot work: no runtime, no server, a URL that is none, `https` without the
//!   feature `tls`, an instance without application, host name or address. Whatever a server or the network does wrong is
//!   in the log, and tried again: a client that has started does not fail.
//! * A server that fails is set aside, and the next one is asked at once, in the same round: a renewal is never put off until
//!   the next interval. A server that does not know the instance (404) is told again.
//! * While no server answers, [`Cache`] keeps what was known last, for ever. Its age says how much that is worth.
//! * A panic or an endless wait in a health hook ([`Builder::health`]) makes the instance DOWN. A panic in a
//!   listener ([`Cache::on_change`]) is logged. Both run as tasks of their own: on a runtime of several threads not even one that
//!   blocks its thread keeps a renewal from being sent.
//! * If the runtime is shut down while a client lives, nothing panics: the client has ended, and its lease runs out.
//!
//! # The log
//!
//! Lines are written by `tracing`, all under `eureka_client`, in a span `client` that names the instance. What a service
//! registers, whom a consumer follows, and that something works again is information; failures are warnings, of those in a
//! row that are alike the first, second, fourth, eighth and so on; each renewal and each read is debug.
//! `RUST_LOG=eureka_client=debug` shows them all, with a `tracing-subscriber` that has its feature `env-filter`.
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
//! * `tls`: servers that speak `https`, by rustls; `PoolConfig::tls`.
//! * `dns`: servers that are found through DNS, `Builder::source`: all addresses of a name, and Eureka's scheme of TXT records.
//! * `grpc`: changes over gRPC, from servers of this project whose gRPC address is named.
//! * `tower`: `discover::Discover`, for tower's balancers.
//! * `caller`: `caller::Caller`, calls by the name of an application over any HTTP client that is a tower service.

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
pub use driver::{DnsError, LookupStats, Resolved, Resolver, ServerSource, Servers};
#[cfg(feature = "grpc")]
pub use driver::{GrpcAddressError, GrpcFeed, GrpcFeedStats};
#[cfg(feature = "tls")]
pub use driver::{Tls, TlsError};
pub use endpoints::{EndpointStats, Endpoints, EndpointsConfig, Failure, Use};
#[doc(no_inline)]
pub use eureka_registry_core::{
    DataCenter, Difference, Instance, InstanceKey, LeaseTerms, LeaseView, Metadata, Port, Status,
};
pub use server::{Server, ServerError};
