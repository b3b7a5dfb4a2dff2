//! The figures of watching, as Markdown and as JSON.

use std::fmt::{self, Write};

use serde_json::{Value, json};

use super::followers::Seen;
use super::stalled::Stalled;
use super::{FLEET, Form, Size};
use crate::bench::report::machine;
use crate::bench::subject::Usage;

/// One form of watching.
pub(super) struct Row {
    pub(super) form: Form,
    pub(super) changes: u32,
    pub(super) seen: Seen,
    pub(super) seconds: f64,
    pub(super) usage: Usage,
    /// The server's memory before anybody watched.
    pub(super) alone_bytes: u64,
    pub(super) peak_bytes: u64,
}

impl Row {
    /// Of the server, for each change that was delivered to a watcher; for each change if there was none.
    pub(super) fn cpu_us(&self) -> f64 {
        let deliveries = self.seen.delays.len().max(self.changes as usize);
        self.usage.server * 1e6 / deliveries.max(1) as f64
    }

    fn bytes_each(&self) -> f64 {
        self.seen.bytes as f64 / self.seen.delays.len().max(1) as f64
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "watching": self.form.title(),
            "changes": self.changes,
            "deliveries": self.seen.delays.len(),
            "seconds": self.seconds,
            "delay_us": {
                "median": self.seen.quantile(0.5),
                "p99": self.seen.quantile(0.99),
                "longest": self.seen.quantile(1.0),
            },
            "server_cpu_seconds": self.usage.server,
            "server_cpu_us_each": self.cpu_us(),
            "generator_cpu_seconds": self.usage.generator,
            "others_cpu_seconds": self.usage.foreign(),
            "memory_bytes": { "alone": self.alone_bytes, "at_most": self.peak_bytes },
            "bytes": self.seen.bytes,
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |share| f64::from(self.seen.quantile(share)) / 1e3;
        write!(
            f,
            "| {} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} | {:.0} | {:.1} | {:.1} | {:.1} | {:.2} | {:.2} |",
            self.form.title(),
            millis(0.5),
            millis(0.99),
            millis(1.0),
            self.usage.server / self.seconds,
            self.cpu_us(),
            self.bytes_each(),
            self.seen.bytes as f64 / self.seconds / 1e6,
            mebibytes(self.alone_bytes),
            mebibytes(self.peak_bytes),
            self.usage.generator / self.seconds,
            self.usage.foreign() / self.seconds,
        )
    }
}

/// Everything, for docs/benchmarks.md.
pub(super) fn page(size: Size, rows: &[Row], stalled: &Stalled) -> String {
    let mut page = format!(
        "{}. {} instances in {} applications, {} watchers, {} changes a second for {} s.\n\n",
        machine(),
        FLEET.instances,
        FLEET.applications,
        size.watchers,
        size.rate,
        size.seconds
    );
    page.push_str(
        "| watching | delay, median ms | p99 ms | longest ms | CPU, cores | CPU us each | bytes each | MB/s \
         | alone, MiB | at most, MiB | CPU of watchers, cores | CPU of others, cores |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        writeln!(page, "{row}").expect("a String takes all");
    }
    write!(page, "\n{stalled}").expect("a String takes all");
    page
}

pub(super) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}
