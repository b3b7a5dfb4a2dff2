//! The client itself: one task for each, which asks the agent what to do and does it over HTTP.

mod builder;
mod client;
pub(crate) mod clock;
#[cfg(feature = "dns")]
mod dns;
#[cfg(feature = "grpc")]
mod grpc;
mod health;
mod http;
#[cfg(feature = "dns")]
mod lookups;
mod publishing;
mod registration;
mod report;
mod requests;
mod shared;
mod task;
#[cfg(feature = "tls")]
mod tls;

pub use builder::{BuildError, Builder};
pub use client::{Client, Facts};
#[cfg(feature = "dns")]
pub use dns::{DnsError, Resolved, Resolver, ServerSource, Servers};
#[cfg(feature = "grpc")]
pub use grpc::{GrpcAddressError, GrpcFeed, GrpcFeedStats};
pub use http::{Pool, PoolConfig, PoolStats};
#[cfg(feature = "dns")]
pub use lookups::LookupStats;
pub use registration::RegistrationHandle;
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
