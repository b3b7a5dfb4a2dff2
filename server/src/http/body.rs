//! The body of an answer, and what has to be known when it has been sent.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::connection::Serving;
use super::meter::Ticket;

/// The body of an answer.
#[derive(Debug, Default)]
pub struct Body {
    inner: Inner,
    ticket: Option<Ticket>,
    serving: Option<Serving>,
}

/// Whose it is.
#[derive(Debug)]
enum Inner {
    Http(eureka_http_api::Body),
    Grpc(tonic::body::Body),
}

/// The rest of a body could not be made; the connection has to be cut, or the reader would take it for complete.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an answer broke off: the node has a bug, the registry is as it was")
    }
}

impl std::error::Error for Broken {}

impl Body {
    /// Counts as a request under way or as one that stays, and a panic in it is counted, until it is sent or dropped.
    pub(super) fn watch(&mut self, ticket: Ticket) {
        self.ticket = Some(ticket);
    }

    /// Its connection counts as busy until it is sent or dropped.
    pub(super) fn serve(&mut self, mut serving: Serving) {
        if !self.is_end_stream() {
            serving.sends();
        }
        self.serving = Some(serving);
    }
}

impl Default for Inner {
    fn default() -> Self {
        Self::Http(eureka_http_api::Body::empty())
    }
}

impl From<eureka_http_api::Body> for Body {
    fn from(inner: eureka_http_api::Body) -> Self {
        Self {
            inner: Inner::Http(inner),
            ..Self::default()
        }
    }
}

impl From<tonic::body::Body> for Body {
    fn from(inner: tonic::body::Body) -> Self {
        Self {
            inner: Inner::Grpc(inner),
            ..Self::default()
        }
    }
}

impl Inner {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self {
            Self::Http(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            // What goes wrong with a call is told in its trailers; this is for what cannot be told.
            Self::Grpc(body) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(|_| Broken))),
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Broken;

    /// Pages of lists are encoded here, and changes for who follows them: a panic among them ends this answer, not the
    /// connection's other ones. A body that has nothing to send yet is not one that its reader leaves unread.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        let Some(frame) = guarded(|| this.inner.poll_frame(cx)) else {
            if let Some(ticket) = &this.ticket {
                ticket.panicked();
            }
            return Poll::Ready(Some(Err(Broken)));
        };
        if let Some(serving) = &mut this.serving {
            match &frame {
                Poll::Ready(_) => serving.sends(),
                Poll::Pending => serving.waits(),
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Http(body) => body.is_end_stream(),
            Inner::Grpc(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Http(body) => body.size_hint(),
            Inner::Grpc(body) => body.size_hint(),
        }
    }
}

/// What `make` makes, unless it panics.
fn guarded<T>(make: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(make)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_no_frame() {
        assert_eq!(guarded(|| 1), Some(1));
        assert_eq!(
            guarded(|| -> u8 { panic!("a page that cannot be encoded") }),
            None
        );
    }
}
