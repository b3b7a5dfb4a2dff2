//! A Eureka client for Rust services. **This crate is empty: there is no client yet.**
//!
//! It will hold an agent that registers, renews and leaves, a cache of the registry kept up to date by deltas, and a
//! `tower` discovery over both; all of it against Java's servers as well as ours.
