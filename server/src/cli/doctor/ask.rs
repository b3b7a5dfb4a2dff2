//! One question to one server: a GET on a connection of its own, so that whoever stands behind an address may change.

use std::io::Read as _;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use eureka_replication::PeerAddress;
use flate2::read::MultiGzDecoder;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, DATE, HOST, USER_AGENT,
};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{timeout, timeout_at};

use crate::clock;

/// A server that takes longer is as good as silent.
const REQUEST: Duration = Duration::from_secs(5);
/// Connecting to one of several addresses of a name.
const CONNECT: Duration = Duration::from_secs(2);
/// Bytes of a body, also after decompression.
const BODY: usize = 64 << 20;

/// Asks until a deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asker {
    deadline: Instant,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    /// The status of HTTP.
    pub(super) status: u16,
    /// When the question was sent, Unix milliseconds of the clock here.
    pub(super) sent: i64,
    /// When the head of the answer was here.
    pub(super) received: i64,
    /// The header `Date`, Unix milliseconds, whole seconds.
    pub(super) date: Option<i64>,
    /// The body, decompressed.
    pub(super) body: Vec<u8>,
}

impl Asker {
    /// Asks for no longer than this.
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            deadline: clock::instant() + patience,
        }
    }

    /// Asks for `target` (path and query). A name with several addresses is asked at another one with each `attempt`.
    pub(super) async fn get(
        &self,
        server: &PeerAddress,
        target: &str,
        accept: &'static str,
        attempt: usize,
    ) -> Result<Reply, String> {
        let asked = timeout(REQUEST, exchange(server, target, accept, attempt));
        match timeout_at(self.deadline.into(), asked).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) => Err(format!("no answer within {} s", REQUEST.as_secs())),
            Err(_) => Err("the time for all questions was over".to_owned()),
        }
    }
}

async fn exchange(
    server: &PeerAddress,
    target: &str,
    accept: &'static str,
    attempt: usize,
) -> Result<Reply, String> {
    if server.scheme != "http" {
        return Err("https is not available in this version".to_owned());
    }
    let stream = connect(server, attempt).await?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(1 << 20)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| format!("no HTTP: {error}"))?;
    // It ends with the sender, or with the runtime.
    tokio::spawn(async move { drop(connection.await) });
    let request = request(server, target, accept)?;
    let sent = now();
    let response = sender
        .send_request(request)
        .await
        .map_err(|error| format!("no answer: {error}"))?;
    let received = now();
    let (head, body) = response.into_parts();
    let body = Limited::new(body, BODY)
        .collect()
        .await
        .map_err(|error| {
            format!(
                "the answer broke off or is longer than {} MiB: {error}",
                BODY >> 20
            )
        })?
        .to_bytes();
    Ok(Reply {
        status: head.status.as_u16(),
        sent,
        received,
        date: date(&head.headers),
        body: decompressed(&head.headers, &body)?,
    })
}

async fn connect(server: &PeerAddress, attempt: usize) -> Result<TcpStream, String> {
    let host = server.host.trim_matches(['[', ']']);
    let addresses: Vec<SocketAddr> = lookup_host((host, server.port))
        .await
        .map_err(|error| format!("the name {host} has no address: {error}"))?
        .collect();
    let mut last = format!("the name {host} has no address");
    for turn in 0..addresses.len() {
        let address = addresses[(attempt + turn) % addresses.len()];
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = format!("no connection: {error}"),
            Err(_) => last = format!("no connection within {} s", CONNECT.as_secs()),
        }
    }
    Err(last)
}

fn request(
    server: &PeerAddress,
    target: &str,
    accept: &'static str,
) -> Result<Request<Empty<Bytes>>, String> {
    let mut request = Request::get(target)
        .header(HOST, format!("{}:{}", server.host, server.port))
        .header(ACCEPT, accept)
        .header(ACCEPT_ENCODING, "gzip")
        .header(USER_AGENT, concat!("eureka-doctor/", env!("CARGO_PKG_VERSION")))
        .header(CONNECTION, "close");
    if let Some((user, password)) = &server.credentials {
        let token = STANDARD.encode(format!("{user}:{password}"));
        request = request.header(AUTHORIZATION, format!("Basic {token}"));
    }
    request
        .body(Empty::new())
        .map_err(|error| format!("cannot be asked for: {error}"))
}

fn decompressed(headers: &HeaderMap, body: &[u8]) -> Result<Vec<u8>, String> {
    let gzip = headers
        .get(CONTENT_ENCODING)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"gzip"));
    if !gzip || body.is_empty() {
        return Ok(body.to_vec());
    }
    let mut plain = Vec::new();
    MultiGzDecoder::new(body)
        .take(BODY as u64 + 1)
        .read_to_end(&mut plain)
        .map_err(|error| format!("the answer is not the gzip it claims to be: {error}"))?;
    if plain.len() > BODY {
        return Err(format!("the answer is longer than {} MiB", BODY >> 20));
    }
    Ok(plain)
}

fn date(headers: &HeaderMap) -> Option<i64> {
    let text = headers.get(DATE)?.to_str().ok()?;
    let time = httpdate::parse_http_date(text).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// Unix milliseconds.
pub(super) fn now() -> i64 {
    i64::try_from(clock::since_epoch().as_millis()).unwrap_or(i64::MAX)
}
