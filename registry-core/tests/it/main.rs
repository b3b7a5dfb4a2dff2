//! Tests of the registry from outside: transcripts, a reference model, the handle for threads, recorded bytes.

#[cfg(feature = "wire")]
mod golden;
mod interaction;
mod model;
#[cfg(feature = "shared")]
mod shared;
#[cfg(feature = "wire")]
mod wire;
