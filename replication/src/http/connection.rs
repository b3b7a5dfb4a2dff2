//! One connection to a peer.

use std::error::Error as _;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::answer::{self, Answer};
use super::{Asking, Failed};
use crate::message::Failure;

/// How a request was lost.
#[derive(Debug)]
pub(super) enum Lost {
    /// There is no connection.
    NotConnected(String),
    /// The connection ended before the first byte of an answer: if it is an old one, the peer may have closed it before
    /// the request arrived.
    BeforeAnswer(String),
    /// What came is no answer, or not all of it.
    Broken(String),
    /// Nothing came in time, or not all of it.
    TimedOut,
}

impl Lost {
    pub(super) fn into_failed(self, asking: &Asking) -> Failed {
        let (failure, why) = match self {
            Self::NotConnected(why) | Self::BeforeAnswer(why) | Self::Broken(why) => {
                (Failure::Unreachable, why)
            }
            Self::TimedOut => (Failure::Busy, format!("no answer within {:?}", asking.within)),
        };
        Failed {
            failure,
            text: Arc::from(format!("{} {}: {why}", asking.method, asking.path)),
            retry_after: None,
            node: None,
        }
    }
}

/// A connection, closed when it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: AbortHandle,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Tries the addresses of a host one by one.
    pub(super) async fn open(host: &str, port: u16, within: Duration) -> Result<Self, Lost> {
        let stream = match timeout(within, connect(host, port, within)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(Lost::NotConnected(error.to_string())),
            Err(_) => return Err(Lost::NotConnected(format!("no connection within {within:?}"))),
        };
        // Batches are small and waited for.
        let _ = stream.set_nodelay(true);
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| Lost::NotConnected(describe(&error)))?;
        // What goes wrong is told to the request.
        let task = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self {
            sender,
            task: task.abort_handle(),
        })
    }

    /// Whether it was not closed so far.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    pub(super) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        longest: usize,
    ) -> Result<Answer, Lost> {
        // It may still have to notice that the last answer is over.
        if let Err(error) = self.sender.ready().await {
            return Err(Lost::BeforeAnswer(describe(&error)));
        }
        let response = self.sender.send_request(request).await.map_err(|error| {
            if is_unanswered(&error) {
                Lost::BeforeAnswer(describe(&error))
            } else {
                Lost::Broken(describe(&error))
            }
        })?;
        answer::collect(response, longest).await
    }
}

async fn connect(host: &str, port: u16, within: Duration) -> io::Result<TcpStream> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let addresses: Vec<SocketAddr> = lookup_host((name, port)).await?.collect();
    // One that swallows packets must not take the time of the others.
    let share = within / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        last = match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error,
            Err(_) => io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {share:?}")),
        };
    }
    Err(last)
}

/// Whether the connection ended before anything of an answer came.
fn is_unanswered(error: &hyper::Error) -> bool {
    if error.is_canceled() || error.is_closed() || error.is_incomplete_message() {
        return true;
    }
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| {
        matches!(
            cause.kind(),
            io::ErrorKind::BrokenPipe
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::ConnectionReset
                | io::ErrorKind::NotConnected
                | io::ErrorKind::UnexpectedEof
        )
    })
}

/// An error with its causes.
pub(super) fn describe(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let _ = write!(text, ": {inner}");
        cause = inner.source();
    }
    text
}
