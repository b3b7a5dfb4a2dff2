//! The client itself: one task for each, which asks the agent what to do and does it over HTTP.

pub(crate) mod clock;
mod http;

pub use http::{Pool, PoolConfig, PoolStats};
