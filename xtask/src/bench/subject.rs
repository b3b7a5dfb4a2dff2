//! The processes that are measured, and what the kernel says about them.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::stopwatch::Stopwatch;

const START_MAX: Duration = Duration::from_secs(20);

/// A server that was started for the measurement; dropping it ends the process.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    /// Where it speaks gRPC, if it does.
    pub(super) grpc: SocketAddr,
    process: Child,
}

impl Subject {
    /// Starts `eureka serve` and says how long it took to its first answer.
    pub(super) fn server(program: &Path, settings: &[String]) -> Result<(Self, Duration)> {
        let [address, grpc] = [free_address()?, free_address()?];
        let mut command = Command::new(program);
        command.args([
            "serve",
            "--listen",
            &address.to_string(),
            "--grpc-listen",
            &grpc.to_string(),
            "--set",
            "log.level=warn",
            // The generator takes what the processors have: that is no reason to shed.
            "--set",
            "limits.lag=1m",
        ]);
        for setting in settings {
            command.args(["--set", setting]);
        }
        Self::start("eureka", [address, grpc], &mut command, "/health/live")
    }

    /// Starts this program as the limit.
    pub(super) fn limit(files: &[PathBuf]) -> Result<Self> {
        let address = free_address()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "limit", &address.to_string()]).args(files);
        Ok(Self::start("limit", [address; 2], &mut command, "/")?.0)
    }

    fn start(
        name: &'static str,
        [address, grpc]: [SocketAddr; 2],
        command: &mut Command,
        path: &str,
    ) -> Result<(Self, Duration)> {
        let log = log_path(name);
        let log = fs::File::create(&log).with_context(|| log.display().to_string())?;
        let stopwatch = Stopwatch::start();
        let process = command
            .current_dir(std::env::temp_dir())
            .stdout(Stdio::null())
            .stderr(log);
        let process = process.spawn().with_context(|| format!("{command:?}"))?;
        let mut subject = Self {
            name,
            address,
            grpc,
            process,
        };
        while !answers(address, path) {
            if let Some(status) = subject.process.try_wait()? {
                bail!("{name} ended: {status}, see {}", log_path(name).display());
            }
            if stopwatch.elapsed() > START_MAX {
                bail!("{name} does not answer on {address}");
            }
            std::thread::park_timeout(Duration::from_micros(200));
        }
        Ok((subject, stopwatch.elapsed()))
    }

    pub(super) fn is_limit(&self) -> bool {
        self.name == "limit"
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        Ok(Memory::of(self.process.id())?.resident)
    }

    pub(super) fn resident_peak_bytes(&self) -> Result<u64> {
        Ok(Memory::of(self.process.id())?.peak)
    }

    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        process_seconds(self.process.id())
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Memory of a process, in bytes.
pub(super) struct Memory {
    pub(super) resident: u64,
    pub(super) peak: u64,
}

impl Memory {
    pub(super) fn of(process: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let field = |name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kibibytes = line.context("no such field")?.trim().trim_end_matches(" kB");
            anyhow::Ok(kibibytes.parse::<u64>()? * 1024)
        };
        Ok(Self {
            resident: field("VmRSS:")?,
            peak: field("VmHWM:")?,
        })
    }
}

/// CPU time of a subject, of this process and of the whole machine, in seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) server: f64,
    pub(super) generator: f64,
    machine: f64,
}

impl Usage {
    pub(super) fn of(subject: &Subject) -> Result<Self> {
        Ok(Self {
            server: process_seconds(subject.process.id())?,
            generator: process_seconds(std::process::id())?,
            machine: machine_seconds()?,
        })
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            server: self.server - before.server,
            generator: self.generator - before.generator,
            machine: self.machine - before.machine,
        }
    }

    /// What others on the machine took.
    pub(super) fn foreign(&self) -> f64 {
        (self.machine - self.server - self.generator).max(0.0)
    }
}

/// Where release builds are, beside whatever build of this program runs.
pub(super) fn release_directory() -> PathBuf {
    let own = std::env::current_exe().ok();
    let target = own.as_deref().and_then(Path::parent).and_then(Path::parent);
    target.unwrap_or_else(|| Path::new("target")).join("release")
}

/// What a subject writes on standard error; the place of its last one is taken.
fn log_path(name: &str) -> PathBuf {
    crate::root().join("target").join(format!("bench-{name}.log"))
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn answers(address: SocketAddr, path: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut answer = Vec::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_end(&mut answer).is_ok()
        && answer.starts_with(b"HTTP/1.1 200")
}

/// User and system time of all threads, also of ended ones.
pub(super) fn process_seconds(id: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    let after_name = stat.rsplit_once(')').context("/proc/PID/stat")?.1;
    let fields: Vec<_> = after_name.split_whitespace().collect();
    ticks(&fields[11..13])
}

fn machine_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat")?;
    let fields: Vec<_> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    // user nice system idle iowait irq softirq steal
    let busy: Vec<_> = [1, 2, 3, 6, 7, 8]
        .into_iter()
        .filter_map(|index| fields.get(index).copied())
        .collect();
    ticks(&busy)
}

/// The kernel's unit towards user space is a hundredth of a second on every Linux that runs Rust.
fn ticks(fields: &[&str]) -> Result<f64> {
    let mut sum = 0;
    for field in fields {
        sum += field.parse::<u64>()?;
    }
    Ok(sum as f64 / 100.0)
}
