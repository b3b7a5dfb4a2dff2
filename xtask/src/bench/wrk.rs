//! wrk, the public load generator: a closed loop on kept connections, in one thread, that sends the requests of a file.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// What to send where.
pub(super) struct Run<'a> {
    pub(super) address: SocketAddr,
    /// As `write_requests` wrote it.
    pub(super) requests: &'a Path,
    pub(super) connections: usize,
    pub(super) seconds: u64,
    /// The requests are registrations, whose dirty timestamps rise from here.
    pub(super) stamp: Option<u64>,
}

/// What came back, as the last line of load.lua says; latencies in microseconds.
#[derive(Debug, Deserialize, PartialEq)]
pub(super) struct Summary {
    pub(super) answers: u64,
    micros: u64,
    /// With heads.
    bytes: u64,
    /// Answers of 400 and more.
    refused: u64,
    /// Requests without an answer.
    broken: u64,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

impl Run<'_> {
    /// Waits for its end; an error unless every answer was a good one.
    pub(super) fn run(&self) -> Result<Summary> {
        let script = crate::root().join("xtask/src/bench/load.lua");
        let mut command = Command::new("wrk");
        command
            .args(["--threads", "1", "--timeout", "30s", "--script"])
            .arg(script)
            .args(["--connections", &self.connections.to_string()])
            .args(["--duration", &format!("{}s", self.seconds)])
            .arg(format!("http://{}/", self.address))
            .env("REQUESTS", self.requests)
            .env_remove("STAMP");
        if let Some(stamp) = self.stamp {
            command.env("STAMP", stamp.to_string());
        }
        let output = command.output().context("wrk")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let summary = summary(&text)
            .with_context(|| format!("wrk: {text}{}", String::from_utf8_lossy(&output.stderr)))?;
        ensure!(
            summary.answers > 0 && summary.refused == 0 && summary.broken == 0,
            "{summary:?}"
        );
        Ok(summary)
    }
}

impl Summary {
    pub(super) fn per_second(&self) -> f64 {
        self.answers as f64 * 1e6 / self.micros as f64
    }

    pub(super) fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / self.micros as f64
    }
}

/// Its version, or how to get it.
pub(super) fn version() -> Result<String> {
    let Ok(output) = Command::new("wrk").arg("-v").output() else {
        bail!(
            "wrk is not installed: it is a package of Debian, Fedora, Homebrew and others (apt-get install wrk)"
        )
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next().unwrap_or_default();
    Ok(line.split(" [").next().unwrap_or(line).trim().to_owned())
}

/// The file that `load.lua` reads.
pub(super) fn write_requests(file: &Path, requests: &[Vec<u8>]) -> Result<()> {
    let mut text = Vec::new();
    for request in requests {
        writeln!(text, "{}", request.len())?;
        text.extend_from_slice(request);
    }
    fs::write(file, text).with_context(|| file.display().to_string())
}

fn summary(text: &str) -> Result<Summary> {
    let line = text.lines().rev().find(|line| line.starts_with('{'));
    Ok(serde_json::from_str(line.context("no summary")?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_the_last_line_that_is_json() {
        let text = "Running 2s test\n{\"not\":1}\n  123 requests in 2.00s\n\
                    {\"answers\":3000,\"micros\":2000000,\"bytes\":6000000,\"refused\":0,\"broken\":0,\"p50\":110.0,\"p99\":320.5}\n";
        let summary = summary(text).unwrap();
        assert!((summary.per_second() - 1500.0).abs() < 1e-9);
        assert!((summary.megabytes_per_second() - 3.0).abs() < 1e-9);
        assert_eq!((summary.p50, summary.p99), (110.0, 320.5));
    }

    #[test]
    fn output_without_a_summary_is_an_error() {
        assert!(summary("unable to connect to 127.0.0.1:1 Connection refused\n").is_err());
    }

    #[test]
    fn requests_are_written_with_their_lengths() {
        let file = tempfile::NamedTempFile::new().unwrap();
        write_requests(file.path(), &[b"GET /\n".to_vec(), b"12".to_vec()]).unwrap();
        assert_eq!(fs::read(file.path()).unwrap(), b"6\nGET /\n2\n12");
    }
}
