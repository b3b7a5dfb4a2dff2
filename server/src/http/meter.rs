//! The layer that counts requests under way and measures how long they take.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use eureka_http_api::Class;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::pressure::Ticket;
use super::stack::Gate;
use super::work::Work;
use super::{Body, Front};
use crate::clock;

/// Counts a request, or one that stays, until its answer is sent, and measures the time to the head of its answer.
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
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Metering<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let work = Work::of(&request, self.gate.speaks.is_grpc(&request));
        let front = &self.gate.front;
        let started = clock::instant();
        // Taken before the layers below look at how many there are: there are never more than are allowed.
        let stay = work.stays.then(|| front.pressure.stay());
        let inner = self.inner.call(request);
        // Taken after they have judged the load: a request does not count against itself.
        let ticket = stay.unwrap_or_else(|| front.pressure.enter());
        Metering {
            inner,
            class: work.class,
            started,
            ticket: Some(ticket),
            front: Arc::clone(front),
        }
    }
}

pin_project! {
    pub(super) struct Metering<F> {
        #[pin]
        inner: F,
        class: Class,
        started: Instant,
        ticket: Option<Ticket>,
        front: Arc<Front>,
    }
}

impl<F: Future<Output = Result<Response<Body>, E>>, E> Future for Metering<F> {
    type Output = Result<Response<Body>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = ready!(this.inner.poll(cx));
        this.front.meters.answered(*this.class, this.started.elapsed());
        let ticket = this.ticket.take();
        Poll::Ready(answer.map(|response| match ticket {
            Some(ticket) => response.map(|body| body.watched(&this.front.meters, ticket)),
            None => response,
        }))
    }
}
