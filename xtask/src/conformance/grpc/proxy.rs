//! A proxy between a gRPC client and the server: connections can be cut, and messages changed on their way.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::{self as client, SendRequest};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;

use super::faults::{Fault, Plant};

/// Listens on a port of its own until dropped.
pub(super) struct Proxy {
    /// `127.0.0.1:port`.
    pub(super) address: String,
    connections: Arc<Mutex<Vec<AbortHandle>>>,
    runtime: Option<Runtime>,
}

impl Proxy {
    /// Starts a proxy before `upstream` (`host:port`).
    pub(super) fn start(upstream: &str, fault: Option<&'static Fault>) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?.to_string();
        let connections = Arc::<Mutex<Vec<AbortHandle>>>::default();
        let (upstream, kept) = (upstream.to_owned(), Arc::clone(&connections));
        runtime.spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    continue;
                };
                let connection = tokio::spawn(serve(stream, upstream.clone(), fault));
                kept.lock().push(connection.abort_handle());
            }
        });
        Ok(Self {
            address,
            connections,
            runtime: Some(runtime),
        })
    }

    /// Breaks every connection; new ones are taken.
    pub(super) fn cut(&self) {
        self.connections
            .lock()
            .drain(..)
            .for_each(|connection| connection.abort());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Serves one connection over one of its own to the server; what breaks is seen by the client.
async fn serve(stream: TcpStream, upstream: String, fault: Option<&'static Fault>) {
    let Ok(onward) = TcpStream::connect(&upstream).await else {
        return;
    };
    // Small messages must not wait for each other.
    let _ = (stream.set_nodelay(true), onward.set_nodelay(true));
    let Ok((sender, onward)) = client::handshake(TokioExecutor::new(), TokioIo::new(onward)).await else {
        return;
    };
    tokio::spawn(onward);
    let answering = service_fn(move |request| answer(sender.clone(), request, fault));
    let _ = server::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), answering)
        .await;
}

async fn answer(
    mut sender: SendRequest<Messages>,
    request: Request<Incoming>,
    fault: Option<&'static Fault>,
) -> hyper::Result<Response<Messages>> {
    let method = request.uri().path().rsplit('/').next().unwrap_or_default();
    let fault = fault.filter(|fault| fault.method.is_empty() || fault.method == method);
    let plant = fault.map(|fault| &fault.plant);
    if let Some(Plant::Answered(message)) = plant {
        let body = Messages::new(request.into_body(), Edit::Answer(Bytes::from_static(message)));
        let mut response = Response::new(body);
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert(CONTENT_TYPE, grpc);
        return Ok(response);
    }
    let on_the_way = match plant {
        Some(Plant::Requests(edit)) => Edit::Each(*edit),
        _ => Edit::Nothing,
    };
    let response = sender
        .send_request(request.map(|body| Messages::new(body, on_the_way)))
        .await?;
    let on_the_way_back = match plant {
        Some(Plant::Responses(edit)) => Edit::Each(*edit),
        Some(Plant::BareErrors) => Edit::Errors,
        _ => Edit::Nothing,
    };
    let (mut head, body) = response.into_parts();
    if let Edit::Errors = on_the_way_back {
        head.headers.remove(DETAILS);
    }
    Ok(Response::from_parts(head, Messages::new(body, on_the_way_back)))
}

const DETAILS: &str = "grpc-status-details-bin";
/// A flag and a length are before each message.
const HEAD: usize = 5;

/// What happens to a body.
enum Edit {
    Nothing,
    Each(fn(&[u8]) -> Option<Bytes>),
    /// Each message becomes this one, and the end is a success.
    Answer(Bytes),
    /// Trailers lose their details.
    Errors,
}

/// A body, message by message.
struct Messages {
    inner: Incoming,
    read: BytesMut,
    edit: Edit,
    ended: bool,
}

impl Messages {
    fn new(inner: Incoming, edit: Edit) -> Self {
        Self {
            inner,
            read: BytesMut::new(),
            edit,
            ended: false,
        }
    }

    /// The messages that are complete, as they go on.
    fn passing(&mut self) -> Bytes {
        let mut passing = BytesMut::new();
        while let Some(message) = next(&mut self.read) {
            let edited = match &self.edit {
                Edit::Nothing | Edit::Errors => Some(message),
                Edit::Each(edit) => edit(&message),
                Edit::Answer(answer) => Some(answer.clone()),
            };
            if let Some(edited) = edited {
                passing.put_u8(0);
                passing.put_u32(u32::try_from(edited.len()).unwrap_or(u32::MAX));
                passing.put(edited);
            }
        }
        passing.freeze()
    }
}

/// Takes the next complete message off the bytes that were read.
fn next(read: &mut BytesMut) -> Option<Bytes> {
    let length = u32::from_be_bytes(read.get(1..HEAD)?.try_into().ok()?);
    let end = HEAD + usize::try_from(length).ok()?;
    if read.len() < end {
        return None;
    }
    let mut message = read.split_to(end).freeze();
    message.advance(HEAD);
    Some(message)
}

impl Body for Messages {
    type Data = Bytes;
    type Error = hyper::Error;

    /// An error is often a head alone, and no client takes anything after it.
    fn is_end_stream(&self) -> bool {
        !matches!(self.edit, Edit::Answer(_)) && self.inner.is_end_stream()
    }

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        loop {
            let Some(frame) = ready!(Pin::new(&mut self.inner).poll_frame(context)) else {
                let success = matches!(self.edit, Edit::Answer(_)) && !self.ended;
                self.ended = true;
                return Poll::Ready(success.then(|| {
                    let status = HeaderValue::from_static("0");
                    Ok(Frame::trailers(HeaderMap::from_iter([(
                        hyper::header::HeaderName::from_static("grpc-status"),
                        status,
                    )])))
                }));
            };
            let frame = match frame?.into_data() {
                Ok(data) => {
                    self.read.put(data);
                    let passing = self.passing();
                    if passing.is_empty() {
                        continue;
                    }
                    Frame::data(passing)
                }
                Err(frame) => {
                    let mut trailers = frame.into_trailers().unwrap_or_default();
                    if let Edit::Errors = self.edit {
                        trailers.remove(DETAILS);
                    }
                    Frame::trailers(trailers)
                }
            };
            return Poll::Ready(Some(Ok(frame)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_where_they_end() {
        let mut read = BytesMut::from(&b"\0\0\0\0\x02ab\0\0\0\0\0\0\0\0\0\x03c"[..]);
        assert_eq!(next(&mut read).unwrap(), "ab");
        assert_eq!(next(&mut read).unwrap(), "");
        assert_eq!(next(&mut read), None);
        read.put(&b"de"[..]);
        assert_eq!(next(&mut read).unwrap(), "cde");
        assert_eq!(next(&mut read), None);
    }
}
