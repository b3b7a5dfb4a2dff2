//! The body of an answer that is a stream: counted when it ends, and ended by us if it would not end by itself.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Body as HttpBody, Frame};
use tokio::time::{Sleep, sleep_until};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::body::Body;
use tonic::{Code, Status};

use super::Deadline;
use crate::figures::Method;
use crate::node::Node;
use crate::refusal::Refusal;

/// A stream of messages and then trailers.
pub(super) struct Streamed {
    inner: Body,
    node: Arc<Node>,
    method: Method,
    /// For streams of libraries, that know neither.
    ends: Option<Ends>,
    ended: bool,
}

/// What ends a stream from outside.
struct Ends {
    deadline: Option<Pin<Box<Sleep>>>,
    closed: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The node has stopped: what the stream says to that is let through first.
    stopping: bool,
}

impl Streamed {
    /// The same answer with this body around its own.
    pub(super) fn around(
        answer: Response<Body>,
        node: &Arc<Node>,
        method: Method,
        deadline: Option<Deadline>,
    ) -> Response<Body> {
        let ends = (!method.ends_by_itself()).then(|| Ends {
            deadline: deadline.map(|deadline| Box::pin(sleep_until(deadline.0))),
            closed: Box::pin(node.closed.clone().cancelled_owned()),
            stopping: false,
        });
        answer.map(|inner| {
            Body::new(Self {
                inner,
                node: Arc::clone(node),
                method,
                ends,
                ended: false,
            })
        })
    }

    fn end(&mut self, code: Code) {
        if !self.ended {
            self.ended = true;
            self.node.figures.answered(self.method, code);
        }
    }
}

impl HttpBody for Streamed {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let refusal = self.ends.as_mut().and_then(|ends| ends.poll(context));
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        let frame = if polled.is_pending() && refusal.is_some() {
            None
        } else {
            ready!(polled)
        };
        match (frame, refusal) {
            (None, Some(refusal)) => {
                let status = Status::from(refusal);
                self.end(status.code());
                let mut trailers = HeaderMap::new();
                status.add_header(&mut trailers)?;
                Poll::Ready(Some(Ok(Frame::trailers(trailers))))
            }
            (Some(Ok(frame)), _) => {
                if let Some(code) = frame
                    .trailers_ref()
                    .and_then(|trailers| trailers.get(Status::GRPC_STATUS))
                {
                    let code = Code::from_bytes(code.as_bytes());
                    self.end(code);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            (frame, _) => {
                self.end(Code::Unknown);
                Poll::Ready(frame)
            }
        }
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        self.end(Code::Cancelled);
    }
}

impl Ends {
    /// Why the stream has to end now.
    fn poll(&mut self, context: &mut Context<'_>) -> Option<Refusal> {
        if self.stopping || self.closed.as_mut().poll(context).is_ready() {
            self.stopping = true;
            return Some(Refusal::Stopping);
        }
        let deadline = self.deadline.as_mut()?;
        deadline
            .as_mut()
            .poll(context)
            .is_ready()
            .then_some(Refusal::DeadlineExceeded)
    }
}
