//! Tests of the client from outside: one module for each part.

mod balance;
#[cfg(feature = "http")]
mod cache;
