//! Eureka's REST API, and ours under `/api/v1`, as one synchronous function and a tower service.
//!
//! [`Api::respond`] takes a request with its whole body and gives the answer; it waits for nothing. [`ApiService`]
//! collects bodies within [`Limits`], calls it, and waits where a long poll for changes asks for that.
//!
//! ```
//! use std::sync::Arc;
//!
//! use bytes::Bytes;
//! use eureka_http_api::{Api, Config};
//! use eureka_registry_core::{Clock, Event, Now, RegistryHandle};
//! use http::Request;
//!
//! struct Stopped;
//!
//! impl Clock for Stopped {
//!     fn now(&self) -> Now {
//!         Now::default()
//!     }
//! }
//!
//! let registry = RegistryHandle::new(Default::default(), Arc::new(Stopped), Arc::new(|_: &Event| {}));
//! registry.open(0, None);
//! let api = Api::new(registry, Config::new("this-boot"));
//!
//! let body = r#"{"instance": {"instanceId": "i-1", "hostName": "shop-1", "app": "SHOP", "ipAddr": "10.0.0.1",
//!     "dataCenterInfo": {"@class": "com.netflix.appinfo.MyDataCenterInfo", "name": "MyOwn"}}}"#;
//! let register = Request::post("/eureka/apps/SHOP").header("content-type", "application/json");
//! assert_eq!(api.respond(register.body(Bytes::from(body))?).status(), 204);
//!
//! let renew = Request::put("/eureka/apps/SHOP/i-1?status=UP").body(Bytes::new())?;
//! assert_eq!(api.respond(renew).status(), 200);
//!
//! let unknown = Request::put("/eureka/apps/SHOP/i-2?status=UP").body(Bytes::new())?;
//! assert_eq!(api.respond(unknown).status(), 404);
//! # Ok::<(), http::Error>(())
//! ```
//!
//! Lists come from one immutable snapshot of the registry, encoded by pages that all readers and versions share
//! ([`Limits::encoded`] bounds what is kept); under gzip a page is compressed once, too. Where we differ from Java is a
//! field of [`Config`] each; [`Config::eureka_java`] and [`Config::eureka_netflix`] are Java's ways.

mod bodies;
mod body;
mod call;
mod class;
mod config;
mod encoder;
mod figures;
mod gzip;
mod handlers;
mod limiter;
mod negotiate;
mod outcome;
mod pages;
mod past;
mod query;
mod regions;
mod respond;
mod selections;
mod sequence;
mod service;
mod watch;

pub use body::Body;
pub use call::Sender;
pub use class::Class;
pub use config::{Allow, Config, Facts, Gzip, Limits, RateLimits, Rules};
pub use figures::{
    ANSWERS_ENCODED, ANSWERS_NOT_KEPT, BATCH_INVALID, BATCH_ITEMS, BATCH_LEFT_OUT, BATCH_SIZE, ENCODED_BYTES,
    MERGED_LISTS, PAGES_ENCODED, RATE_LIMITED, REQUESTS, WATCH_CHANGES, WATCH_SNAPSHOTS, WATCHERS,
};
pub use regions::{RegionFacts, RegionRules, RegionsError, RemoteRegion, RemoteRegions};
pub use respond::{Answer, Api};
pub use service::{Answering, ApiService};
