//! The processes that are measured, and what the kernel says about them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal};

use crate::stopwatch::Stopwatch;

/// Spring's server needs six seconds, but minutes on a machine that is busy with something else.
const START_MAX: Duration = Duration::from_secs(300);
const ASK_EVERY_MIN: Duration = Duration::from_micros(200);
const ASK_EVERY_MAX: Duration = Duration::from_millis(20);
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Whose server.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, clap::ValueEnum)]
pub(super) enum Kind {
    /// The server of this project
    Eureka,
    /// hyper alone
    Limit,
    /// Spring's, with its default settings
    Java,
    /// Spring's, without the copy that its lists are read from for 30 s
    JavaFresh,
    /// r-nacos: another registry in Rust, with an API of its own
    RNacos,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Eureka => "eureka",
            Self::Limit => "limit",
            Self::Java => "java",
            Self::JavaFresh => "java-fresh",
            Self::RNacos => "r-nacos",
        }
    }

    /// Whether it runs on a virtual machine, which needs long until it is as fast as it gets.
    pub(super) const fn warms_up(self) -> bool {
        matches!(self, Self::Java | Self::JavaFresh)
    }
}

/// A server that was started for the measurement; dropping it ends the process.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    /// Where it speaks gRPC, if it does.
    pub(super) grpc: SocketAddr,
    process: Child,
}

/// While it lives a subject runs; then it is stopped, so that it takes nothing of the machine from those whose turn it is.
pub(super) struct Turn<'a>(&'a Subject);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // It fails only if the process has ended; whoever asks it next will notice.
        let _ = self.0.signal(Signal::STOP);
    }
}

impl Subject {
    /// Starts `eureka serve` and says how long it took until it lived.
    pub(super) fn server(program: &Path, settings: &[String]) -> Result<(Self, Duration)> {
        Self::server_until(program, settings, "/health/live")
    }

    /// Starts `eureka serve` and says how long it took until it answered `GET path` with 200.
    pub(super) fn server_until(program: &Path, settings: &[String], path: &str) -> Result<(Self, Duration)> {
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
        Self::start("eureka", [address, grpc], &mut command, path)
    }

    /// Starts this program as the limit.
    pub(super) fn limit(files: &[PathBuf]) -> Result<Self> {
        Ok(Self::timed_limit(files)?.0)
    }

    /// The same, and how long it took to its first answer.
    pub(super) fn timed_limit(files: &[PathBuf]) -> Result<(Self, Duration)> {
        let address = free_address()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["bench", "limit", &address.to_string()]).args(files);
        Self::start("limit", [address; 2], &mut command, "/")
    }

    /// Starts a command that will answer `GET path` at the address with 200, and says how long it took to that.
    pub(super) fn start(
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
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
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
            // So that asking neither takes much of the machine nor makes a short start look long.
            std::thread::park_timeout((stopwatch.elapsed() / 50).clamp(ASK_EVERY_MIN, ASK_EVERY_MAX));
        }
        Ok((subject, stopwatch.elapsed()))
    }

    /// Lets it run until the turn is dropped.
    pub(super) fn turn(&self) -> Result<Turn<'_>> {
        self.signal(Signal::CONT)?;
        Ok(Turn(self))
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let process = Pid::from_child(&self.process);
        rustix::process::kill_process(process, signal).with_context(|| format!("{}: {signal:?}", self.name))
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        Ok(Memory::of(self.process.id())?.resident)
    }

    pub(super) fn resident_peak_bytes(&self) -> Result<u64> {
        Ok(Memory::of(self.process.id())?.peak)
    }

    /// CPU time of each thread that lives, to the nanosecond.
    pub(super) fn threads_seconds(&self) -> Result<BTreeMap<OsString, f64>> {
        let mut threads = BTreeMap::new();
        for thread in fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let thread = thread?;
            // It may have ended meanwhile.
            if let Ok(times) = fs::read_to_string(thread.path().join("schedstat")) {
                let nanoseconds = times.split(' ').next().context("schedstat")?.parse::<u64>()?;
                threads.insert(thread.file_name(), nanoseconds as f64 / 1e9);
            }
        }
        Ok(threads)
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

/// CPU time of a subject, of this process with the generators that it ran, and of the whole machine, in seconds.
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
            generator: own_seconds()?,
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
    crate::target().join("release")
}

/// What a subject writes on standard error; the place of its last one is taken.
fn log_path(name: &str) -> PathBuf {
    crate::root().join("target").join(format!("bench-{name}.log"))
}

pub(super) fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn answers(address: SocketAddr, path: &str) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
    );
    let mut answer = Vec::new();
    stream.set_read_timeout(Some(ANSWER_MAX)).is_ok()
        && stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_end(&mut answer).is_ok()
        && answer.starts_with(b"HTTP/1.1 200")
}

/// User and system time of all threads, also of ended ones.
pub(super) fn process_seconds(id: u32) -> Result<f64> {
    stat_seconds(id, 11..13)
}

/// The same of this process, and of the children that it waited for.
fn own_seconds() -> Result<f64> {
    stat_seconds(std::process::id(), 11..15)
}

fn stat_seconds(id: u32, fields: Range<usize>) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"))?;
    let after_name = stat.rsplit_once(')').context("/proc/PID/stat")?.1;
    let all: Vec<_> = after_name.split_whitespace().collect();
    ticks(all.get(fields).context("/proc/PID/stat")?)
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
