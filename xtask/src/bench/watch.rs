//! `cargo xtask bench watch`: a thousand watchers of a hundred changes a second, beside a thousand clients that poll.
//!
//! Every form of watching meets a server of its own with the same instances and the same changes, in one run. Each
//! change carries a mark with its number, so that a watcher sees with one search in the bytes what it was sent, and a
//! run fails unless every watcher was sent every change in order. A change is late by the time from the first byte of
//! the registration that makes it to the moment the watcher has it in hand; as all watchers and the sender are in this one
//! process, on the same cores as the server, the delays are upper bounds.

mod followers;
pub(super) mod marks;
mod stalled;
mod table;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};

use self::followers::Followers;
use self::marks::{Marks, Sender};
use self::table::Row;
use super::load;
use super::subject::{self, Subject, Usage};
use super::workload::Fleet;
use crate::stopwatch::Stopwatch;

pub(super) const FLEET: Fleet = Fleet {
    instances: 1_000,
    applications: 100,
};
/// Watches on one connection, in the form that shares them.
const STREAMS: usize = 100;
/// Time after the last change within which everybody has it.
const LATEST: Duration = Duration::from_secs(30);

/// How the watchers watch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    /// There is none: what the changes cost by themselves.
    Nobody,
    /// gRPC, each on a connection of its own.
    Grpc,
    /// gRPC, a hundred on each connection.
    GrpcShared,
    /// Server-sent events over HTTP/1.1, each on a connection of its own.
    Sse,
    /// Deltas, gzip, once a second, each on a connection of its own.
    Poll,
}

const FORMS: [Form; 5] = [Form::Nobody, Form::Grpc, Form::GrpcShared, Form::Sse, Form::Poll];

/// How much of everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) watchers: usize,
    /// Changes a second.
    pub(super) rate: u32,
    pub(super) seconds: u64,
}

impl Size {
    fn changes(self) -> u32 {
        self.rate * u32::try_from(self.seconds).unwrap_or(u32::MAX / self.rate)
    }
}

/// Measures all forms, and what watchers cost that read nothing.
pub(super) fn measure(size: Size) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut rows = Vec::new();
    for form in FORMS {
        let row = runtime.block_on(watched(form, size))?;
        println!("{row}");
        println!("{}", row.json());
        rows.push(row);
    }
    let stalled = runtime.block_on(stalled::measure())?;
    println!("{}", stalled.json());
    Ok(table::page(size, &rows, &stalled))
}

/// What one change costs to deliver to one watcher, and how late it comes; microseconds.
pub(super) struct Delivery {
    pub(super) title: &'static str,
    pub(super) cpu: f64,
    pub(super) delays: [u32; 3],
}

/// Measures the forms of watching alone; delays are the median, p99 and the longest.
pub(super) fn deliveries(size: Size) -> Result<Vec<Delivery>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let measured = FORMS.into_iter().filter(|form| *form != Form::Nobody);
    measured
        .map(|form| {
            let row = runtime.block_on(watched(form, size))?;
            Ok(Delivery {
                title: form.title(),
                cpu: row.cpu_us(),
                delays: [0.5, 0.99, 1.0].map(|share| row.seen.quantile(share)),
            })
        })
        .collect()
}

/// The titles of what `deliveries` measures.
pub(super) fn titles() -> impl Iterator<Item = &'static str> {
    let forms = FORMS.into_iter().filter(|form| *form != Form::Nobody);
    forms.map(Form::title)
}

async fn watched(form: Form, size: Size) -> Result<Row> {
    let server = server(&[])?;
    load::register_all(server.address, &FLEET).await?;
    let alone_bytes = server.resident_bytes()?;
    let marks = Arc::new(Marks::new(size.changes()));
    let followers = Followers::open(form, &server, size.watchers, &marks).await?;

    let before = Usage::of(&server)?;
    let stopwatch = Stopwatch::start();
    let sender = Sender::open(server.address)?;
    let sending = thread::spawn({
        let (marks, rate) = (Arc::clone(&marks), size.rate);
        move || sender.send_all(&marks, rate)
    });
    let seen = followers
        .finish(Duration::from_secs(size.seconds) + LATEST)
        .await?;
    while !sending.is_finished() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let seconds = stopwatch.elapsed().as_secs_f64();
    let usage = Usage::of(&server)?.since(&before);
    sending.join().map_err(|_| anyhow!("the sender failed"))??;
    ensure!(
        form == Form::Nobody || seen.delays.len() == size.watchers * size.changes() as usize,
        "{form:?}: {} changes were delivered",
        seen.delays.len()
    );
    Ok(Row {
        form,
        changes: size.changes(),
        seen,
        seconds,
        usage,
        alone_bytes,
        peak_bytes: server.resident_peak_bytes()?,
    })
}

/// As a user starts it, but for these settings and the delay that counts as overload.
fn server(settings: &[String]) -> Result<Subject> {
    let program = subject::release_directory().join("eureka");
    Ok(Subject::server(&program, settings)?.0)
}

impl Form {
    const fn title(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Grpc => "gRPC Watch",
            Self::GrpcShared => "gRPC Watch, 100 to a connection",
            Self::Sse => "server-sent events",
            Self::Poll => "delta each second, gzip",
        }
    }
}
