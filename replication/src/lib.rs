//! The peer mesh of a Eureka registry. **This crate is empty: nothing replicates yet.**
//!
//! It will hold a state machine without clock, thread or socket that keeps one queue for each peer, speaks to Java
//! servers as one of them, and repairs differences between nodes of ours by digests; and, behind the feature `driver`,
//! the task that gives it the time and executes what it asks for. Until then a server neither sends to peers nor copies
//! from them at start-up. What *arrives* from a peer, Java's or ours, is applied: that is eureka-http-api's part.
