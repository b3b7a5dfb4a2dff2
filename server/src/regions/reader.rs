//! Reads one other region from its servers, one of which is asked at a time, until it is told to stop.

use std::sync::Arc;
use std::time::Duration;

use eureka_client::agent::{Agent, AgentConfig, Consume, Event, FetchKind, Fetched, Regions};
use eureka_client::{Pool, PoolConfig, Server};
use eureka_http_api::RemoteRegions;
use eureka_registry_core::Clock;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::{info, warn};

use super::sent::Sent;

/// What servers call themselves that read other regions, in Java, too: such a reader is told of one region alone.
const IDENTITY: &str = "DefaultServer";

/// Keeps what is shown of one region up to date.
pub(crate) struct Reader {
    name: Arc<str>,
    agent: Agent,
    shown: RemoteRegions,
    pool: Pool,
    clock: Arc<dyn Clock>,
    /// Whether the last attempt failed; `None` before the first one.
    failing: Option<bool>,
}

/// What all readers send their requests through.
pub(super) fn pool() -> Pool {
    let mut config = PoolConfig::default();
    config.identity = IDENTITY.into();
    Pool::new(config)
}

impl Reader {
    pub(super) fn new(
        name: &str,
        servers: &[Server],
        interval: Duration,
        shown: RemoteRegions,
        pool: Pool,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let mut consume = Consume::default();
        consume.regions = Regions::Own;
        consume.interval = interval;
        let seed = getrandom::u64().unwrap_or_default();
        let config = AgentConfig::new().consume(consume).seed(seed);
        let servers = servers.iter().cloned().map(Arc::new).collect();
        Self {
            name: name.into(),
            agent: Agent::new(clock.now(), config, servers),
            shown,
            pool,
            clock,
            failing: None,
        }
    }

    pub(crate) async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        // Dropped at the end, it takes back what is under way.
        let mut sent = Sent::default();
        loop {
            self.send(&mut sent);
            while let Some(event) = self.agent.poll_event() {
                self.take(event).await;
            }
            let now = self.clock.now().mono;
            let due = self
                .agent
                .poll_timeout()
                .map(|(due, _)| Duration::from_millis(due.0.saturating_sub(now.0)));
            tokio::select! {
                Some((id, answer)) = sent.next() => self.agent.handle_answer(self.clock.now(), id, answer),
                () = sleep(due.unwrap_or(Duration::MAX)) => self.agent.handle_timeout(self.clock.now()),
                _ = &mut stopped => return,
            }
        }
    }

    fn send(&mut self, sent: &mut Sent) {
        while let Some(request) = self.agent.poll_request() {
            let pool = self.pool.clone();
            sent.begin(request.id, async move { pool.send(&request).await });
        }
    }

    async fn take(&mut self, event: Event) {
        match event {
            Event::Fetched(fetched) => self.fetched(fetched).await,
            Event::FetchFailed { server, why } => {
                let why = match server {
                    Some(server) => format!("{server}: {why}"),
                    None => why.to_string(),
                };
                self.shown.failed(&self.name, &why);
                if self.failing.replace(true) != Some(true) {
                    warn!(region = %self.name, %why, "another region cannot be read: what is known of it stays");
                }
            }
            // The first three do not happen to who registers nothing.
            Event::Registered { .. }
            | Event::Renewed { .. }
            | Event::Missing { .. }
            | Event::RegistrationFailed { .. }
            | Event::RenewalFailed { .. }
            | Event::Left { .. }
            | Event::CheckHealth
            | Event::Following { .. }
            | Event::Polling { .. }
            | Event::NoServers
            | _ => {}
        }
    }

    async fn fetched(&mut self, fetched: Fetched) {
        let (now, server) = (self.clock.now(), fetched.server.to_string());
        if self.failing.replace(false) != Some(false) {
            info!(region = %self.name, %server, instances = fetched.snapshot.len(), "another region is read");
        }
        if fetched.kind == FetchKind::Unchanged {
            self.shown.confirm(now, &self.name, &server);
            return;
        }
        let (shown, name) = (self.shown.clone(), Arc::clone(&self.name));
        // The first time it is everything: not where requests are answered.
        let published = spawn_blocking(move || shown.publish(now, &name, &fetched.snapshot, &server));
        // A panic in it was logged.
        let _ = published.await;
    }
}
