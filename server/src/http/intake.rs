//! Request bodies are bounded: in time, and all of them together in memory.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http_body::{Body as HttpBody, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Sleep;

use super::Front;
use super::messages::Messages;
use super::refusal::Refusal;
use super::work::Work;

/// How the body of a request is received: 408 when it is not there within `limits.body-timeout`, 503 when all bodies together
/// exceed `limits.bodies`. The size of one body is the API's own limit, since it depends on the route. Requests without a body pay
/// nothing.
///
/// The body of a call that is answered while it goes on is a stream: what counts there is each message, in time from its first byte
/// and in memory until it was dealt with. Between two of them it may rest; what a stream keeps meanwhile counts apart, and may be as
/// much as `limits.bodies` again for all streams together.
#[derive(Debug, Default)]
pub(super) struct Intake {
    wait: Wait,
    account: Option<Arc<Account>>,
}

impl Intake {
    /// Counts the body of a request, if it has one, from now on.
    pub(super) fn of<B: HttpBody>(front: &Arc<Front>, received: &mut Received<B>) -> Self {
        let account = (!received.body.is_end_stream()).then(|| Arc::new(Account::new(front)));
        if let Some(account) = &account {
            received.account = Some(Arc::clone(account));
            received.call = received
                .work
                .is_grpc
                .then(|| Box::new(Call::new(front.message_max)));
        }
        Self {
            wait: Wait::default(),
            account,
        }
    }

    /// Why the request goes no further, if its body is too much or too slow. To be asked whenever its answer was looked for.
    pub(super) fn refusal(&mut self, is_answered: bool, cx: &mut Context<'_>) -> Option<Refusal> {
        let account = self.account.as_ref()?;
        let meters = &account.front.meters;
        if account.over.load(Ordering::Relaxed) {
            meters.bodies_refused.increment(1);
            return Some(Refusal::Bodies);
        }
        if is_answered || account.complete.load(Ordering::Relaxed) {
            return None;
        }
        let is_late = self.wait.poll(cx, account.front.body_timeout).is_ready();
        is_late.then(|| {
            meters.body_timeouts.increment(1);
            Refusal::Slow
        })
    }
}

/// How a body is waited for. Most come together with the head: for them a timer would be set and dropped in vain.
#[derive(Debug, Default)]
enum Wait {
    /// Once more without a timer, as hyper hands out what it has.
    #[default]
    Short,
    Until(Pin<Box<Sleep>>),
}

impl Wait {
    fn poll(&mut self, cx: &mut Context<'_>, timeout: Duration) -> Poll<()> {
        match self {
            Self::Short => {
                *self = Self::Until(Box::pin(tokio::time::sleep(timeout)));
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Self::Until(deadline) => deadline.as_mut().poll(cx),
        }
    }
}

/// What one body has taken of `limits.bodies`; given back when nobody holds the body or waits for it.
#[derive(Debug)]
struct Account {
    front: Arc<Front>,
    taken: AtomicUsize,
    /// What it has taken of what streams may keep.
    kept: AtomicUsize,
    complete: AtomicBool,
    over: AtomicBool,
}

impl Account {
    fn new(front: &Arc<Front>) -> Self {
        Self {
            front: Arc::clone(front),
            taken: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            complete: AtomicBool::new(false),
            over: AtomicBool::new(false),
        }
    }

    /// Takes so many bytes, or says that they do not fit.
    fn take(&self, bytes: usize) -> bool {
        let fits = self.fits(&self.front.bodies, bytes);
        if fits {
            self.taken.fetch_add(bytes, Ordering::Relaxed);
        } else {
            self.over.store(true, Ordering::Relaxed);
        }
        fits
    }

    /// Keeps so many bytes until the stream ends, or says that they do not fit.
    fn keep(&self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.kept.load(Ordering::Relaxed));
        let fits = more == 0 || self.fits(&self.front.kept, more);
        if fits {
            self.kept.fetch_add(more, Ordering::Relaxed);
        } else {
            self.front.meters.streams_refused.increment(1);
        }
        fits
    }

    /// Adds to one of the sums. What does not fit is never counted: it would push out others for a moment.
    fn fits(&self, sum: &AtomicUsize, bytes: usize) -> bool {
        let and_these = |all: usize| all.checked_add(bytes).filter(|all| *all <= self.front.bodies_max);
        sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, and_these)
            .is_ok()
    }

    /// Gives so many of them back.
    fn give(&self, bytes: usize) {
        if bytes > 0 {
            self.taken.fetch_sub(bytes, Ordering::Relaxed);
            self.front.bodies.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let taken = *self.taken.get_mut();
        self.front.bodies.fetch_sub(taken, Ordering::Relaxed);
        let kept = *self.kept.get_mut();
        self.front.kept.fetch_sub(kept, Ordering::Relaxed);
    }
}

pin_project! {
    /// The body of a request, counted while it is received.
    #[derive(Debug)]
    pub struct Received<B> {
        #[pin]
        body: B,
        // What the stack knows of its request.
        pub(super) work: Work,
        account: Option<Arc<Account>>,
        call: Option<Box<Call>>,
    }
}

impl<B> Received<B> {
    /// A body of which nothing is counted yet.
    pub(super) fn new(body: B, work: Work) -> Self {
        Self {
            body,
            work,
            account: None,
            call: None,
        }
    }
}

/// What is known of the messages of a call.
#[derive(Debug)]
struct Call {
    messages: Messages,
    /// Set while a part of a message is missing.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl Call {
    fn new(longest: usize) -> Self {
        Self {
            messages: Messages::new(longest),
            deadline: None,
        }
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
    /// The stream of a call was ended by the node, with this status.
    Ended(Box<tonic::Status>),
}

impl<E: fmt::Display> fmt::Display for ReceiveError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => write!(f, "the body was not received: {error}"),
            Self::TooMuchAtOnce => f.write_str("too many large bodies are being received at once"),
            Self::Ended(status) => write!(f, "the stream was ended: {}", status.message()),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for ReceiveError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Connection(error) => Some(error),
            Self::TooMuchAtOnce => None,
            // Found there by the service, and told to the client.
            Self::Ended(status) => Some(&**status),
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
        let Some(account) = this.account else {
            let frame = ready!(this.body.poll_frame(cx));
            return Poll::Ready(frame.map(|frame| frame.map_err(ReceiveError::Connection)));
        };
        if let Some(call) = this.call {
            // More is asked for when all that came was dealt with.
            account.give(call.messages.taken());
        }
        let Poll::Ready(frame) = this.body.poll_frame(cx) else {
            let Some(call) = this.call.as_mut().filter(|call| call.messages.is_midway()) else {
                return Poll::Pending;
            };
            let timeout = account.front.body_timeout;
            let deadline = call
                .deadline
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
            ready!(deadline.as_mut().poll(cx));
            account.front.meters.body_timeouts.increment(1);
            return Poll::Ready(Some(Err(ended(Refusal::Slow))));
        };
        match &frame {
            Some(Ok(frame)) => {
                let data = frame.data_ref();
                let refused = match this.call {
                    None => {
                        let fits = account.take(data.map_or(0, Buf::remaining));
                        (!fits).then_some(ReceiveError::TooMuchAtOnce)
                    }
                    Some(call) => {
                        let bytes = data.map_or(0, |data| call.messages.came(data));
                        if call.messages.has_whole() {
                            // The next one has its own time.
                            call.deadline = None;
                        }
                        let kept = if this.work.stays { call.messages.kept() } else { 0 };
                        let fits = account.keep(kept) && account.take(bytes);
                        (!fits).then(|| ended(Refusal::Bodies))
                    }
                };
                if let Some(refused) = refused {
                    return Poll::Ready(Some(Err(refused)));
                }
            }
            Some(Err(_)) => {}
            None => account.complete.store(true, Ordering::Relaxed),
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

fn ended<E>(refusal: Refusal) -> ReceiveError<E> {
    ReceiveError::Ended(Box::new(refusal.of_stream()))
}
