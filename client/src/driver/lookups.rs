//! Servers that are named by DNS, looked for again and again as long as the client lives: at the start, every few minutes, and
//! soon when something is wrong. A task of its own, for clients with sources: a slow DNS keeps no renewal from being sent.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{Instrument as _, Span, debug, info, warn};

use super::dns::{DnsError, Resolved, Resolver, ServerSource, Servers};
use super::report::TARGET;
use super::shared::Shared;
use crate::agent::Event;
use crate::server::Server;

/// The first pause after something went wrong; twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// A pause is up to so much shorter than it might be, or all clients would ask at once.
const JITTER: f64 = 0.2;

/// What is asked for, how, and how often at least.
#[derive(Debug)]
pub(super) struct Plan {
    /// Servers that are named by their URLs, and stay whatever DNS says.
    pub(super) given: Vec<Arc<Server>>,
    pub(super) sources: Vec<ServerSource>,
    pub(super) resolver: Resolver,
    pub(super) interval: Duration,
    pub(super) seed: u64,
}

/// The task, which ends with this.
#[derive(Debug)]
pub(super) struct Lookups {
    trouble: Arc<Notify>,
    _task: JoinSet<()>,
}

/// What was counted of looking for servers: see [`Builder::source`](super::Builder::source).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct LookupStats {
    /// Times that all sources were asked.
    pub lookups: u64,
    /// Those of them that some source did not answer, or answered with something that names no server.
    pub failed: u64,
    /// Times that the servers were others than before.
    pub changes: u64,
    /// How many servers there are now, with those that were named by their URLs.
    pub servers: usize,
}

impl Lookups {
    pub(super) fn start(shared: Arc<Shared>, plan: Plan, span: Span) -> Self {
        let trouble = Arc::new(Notify::new());
        let mut task = JoinSet::new();
        task.spawn(look(shared, plan, Arc::clone(&trouble)).instrument(span));
        Self { trouble, _task: task }
    }

    /// What fails may have moved: then DNS knows.
    pub(super) fn notice(&self, event: &Event) {
        if matches!(
            event,
            Event::RegistrationFailed { .. } | Event::RenewalFailed { .. } | Event::FetchFailed { .. }
        ) {
            self.trouble.notify_one();
        }
    }
}

async fn look(shared: Arc<Shared>, plan: Plan, trouble: Arc<Notify>) {
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut servers = Servers::new(plan.resolver, plan.sources);
    let mut told: HashSet<Arc<Server>> = plan.given.iter().cloned().collect();
    let mut failures_before = Vec::new();
    let mut in_a_row = 0;
    loop {
        let Resolved {
            servers: found,
            failures,
        } = servers.resolve().await;
        let all: Vec<_> = plan.given.iter().cloned().chain(found).collect();
        let listed: HashSet<_> = all.iter().cloned().collect();
        let changed = listed != told;
        report(&failures, &failures_before, changed, &all);
        shared.looked_up(!failures.is_empty(), changed, listed.len());
        if changed {
            shared.change(|agent, now| agent.set_servers(now, all));
            told = listed;
        }

        let mut spread = |pause: Duration| pause.mul_f64(1.0 - JITTER * random.f64());
        let soon = FIRST_PAUSE.saturating_mul(1 << in_a_row.min(16));
        let soon = spread(soon.min(plan.interval));
        let is_in_trouble = if failures.is_empty() {
            let noticed = async {
                sleep(soon).await;
                trouble.notified().await;
            };
            timeout(spread(plan.interval), noticed).await.is_ok()
        } else {
            sleep(soon).await;
            true
        };
        in_a_row = if is_in_trouble { in_a_row + 1 } else { 0 };
        failures_before = failures;
    }
}

/// A line for what is new; what goes on failing is no news.
fn report(failures: &[DnsError], before: &[DnsError], changed: bool, all: &[Arc<Server>]) {
    for failure in failures {
        if before.contains(failure) {
            debug!(target: TARGET, %failure, "looking for servers failed again");
        } else {
            warn!(target: TARGET, %failure, servers = all.len(), "looking for servers failed");
        }
    }
    if all.is_empty() && before.is_empty() {
        warn!(target: TARGET, "no servers were found: there is none to ask");
    }
    if changed {
        info!(target: TARGET, servers = ?all, "the servers are these now");
    } else if failures.is_empty() && !before.is_empty() {
        info!(target: TARGET, "servers can be looked for again; they are the same");
    }
}
