//! The frontend from outside: the generated client speaks to the service in the same process.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod corpus;
mod figures;
mod fixture;
mod health;
mod keep_alive;
mod protocol;
mod reflection;
mod refusals;
mod registration;
mod unary;
mod watch;
