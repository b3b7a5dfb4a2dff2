//! A Eureka client for Rust services. **Under construction.**

pub mod call;
#[cfg(feature = "http")]
mod driver;
mod server;

pub use server::{Server, ServerError};
