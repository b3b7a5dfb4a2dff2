//! Where figures go, and what they were taken on.

use std::fs;

use anyhow::{Context, Result};

use crate::readme::between;

/// Replaces what stands between two markers of docs/benchmarks.md.
pub(crate) fn write(section: &str, text: &str) -> Result<()> {
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
