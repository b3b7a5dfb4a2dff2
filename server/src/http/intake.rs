//! The layer that bounds request bodies: in time, and all of them together in memory.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body::{Body as HttpBody, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tower::{Layer, Service};

use super::{Body, Front};

/// 408 when a body is not there within `limits.body-timeout`, 503 when all bodies together exceed `limits.bodies`. The
/// size of one body is the API's own limit, since it depends on the route. Requests without a body pay nothing.
#[derive(Clone, Debug)]
pub(super) struct IntakeLayer(pub(super) Arc<Front>);

#[derive(Clone, Debug)]
pub(super) struct Intake<S> {
    front: Arc<Front>,
    inner: S,
}

impl<S> Layer<S> for IntakeLayer {
    type Service = Intake<S>;

    fn layer(&self, inner: S) -> Intake<S> {
        Intake {
            front: Arc::clone(&self.0),
            inner,
        }
    }
}

impl<S, B> Service<Request<B>> for Intake<S>
where
    B: HttpBody<Data = Bytes>,
    S: Service<Request<Received<B>>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Receiving<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let account = (!request.body().is_end_stream()).then(|| Arc::new(Account::new(&self.front)));
        let deadline = account
            .is_some()
            .then(|| Box::pin(tokio::time::sleep(self.front.body_timeout)));
        let version = request.version();
        let inner = self.inner.call(request.map(|body| Received {
            body,
            account: account.clone(),
        }));
        Receiving {
            inner,
            deadline,
            account,
            version,
        }
    }
}

pin_project! {
    pub(super) struct Receiving<F> {
        #[pin]
        inner: F,
        deadline: Option<Pin<Box<Sleep>>>,
        account: Option<Arc<Account>>,
        version: Version,
    }
}

impl<F: Future<Output = Result<Response<Body>, E>>, E> Future for Receiving<F> {
    type Output = Result<Response<Body>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let answer = this.inner.poll(cx);
        let (Some(account), Some(deadline)) = (this.account, this.deadline) else {
            return answer;
        };
        if account.over.load(Ordering::Relaxed) {
            account.front.meters.bodies_refused.increment(1);
            return Poll::Ready(Ok(closing(StatusCode::SERVICE_UNAVAILABLE, *this.version)));
        }
        if answer.is_ready() || account.complete.load(Ordering::Relaxed) {
            return answer;
        }
        ready!(deadline.as_mut().poll(cx));
        account.front.meters.body_timeouts.increment(1);
        Poll::Ready(Ok(closing(StatusCode::REQUEST_TIMEOUT, *this.version)))
    }
}

/// An answer before the request was read to its end: on HTTP/1 no other request can follow.
fn closing(status: StatusCode, version: Version) -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = status;
    if version < Version::HTTP_2 {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// What one body has taken of `limits.bodies`; given back when nobody holds the body or waits for it.
#[derive(Debug)]
struct Account {
    front: Arc<Front>,
    taken: AtomicUsize,
    complete: AtomicBool,
    over: AtomicBool,
}

impl Account {
    fn new(front: &Arc<Front>) -> Self {
        Self {
            front: Arc::clone(front),
            taken: AtomicUsize::new(0),
            complete: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    /// Takes so many bytes, or says that they do not fit.
    fn take(&self, bytes: usize) -> bool {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        let all = self.front.bodies.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let fits = all <= self.front.bodies_max;
        if !fits {
            self.over.store(true, Ordering::Relaxed);
        }
        fits
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let taken = *self.taken.get_mut();
        self.front.bodies.fetch_sub(taken, Ordering::Relaxed);
    }
}

pin_project! {
    /// The body of a request, counted while it is received.
    #[derive(Debug)]
    pub struct Received<B> {
        #[pin]
        body: B,
        account: Option<Arc<Account>>,
    }
}

/// Why a body was not received.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReceiveError<E> {
    /// The connection failed, or the client broke the protocol.
    Connection(E),
    /// All bodies together exceeded `limits.bodies`.
    TooMuchAtOnce,
}

impl<E: fmt::Display> fmt::Display for ReceiveError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => write!(f, "the body was not received: {error}"),
            Self::TooMuchAtOnce => f.write_str("too many large bodies are being received at once"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for ReceiveError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Connection(error) => Some(error),
            Self::TooMuchAtOnce => None,
        }
    }
}

impl<B: HttpBody<Data = Bytes>> HttpBody for Received<B> {
    type Data = Bytes;
    type Error = ReceiveError<B::Error>;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.project();
        let frame = ready!(this.body.poll_frame(cx));
        if let Some(account) = this.account {
            match &frame {
                Some(Ok(frame)) => {
                    let bytes = frame.data_ref().map_or(0, Buf::remaining);
                    if !account.take(bytes) {
                        return Poll::Ready(Some(Err(ReceiveError::TooMuchAtOnce)));
                    }
                }
                Some(Err(_)) => {}
                None => account.complete.store(true, Ordering::Relaxed),
            }
        }
        Poll::Ready(frame.map(|frame| frame.map_err(ReceiveError::Connection)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
