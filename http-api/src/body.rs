//! The body of an answer: nothing, some bytes, a list of which missing pages are encoded as they are asked for, or events
//! without end.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::sequence::ListBody;
use crate::watch::Events;

/// The body of an [`Answer`](crate::Answer).
#[derive(Debug, Default)]
pub struct Body(Kind);

#[derive(Debug, Default)]
enum Kind {
    #[default]
    Empty,
    Once(Bytes),
    List(Box<ListBody>),
    Events(Box<Events>),
}

impl Body {
    /// No body.
    pub const fn empty() -> Self {
        Self(Kind::Empty)
    }

    pub(crate) fn list(list: ListBody) -> Self {
        Self(Kind::List(Box::new(list)))
    }

    pub(crate) fn events(events: Events) -> Self {
        Self(Kind::Events(Box::new(events)))
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        let bytes = bytes.into();
        Self(if bytes.is_empty() {
            Kind::Empty
        } else {
            Kind::Once(bytes)
        })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let kind = &mut self.get_mut().0;
        let next = match kind {
            Kind::Empty => None,
            Kind::Once(bytes) => {
                let bytes = std::mem::take(bytes);
                *kind = Kind::Empty;
                Some(bytes)
            }
            Kind::List(list) => match list.poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(next) => next,
            },
            Kind::Events(events) => match events.poll_next(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(next) => next,
            },
        };
        Poll::Ready(next.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Empty => true,
            Kind::Once(_) => false,
            Kind::List(list) => list.is_done(),
            Kind::Events(events) => events.is_done(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Empty => SizeHint::with_exact(0),
            Kind::Once(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Kind::List(list) => list.left().map_or_else(SizeHint::default, SizeHint::with_exact),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}
