//! What happened, for the log: what somebody has to know as information or warning, what happens all the time as debug.

use tracing::{debug, info, warn};

use crate::agent::{Event, PollingWhy};

/// Writes a line about an event, or none.
pub(super) fn report(event: &Event) {
    match event {
        Event::Registered { server } => info!(%server, "registered"),
        Event::Renewed { server } => debug!(%server, "renewed"),
        Event::Missing { server } => {
            info!(%server, "the server does not know the instance: registering again")
        }
        Event::RegistrationFailed { server, why } => warn!(%server, %why, "registration failed"),
        Event::RenewalFailed {
            server,
            why,
            lease_left,
        } => warn!(%server, %why, ?lease_left, "renewal failed"),
        Event::Left { cancelled: true } => info!("left: the instance is cancelled"),
        Event::Left { cancelled: false } => info!("left without a cancel: if there is a lease, it runs out"),
        Event::Fetched(fetched) => debug!(
            server = %fetched.server,
            kind = ?fetched.kind,
            instances = fetched.snapshot.len(),
            "read the registry"
        ),
        Event::FetchFailed {
            server: Some(server),
            why,
        } => warn!(%server, %why, "reading the registry failed"),
        Event::Following { server } => info!(%server, "changes are told as they happen"),
        Event::Polling {
            server,
            why: PollingWhy::FeedFailed,
        } => warn!(%server, "the server's change feed was no use: it is polled"),
        Event::Polling { server, why } => info!(%server, %why, "the server is polled"),
        Event::NoServers => warn!("there is no server to ask"),
        // Told by `NoServers`.
        Event::FetchFailed { server: None, .. } => {}
        Event::CheckHealth => {}
    }
}
