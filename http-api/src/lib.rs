//! Eureka's REST API, and ours under `/api/v1`, as one synchronous function and a tower service.
//!
//! [`Api::respond`] takes a request with its whole body and gives the answer; it waits for nothing. [`ApiService`]
//! collects bodies within [`Limits`] and calls it.

mod body;
mod class;
mod config;
mod figures;
mod gzip;
mod handlers;
mod limiter;
mod negotiate;
mod outcome;
mod pages;
mod query;
mod respond;
mod selections;
mod service;

pub use body::Body;
pub use class::Class;
pub use config::{Config, Facts, Gzip, Limits, RateLimits};
pub use figures::{
    ANSWERS_ENCODED, ANSWERS_NOT_KEPT, BATCH_INVALID, BATCH_ITEMS, BATCH_SIZE, ENCODED_BYTES, PAGES_ENCODED,
    RATE_LIMITED, REQUESTS,
};
pub use respond::{Answer, Api, Sender};
pub use service::{Answering, ApiService};
