//! The layers around the API, in one place.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use tower::{Service, ServiceBuilder};

use super::intake::IntakeLayer;
use super::meter::MeterLayer;
use super::shed::ShedLayer;
use super::trace::TraceLayer;
use super::{Body, Pressure, Received, Speaks};
use crate::config::Limits;
use crate::telemetry::Meters;

/// What the layers share.
#[derive(Debug)]
pub struct Front {
    /// How much there is to do.
    pub pressure: Arc<Pressure>,
    /// What is counted.
    pub meters: Arc<Meters>,
    /// Bytes of all request bodies being received.
    pub(super) bodies: AtomicUsize,
    /// Bytes that streams keep between two messages.
    pub(super) kept: AtomicUsize,
    /// How many `bodies` may be, and how many `kept`.
    pub(super) bodies_max: usize,
    pub(super) body_timeout: Duration,
    /// Bytes of the largest message of a call.
    pub(super) message_max: usize,
}

impl Front {
    /// Bytes that streams keep for their longest messages.
    pub fn kept_by_streams(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// The limits of a node that has nothing to do yet.
    pub fn new(limits: &Limits, meters: Arc<Meters>) -> Self {
        Self {
            pressure: Arc::new(Pressure::new(limits)),
            meters,
            bodies: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            bodies_max: limits.bodies,
            body_timeout: limits.body_timeout,
            message_max: limits.body,
        }
    }
}

/// What the layers of one address know.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    pub(super) front: Arc<Front>,
    pub(super) speaks: Speaks,
}

/// The whole stack around `inner`, which answers what is spoken at an address. Every layer is always ready: what it cannot take it answers.
pub fn stack<S, B>(
    front: &Arc<Front>,
    speaks: Speaks,
    inner: S,
) -> impl Service<Request<B>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
+ Clone
+ Send
+ 'static
+ use<S, B>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    S: Service<Request<Received<B>>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + 'static,
{
    let gate = Gate {
        front: Arc::clone(front),
        speaks,
    };
    // A request passes them from the top down, its answer from the bottom up.
    ServiceBuilder::new()
        // Outermost, so that it logs what the others answer, the 500 after a panic included.
        .layer(TraceLayer)
        // Counts every request that came in, refused ones too: they are load. Above everything that works, so that nothing
        // that panics takes the connection with it.
        .layer(MeterLayer(gate.clone()))
        // Before the body is received: refusing must cost nothing.
        .layer(ShedLayer(gate.clone()))
        // Innermost: only what is admitted is received, in time and within the common limit.
        .layer(IntakeLayer(gate))
        .service(inner)
}
