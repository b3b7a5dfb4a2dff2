//! The layer that counts requests under way, measures how long they take, and turns a panic in one into an answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use http::{Request, Response, Version};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::refusal::Refusal;
use super::stack::Gate;
use super::work::Work;
use super::{Body, Front, Received};
use crate::clock;

/// Counts a request, or one that stays, until its answer is sent, and measures the time to the head of its answer.
///
/// A panic answers this request with 500 or INTERNAL and is counted; the node and the connection go on. The registry's lock is free
/// of poison, and its machine changes nothing before it has checked everything.
#[derive(Clone, Debug)]
pub(super) struct MeterLayer(pub(super) Gate);

#[derive(Clone, Debug)]
pub(super) struct Meter<S> {
    gate: Gate,
    inner: S,
}

impl<S> Layer<S> for MeterLayer {
    type Service = Meter<S>;

    fn layer(&self, inner: S) -> Meter<S> {
        Meter {
            gate: self.0.clone(),
            inner,
        }
    }
}

impl<S, B> Service<Request<B>> for Meter<S>
where
    S: Service<Request<Received<B>>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Metering<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let work = Work::of(&request, self.gate.speaks);
        let version = request.version();
        let front = &self.gate.front;
        let started = clock::instant();
        // Taken before the layers below look at how many there are: there are never more than are allowed.
        let stay = work.stays.then(|| Ticket::take(front, true));
        let request = request.map(|body| Received::new(body, work));
        let inner = catch_unwind(AssertUnwindSafe(|| self.inner.call(request)));
        // Taken after they have judged the load: a request does not count against itself.
        let ticket = stay.unwrap_or_else(|| Ticket::take(front, false));
        Metering {
            inner: inner.ok(),
            work,
            version,
            started,
            ticket: Some(ticket),
        }
    }
}

pin_project! {
    pub(super) struct Metering<F> {
        // None: making it panicked.
        #[pin]
        inner: Option<F>,
        work: Work,
        version: Version,
        started: Instant,
        ticket: Option<Ticket>,
    }
}

impl<F: Future<Output = Result<Response<Body>, E>>, E> Future for Metering<F> {
    type Output = Result<Response<Body>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let inner = this.inner.as_pin_mut();
        let polled = inner.map(|inner| catch_unwind(AssertUnwindSafe(|| inner.poll(cx))));
        let answer = match polled {
            Some(Ok(answer)) => Some(ready!(answer)),
            Some(Err(_)) | None => None,
        };
        let ticket = this
            .ticket
            .take()
            .expect("a future is not polled after it is done");
        let meters = &ticket.front.meters;
        let mut answer = answer.unwrap_or_else(|| {
            meters.panics.increment(1);
            Ok(Refusal::Panic.answer(this.work.is_grpc, *this.version))
        });
        meters.answered(this.work.class, this.started.elapsed());
        if let Ok(response) = &mut answer {
            response.body_mut().watch(ticket);
        }
        Poll::Ready(answer)
    }
}

/// A request under way or one that stays, until it is dropped.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) front: Arc<Front>,
    stays: bool,
}

impl Ticket {
    fn take(front: &Arc<Front>, stays: bool) -> Self {
        front.pressure.enter(stays);
        Self {
            front: Arc::clone(front),
            stays,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.front.pressure.leave(self.stays);
    }
}
