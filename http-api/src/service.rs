//! The API as a `tower::Service`: collects the body of a request, within limits, and answers.

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Version};
use http_body::Body;
use tower::Service;

use crate::class::Class;
use crate::outcome::{Refusal, TooLarge};
use crate::respond::{Answer, Api, Reply};
use crate::watch::LongPoll;

/// Room made for a body at once because it is announced; the rest is made as it comes.
const MAX_RESERVED: usize = 64 << 10;

/// Serves an [`Api`]. It waits for the body of a request, and, under tokio with its timer, for the changes that a long poll
/// asks for. Dropping the future ends that.
#[derive(Clone, Debug)]
pub struct ApiService(Api);

impl ApiService {
    /// A service over `api`.
    pub const fn new(api: Api) -> Self {
        Self(api)
    }
}

impl<B> Service<Request<B>> for ApiService
where
    B: Body + Unpin,
    B::Error: fmt::Display,
{
    type Response = Answer;
    type Error = Infallible;
    type Future = Answering<B>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering<B> {
        let (parts, body) = request.into_parts();
        if body.is_end_stream() {
            return Answering(State::of(self.0.begin(&parts, Bytes::new())));
        }
        Answering(State::Collecting(Box::new(Collecting::new(
            self.0.clone(),
            parts,
            body,
        ))))
    }
}

/// The answer, once the body is there, and what is asked for.
pub struct Answering<B>(State<B>);

enum State<B> {
    Answered(Ready<Result<Answer, Infallible>>),
    Collecting(Box<Collecting<B>>),
    Waiting(Box<LongPoll>),
}

impl<B> State<B> {
    fn of(reply: Reply) -> Self {
        match reply {
            Reply::Now(answer) => Self::Answered(ready(Ok(answer))),
            Reply::Later(poll) => Self::Waiting(poll),
        }
    }
}

struct Collecting<B> {
    api: Api,
    /// Taken when the request is answered.
    parts: Option<Parts>,
    body: B,
    limit: usize,
    /// Bodies that mean nothing are counted and thrown away.
    ignored: bool,
    first: Bytes,
    more: Vec<u8>,
    len: usize,
    /// Bytes that count as held.
    held: usize,
}

impl<B> Future for Answering<B>
where
    B: Body + Unpin,
    B::Error: fmt::Display,
{
    type Output = Result<Answer, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let state = &mut self.get_mut().0;
        loop {
            match state {
                State::Answered(answer) => return Pin::new(answer).poll(cx),
                State::Collecting(collecting) => *state = State::of(std::task::ready!(collecting.poll(cx))),
                State::Waiting(poll) => return poll.poll(cx).map(Ok),
            }
        }
    }
}

impl<B> Collecting<B>
where
    B: Body + Unpin,
    B::Error: fmt::Display,
{
    fn new(api: Api, parts: Parts, body: B) -> Self {
        let limits = api.config().limits;
        let limit = if Class::of(&parts.method, parts.uri.path()) == Class::Peer {
            limits.batch
        } else {
            limits.body
        };
        Self {
            ignored: parts.method != Method::POST,
            limit,
            api,
            parts: Some(parts),
            body,
            first: Bytes::new(),
            more: Vec::new(),
            len: 0,
            held: 0,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Reply> {
        let announced = self.body.size_hint().lower();
        if announced.saturating_add(self.len as u64) > self.limit as u64 {
            return Poll::Ready(self.refuse(self.too_large()));
        }
        loop {
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => return Poll::Ready(self.answer()),
                Poll::Ready(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    if let Err(refusal) = self.keep(data) {
                        return Poll::Ready(self.refuse(refusal));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(self.refuse(Refusal::BodyBroken(error.to_string())));
                }
            }
        }
    }

    /// Keeps a piece of the body, if that is no more than may come.
    fn keep(&mut self, mut data: B::Data) -> Result<(), Refusal> {
        let len = data.remaining();
        self.len = self.len.saturating_add(len);
        if self.len > self.limit {
            return Err(self.too_large());
        }
        if self.ignored {
            return Ok(());
        }
        if !self.api.hold(len) {
            return Err(Refusal::Busy);
        }
        self.held += len;
        if self.first.is_empty() {
            self.first = data.copy_to_bytes(len);
            return Ok(());
        }
        if self.more.is_empty() {
            let announced = usize::try_from(self.body.size_hint().lower()).unwrap_or_default();
            self.more.reserve(self.len + announced.min(MAX_RESERVED));
            self.more.extend_from_slice(&self.first);
        }
        while data.has_remaining() {
            let chunk = data.chunk();
            let len = chunk.len();
            self.more.extend_from_slice(chunk);
            data.advance(len);
        }
        Ok(())
    }

    fn answer(&mut self) -> Reply {
        let body = if self.more.is_empty() {
            std::mem::take(&mut self.first)
        } else {
            std::mem::take(&mut self.more).into()
        };
        let parts = self.parts();
        self.api.begin(&parts, body)
    }

    fn too_large(&self) -> Refusal {
        Refusal::TooLarge(TooLarge::Body(self.limit))
    }

    /// What is left of the body is not read, so the connection must go with it.
    fn refuse(&mut self, refusal: Refusal) -> Reply {
        let parts = self.parts();
        let mut answer = self.api.refuse(&parts, refusal);
        if parts.version < Version::HTTP_2 {
            answer
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        Reply::Now(answer)
    }

    fn parts(&mut self) -> Parts {
        self.parts
            .take()
            .expect("a future is not polled after it is done")
    }
}

impl<B> Drop for Collecting<B> {
    fn drop(&mut self) {
        self.api.forget(self.held);
    }
}

impl<B> fmt::Debug for Answering<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            State::Answered(_) => "answered",
            State::Collecting(_) => "collecting",
            State::Waiting(_) => "waiting",
        };
        f.debug_tuple("Answering").field(&state).finish()
    }
}
