//! A Eureka client for Rust services. **Under construction.**

pub mod agent;
pub mod balance;
pub mod cache;
pub mod call;
#[cfg(feature = "http")]
mod driver;
mod endpoints;
mod server;

pub use agent::{Agent, AgentConfig, Consume, Provide, Regions};
#[cfg(feature = "http")]
pub use cache::Cache;
pub use cache::View;
#[cfg(feature = "http")]
pub use driver::{Pool, PoolConfig, PoolStats};
pub use endpoints::{EndpointStats, Endpoints, EndpointsConfig, Failure, Use};
pub use server::{Server, ServerError};
