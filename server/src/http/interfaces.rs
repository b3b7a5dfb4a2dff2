//! The interfaces of the node, REST and gRPC, as one service: who answers a request.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use pin_project_lite::pin_project;
use tower::Service;

use super::work::is_call;
use super::{Body, Own, Received, sender};

/// What a node answers: routes that only the server has, the API of all others, and calls of gRPC.
#[derive(Clone, Debug)]
pub(crate) struct Interfaces<A, G> {
    own: Arc<Own>,
    api: A,
    grpc: G,
}

impl<A, G> Interfaces<A, G> {
    /// REST by `own` and `api`, calls by `grpc`.
    pub(crate) fn new(own: Own, api: A, grpc: G) -> Self {
        let own = Arc::new(own);
        Self { own, api, grpc }
    }
}

impl<A, G, B, T, U> Service<Request<Received<B>>> for Interfaces<A, G>
where
    A: Service<Request<Received<B>>, Response = Response<T>, Error = Infallible>,
    G: Service<Request<Received<B>>, Response = Response<U>, Error = Infallible>,
    T: Into<Body>,
    U: Into<Body>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering<A::Future, G::Future>;

    /// Both are always ready.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match ready!(self.api.poll_ready(cx)) {
            Ok(()) => self.grpc.poll_ready(cx),
            Err(never) => match never {},
        }
    }

    fn call(&mut self, mut request: Request<Received<B>>) -> Self::Future {
        let is_grpc = request.body().work.is_grpc;
        let at_once = if is_grpc {
            not_a_call(&request)
        } else {
            self.own
                .answer(request.method(), request.uri().path(), request.uri().query())
        };
        if let Some(response) = at_once {
            return Answering::Own {
                response: Some(response),
            };
        }
        if is_grpc {
            return Answering::Grpc {
                inner: self.grpc.call(request),
            };
        }
        if let Some(sender) = sender::sender(&request) {
            let name = self.own.peers.introduce(&sender);
            request.extensions_mut().insert(eureka_http_api::Sender(name.0));
        }
        Answering::Api {
            inner: self.api.call(request),
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
    pub(crate) enum Answering<A, G> {
        Own { response: Option<Response<Body>> },
        Api { #[pin] inner: A },
        Grpc { #[pin] inner: G },
    }
}

impl<A, G, T, U> Future for Answering<A, G>
where
    A: Future<Output = Result<Response<T>, Infallible>>,
    G: Future<Output = Result<Response<U>, Infallible>>,
    T: Into<Body>,
    U: Into<Body>,
{
    type Output = Result<Response<Body>, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Own { response } => Poll::Ready(Ok(response.take().unwrap_or_default())),
            Projected::Api { inner } => {
                let answer = ready!(inner.poll(cx));
                Poll::Ready(answer.map(|response| response.map(Into::into)))
            }
            Projected::Grpc { inner } => {
                let answer = ready!(inner.poll(cx));
                Poll::Ready(answer.map(|response| response.map(Into::into)))
            }
        }
    }
}
