//! One long poll: the next changes that a filter lets through, or the news that there were none for so long.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use eureka_registry_core::{Cursor, Filter, Follower, News};
use http::StatusCode;
use tokio::time::{Sleep, sleep};

use super::told::{self, Forms};
use super::{LOOKED_AT_MAX, PORTION, Watching};
use crate::Answer;
use crate::body::Body;
use crate::figures::Operation;
use crate::outcome;
use crate::respond::Api;

/// Bytes of changes after which an answer ends, whatever its limit of changes.
const ANSWER_BYTES: usize = 1 << 20;

/// A question for changes that may have to wait. Whoever drops it has gone away.
pub(crate) struct LongPoll {
    api: Api,
    follower: Follower<Forms>,
    filter: Option<Filter>,
    limit: usize,
    wait: Duration,
    gzip: bool,
    /// Whether a node of ours asks, who is told who answers.
    from_node: bool,
    /// Runs from the first time there is nothing.
    deadline: Option<Pin<Box<Sleep>>>,
    /// In JSON.
    found: Vec<Bytes>,
    found_bytes: usize,
    _watching: Watching,
}

/// How a look at the changes ended.
#[derive(Debug)]
enum Looked {
    /// There is something to tell, or there never will be.
    Enough,
    /// What lies between is gone.
    Lost,
}

/// What a long poll asks for.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) since: Cursor,
    pub(crate) filter: Option<Filter>,
    pub(crate) limit: usize,
    pub(crate) wait: Duration,
    pub(crate) gzip: bool,
    pub(crate) from_node: bool,
}

impl LongPoll {
    pub(crate) fn new(api: &Api, question: Question) -> Self {
        Self {
            follower: api.feed().follow(question.since),
            filter: question.filter,
            limit: question.limit,
            wait: question.wait,
            gzip: question.gzip,
            from_node: question.from_node,
            deadline: None,
            found: Vec::new(),
            found_bytes: 0,
            _watching: Watching::new(api),
            api: api.clone(),
        }
    }

    /// The answer that can be given now.
    pub(crate) fn at_once(mut self) -> Answer {
        let mut context = Context::from_waker(Waker::noop());
        match self.look(&mut context) {
            Poll::Ready(looked) => self.answer(looked),
            Poll::Pending => self.answer(Looked::Enough),
        }
    }

    /// The answer, as soon as there is something to tell or the time is over.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Answer> {
        if let Poll::Ready(looked) = self.look(context) {
            return Poll::Ready(self.answer(looked));
        }
        let wait = self.wait;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(wait)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(self.answer(Looked::Enough))
    }

    /// Looks at what is new, but not at more than may be looked at in one turn. Pending: nothing yet for this reader.
    fn look(&mut self, context: &mut Context<'_>) -> Poll<Looked> {
        let mut looked_at = 0;
        while looked_at < LOOKED_AT_MAX {
            let told = match self.follower.poll_news(context, PORTION) {
                Poll::Ready(News::Changes(told)) => told,
                Poll::Ready(News::Lost { .. }) if self.found.is_empty() => return Poll::Ready(Looked::Lost),
                Poll::Ready(News::Lost { .. } | News::Closed) => return Poll::Ready(Looked::Enough),
                Poll::Pending if self.found.is_empty() => return Poll::Pending,
                Poll::Pending => return Poll::Ready(Looked::Enough),
            };
            looked_at += told.len();
            for told in told {
                let version = told.change.version;
                let cursor = self.api.registry().cursor(version);
                let Some(form) = told::form(self.api.encoder(), &told, self.filter.as_ref(), cursor) else {
                    continue;
                };
                let json = form.json();
                self.found_bytes += json.len();
                self.found.push(json);
                if self.found.len() == self.limit || self.found_bytes >= ANSWER_BYTES {
                    self.follower.restart(version);
                    return Poll::Ready(Looked::Enough);
                }
            }
        }
        if self.found.is_empty() {
            // Others get their turn before the rest is looked at.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Looked::Enough)
    }

    fn answer(&mut self, looked: Looked) -> Answer {
        let mut answer = match looked {
            Looked::Enough => {
                let text = super::changes_text(&self.api, self.follower.cursor(), &self.found);
                self.api
                    .figures()
                    .watch_changes
                    .increment(self.found.len() as u64);
                self.api.encoded(super::JSON, text, self.gzip)
            }
            Looked::Lost => {
                let text = super::lost_text(self.api.registry().cursor(self.api.registry().version()));
                outcome::with_body(StatusCode::GONE, super::JSON, Body::from(text))
            }
        };
        outcome::mark_momentary(&mut answer);
        self.api.finish(Operation::Changes, self.from_node, &mut answer);
        answer
    }
}

impl fmt::Debug for LongPoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LongPoll")
            .field("follower", &self.follower)
            .field("limit", &self.limit)
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}
