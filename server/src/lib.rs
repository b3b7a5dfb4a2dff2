//! A Eureka-compatible service registry: the server around the libraries, as the binary `eureka` runs it.
//!
//! ```
//! use eureka_server::config::{Config, Sources};
//!
//! let sources = Sources {
//!     flags: vec![("--set", "registry.eviction-interval".to_owned(), "5s".to_owned())],
//!     ..Sources::default()
//! };
//! let config = Config::load(&sources).expect("nothing is wrong with it");
//! assert_eq!(config.settings.registry.eviction_interval.as_secs(), 5);
//! ```

mod app;
pub mod cli;
mod clock;
pub mod config;
mod console;
mod evict;
pub mod http;
mod peers;
mod regions;
mod sink;
pub mod telemetry;
