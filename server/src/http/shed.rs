//! The layer that refuses what can wait when there is too much to do.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::RETRY_AFTER;
use http::{HeaderValue, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use super::routes::class;
use super::{Body, Front};

/// See [`Pressure::sheds`](super::Pressure::sheds) for the order.
#[derive(Clone, Debug)]
pub(super) struct ShedLayer(pub(super) Arc<Front>);

#[derive(Clone, Debug)]
pub(super) struct Shed<S> {
    front: Arc<Front>,
    inner: S,
}

impl<S> Layer<S> for ShedLayer {
    type Service = Shed<S>;

    fn layer(&self, inner: S) -> Shed<S> {
        Shed {
            front: Arc::clone(&self.0),
            inner,
        }
    }
}

impl<S, B> Service<Request<B>> for Shed<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Shedding<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if self.front.pressure.is_high() {
            let class = class(request.method(), request.uri().path());
            if self.front.pressure.sheds(class) {
                self.front.meters.shed(class);
                return Shedding::Refused;
            }
        }
        Shedding::Admitted {
            inner: self.inner.call(request),
        }
    }
}

pin_project! {
    #[project = Projected]
    pub(super) enum Shedding<F> {
        Refused,
        Admitted { #[pin] inner: F },
    }
}

impl<F: Future<Output = Result<Response<Body>, E>>, E> Future for Shedding<F> {
    type Output = Result<Response<Body>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Admitted { inner } => inner.poll(cx),
            Projected::Refused => {
                let mut response = Response::new(Body::default());
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                response
                    .headers_mut()
                    .insert(RETRY_AFTER, HeaderValue::from_static("1"));
                Poll::Ready(Ok(response))
            }
        }
    }
}
