//! What the operating system knows about this process. Where there is no `/proc`, nothing is known.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Bytes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Memory {
    /// That the process has in memory.
    pub(crate) used: u64,
    /// That the machine has.
    pub(crate) total: u64,
}

/// Memory used and there.
pub(crate) fn memory() -> Memory {
    Memory {
        used: kibibytes("/proc/self/status", "VmRSS:").unwrap_or(0),
        total: kibibytes("/proc/meminfo", "MemTotal:").unwrap_or(0),
    }
}

/// Files and sockets open.
pub(crate) fn open_files() -> Option<usize> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count())
}

/// Seconds of processor time used, by this process and the kernel for it.
pub(crate) fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the name in parentheses and may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let kernel: f64 = fields.next()?.parse().ok()?;
    // Linux counts in hundredths of a second for every program, whatever the kernel's own tick.
    Some((user + kernel) / 100.0)
}

/// Raises the limit on open files to what this user may have, and returns it: every connection is one.
pub(crate) fn raise_file_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if setrlimit(Resource::Nofile, raised).is_ok() {
        limit.maximum
    } else {
        limit.current
    }
}

fn kibibytes(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let number: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(number * 1024)
}
