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
use super::routes::class;
use super::{Body, Front};
use crate::clock;

/// Counts a request until its answer is sent, and measures the time to the head of its answer.
#[derive(Clone, Debug)]
pub(super) struct MeterLayer(pub(super) Arc<Front>);

#[derive(Clone, Debug)]
pub(super) struct Meter<S> {
    front: Arc<Front>,
    inner: S,
}

impl<S> Layer<S> for MeterLayer {
    type Service = Meter<S>;

    fn layer(&self, inner: S) -> Meter<S> {
        Meter {
            front: Arc::clone(&self.0),
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
        let class = class(request.method(), request.uri().path());
        let started = clock::instant();
        // Taken after the layers below have judged the load: a request does not count against itself.
        let inner = self.inner.call(request);
        Metering {
            inner,
            class,
            started,
            ticket: Some(self.front.pressure.enter()),
            front: Arc::clone(&self.front),
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
