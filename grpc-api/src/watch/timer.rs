//! When a stream has to say something although nothing happened.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// The times of one stream: an end, perhaps, and a heartbeat whenever it was quiet for long, perhaps. A message only notes
/// the time: the timer of the runtime is set again when it fires, not for every message.
#[derive(Debug)]
pub(crate) struct Timer {
    deadline: Option<Instant>,
    heartbeat: Option<Duration>,
    spoken: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// What time it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Due {
    /// The end that the client has set.
    Deadline,
    /// Nothing was said for as long as a heartbeat waits.
    Heartbeat,
}

impl Timer {
    /// For a stream that begins now.
    pub(crate) fn new(deadline: Option<Instant>, heartbeat: Option<Duration>) -> Self {
        let mut timer = Self {
            deadline,
            heartbeat,
            spoken: Instant::now(),
            sleep: None,
        };
        timer.sleep = timer.next().map(|(at, _)| Box::pin(sleep_until(at)));
        timer
    }

    /// A message goes out.
    pub(crate) fn spoke(&mut self) {
        if self.heartbeat.is_some() {
            self.spoken = Instant::now();
        }
    }

    /// Whether the client has no interest any more.
    pub(crate) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Waits for the next thing to do. A heartbeat stays due until the stream [speaks](Self::spoke).
    pub(crate) fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<Due> {
        loop {
            let (Some((at, due)), Some(sleep)) = (self.next(), &mut self.sleep) else {
                return Poll::Pending;
            };
            if Instant::now() >= at {
                return Poll::Ready(due);
            }
            if sleep.is_elapsed() {
                sleep.as_mut().reset(at);
            }
            ready!(sleep.as_mut().poll(context));
        }
    }

    /// What comes first. It only ever moves on, so that a timer that was set fires too early at worst.
    fn next(&self) -> Option<(Instant, Due)> {
        let heartbeat = self
            .heartbeat
            .map(|heartbeat| (self.spoken + heartbeat, Due::Heartbeat));
        let deadline = self.deadline.map(|deadline| (deadline, Due::Deadline));
        match (deadline, heartbeat) {
            (Some(deadline), Some(heartbeat)) if heartbeat.0 < deadline.0 => Some(heartbeat),
            (deadline, heartbeat) => deadline.or(heartbeat),
        }
    }
}
