//! Log lines, written by a thread of their own: whoever reads standard error slowly must not stop the node.

use std::io::{self, Write};
use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::json;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};
use tracing_subscriber::{Registry, reload};

use crate::clock;
use crate::config::{Log, LogFormat};

/// Lines that may wait for the reader of standard error; further ones are lost and counted.
const WAITING_MAX: usize = 4096;
/// How long the end of the process waits for the reader.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);
/// Only our own crates log below this level.
const FOREIGN: LevelFilter = LevelFilter::WARN;

/// Passes lines to the thread that writes them. Clones write to the same thread.
#[derive(Clone, Debug)]
pub struct LogWriter {
    lines: SyncSender<Message>,
    lost: Arc<AtomicU64>,
    format: LogFormat,
}

/// Changes the level of the log of this process.
#[derive(Clone, Debug)]
pub struct LogLevel(reload::Handle<Targets, Registry>);

#[derive(Debug)]
enum Message {
    Line(Vec<u8>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

/// Sends the log of this process to standard error, panics included. Once per process.
pub fn install(config: &Log) -> Result<(LogWriter, LogLevel), TryInitError> {
    let writer = LogWriter::new(config.format);
    let (targets, level) = reload::Layer::new(targets(config.level));
    let registry = tracing_subscriber::registry().with(targets);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer.clone());
    match config.format {
        LogFormat::Text => registry
            .with(lines.with_target(false).with_ansi(false))
            .try_init()?,
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init()?,
    }
    std::panic::set_hook(Box::new(log_panic));
    Ok((writer, LogLevel(level)))
}

fn targets(level: Level) -> Targets {
    let ours = LevelFilter::from_level(level);
    Targets::new()
        .with_default(ours.min(FOREIGN))
        .with_target("eureka", ours)
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string);
    let message = panic.payload_as_str().unwrap_or("no message");
    tracing::error!(location, message, "panic: this is a bug; the node goes on");
}

impl LogLevel {
    /// From now on lines of this level and more important ones are written.
    pub fn set(&self, level: Level) {
        // It fails only when the log is gone, and then there is nothing to change.
        let _ = self.0.reload(targets(level));
    }
}

impl LogWriter {
    fn new(format: LogFormat) -> Self {
        let (lines, waiting) = sync_channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let started = std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write(&waiting, &counted));
        if let Err(error) = started {
            // Without the thread the channel is closed and every line is counted as lost; the node can still serve.
            eprintln!("eureka: no thread for the log: {error}");
        }
        Self { lines, lost, format }
    }

    /// The line that says that the node serves: always written, whatever the level, for whoever waits for it.
    pub fn announce(&self, line: &str) {
        let text = match self.format {
            LogFormat::Text => format!("{line}\n"),
            LogFormat::Json => {
                let timestamp =
                    humantime::format_rfc3339_micros(UNIX_EPOCH + clock::since_epoch()).to_string();
                let line = json!({ "timestamp": timestamp, "level": Level::INFO.as_str(), "message": line });
                format!("{line}\n")
            }
        };
        self.send(text.into_bytes());
    }

    /// Lines lost because nobody read standard error.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until what was logged so far is written, a second at most.
    pub fn flush(&self) {
        let (written, done) = sync_channel(1);
        if self.lines.try_send(Message::Flush(written)).is_ok() {
            // At a time-out the reader is gone or stuck; what is left cannot be helped.
            let _ = done.recv_timeout(FLUSH_TIMEOUT);
        }
    }

    fn send(&self, line: Vec<u8>) {
        if self.lines.try_send(Message::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write(waiting: &Receiver<Message>, lost: &AtomicU64) {
    let mut reported = 0;
    while let Ok(message) = waiting.recv() {
        match message {
            // Standard error may be closed; there is nowhere left to say so.
            Message::Line(line) => drop(io::stderr().write_all(&line)),
            Message::Flush(written) => drop(written.send(())),
        }
        let total = lost.load(Ordering::Relaxed);
        if total > reported {
            eprintln!(
                "eureka: {} log lines lost, standard error was not read",
                total - reported
            );
            reported = total;
        }
    }
}

impl Write for LogWriter {
    /// The formatter hands over whole lines.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.send(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
