//! Tests of the mesh from outside.

// From outside, the enums of the crates are open: every match needs a last arm.
#![allow(clippy::wildcard_enum_match_arm)]

#[cfg(feature = "driver")]
mod driver;
mod interaction;
mod node;
mod sim;
