//! The interfaces of the node, REST and gRPC, as one service: which of them a request is for.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use pin_project_lite::pin_project;
use tower::Service;

use super::work::is_call;
use super::{Body, Speaks};

/// What an address serves: as it [`Speaks`], the one, the other, or both.
#[derive(Clone, Debug)]
pub(crate) struct Interfaces<H, G> {
    speaks: Speaks,
    http: H,
    grpc: G,
}

impl<H, G> Interfaces<H, G> {
    /// REST by `http`, calls by `grpc`.
    pub(crate) const fn new(speaks: Speaks, http: H, grpc: G) -> Self {
        Self { speaks, http, grpc }
    }
}

impl<H, G, B, T, U> Service<Request<B>> for Interfaces<H, G>
where
    H: Service<Request<B>, Response = Response<T>, Error = Infallible>,
    G: Service<Request<B>, Response = Response<U>, Error = Infallible>,
    T: Into<Body>,
    U: Into<Body>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering<H::Future, G::Future>;

    /// Both are always ready.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match ready!(self.http.poll_ready(cx)) {
            Ok(()) => self.grpc.poll_ready(cx),
            Err(never) => match never {},
        }
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !self.speaks.is_grpc(&request) {
            return Answering::Http {
                inner: self.http.call(request),
            };
        }
        match not_a_call(&request) {
            Some(response) => Answering::Refused {
                response: Some(response),
            },
            None => Answering::Grpc {
                inner: self.grpc.call(request),
            },
        }
    }
}

/// The answer to what gRPC cannot take, for people: their tools do not show a gRPC status.
fn not_a_call<B>(request: &Request<B>) -> Option<Response<Body>> {
    let (status, reason) = if !is_call(request) {
        (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "gRPC is served at this address: the content type of its calls is application/grpc\n",
        )
    } else if request.version() < Version::HTTP_2 {
        (
            StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            "gRPC needs HTTP/2, by prior knowledge\n",
        )
    } else {
        return None;
    };
    let mut response = Response::new(Body::from(eureka_http_api::Body::from(reason)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    if request.version() < Version::HTTP_2 {
        // Its body is not read.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Some(response)
}

pin_project! {
    /// An answer of one of them.
    #[project = Projected]
    #[derive(Debug)]
    pub(crate) enum Answering<H, G> {
        Http { #[pin] inner: H },
        Grpc { #[pin] inner: G },
        Refused { response: Option<Response<Body>> },
    }
}

impl<H, G, T, U> Future for Answering<H, G>
where
    H: Future<Output = Result<Response<T>, Infallible>>,
    G: Future<Output = Result<Response<U>, Infallible>>,
    T: Into<Body>,
    U: Into<Body>,
{
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Http { inner } => {
                let answer = ready!(inner.poll(cx));
                Poll::Ready(answer.map(|response| response.map(Into::into)))
            }
            Projected::Grpc { inner } => {
                let answer = ready!(inner.poll(cx));
                Poll::Ready(answer.map(|response| response.map(Into::into)))
            }
            Projected::Refused { response } => Poll::Ready(Ok(response.take().unwrap_or_default())),
        }
    }
}
