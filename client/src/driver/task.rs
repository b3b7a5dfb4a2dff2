//! The one task of a client that talks to servers: asks the agent what to do, does it, and tells it what came of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::Now;
use tokio::time::{Instant, sleep_until};
use tracing::error;

use super::health::Health;
use super::http::Pool;
#[cfg(feature = "dns")]
use super::lookups::Lookups;
use super::publishing::{Publishing, Told};
use super::report::Report;
use super::requests::Requests;
use super::shared::Shared;
use crate::agent::{Agent, Event};
use crate::call::Request;

/// After a panic of the agent, which may happen again at once.
const AFTER_PANIC: Duration = Duration::from_secs(1);
/// The agent is asked at least this often, whatever it says: a timer of tokio's has an end.
const LONGEST: Duration = Duration::from_secs(3_600);

pub(super) struct Task {
    pub(super) shared: Arc<Shared>,
    pub(super) pool: Pool,
    #[cfg(feature = "grpc")]
    pub(super) grpc: Option<Arc<super::grpc::GrpcFeed>>,
    pub(super) requests: Requests,
    pub(super) report: Report,
    /// Of clients that discover.
    pub(super) publishing: Option<Publishing>,
    /// Of clients with a hook.
    pub(super) health: Option<Health>,
    /// Of clients with sources.
    #[cfg(feature = "dns")]
    pub(super) lookups: Option<Lookups>,
    /// Dropped at the end, whichever that is.
    pub(super) end: End,
}

/// What the agent wants.
#[derive(Default)]
struct Wanted {
    requests: Vec<Request>,
    events: Vec<Event>,
    due: Option<Duration>,
    finished: bool,
}

/// Tells those who wait that the client has ended: also when its task is dropped with the runtime, even before it ran.
pub(super) struct End(pub(super) Arc<Shared>);

impl Task {
    /// Runs until the agent has left. What is under way ends with it.
    pub(super) async fn run(mut self) {
        loop {
            let (now, wanted) = self.ask();
            self.execute(now, wanted.requests, wanted.events);
            if wanted.finished {
                break;
            }
            let due = Instant::now() + wanted.due.unwrap_or(LONGEST).min(LONGEST);
            tokio::select! {
                biased;
                (id, answer) = self.requests.next() => {
                    self.tell(|agent, now| agent.handle_answer(now, id, answer));
                }
                status = Health::next(&mut self.health) => {
                    self.tell(|agent, now| agent.set_health(now, status));
                }
                () = self.shared.woken() => {}
                () = sleep_until(due) => {}
            }
        }
        if let Some(publishing) = self.publishing.take() {
            publishing.end().await;
        }
        drop(self.end);
    }

    /// Gives the agent the time, and takes what it wants.
    fn ask(&self) -> (Now, Wanted) {
        let mut asked = Now::default();
        let mut wanted = Wanted::default();
        let survived = self.tell(|agent, now| {
            asked = now;
            agent.handle_timeout(now);
            while let Some(request) = agent.poll_request() {
                wanted.requests.push(request);
            }
            while let Some(event) = agent.poll_event() {
                wanted.events.push(event);
            }
            wanted.due = agent.poll_timeout().map(|(due, _)| due.since(now.mono));
            wanted.finished = agent.is_finished();
        });
        if !survived {
            wanted.due = Some(AFTER_PANIC);
        }
        (asked, wanted)
    }

    /// One call of the agent. A panic in it is a bug, and must not end a registration: false then.
    fn tell(&self, call: impl FnOnce(&mut Agent, Now)) -> bool {
        let told = catch_unwind(AssertUnwindSafe(|| self.shared.turn(call)));
        if told.is_err() {
            error!("the agent panicked: a bug of this crate; the client goes on");
            self.shared.panicked();
        }
        told.is_ok()
    }

    fn execute(&mut self, now: Now, requests: Vec<Request>, events: Vec<Event>) {
        for request in requests {
            let pool = self.pool.clone();
            #[cfg(feature = "grpc")]
            let feed = self.grpc.clone();
            let publishing = self.publishing.as_ref().filter(|_| request.call.is_read());
            let copy = publishing.map(Publishing::copy);
            self.requests.begin(request.id, async move {
                if let Some(copy) = copy {
                    copy.wait().await;
                }
                #[cfg(feature = "grpc")]
                if let Some(feed) = feed {
                    return feed.send(&pool, &request).await;
                }
                pool.send(&request).await
            });
        }
        let happened = !events.is_empty();
        for event in events {
            self.notice(now, &event);
            match event {
                Event::Fetched(fetched) => {
                    if let Some(publishing) = &self.publishing {
                        publishing.show(Told {
                            now,
                            snapshot: fetched.snapshot,
                            server: fetched.server,
                        });
                    }
                }
                Event::CheckHealth => match &mut self.health {
                    Some(health) => health.ask(),
                    None => {
                        self.tell(|agent, now| agent.set_health(now, None));
                    }
                },
                Event::Left { cancelled } => self.shared.left(cancelled),
                Event::Registered { .. }
                | Event::Renewed { .. }
                | Event::Missing { .. }
                | Event::RegistrationFailed { .. }
                | Event::RenewalFailed { .. }
                | Event::FetchFailed { .. }
                | Event::Following { .. }
                | Event::Polling { .. }
                | Event::NoServers => {}
            }
        }
        if happened {
            self.shared.happened();
        }
    }
}

impl Task {
    #[cfg(feature = "dns")]
    fn notice(&mut self, now: Now, event: &Event) {
        if let Some(lookups) = &self.lookups {
            lookups.notice(event);
            // That nobody is known before anybody was looked for is no news.
            if matches!(event, Event::NoServers) && self.shared.lookups().lookups == 0 {
                return;
            }
        }
        self.report.line(now, event, &self.shared);
    }

    #[cfg(not(feature = "dns"))]
    fn notice(&mut self, now: Now, event: &Event) {
        self.report.line(now, event, &self.shared);
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}
