//! The body of an answer, and what has to be known when it has been sent.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::connection::Serving;
use super::pressure::Ticket;
use crate::telemetry::Meters;

/// The body of an answer.
#[derive(Debug, Default)]
pub struct Body {
    inner: eureka_http_api::Body,
    meters: Option<Arc<Meters>>,
    ticket: Option<Ticket>,
    serving: Option<Serving>,
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
    /// Counts as a request under way, and a panic in it is counted, until it is sent or dropped.
    pub(super) fn watched(mut self, meters: &Arc<Meters>, ticket: Ticket) -> Self {
        self.meters = Some(Arc::clone(meters));
        self.ticket = Some(ticket);
        self
    }

    /// Its connection counts as busy until it is sent or dropped.
    pub(super) fn of(mut self, mut serving: Serving) -> Self {
        if !http_body::Body::is_end_stream(&self.inner) {
            serving.sends();
        }
        self.serving = Some(serving);
        self
    }
}

impl From<eureka_http_api::Body> for Body {
    fn from(inner: eureka_http_api::Body) -> Self {
        Self {
            inner,
            ..Self::default()
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    /// Pages of lists are encoded here: a panic among them ends this answer, not the connection's other ones.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if let Some(serving) = &mut self.serving {
            serving.sends();
        }
        let Some(frame) = guarded(|| Pin::new(&mut self.inner).poll_frame(cx)) else {
            if let Some(meters) = &self.meters {
                meters.panics.increment(1);
            }
            return Poll::Ready(Some(Err(Broken)));
        };
        frame.map(|frame| frame.map(|frame| frame.map_err(|never| match never {})))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
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
