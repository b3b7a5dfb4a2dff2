//! HTTP/1.1 by hand: what the kit sends goes out byte for byte, odd targets and all.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;

/// No answer of a registry that the kit can meet is larger.
const BODY_LIMIT: usize = 256 << 20;
const HEAD_LIMIT: usize = 1 << 20;

/// One request, sent as it stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query as they appear in the request line.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(method: &str, target: impl Into<String>) -> Self {
        Self {
            method: method.to_owned(),
            target: target.into(),
            ..Self::default()
        }
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn json(self, body: &serde_json::Value) -> Self {
        self.header("Content-Type", "application/json")
            .body(body.to_string().into_bytes())
    }

    pub(crate) fn body(mut self, body: Vec<u8>) -> Self {
        self.body = body;
        self
    }

    pub(crate) fn has_header(&self, name: &str) -> bool {
        find(&self.headers, name).is_some()
    }

    /// The bytes on the wire. `Host` and `Content-Length` are added where they are missing and needed.
    fn to_bytes(&self, host: &str) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.has_header("host") {
            head += &format!("Host: {host}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        let counted = self.has_header("content-length") || self.has_header("transfer-encoding");
        if !counted && (!self.body.is_empty() || matches!(self.method.as_str(), "POST" | "PUT")) {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        head += "\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// One answer; the body is free of transfer encoding, but not of content encoding.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// The body without its content encoding.
    pub(crate) fn content(&self) -> Result<Vec<u8>, HttpError> {
        if self.header("content-encoding") != Some("gzip") || self.body.is_empty() {
            return Ok(self.body.clone());
        }
        let mut content = Vec::new();
        GzDecoder::new(self.body.as_slice())
            .read_to_end(&mut content)
            .map_err(|error| {
                HttpError::Malformed(format!("the body is not the gzip it claims to be: {error}"))
            })?;
        Ok(content)
    }

    /// The content as text, with replacement characters where it is not UTF-8.
    pub(crate) fn text(&self) -> String {
        match self.content() {
            Ok(content) => String::from_utf8_lossy(&content).into_owned(),
            Err(error) => error.to_string(),
        }
    }

    pub(crate) fn json(&self) -> Result<serde_json::Value, HttpError> {
        serde_json::from_slice(&self.content()?).map_err(|error| {
            HttpError::Malformed(format!(
                "the body is not JSON ({error}): {}",
                excerpt(&self.text())
            ))
        })
    }

    /// The bytes of this answer as a server would send them, for a proxy that changed it.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} -\r\n", self.status);
        for (name, value) in &self.headers {
            let framing = ["content-length", "transfer-encoding", "connection"];
            if !framing.contains(&name.to_ascii_lowercase().as_str()) {
                head += &format!("{name}: {value}\r\n");
            }
        }
        if self.status != 204 {
            head += &format!("Content-Length: {}\r\n", self.body.len());
        }
        head += "Connection: close\r\n\r\n";
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum HttpError {
    /// The connection failed, timed out or was closed early.
    Connection(io::Error),
    /// What came is not HTTP/1.1, or not what its headers say.
    Malformed(String),
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(error) => write!(f, "{error}"),
            Self::Malformed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for HttpError {}

impl From<io::Error> for HttpError {
    fn from(error: io::Error) -> Self {
        Self::Connection(error)
    }
}

/// Connects within five seconds, with `patience` for every read and write.
pub(crate) fn connect(address: &str, patience: Duration) -> Result<TcpStream, HttpError> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, format!("{address} has no address"));
    for candidate in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&candidate, Duration::from_secs(5)) {
            Ok(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))?;
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last.into())
}

/// Sends one request on a connection of its own and reads the answer.
pub(crate) fn exchange(address: &str, request: &Request, patience: Duration) -> Result<Response, HttpError> {
    let mut stream = connect(address, patience)?;
    // A server may refuse and close before it has read everything: its answer still counts.
    let sent = stream.write_all(&request.to_bytes(address));
    let mut reader = BufReader::new(&stream);
    match read_response(&mut reader, &request.method) {
        Ok(Some(response)) => Ok(response),
        Ok(None) => {
            sent?;
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed without an answer").into())
        }
        Err(error) => Err(error),
    }
}

/// The next request of a connection; `None` when it ended cleanly. `on_head` sees it before the body is read.
pub(crate) fn read_request(
    reader: &mut impl BufRead,
    on_head: impl FnOnce(&Request),
) -> Result<Option<Request>, HttpError> {
    let Some(head) = read_head(reader)? else {
        return Ok(None);
    };
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut parsed = httparse::Request::new(&mut headers);
    parsed
        .parse(&head)
        .map_err(|error| HttpError::Malformed(format!("not a request: {error}")))?;
    let mut request = Request::new(parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
    request.headers = owned(parsed.headers);
    on_head(&request);
    let framing = Framing::of(&request.headers).unwrap_or(Framing::Length(0));
    request.body = read_body(reader, framing)?;
    Ok(Some(request))
}

/// The next final answer to a request of this method; `None` when the connection ended before it.
pub(crate) fn read_response(reader: &mut impl BufRead, method: &str) -> Result<Option<Response>, HttpError> {
    loop {
        let Some(head) = read_head(reader)? else {
            return Ok(None);
        };
        let mut headers = [httparse::EMPTY_HEADER; 128];
        let mut parsed = httparse::Response::new(&mut headers);
        parsed
            .parse(&head)
            .map_err(|error| HttpError::Malformed(format!("not an answer: {error}")))?;
        let mut response = Response {
            status: parsed.code.unwrap_or(0),
            headers: owned(parsed.headers),
            body: Vec::new(),
        };
        if (100..200).contains(&response.status) && response.status != 101 {
            continue;
        }
        if method != "HEAD" && !matches!(response.status, 101 | 204 | 304) {
            response.body = read_body(
                reader,
                Framing::of(&response.headers).unwrap_or(Framing::UntilClosed),
            )?;
        }
        return Ok(Some(response));
    }
}

enum Framing {
    Length(usize),
    Chunked,
    UntilClosed,
}

impl Framing {
    fn of(headers: &[(String, String)]) -> Option<Self> {
        if find(headers, "transfer-encoding")
            .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"))
        {
            return Some(Self::Chunked);
        }
        find(headers, "content-length")
            .and_then(|value| value.trim().parse().ok())
            .map(Self::Length)
    }
}

fn read_head(reader: &mut impl BufRead) -> Result<Option<Vec<u8>>, HttpError> {
    let mut head = Vec::new();
    loop {
        let start = head.len();
        if reader.take(HEAD_LIMIT as u64).read_until(b'\n', &mut head)? == 0 {
            let early = || HttpError::Malformed("the connection ended inside a head".to_owned());
            return if head.is_empty() { Ok(None) } else { Err(early()) };
        }
        if matches!(&head[start..], b"\r\n" | b"\n") && start > 0 {
            return Ok(Some(head));
        }
        if head.len() > HEAD_LIMIT {
            return Err(HttpError::Malformed("the head is larger than 1 MiB".to_owned()));
        }
    }
}

fn read_body(reader: &mut impl BufRead, framing: Framing) -> Result<Vec<u8>, HttpError> {
    let mut body = Vec::new();
    match framing {
        Framing::Length(length) => {
            reader
                .take(length.min(BODY_LIMIT) as u64)
                .read_to_end(&mut body)?;
            if body.len() != length {
                let got = body.len();
                return Err(HttpError::Malformed(format!(
                    "the body ended after {got} of {length} bytes"
                )));
            }
        }
        Framing::UntilClosed => {
            reader.take(BODY_LIMIT as u64).read_to_end(&mut body)?;
        }
        Framing::Chunked => loop {
            let size = read_chunk_size(reader)?;
            let before = body.len();
            if size > BODY_LIMIT - before {
                return Err(HttpError::Malformed("a chunk is too large".to_owned()));
            }
            reader.take(size as u64).read_to_end(&mut body)?;
            if body.len() - before != size {
                return Err(HttpError::Malformed("the body ended inside a chunk".to_owned()));
            }
            let end = read_line(reader)?;
            if size == 0 {
                let mut trailer = end;
                while !trailer.is_empty() {
                    trailer = read_line(reader)?;
                }
                break;
            }
        },
    }
    Ok(body)
}

fn read_chunk_size(reader: &mut impl BufRead) -> Result<usize, HttpError> {
    let line = read_line(reader)?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    usize::from_str_radix(digits, 16).map_err(|_| HttpError::Malformed(format!("not a chunk size: {line:?}")))
}

fn read_line(reader: &mut impl BufRead) -> Result<String, HttpError> {
    let mut line = Vec::new();
    reader.take(HEAD_LIMIT as u64).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

fn owned(headers: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers
        .iter()
        .map(|header| (header.name.to_owned(), text(header.value)))
        .collect()
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

/// The first characters of a text, on one line.
pub(crate) fn excerpt(text: &str) -> String {
    let line: String = text
        .chars()
        .take(120)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().count() > 120 {
        line + "…"
    } else {
        line
    }
}

/// Asks `question` every 100 ms until it answers or `patience` is over; then says what was last wrong.
pub(crate) fn poll<T>(
    patience: Duration,
    mut question: impl FnMut() -> Result<T, String>,
) -> Result<T, String> {
    let start = Instant::now();
    loop {
        match question() {
            Ok(answer) => return Ok(answer),
            Err(why) if start.elapsed() >= patience => {
                return Err(format!("{why} (waited {} s)", patience.as_secs()));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_by_length_by_chunks_and_after_an_interim_one() {
        let plain = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhirest".as_slice();
        let mut reader = BufReader::new(plain);
        assert_eq!(read_response(&mut reader, "GET").unwrap().unwrap().body, b"hi");
        let chunked = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 \r\ntransfer-encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n";
        let response = read_response(&mut BufReader::new(chunked.as_slice()), "PUT")
            .unwrap()
            .unwrap();
        assert_eq!(
            (response.status, response.body.as_slice()),
            (404, b"abcde".as_slice())
        );
    }

    #[test]
    fn a_body_cut_short_is_an_error_and_a_head_request_has_none() {
        let short = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi";
        assert!(read_response(&mut BufReader::new(short.as_slice()), "GET").is_err());
        let head = read_response(&mut BufReader::new(short.as_slice()), "HEAD")
            .unwrap()
            .unwrap();
        assert!(head.body.is_empty());
    }

    #[test]
    fn a_request_goes_out_untouched() {
        let request = Request::new("PUT", "/eureka//apps/A%2Fb?x=%zz").header("X-Odd", "1");
        let bytes = request.to_bytes("h:1");
        assert_eq!(
            String::from_utf8(bytes).unwrap(),
            "PUT /eureka//apps/A%2Fb?x=%zz HTTP/1.1\r\nHost: h:1\r\nX-Odd: 1\r\nContent-Length: 0\r\n\r\n"
        );
    }
}
