//! A Eureka client for Rust services.
