//! The driver with real sockets: a node of ours beside peers that do what a test wants.

mod java;
mod names;
mod node;
mod ours;
mod scripted;
mod trouble;
