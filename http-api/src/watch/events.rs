//! The stream of events: the registry where the reader has no place in the changes, then every change. Nothing is put
//! together before the connection asks for it, so a reader who stalls costs a place and a snapshot at most.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use eureka_registry_core::{CachedPages, Cursor, Filter, Follower, News, Told};
use tokio::time::{Sleep, sleep};

use super::pages::{self, Text};
use super::told::{self, Forms};
use super::{LOOKED_AT_MAX, PORTION, Watching};
use crate::respond::Api;

/// Time between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Bytes after which what is sent at once is sent.
const FRAME_BYTES: usize = 64 << 10;
/// How soon a browser comes back after the stream broke, in milliseconds.
const RETRY: &str = "retry: 1000\n\n";

/// The body of a stream of events.
pub(crate) struct Events {
    api: Api,
    follower: Follower<Forms>,
    filter: Option<Filter>,
    next: Next,
    /// Until the next sign of life, once the reader has had its turn.
    heartbeat: Option<Pin<Box<Sleep>>>,
    /// The place that the last `id` named.
    told: Cursor,
    _watching: Watching,
}

/// Why a reader gets the whole registry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reset {
    /// It has no place yet.
    Start,
    /// Its place is in the changes of another registry, or of this one before it was started again.
    OtherServer,
    /// What lies between is gone.
    TooOld,
}

/// What is sent next.
#[derive(Debug)]
enum Next {
    Opening(Option<Reset>),
    Instances(Reading),
    Changes,
    Nothing,
}

/// The registry on its way to one reader.
#[derive(Debug)]
struct Reading {
    listed: Arc<CachedPages<Text>>,
    page: usize,
    /// In the page, for readers with a filter.
    instance: usize,
    /// How many were sent.
    passed: usize,
    /// Whether others are to get their turn: something was encoded.
    worked: bool,
}

impl Events {
    /// For a reader who has seen everything up to `since`, or whose place is lost.
    pub(crate) fn new(api: &Api, since: Result<Cursor, Reset>, filter: Option<Filter>) -> Self {
        let cursor = since.unwrap_or_else(|_| api.registry().cursor(0));
        Self {
            follower: api.feed().follow(cursor),
            filter,
            next: Next::Opening(since.err()),
            heartbeat: None,
            told: cursor,
            _watching: Watching::new(api),
            api: api.clone(),
        }
    }

    /// The next bytes.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let closed = self.api.feed().is_closed();
        if let Next::Opening(lost) = self.next {
            self.next = Next::Changes;
            let mut text = String::from(RETRY);
            if let Some(lost) = lost.filter(|_| !closed) {
                text.push_str(&self.reset(lost));
            }
            return Poll::Ready(Some(text.into()));
        }
        if closed {
            self.next = Next::Nothing;
        }
        match &mut self.next {
            Next::Instances(reading) => {
                if std::mem::take(&mut reading.worked) {
                    // Others get their turn before the next page is encoded.
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                let piece = match &self.filter {
                    None => reading.page(),
                    Some(filter) => reading.filtered(filter),
                };
                match piece {
                    Some(piece) if piece.is_empty() => self.poll_next(context),
                    Some(piece) => Poll::Ready(Some(piece)),
                    None => Poll::Ready(Some(self.synced())),
                }
            }
            Next::Opening(_) | Next::Changes => self.poll_changes(context),
            Next::Nothing => Poll::Ready(None),
        }
    }

    /// Whether the stream has ended.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.next, Next::Nothing)
    }

    /// Begins again with the registry as it is, and says so.
    fn reset(&mut self, why: Reset) -> String {
        let snapshot = self.api.registry().snapshot();
        self.api.figures().snapshot(why);
        self.next = Next::Instances(Reading {
            listed: self
                .api
                .event_pages()
                .pages(snapshot, || Text::new(self.api.encoder())),
            page: 0,
            instance: 0,
            passed: 0,
            worked: false,
        });
        format!("event: reset\ndata: {{\"reason\":\"{}\"}}\n\n", why.as_str())
    }

    /// Goes over to the changes after the snapshot.
    fn synced(&mut self) -> Bytes {
        let Next::Instances(reading) = std::mem::replace(&mut self.next, Next::Changes) else {
            return Bytes::new();
        };
        self.follower.restart(reading.listed.snapshot().version());
        self.told = self.follower.cursor();
        let (cursor, passed) = (self.told, reading.passed);
        format!("id: {cursor}\nevent: synced\ndata: {{\"instances\":{passed}}}\n\n").into()
    }

    fn poll_changes(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let heartbeat = self.heartbeat.get_or_insert_with(|| Box::pin(sleep(HEARTBEAT)));
        if heartbeat.as_mut().poll(context).is_ready() {
            self.heartbeat = None;
            return Poll::Ready(Some(self.sign_of_life()));
        }
        let mut looked_at = 0;
        while looked_at < LOOKED_AT_MAX {
            match self.follower.poll_news(context, PORTION) {
                Poll::Ready(News::Changes(told)) => {
                    looked_at += told.len();
                    if let Some(frame) = self.frame(&told) {
                        return Poll::Ready(Some(frame));
                    }
                }
                Poll::Ready(News::Lost { foreign }) => {
                    let why = if foreign {
                        Reset::OtherServer
                    } else {
                        Reset::TooOld
                    };
                    return Poll::Ready(Some(self.reset(why).into()));
                }
                Poll::Ready(News::Closed) => {
                    self.next = Next::Nothing;
                    return Poll::Ready(None);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        // The filter lets nothing through: others get their turn before the rest is looked at.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Changes to be sent at once: a single one, or a long one, as it is, several short ones in one piece. What does not
    /// fit is left in the feed.
    fn frame(&mut self, told: &[Arc<Told<Forms>>]) -> Option<Bytes> {
        let mut events: Vec<Bytes> = Vec::new();
        let mut len = 0;
        for told in told {
            let cursor = self.api.registry().cursor(told.change.version);
            let Some(form) = told::form(self.api.encoder(), told, self.filter.as_ref(), cursor) else {
                continue;
            };
            let event = form.event();
            if !events.is_empty() && len + event.len() > FRAME_BYTES {
                // It is looked at again, with everything behind it.
                self.follower.restart(self.told.version());
                break;
            }
            len += event.len();
            events.push(event);
            self.told = cursor;
        }
        self.api.figures().watch_changes.increment(events.len() as u64);
        match events.len() {
            0 => None,
            1 => events.pop(),
            _ => Some(events.concat().into()),
        }
    }

    /// A comment that keeps connections open, and the place of a reader whose filter has let nothing through for long.
    fn sign_of_life(&mut self) -> Bytes {
        let cursor = self.follower.cursor();
        if cursor == self.told {
            return Bytes::from_static(b":\n\n");
        }
        self.told = cursor;
        format!(":\nid: {cursor}\n\n").into()
    }
}

impl Reading {
    /// The next page, `None` behind the last.
    fn page(&mut self) -> Option<Bytes> {
        let page = self.listed.pages().get(self.page)?;
        self.page += 1;
        self.passed += page.page.instance_count();
        let (text, encoded) = pages::events(page);
        self.worked = encoded;
        Some(text)
    }

    /// The next instances that the filter lets through, perhaps none; `None` behind the last.
    fn filtered(&mut self, filter: &Filter) -> Option<Bytes> {
        self.listed.pages().get(self.page)?;
        let mut text = Vec::new();
        let mut looked_at = 0;
        while let Some(cached) = self.listed.pages().get(self.page)
            && looked_at < LOOKED_AT_MAX
            && text.len() < FRAME_BYTES
        {
            let Some(view) = cached.page.instance(self.instance) else {
                (self.page, self.instance) = (self.page + 1, 0);
                continue;
            };
            self.instance += 1;
            looked_at += 1;
            if filter.matches(&view.instance) {
                self.passed += 1;
                pages::write(view, &mut text);
            }
        }
        self.worked = true;
        Some(text.into())
    }
}

impl Reset {
    pub(crate) const ALL: [Self; 3] = [Self::Start, Self::OtherServer, Self::TooOld];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::OtherServer => "other-server",
            Self::TooOld => "too-old",
        }
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("follower", &self.follower)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}
