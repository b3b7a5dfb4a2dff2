//! Tests of the client from outside: one module for each part.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod agent;
mod balance;
#[cfg(feature = "http")]
mod balancer;
#[cfg(feature = "http")]
mod cache;
#[cfg(feature = "caller")]
mod caller;
#[cfg(feature = "tower")]
mod discover;
#[cfg(feature = "dns")]
mod dns;
#[cfg(feature = "http")]
mod driver;
mod endpoints;
#[cfg(feature = "grpc")]
mod grpc;
#[cfg(feature = "http")]
mod listed;
#[cfg(feature = "http")]
mod log;
#[cfg(feature = "dns")]
mod lookups;
#[cfg(feature = "http")]
mod node;
mod sim;
#[cfg(feature = "http")]
mod transport;
