//! What was measured, as it goes into JSON; `page.rs` makes a page of it.

use serde::Serialize;

use super::super::open_loop::Timed;
use super::fleet::Size;
use crate::bench::delays::quantile;

/// Everything that one run found.
#[derive(Debug, Serialize)]
pub(super) struct Measured {
    pub(super) machine: String,
    pub(super) settings: Vec<String>,
    /// Renewals a second in open loops.
    pub(super) rate: u32,
    pub(super) rounds: usize,
    pub(super) seconds: u64,
    pub(super) took_seconds: f64,
    pub(super) sizes: Vec<Figures>,
    pub(super) criteria: Vec<Criterion>,
    /// What could not be measured, and why.
    pub(super) failures: Vec<String>,
}

/// A bound of the project and what was measured.
#[derive(Debug, Serialize)]
pub(super) struct Criterion {
    pub(super) what: String,
    pub(super) figure: String,
    pub(super) bound: String,
    /// `None` if this run cannot say.
    pub(super) met: Option<bool>,
}

/// What was found with one size.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) size: Size,
    /// Filling the server with batches of registrations.
    pub(super) fill: Spent,
    pub(super) memory: Memory,
    /// Closed loops.
    pub(super) costs: Vec<Cost>,
    pub(super) fetches: Vec<Fetch>,
    pub(super) lookups: Vec<Lookup>,
    /// Open loops.
    pub(super) pauses: Vec<Pause>,
    pub(super) bootstrap: Option<Bootstrap>,
}

/// Time and the server's CPU time for something.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Spent {
    pub(super) seconds: f64,
    pub(super) cpu_seconds: f64,
}

/// Resident memory, in bytes.
#[derive(Debug, Default, Serialize)]
pub(super) struct Memory {
    pub(super) idle: u64,
    pub(super) filled: u64,
    pub(super) with_gzip: u64,
    pub(super) with_json: u64,
    /// The most until then.
    pub(super) peak_with_json: u64,
    /// The most in the whole run.
    pub(super) peak: u64,
}

/// A request in a closed loop.
#[derive(Debug, Serialize)]
pub(super) struct Cost {
    pub(super) what: &'static str,
    pub(super) server: &'static str,
    pub(super) count: u64,
    pub(super) per_second: f64,
    pub(super) cpu_us: f64,
    pub(super) latency: Latency,
}

/// Of answers, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Latency {
    pub(super) p50: u32,
    pub(super) p99: u32,
    pub(super) p999: u32,
    pub(super) longest: u32,
}

/// A full fetch by one reader.
#[derive(Debug, Serialize)]
pub(super) struct Fetch {
    pub(super) form: &'static str,
    /// `first`, `again`, `after one change`.
    pub(super) when: &'static str,
    pub(super) count: usize,
    pub(super) bytes: u64,
    /// For one of them.
    pub(super) spent: Spent,
}

/// A small read, each after a change of the registry.
#[derive(Debug, Serialize)]
pub(super) struct Lookup {
    pub(super) what: &'static str,
    pub(super) bytes: u64,
    pub(super) latency: Latency,
}

/// What is sent at a fixed rate, while something else goes on.
#[derive(Debug, Serialize)]
pub(super) struct Pause {
    pub(super) what: Sent,
    pub(super) during: During,
    pub(super) server: &'static str,
    pub(super) count: u64,
    pub(super) seconds: f64,
    /// The server's CPU time by the number of requests; whatever goes on besides is in it.
    pub(super) cpu_us: f64,
    pub(super) latency: Latency,
    /// The longest that a request left after it was due, in microseconds.
    pub(super) late: u32,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(super) enum Sent {
    Renewals,
    Batches,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(super) enum During {
    Nothing,
    /// Somebody fetches the whole list compressed, every 5 s.
    Fetches,
    /// The same, and 100 registrations a second change the list.
    Changes,
    /// Nobody had asked for the list in that form before.
    FirstFetch,
    /// A tenth of the leases ends.
    Eviction,
}

/// A second server that starts empty beside the filled one.
#[derive(Debug, Default, Serialize)]
pub(super) struct Bootstrap {
    /// From its start until it serves lists.
    pub(super) seconds: f64,
    pub(super) own_cpu_seconds: f64,
    pub(super) peer_cpu_seconds: f64,
    /// Resident memory in bytes, then and at most.
    pub(super) resident: u64,
    pub(super) peak: u64,
    pub(super) instances: usize,
}

impl From<&Timed> for Latency {
    fn from(timed: &Timed) -> Self {
        Self {
            p50: timed.quantile(0.5),
            p99: timed.quantile(0.99),
            p999: timed.quantile(0.999),
            longest: timed.longest(),
        }
    }
}

impl Latency {
    /// Of latencies in any order.
    pub(super) fn of(mut latencies: Vec<u32>) -> Self {
        latencies.sort_unstable();
        let [p50, p99, p999, longest] = [0.5, 0.99, 0.999, 1.0].map(|share| quantile(&latencies, share));
        Self {
            p50,
            p99,
            p999,
            longest,
        }
    }
}
