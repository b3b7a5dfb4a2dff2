//! What every request passes on its way in, and every answer on its way out, in one place.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Version};
use http_body::Body as HttpBody;
use pin_project_lite::pin_project;
use tower::Service;

use super::intake::Intake;
use super::meter::Meter;
use super::refusal::Refusal;
use super::trace::Trace;
use super::work::Work;
use super::{Body, Pressure, Received, Speaks, shed};
use crate::config::Limits;
use crate::telemetry::Meters;

/// What all stacks of a node share.
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

/// What the stack of one connection knows.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    pub(super) front: Arc<Front>,
    speaks: Speaks,
}

/// The stack around what answers at an address: it names requests, counts and measures them, turns a panic into an answer,
/// refuses what can wait when there is too much to do, and bounds bodies. It is always ready: what it cannot take it answers.
///
/// One service and not layers around each other, because each layer moves the whole request on its way in and the whole answer on
/// its way out.
#[derive(Debug)]
pub struct Stack<S> {
    gate: Arc<Gate>,
    inner: S,
}

impl<S> Stack<S> {
    /// A stack around `inner`, at an address that `speaks` so.
    pub fn new(front: &Arc<Front>, speaks: Speaks, inner: S) -> Self {
        let front = Arc::clone(front);
        Self {
            gate: Arc::new(Gate { front, speaks }),
            inner,
        }
    }
}

/// A connection has a copy, with a count of references of its own: each request counts, and a count that all processors write
/// would be carried from one to the other.
impl<S: Clone> Clone for Stack<S> {
    fn clone(&self) -> Self {
        Self {
            gate: Arc::new(Gate::clone(&self.gate)),
            inner: self.inner.clone(),
        }
    }
}

impl<S, B> Service<Request<B>> for Stack<S>
where
    B: HttpBody<Data = Bytes>,
    S: Service<Request<Received<B>>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Passing<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Passing<S::Future> {
        let Self { gate, inner } = self;
        let work = Work::of(&request, gate.speaks);
        let mut passing = Passing {
            inner: None,
            refusal: None,
            version: request.version(),
            work,
            trace: Trace::of(&request),
            // Refused requests count, too: they are load.
            meter: Meter::start(gate, work),
            intake: Intake::default(),
        };
        // Before the body is received: refusing must cost nothing.
        passing.refusal = shed::refusal(&gate.front, work);
        if passing.refusal.is_none() {
            let mut request = request.map(|body| Received::new(body, work));
            // Only what is admitted is received, in time and within the common limit.
            passing.intake = Intake::of(&gate.front, request.body_mut());
            let mut request = Some(request);
            // Nothing that panics takes the connection with it. What it leaves behind is whole: locks know no poison, and the registry
            // changes nothing before it has checked everything.
            let made = catch_unwind(AssertUnwindSafe(|| {
                passing.inner = request.take().map(|request| inner.call(request));
            }));
            passing.refusal = made.err().map(|_| Refusal::Panic);
        }
        passing.meter.enter(gate);
        passing
    }
}

pin_project! {
    /// A request on its way.
    #[derive(Debug)]
    pub struct Passing<F> {
        // None if it is refused.
        #[pin]
        inner: Option<F>,
        refusal: Option<Refusal>,
        version: Version,
        work: Work,
        trace: Trace,
        meter: Meter,
        intake: Intake,
    }
}

impl<F: Future<Output = Result<Response<Body>, Infallible>>> Future for Passing<F> {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut polled = Poll::Pending;
        if let (None, Some(inner)) = (*this.refusal, this.inner.as_pin_mut()) {
            let done = catch_unwind(AssertUnwindSafe(|| polled = inner.poll(cx)));
            *this.refusal = match done {
                Ok(()) => this.intake.refusal(polled.is_ready(), cx),
                Err(_) => Some(Refusal::Panic),
            };
        }
        let mut answer = match *this.refusal {
            Some(refusal) => refusal.answer(this.work.is_grpc, *this.version),
            None => match ready!(polled) {
                Ok(answer) => answer,
                Err(never) => match never {},
            },
        };
        this.meter.end(*this.refusal, &mut answer);
        // Last, so that it logs what all others answer, the 500 after a panic included.
        this.trace.end(&mut answer);
        Poll::Ready(Ok(answer))
    }
}
