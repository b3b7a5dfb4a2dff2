//! The layer that refuses what can wait when there is too much to do.

use std::pin::Pin;
use std::task::{Context, Poll};

use eureka_http_api::Class;
use http::{Request, Response, Version};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::refusal::Refusal;
use super::stack::Gate;
use super::work::Work;
use super::{Body, Received};

/// See [`Pressure::sheds`](super::Pressure::sheds) for the order. Who wants to stay is refused besides when there are too
/// many of those, unless it is to renew leases.
#[derive(Clone, Debug)]
pub(super) struct ShedLayer(pub(super) Gate);

#[derive(Clone, Debug)]
pub(super) struct Shed<S> {
    gate: Gate,
    inner: S,
}

impl<S> Layer<S> for ShedLayer {
    type Service = Shed<S>;

    fn layer(&self, inner: S) -> Shed<S> {
        Shed {
            gate: self.0.clone(),
            inner,
        }
    }
}

impl<S> Shed<S> {
    /// Why a request is refused, if it is. The usual one pays for two looks at numbers.
    fn refusal(&self, work: Work) -> Option<Refusal> {
        let (pressure, meters) = (&self.gate.front.pressure, &self.gate.front.meters);
        if !pressure.is_high() && !pressure.is_crowded() {
            return None;
        }
        // A stream of renewals that is refused for the sake of readers would cost leases.
        if work.stays && work.class != Class::Renewal && pressure.is_crowded() {
            meters.watchers_refused.increment(1);
            return Some(Refusal::Watchers);
        }
        pressure.sheds(work.class).then(|| {
            meters.shed(work.class);
            Refusal::Overloaded
        })
    }
}

impl<S, B> Service<Request<Received<B>>> for Shed<S>
where
    S: Service<Request<Received<B>>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Shedding<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Received<B>>) -> Self::Future {
        let work = request.body().work;
        match self.refusal(work) {
            Some(refusal) => Shedding::Refused {
                refusal,
                is_grpc: work.is_grpc,
                version: request.version(),
            },
            None => Shedding::Admitted {
                inner: self.inner.call(request),
            },
        }
    }
}

pin_project! {
    #[project = Projected]
    pub(super) enum Shedding<F> {
        Refused { refusal: Refusal, is_grpc: bool, version: Version },
        Admitted { #[pin] inner: F },
    }
}

impl<F: Future<Output = Result<Response<Body>, E>>, E> Future for Shedding<F> {
    type Output = Result<Response<Body>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Admitted { inner } => inner.poll(cx),
            Projected::Refused {
                refusal,
                is_grpc,
                version,
            } => Poll::Ready(Ok(refusal.answer(*is_grpc, *version))),
        }
    }
}
