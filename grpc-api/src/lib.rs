//! A gRPC frontend for a Eureka registry. **This crate is empty: there is no gRPC yet.**
//!
//! It will hold the service `eureka.v1.Registry` for clients outside the JVM: register, renew, cancel, and a watch that
//! streams changes from a cursor on. Until then a server listens for HTTP only.
