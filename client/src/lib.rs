//! A Eureka client for Rust services. **Under construction.**

pub mod call;
mod server;

pub use server::{Server, ServerError};
