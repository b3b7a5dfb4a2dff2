//! The figures as a page of Markdown.

use std::fmt;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::load::Answers;
use super::subject::Usage;
use super::workload::{Fleet, Operation};
use crate::readme::between;

/// One slice.
pub(super) struct Row {
    pub(super) server: &'static str,
    pub(super) operation: Operation,
    pub(super) answers: Answers,
    pub(super) usage: Usage,
}

pub(super) struct Report {
    conditions: String,
    pub(super) starts: Vec<Duration>,
    pub(super) idle_bytes: Vec<u64>,
    pub(super) loaded_bytes: u64,
    pub(super) peak_bytes: u64,
    pub(super) rows: Vec<Row>,
}

impl Row {
    fn per_second(&self) -> f64 {
        self.answers.count as f64 / self.answers.seconds
    }

    fn cpu_us(&self) -> f64 {
        self.usage.server * 1e6 / self.answers.count.max(1) as f64
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:32} {:7} {:>9.0}/s {:>9.1} us CPU each, p50 {:>6} us, p99 {:>6} us, {:>5.0} MB/s, {:.2} cores, others {:.2}",
            self.operation.title(),
            self.server,
            self.per_second(),
            self.cpu_us(),
            self.answers.quantile(0.5),
            self.answers.quantile(0.99),
            self.answers.body_bytes as f64 / self.answers.seconds / 1e6,
            self.usage.server / self.answers.seconds,
            self.usage.foreign() / self.answers.seconds,
        )
    }
}

impl Report {
    pub(super) fn new(fleet: &Fleet, connections: usize, slice: Duration) -> Self {
        let Fleet {
            instances,
            applications,
        } = fleet;
        Self {
            conditions: format!(
                "{}. {instances} instances in {applications} applications, {connections} connections, slices of {} s.",
                machine(),
                slice.as_secs()
            ),
            starts: Vec::new(),
            idle_bytes: Vec::new(),
            loaded_bytes: 0,
            peak_bytes: 0,
            rows: Vec::new(),
        }
    }

    /// The slice in the middle by CPU time, of those of one operation on one server.
    fn median(&self, operation: Operation, server: &str) -> Option<&Row> {
        let mut rows: Vec<_> = self
            .rows
            .iter()
            .filter(|row| row.operation == operation && row.server == server)
            .collect();
        rows.sort_by(|a, b| a.cpu_us().total_cmp(&b.cpu_us()));
        rows.get(rows.len() / 2).copied()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.conditions)?;
        writeln!(
            f,
            "| operation | server | CPU us each | answers/s | p50 us | p99 us | MB/s | CPU of others, cores |"
        )?;
        writeln!(f, "|---|---|--:|--:|--:|--:|--:|--:|")?;
        for operation in super::OPERATIONS {
            for row in ["limit", "eureka"]
                .into_iter()
                .filter_map(|server| self.median(operation, server))
            {
                writeln!(
                    f,
                    "| {} | {} | {:.1} | {:.0} | {} | {} | {:.0} | {:.2} |",
                    operation.title(),
                    row.server,
                    row.cpu_us(),
                    row.per_second(),
                    row.answers.quantile(0.5),
                    row.answers.quantile(0.99),
                    row.answers.body_bytes as f64 / row.answers.seconds / 1e6,
                    row.usage.foreign() / row.answers.seconds,
                )?;
            }
        }
        writeln!(
            f,
            "\n| operation | CPU, eureka to limit | rate, eureka to limit |\n|---|--:|--:|"
        )?;
        for operation in super::OPERATIONS {
            let (Some(ours), Some(limit)) =
                (self.median(operation, "eureka"), self.median(operation, "limit"))
            else {
                continue;
            };
            let (cpu, rate) = (
                ours.cpu_us() / limit.cpu_us(),
                ours.per_second() / limit.per_second(),
            );
            writeln!(f, "| {} | {cpu:.2} | {:.0} % |", operation.title(), rate * 100.0)?;
        }
        let starts: Vec<_> = self
            .starts
            .iter()
            .map(|start| format!("{:.1}", start.as_secs_f64() * 1e3))
            .collect();
        let idle = self.idle_bytes.iter().max().copied().unwrap_or_default();
        writeln!(
            f,
            "\n| start to first answer, ms | idle, MiB | with all instances, MiB | at most, MiB |"
        )?;
        writeln!(f, "|---|--:|--:|--:|")?;
        let mebibytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1_048_576.0);
        let (loaded, peak) = (mebibytes(self.loaded_bytes), mebibytes(self.peak_bytes));
        writeln!(
            f,
            "| {} | {} | {loaded} | {peak} |",
            starts.join(", "),
            mebibytes(idle)
        )
    }
}

/// Replaces what stands between two markers of docs/benchmarks.md.
pub(super) fn write(section: &str, text: &str) -> Result<()> {
    let path = crate::root().join("docs/benchmarks.md");
    let page = fs::read_to_string(&path).context("docs/benchmarks.md")?;
    let (start, end) = (
        format!("<!-- {section} -->\n"),
        format!("<!-- end of {section} -->"),
    );
    fs::write(path, between(&page, [&start, &end], text)?)?;
    Ok(())
}

/// What the figures were taken on.
pub(super) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processors
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default();
    let model = model.trim_start_matches(['\t', ' ', ':']);
    format!("{cores} cores ({model}), Linux {}, loopback", kernel.trim())
}
