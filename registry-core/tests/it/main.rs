//! Tests of the registry from outside: transcripts, a reference model, the handle for threads, recorded bytes.

// From outside, the enums of the crate are open: every match needs a last arm.
#![allow(clippy::wildcard_enum_match_arm)]

#[cfg(feature = "wire")]
mod corpora;
#[cfg(feature = "shared")]
mod feed;
mod fleet;
#[cfg(feature = "wire")]
mod golden;
mod interaction;
mod mirror;
mod model;
mod numbers;
#[cfg(feature = "shared")]
mod past;
mod repair;
#[cfg(feature = "shared")]
mod shared;
#[cfg(feature = "wire")]
mod wire;
