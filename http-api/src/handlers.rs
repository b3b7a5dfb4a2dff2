//! Handlers, all of one shape: decode the request, one change or one look at the registry, and the outcome as an answer.

pub(crate) mod changes;
pub(crate) mod instance;
mod java;
pub(crate) mod lists;
pub(crate) mod ours;
pub(crate) mod repair;
pub(crate) mod replication;
pub(crate) mod server;
