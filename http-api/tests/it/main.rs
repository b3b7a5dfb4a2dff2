//! The API as a function: a manual clock, no network.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod allocations;
mod batches;
mod events;
mod feed;
mod fixture;
mod follow;
mod instances;
mod lists;
mod ours;
mod peers;
mod refusals;
mod regions;
mod service;
mod vectors;
