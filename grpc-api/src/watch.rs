//! `Watch`: what is registered, and then every change of it.
//!
//! A stream has no task and no queue. Whoever sends it polls it when there is room for a message; only then it looks for
//! one: in the snapshot that it pins while it tells it, and after that in the feed that all streams share. A reader that
//! does not read holds its place and nothing that grows, and gets a snapshot ([`News::Lost`]) if what comes next has gone
//! meanwhile.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::{fmt, vec};

use eureka_registry_core::{Filter, Follower, News, Reads, Seen, Told};
use tokio::task::coop::poll_proceed;
use tokio::time::Instant;
use tokio_stream::Stream;
use tonic::Status;

use crate::convert;
use crate::encoded::Encoded;
use crate::figures::Watcher;
use crate::node::Node;
use crate::proto::watch_response::Event;
use crate::proto::{Heartbeat, SnapshotBegin, SnapshotEnd, SnapshotReason, WatchRequest, WatchResponse};
use crate::refusal::Refusal;

mod forms;
mod pages;
mod timer;
mod walk;

use timer::Due;
use walk::{Step, Walk};

pub(crate) use forms::Forms;
pub(crate) use pages::{Kept, Messages};
pub(crate) use timer::Timer;

/// Changes that are taken from the feed at once, and looked at before others get their turn.
const PORTION: usize = 64;

/// Starts a watch.
pub(crate) fn start(
    node: &Arc<Node>,
    request: WatchRequest,
    deadline: Option<Instant>,
) -> Result<Watching, Status> {
    let filter = convert::filter("filter", &request.filter)?;
    let since = convert::cursor("cursor", &request.cursor)?;
    if node.is_closed() {
        return Err(Refusal::Stopping.into());
    }
    if let Reads::Held(_) = node.registry.snapshot().reads() {
        return Err(Refusal::ReadsHeld.into());
    }
    let (since, stage) = match since {
        Some(since) => (since, Stage::Following),
        None => {
            let current = node.registry.version();
            (
                node.registry.cursor(current),
                Stage::Beginning(SnapshotReason::Start),
            )
        }
    };
    Ok(Watching {
        filter,
        follower: node.feed.follow(since),
        portion: Vec::new().into_iter(),
        seen: since.version(),
        stage,
        timer: Timer::new(deadline, Some(node.config.heartbeat)),
        _open: node.figures.watcher(),
        node: Arc::clone(node),
    })
}

/// A watch under way.
pub(crate) struct Watching {
    node: Arc<Node>,
    filter: Option<Filter>,
    follower: Follower<Forms>,
    /// Changes that were taken from the feed and not looked at yet.
    portion: vec::IntoIter<Arc<Told<Forms>>>,
    /// The last change that was told or need not be.
    seen: u64,
    stage: Stage,
    timer: Timer,
    _open: Watcher,
}

/// What the reader is told next.
enum Stage {
    /// That a snapshot begins.
    Beginning(SnapshotReason),
    /// What is left of it.
    Walking(Walk),
    /// That it was all.
    Complete { version: u64, instances: u64 },
    /// Changes.
    Following,
    /// Nothing.
    Over,
}

impl Stream for Watching {
    type Item = Result<Encoded, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        // A reader who takes whatever there is must not keep the thread from others.
        let turn = ready!(poll_proceed(context));
        if let Stage::Over = self.stage {
            return Poll::Ready(None);
        }
        let message = ready!(self.poll_message(context));
        turn.made_progress();
        self.timer.spoke();
        if message.is_err() {
            self.stage = Stage::Over;
        }
        Poll::Ready(Some(message.map_err(Status::from)))
    }
}

impl Watching {
    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Result<Encoded, Refusal>> {
        if self.node.is_closed() {
            return Poll::Ready(Err(Refusal::Stopping));
        }
        if self.timer.is_over() {
            return Poll::Ready(Err(Refusal::DeadlineExceeded));
        }
        match &mut self.stage {
            Stage::Beginning(reason) => {
                let reason = *reason;
                Poll::Ready(self.begin(reason))
            }
            Stage::Walking(walk) => {
                let Step { page, complete } = walk.step(self.filter.as_ref());
                if complete {
                    // Lets go of the snapshot: the reader may take long for the last page.
                    self.stage = Stage::Complete {
                        version: walk.version(),
                        instances: walk.told(),
                    };
                }
                page.map_or_else(|| again(context), |page| Poll::Ready(Ok(page)))
            }
            Stage::Complete { version, instances } => {
                let (version, instances) = (*version, *instances);
                Poll::Ready(Ok(self.complete(version, instances)))
            }
            Stage::Following => {
                if let Poll::Ready(message) = self.poll_change(context) {
                    return Poll::Ready(message);
                }
                Poll::Ready(match ready!(self.timer.poll_due(context)) {
                    Due::Deadline => Err(Refusal::DeadlineExceeded),
                    Due::Heartbeat => Ok(self.message(self.seen, Event::Heartbeat(Heartbeat {}))),
                })
            }
            Stage::Over => Poll::Pending,
        }
    }

    /// Pins what is told from now on.
    fn begin(&mut self, reason: SnapshotReason) -> Result<Encoded, Refusal> {
        let snapshot = self.node.registry.snapshot();
        if let Reads::Held(_) = snapshot.reads() {
            return Err(Refusal::ReadsHeld);
        }
        self.node.figures.snapshot(reason);
        let kept = &self.node.kept;
        let pages = self.node.pages.pages(snapshot, || Messages::new(kept));
        self.stage = Stage::Walking(Walk::new(pages, self.filter.is_some()));
        Ok(Encoded::new(&WatchResponse {
            cursor: String::new(),
            event: Some(Event::SnapshotBegin(SnapshotBegin {
                reason: reason.into(),
            })),
        }))
    }

    /// Goes on with the changes after the snapshot.
    fn complete(&mut self, version: u64, instances: u64) -> Encoded {
        self.follower.restart(version);
        self.seen = version;
        self.stage = Stage::Following;
        self.message(version, Event::SnapshotEnd(SnapshotEnd { instances }))
    }

    /// The next change that the reader is told, or that a snapshot begins.
    fn poll_change(&mut self, context: &mut Context<'_>) -> Poll<Result<Encoded, Refusal>> {
        if let Some(change) = self.next_in_portion() {
            return Poll::Ready(Ok(change));
        }
        match ready!(self.follower.poll_news(context, PORTION)) {
            News::Changes(portion) => self.portion = portion.into_iter(),
            News::Lost { foreign: true } => return Poll::Ready(self.begin(SnapshotReason::OtherServer)),
            News::Lost { foreign: false } => return Poll::Ready(self.begin(SnapshotReason::TooOld)),
            News::Closed => return Poll::Ready(Err(Refusal::Stopping)),
        }
        match self.next_in_portion() {
            Some(change) => Poll::Ready(Ok(change)),
            // The filter selects none of them.
            None => again(context),
        }
    }

    fn next_in_portion(&mut self) -> Option<Encoded> {
        let (node, filter) = (&self.node, &self.filter);
        for told in &mut self.portion {
            self.seen = told.change.version;
            let seen = filter
                .as_ref()
                .map_or(Seen::Whole, |filter| filter.sees(&told.change));
            if let Some(change) = told.encoded.form(node, &told.change, seen) {
                node.figures.changes.increment(1);
                return Some(change);
            }
        }
        None
    }

    /// A message of this stream alone.
    fn message(&self, version: u64, event: Event) -> Encoded {
        Encoded::new(&WatchResponse {
            cursor: self.node.registry.cursor(version).to_string(),
            event: Some(event),
        })
    }
}

/// Nothing yet, but there may be more: others get their turn.
fn again<T>(context: &Context<'_>) -> Poll<T> {
    context.waker().wake_by_ref();
    Poll::Pending
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
