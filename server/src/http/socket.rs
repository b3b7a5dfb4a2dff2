//! A TCP stream that does not wait for ever: for first bytes, for heads, between requests, for slow readers.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use super::connection::{Activity, PING_INTERVAL, PING_TIMEOUT};
use super::listener::Timeouts;
use crate::clock;
use crate::telemetry::{Closed, Meters};

/// What an HTTP/2 client says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long a closed connection waits for the client to stop sending: without it the kernel answers what is still on its
/// way with a reset, and the client never reads why it was refused.
const LINGER: Duration = Duration::from_secs(1);
/// The same while the client does go on sending.
const LINGER_MAX: Duration = Duration::from_secs(5);

/// What a connection speaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// A TCP stream with time-outs.
///
/// A connection is closed between one and two times its idle time-out after its last request, never earlier.
///
/// A timer is set when a read or write has to wait, and left alone when its deadline moves on; when it fires early it is
/// set anew. So a connection in use pays for a timer every few minutes, not with every request.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    timeouts: Timeouts,
    activity: Arc<Activity>,
    meters: Arc<Meters>,
    protocol: Protocol,
    /// Bytes read to find out the protocol, and how many of them were handed on.
    first: [u8; PREFACE.len()],
    first_len: usize,
    first_read: usize,
    /// Requests begun and ended when the two fields below were set.
    seen: (u64, u64),
    /// Whether bytes of a head came since the last request.
    in_head: bool,
    /// Since when a read waits.
    reading_since: Option<Instant>,
    read_timer: Option<Pin<Box<Sleep>>>,
    /// Since when a write waits.
    writing_since: Option<Instant>,
    write_timer: Option<Pin<Box<Sleep>>>,
    closing: Option<Closing>,
}

#[derive(Debug)]
struct Closing {
    since: Instant,
    still_sends: bool,
}

impl Socket {
    pub(super) fn new(
        stream: TcpStream,
        timeouts: Timeouts,
        activity: Arc<Activity>,
        meters: Arc<Meters>,
    ) -> Self {
        Self {
            stream,
            timeouts,
            activity,
            meters,
            protocol: Protocol::Http1,
            first: [0; PREFACE.len()],
            first_len: 0,
            first_read: 0,
            seen: (0, 0),
            in_head: true,
            reading_since: None,
            read_timer: None,
            writing_since: None,
            write_timer: None,
            closing: None,
        }
    }

    /// Reads first bytes until they tell the protocol. The caller bounds the time.
    pub(super) async fn protocol(&mut self) -> io::Result<Protocol> {
        while self.first_len < PREFACE.len() {
            let read = self.stream.read(&mut self.first[self.first_len..]).await?;
            if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.first_len += read;
            if !PREFACE.starts_with(&self.first[..self.first_len]) {
                return Ok(Protocol::Http1);
            }
        }
        self.protocol = Protocol::Http2;
        Ok(Protocol::Http2)
    }

    /// Bytes came. Those of a head do not prolong its time. Streams that take nothing end a connection whatever else it
    /// is used for: a client that is there answers a ping, so this is looked at as often as those are sent.
    fn has_read(&mut self) -> io::Result<()> {
        match self.protocol {
            Protocol::Http2 => {
                self.reading_since = None;
                let unread = self.activity.unread_since();
                if unread.is_some_and(|since| since.elapsed() > self.timeouts.write) {
                    self.meters.closed(Closed::Unread);
                    return Err(ErrorKind::TimedOut.into());
                }
            }
            Protocol::Http1 if self.activity.is_busy() => {}
            Protocol::Http1 => {
                let activity = self.activity.state();
                if !self.in_head || activity != self.seen {
                    self.in_head = true;
                    self.seen = activity;
                    self.reading_since = None;
                }
            }
        }
        Ok(())
    }

    /// A read has to wait: ready when it has waited too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        if self.protocol == Protocol::Http1 {
            let activity = self.activity.state();
            if activity != self.seen || self.activity.is_busy() {
                // Hyper does not read again when the request ends: the timer has to be set before.
                self.seen = activity;
                self.reading_since = None;
                self.in_head = false;
                let timer = self.read_timer.as_ref().filter(|timer| !timer.is_elapsed());
                if timer.is_some() && self.timeouts.head <= self.timeouts.idle {
                    // It was set before, so it fires no later than it should, and will find that it has to wait on.
                    return Poll::Pending;
                }
            }
        }
        let (allowed, reason) = match self.protocol {
            Protocol::Http2 => (PING_INTERVAL + PING_TIMEOUT, Closed::Idle),
            Protocol::Http1 if self.in_head => (self.timeouts.head, Closed::Head),
            Protocol::Http1 => (self.timeouts.idle, Closed::Idle),
        };
        let since = *self.reading_since.get_or_insert_with(clock::instant);
        ready!(poll_deadline(&mut self.read_timer, since + allowed, cx));
        self.meters.closed(reason);
        Poll::Ready(ErrorKind::TimedOut.into())
    }

    /// A write has to wait: ready when it has waited too long.
    fn poll_stuck(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        let since = *self.writing_since.get_or_insert_with(clock::instant);
        ready!(poll_deadline(
            &mut self.write_timer,
            since + self.timeouts.write,
            cx
        ));
        self.meters.closed(Closed::Unread);
        Poll::Ready(ErrorKind::TimedOut.into())
    }

    fn wrote<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.writing_since = None;
            return written;
        }
        self.poll_stuck(cx).map(Err)
    }
}

/// Ready at the deadline; sets the timer only if there is none or it would be late.
fn poll_deadline(timer: &mut Option<Pin<Box<Sleep>>>, deadline: Instant, cx: &mut Context<'_>) -> Poll<()> {
    let deadline = deadline.into();
    let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
    if timer.deadline() > deadline {
        timer.as_mut().reset(deadline);
    }
    loop {
        ready!(timer.as_mut().poll(cx));
        if timer.deadline() >= deadline {
            return Poll::Ready(());
        }
        timer.as_mut().reset(deadline);
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.first_read < this.first_len {
            let left = &this.first[this.first_read..this.first_len];
            let count = left.len().min(buffer.remaining());
            buffer.put_slice(&left[..count]);
            this.first_read += count;
            return Poll::Ready(Ok(()));
        }
        match Pin::new(&mut this.stream).poll_read(cx, buffer) {
            Poll::Ready(result) => Poll::Ready(result.and_then(|()| this.has_read())),
            Poll::Pending => this.poll_silence(cx).map(Err),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(written, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = match slices {
            // Most answers are one piece, and the kernel is told of one piece with less.
            [slice] => Pin::new(&mut self.stream).poll_write(cx, slice),
            slices => Pin::new(&mut self.stream).poll_write_vectored(cx, slices),
        };
        self.wrote(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Says that nothing more comes, and reads on for a moment what the client still sends.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.closing.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            this.closing = Some(Closing {
                since: clock::instant(),
                still_sends: false,
            });
            this.read_timer = None;
        }
        let Some(closing) = &mut this.closing else {
            return Poll::Ready(Ok(()));
        };
        let mut scratch = [0; 8192];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut this.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => closing.still_sends = true,
                Poll::Ready(_) => return Poll::Ready(Ok(())),
                Poll::Pending => {
                    let allowed = if closing.still_sends { LINGER_MAX } else { LINGER };
                    return poll_deadline(&mut this.read_timer, closing.since + allowed, cx).map(Ok);
                }
            }
            if closing.since.elapsed() > LINGER_MAX {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
