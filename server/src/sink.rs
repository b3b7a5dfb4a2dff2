//! What becomes of the registry's events: the mesh hears of them and counters count them at once, log lines are written by a
//! task of their own.

use std::fmt;
use std::sync::Arc;

use eureka_registry_core::{AppliedKind, Event, EventSink, Origin};
use eureka_replication::driver::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tracing::{Level, debug, enabled, info, warn};

use crate::telemetry::Meters;

/// Events that may wait to be logged; further ones are counted only.
const WAITING_MAX: usize = 8192;

/// Of a longer name, so many characters are logged: peers, and clients in their bodies, may send names of megabytes.
const QUOTED_MAX: usize = 256;

/// Receives events while the registry is locked, so it does next to nothing.
#[derive(Debug)]
pub(crate) struct Sink {
    mesh: Handle,
    meters: Arc<Meters>,
    log: Sender<Event>,
}

impl Sink {
    /// A sink and what is to be logged, for [`log`].
    pub(crate) fn new(mesh: Handle, meters: Arc<Meters>) -> (Self, Receiver<Event>) {
        let (log, waiting) = channel(WAITING_MAX);
        (Self { mesh, meters, log }, waiting)
    }
}

impl EventSink for Sink {
    fn event(&self, event: &Event) {
        // The registry's lock, then the mesh's: never the other way round.
        self.mesh.event(event);
        let is_logged = match event {
            // By far the most frequent, and not news.
            Event::Applied {
                kind: AppliedKind::Renewed,
                ..
            } => return,
            Event::Applied {
                kind: AppliedKind::Registered | AppliedKind::Adopted,
                before: Some(_),
                ..
            } => enabled!(Level::DEBUG),
            Event::Late { .. } => {
                self.meters.late.increment(1);
                enabled!(Level::DEBUG)
            }
            Event::Preserving(true) => {
                self.meters.preservations.increment(1);
                enabled!(Level::INFO)
            }
            Event::Applied { .. } | Event::Expired { .. } | Event::Preserving(false) | _ => {
                enabled!(Level::INFO)
            }
        };
        if is_logged && self.log.try_send(event.clone()).is_err() {
            self.meters.events_unlogged.increment(1);
        }
    }

    /// The log and the counters do not.
    fn hears_renewals(&self, origin: &Origin) -> bool {
        self.mesh.hears_renewals(origin)
    }
}

/// Logs events until `stop` is sent or dropped, and then those that wait.
pub(crate) async fn log(mut events: Receiver<Event>, mut stop: oneshot::Receiver<()>) {
    loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => line(&event),
            _ = &mut stop => return,
        }
    }
}

/// One line. Whatever a registrant chose is quoted: it may hold line breaks.
fn line(event: &Event) {
    match event {
        Event::Applied {
            key,
            kind,
            before,
            origin,
            ..
        } => {
            let (app, id) = (Quoted(key.app()), Quoted(key.id()));
            let origin = name(origin);
            match kind {
                AppliedKind::Registered if before.is_none() => info!(?app, ?id, origin, "registered"),
                AppliedKind::Adopted if before.is_none() => info!(?app, ?id, origin, "adopted"),
                AppliedKind::Cancelled => info!(?app, ?id, origin, "cancelled"),
                AppliedKind::Overridden => info!(?app, ?id, origin, "status overridden"),
                AppliedKind::OverrideCleared => info!(?app, ?id, origin, "status override removed"),
                AppliedKind::MetadataChanged => info!(?app, ?id, origin, "metadata changed"),
                AppliedKind::Registered | AppliedKind::Adopted | AppliedKind::Renewed => {
                    debug!(?app, ?id, origin, "registered again");
                }
            }
        }
        Event::Expired { key, .. } => {
            info!(app = ?Quoted(key.app()), id = ?Quoted(key.id()), "evicted: its lease ran out");
        }
        Event::Late { key } => debug!(app = ?Quoted(key.app()), id = ?Quoted(key.id()), "late"),
        Event::Preserving(began) => preserving(*began),
        _ => debug!(?event, "an event of a kind this server does not know"),
    }
}

fn preserving(began: bool) {
    if began {
        warn!(
            "preservation began: too many leases are missing, nobody is evicted (see /api/v1/preservation)"
        );
    } else {
        info!("preservation ended: leases that run out are evicted again");
    }
}

fn name(origin: &Origin) -> &str {
    match origin {
        Origin::Client => "client",
        Origin::Operator => "operator",
        Origin::Own => "own",
        Origin::Peer(peer) => &peer.0,
    }
}

/// A name as it is logged: quoted, for it may hold line breaks, and not in all its length.
struct Quoted<'a>(&'a str);

impl fmt::Debug for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(name) = self;
        match name.char_indices().nth(QUOTED_MAX) {
            None => fmt::Debug::fmt(name, f),
            Some((end, _)) => write!(f, "{:?}... ({} bytes)", &name[..end], name.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_and_no_longer_than_is_read() {
        assert_eq!(format!("{:?}", Quoted("a\nb")), r#""a\nb""#);
        let longest = "ä".repeat(QUOTED_MAX);
        assert_eq!(format!("{:?}", Quoted(&longest)), format!("{longest:?}"));
        let long = "ä".repeat(1 << 20);
        assert_eq!(
            format!("{:?}", Quoted(&long)),
            format!("{longest:?}... ({} bytes)", 2 << 20)
        );
    }
}
