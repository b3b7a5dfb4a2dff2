//! Requests under way: futures that the client's own task polls, so that they end with it and an idle client has none.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::call::{Answer, RequestId};

type Sending = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// As many as the agent asks for at once: one that writes and one that reads.
#[derive(Default)]
pub(super) struct Requests {
    sending: Vec<(RequestId, Sending)>,
}

impl Requests {
    pub(super) fn begin(&mut self, id: RequestId, request: impl Future<Output = Answer> + Send + 'static) {
        self.sending.push((id, Box::pin(request)));
    }

    /// The next one that is answered; never if there is none.
    pub(super) async fn next(&mut self) -> (RequestId, Answer) {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<(RequestId, Answer)> {
        for index in 0..self.sending.len() {
            let request = &mut self.sending[index].1;
            let answer = match catch_unwind(AssertUnwindSafe(|| request.as_mut().poll(context))) {
                Ok(Poll::Pending) => continue,
                Ok(Poll::Ready(answer)) => answer,
                // The agent asks for nothing more of the kind before it has heard of this one.
                Err(_) => Answer::Unreachable("the request went wrong here: a bug of this client".to_owned()),
            };
            let (id, _) = self.sending.swap_remove(index);
            if self.sending.is_empty() {
                // What an idle client keeps, ten thousand idle clients keep.
                self.sending = Vec::new();
            }
            return Poll::Ready((id, answer));
        }
        Poll::Pending
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = self.sending.iter().map(|(id, _)| id);
        f.debug_list().entries(ids).finish()
    }
}
