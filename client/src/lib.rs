//! A Eureka client for Rust services. **Under construction.**

pub mod balance;
pub mod cache;
pub mod call;
#[cfg(feature = "http")]
mod driver;
mod endpoints;
mod server;

#[cfg(feature = "http")]
pub use cache::Cache;
pub use cache::View;
pub use endpoints::{EndpointStats, Endpoints, EndpointsConfig, Failure, Use};
pub use server::{Server, ServerError};
