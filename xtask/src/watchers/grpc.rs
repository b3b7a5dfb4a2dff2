//! `eureka.v1.Registry/Watch`, on hyper's HTTP/2 alone: less between the socket and the message than a gRPC library has.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use eureka_grpc_api::proto::watch_response::Event;
use eureka_grpc_api::proto::{self, Action, Author, SnapshotReason, Status, WatchRequest, WatchResponse};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::header::HeaderMap;
use hyper::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use tokio::net::TcpStream;

use super::{Changed, Ending, Key, Seen, Told, Watch};

/// A flag and the length.
const PREFIX: usize = 5;

/// One HTTP/2 connection, for many watches.
#[derive(Clone)]
pub(crate) struct Channel {
    address: SocketAddr,
    requests: SendRequest<Full<Bytes>>,
}

/// One watch.
pub(crate) struct Stream {
    body: Incoming,
    /// Bytes of messages that are not complete or not asked for.
    rest: BytesMut,
}

impl Channel {
    /// `window` is how many bytes of a stream the server may send before they are read; hyper's own choice without it.
    pub(crate) async fn open(address: SocketAddr, window: Option<u32>) -> Result<Self, Ending> {
        let connected = Self::connect(address, window).await;
        connected.map_err(|error| Ending::broken(&error))
    }

    async fn connect(address: SocketAddr, window: Option<u32>) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        if let Some(window) = window {
            builder.initial_stream_window_size(window);
        }
        let (requests, connection) = builder.handshake(TokioIo::new(stream)).await?;
        // How it ends is seen by the streams.
        tokio::spawn(connection);
        Ok(Self { address, requests })
    }

    /// Opens a watch behind a cursor, or from the start without one.
    pub(crate) async fn watch(&mut self, cursor: Option<&str>) -> Result<Watch, Ending> {
        let request = self.request(cursor).map_err(|error| Ending::broken(&error))?;
        let sent = self.requests.send_request(request).await;
        let response = sent.map_err(|error| Ending::broken(&error))?;
        if let Some(ending) = ending(response.headers()) {
            return Err(ending);
        }
        Ok(Watch::Grpc(Stream {
            body: response.into_body(),
            rest: BytesMut::new(),
        }))
    }

    fn request(&self, cursor: Option<&str>) -> Result<Request<Full<Bytes>>> {
        let message = WatchRequest {
            cursor: cursor.unwrap_or_default().to_owned(),
            filter: String::new(),
        };
        let mut framed = BytesMut::new();
        framed.put_u8(0);
        framed.put_u32(u32::try_from(message.encoded_len())?);
        message.encode(&mut framed)?;
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://{}/eureka.v1.Registry/Watch", self.address))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        Ok(request.body(Full::new(framed.freeze()))?)
    }
}

impl Stream {
    /// The next message.
    pub(super) async fn next(&mut self) -> Result<Bytes, Ending> {
        loop {
            if let Some(message) = self.complete() {
                return Ok(message);
            }
            let frame = match self.body.frame().await {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(Ending::broken(&error)),
                None => return Err(Ending::broken(&"the stream ended")),
            };
            if let Some(trailers) = frame.trailers_ref() {
                return Err(ending(trailers).unwrap_or_default());
            }
            if let Ok(data) = frame.into_data() {
                self.rest.extend_from_slice(&data);
            }
        }
    }

    fn complete(&mut self) -> Option<Bytes> {
        let length = self.rest.get(1..PREFIX)?.get_u32() as usize;
        if self.rest.len() < PREFIX + length {
            return None;
        }
        self.rest.advance(PREFIX);
        Some(self.rest.split_to(length).freeze())
    }
}

/// The status in headers or trailers. What the details name stands in them as text.
fn ending(headers: &HeaderMap) -> Option<Ending> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let status = text("grpc-status")?.parse().unwrap_or(u16::MAX);
    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let base64 = GeneralPurpose::new(&base64::alphabet::STANDARD, lenient);
    let details = text("grpc-status-details-bin").and_then(|details| base64.decode(details).ok());
    let details = String::from_utf8_lossy(&details.unwrap_or_default()).into_owned();
    let reasons = ["READS_HELD", "STOPPING", "OVERLOADED"];
    let reason = reasons.into_iter().find(|reason| details.contains(reason));
    Some(Ending {
        status,
        reason: reason.map_or_else(
            || text("grpc-message").unwrap_or_default().to_owned(),
            str::to_owned,
        ),
        retries: details.contains("google.rpc.RetryInfo"),
    })
}

pub(super) fn read(message: &[u8]) -> Result<Told> {
    let response = WatchResponse::decode(message)?;
    let cursor = response.cursor;
    Ok(match response.event.context("a message without an event")? {
        Event::SnapshotBegin(begin) => Told::Reset(SnapshotReason::as_str_name(&begin.reason()).to_owned()),
        Event::SnapshotPage(page) => Told::Instances(page.instances.into_iter().map(seen).collect()),
        Event::SnapshotEnd(end) => Told::Synced {
            cursor,
            instances: end.instances,
        },
        Event::Change(change) => {
            let (action, author) = (change.action(), change.author());
            let (key, after) = seen(change.instance.context("a change without an instance")?);
            Told::Changed(Changed {
                cursor,
                key,
                after: (action != Action::Deleted).then_some(after),
                by_peer: author == Author::Peer,
            })
        }
        Event::Heartbeat(_) => Told::Alive {
            cursor: (!cursor.is_empty()).then_some(cursor),
        },
    })
}

fn seen(instance: proto::Instance) -> (Key, Seen) {
    let name = |status: Status| status.as_str_name().trim_start_matches("STATUS_").to_owned();
    let seen = Seen {
        status: name(instance.status()),
        overridden: name(instance.overridden_status()),
        dirty: instance.last_dirty_unix_ms.unwrap_or(0),
        metadata: instance.metadata.into_iter().collect(),
    };
    ((instance.app, instance.instance_id), seen)
}
