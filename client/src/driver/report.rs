//! What happened, for the log: what somebody has to know as information or warning, what happens all the time as debug.
//!
//! A server that is down fails again and again. Of failures in a row that are alike, the first, second, fourth, eighth and
//! so on are warnings, and the others debug; that it works again is told, too.

use eureka_registry_core::{Instance, Mono, Now};
use tracing::{Span, debug, info, info_span, warn};

use super::shared::Shared;
use crate::agent::{Event, Fetched, PollingWhy, Why};

/// Under which all lines of a client's task are found.
pub(super) const TARGET: &str = "eureka_client";

/// What a client's lines are said to be of: there may be many clients in a process.
pub(super) fn span(instance: Option<&Instance>) -> Span {
    match instance {
        Some(instance) => info_span!(target: TARGET, "client", instance = %instance.key()),
        None => info_span!(target: TARGET, "client"),
    }
}

/// Writes the lines of one client.
#[derive(Debug, Default)]
pub(super) struct Report {
    reading: Failures,
    writing: Failures,
}

/// Failures in a row.
#[derive(Debug, Default)]
struct Failures {
    count: u64,
    /// When the first of them was.
    since: Mono,
    /// Why the last of them was.
    why: Option<Why>,
}

impl Report {
    /// Writes a line about an event, or none.
    pub(super) fn line(&mut self, now: Now, event: &Event, shared: &Shared) {
        match event {
            Event::Registered { server } => {
                self.writing = Failures::default();
                let status = shared.look(|agent| agent.registration().map(|is| is.instance.status));
                let status = status.map(tracing::field::display);
                info!(target: TARGET, %server, status, "registered");
            }
            Event::Renewed { server } => match self.writing.end(now) {
                Some((failures, seconds)) => {
                    info!(target: TARGET, %server, failures, seconds, "renewed, after failures");
                }
                None => debug!(target: TARGET, %server, "renewed"),
            },
            Event::Missing { server } => {
                info!(target: TARGET, %server, "the server does not know the instance: registering again");
            }
            Event::RegistrationFailed { server, why } => match self.writing.add(now, why) {
                (true, failures) => warn!(target: TARGET, %server, %why, failures, "registration failed"),
                (false, failures) => debug!(target: TARGET, %server, %why, failures, "registration failed"),
            },
            Event::RenewalFailed {
                server,
                why,
                lease_left,
            } => match self.writing.add(now, why) {
                (true, failures) => {
                    warn!(target: TARGET, %server, %why, failures, ?lease_left, "renewal failed");
                }
                (false, failures) => {
                    debug!(target: TARGET, %server, %why, failures, ?lease_left, "renewal failed");
                }
            },
            Event::Left { cancelled: true } => {
                info!(target: TARGET, "left: a server says that the instance is gone")
            }
            Event::Left { cancelled: false } => {
                info!(target: TARGET, "left without a cancel: if there is a lease, it runs out");
            }
            Event::Fetched(fetched) => self.read(now, fetched),
            Event::FetchFailed {
                server: Some(server),
                why,
            } => match self.reading.add(now, why) {
                (true, failures) => {
                    warn!(target: TARGET, %server, %why, failures, "reading the registry failed")
                }
                (false, failures) => {
                    debug!(target: TARGET, %server, %why, failures, "reading the registry failed")
                }
            },
            Event::Following { server } => info!(target: TARGET, %server, "changes are told as they happen"),
            Event::Polling {
                server,
                why: PollingWhy::FeedFailed,
            } => warn!(target: TARGET, %server, "the server's change feed was no use: it is polled"),
            Event::Polling { server, why } => info!(target: TARGET, %server, %why, "the server is polled"),
            Event::NoServers => warn!(target: TARGET, "there is no server to ask"),
            // Told by `NoServers`.
            Event::FetchFailed { server: None, .. } => {}
            Event::CheckHealth => {}
        }
    }

    fn read(&mut self, now: Now, fetched: &Fetched) {
        let (server, kind) = (&fetched.server, fetched.kind);
        let instances = fetched.snapshot.len();
        match self.reading.end(now) {
            Some((failures, seconds)) => {
                info!(target: TARGET, %server, ?kind, instances, failures, seconds, "read the registry, after failures");
            }
            None => debug!(target: TARGET, %server, ?kind, instances, "read the registry"),
        }
    }
}

impl Failures {
    /// One more; whether it is worth a warning, and how many that are.
    fn add(&mut self, now: Now, why: &Why) -> (bool, u64) {
        if self.count == 0 {
            self.since = now.mono;
        }
        self.count += 1;
        let other = self.why.replace(why.clone()).as_ref() != Some(why);
        (other || self.count.is_power_of_two(), self.count)
    }

    /// It works. How many failures there were before, and for how many seconds; `None` if there was none.
    fn end(&mut self, now: Now) -> Option<(u64, u64)> {
        let before = std::mem::take(self);
        (before.count > 0).then(|| (before.count, now.mono.since(before.since).as_secs()))
    }
}
