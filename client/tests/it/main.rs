//! Tests of the client from outside: one module for each part.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod balance;
#[cfg(feature = "http")]
mod cache;
