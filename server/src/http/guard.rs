//! The layer that turns a panic in a request into an answer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response, Version};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::Body;
use super::refusal::Refusal;
use super::stack::Gate;

/// A panic answers this request with 500 or INTERNAL and is counted; the node and the connection go on. The registry's lock is free
/// of poison, and its machine changes nothing before it has checked everything.
#[derive(Clone, Debug)]
pub(super) struct GuardLayer(pub(super) Gate);

#[derive(Clone, Debug)]
pub(super) struct Guard<S> {
    gate: Gate,
    inner: S,
}

impl<S> Layer<S> for GuardLayer {
    type Service = Guard<S>;

    fn layer(&self, inner: S) -> Guard<S> {
        Guard {
            gate: self.0.clone(),
            inner,
        }
    }
}

impl<S, B> Service<Request<B>> for Guard<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Guarding<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_grpc = self.gate.speaks.is_grpc(&request);
        let version = request.version();
        let inner = catch_unwind(AssertUnwindSafe(|| self.inner.call(request)));
        Guarding {
            inner: inner.ok(),
            gate: self.gate.clone(),
            is_grpc,
            version,
        }
    }
}

pin_project! {
    pub(super) struct Guarding<F> {
        // None: making it panicked.
        #[pin]
        inner: Option<F>,
        gate: Gate,
        is_grpc: bool,
        version: Version,
    }
}

impl<F: Future<Output = Result<Response<Body>, E>>, E> Future for Guarding<F> {
    type Output = Result<Response<Body>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(inner) = this.inner.as_pin_mut()
            && let Ok(answer) = catch_unwind(AssertUnwindSafe(|| inner.poll(cx)))
        {
            return answer;
        }
        this.gate.front.meters.panics.increment(1);
        Poll::Ready(Ok(Refusal::Panic.answer(*this.is_grpc, *this.version)))
    }
}
