//! HTTP/1.1 by hand on one connection that is kept: cheap enough for load on the machine that is measured.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// One connection, with one request at a time.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
}

/// What is kept of an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) etag: Option<String>,
}

/// The head of an answer.
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<String>,
    etag: Option<String>,
    length: u64,
    is_chunked: bool,
}

impl Connection {
    /// `capacity` is the size of its buffer in bytes.
    pub(crate) async fn open(address: SocketAddr, capacity: usize) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream: BufReader::with_capacity(capacity, stream),
            line: Vec::new(),
        })
    }

    /// Sends a request and reads its answer to the end, body included.
    pub(crate) async fn exchange(&mut self, request: &[u8], body: Option<&mut Vec<u8>>) -> Result<Answer> {
        let head = self.ask(request).await?;
        let body_bytes = self.body(&head, body).await?;
        Ok(Answer {
            status: head.status,
            body_bytes,
            etag: head.etag,
        })
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Head> {
        self.stream.write_all(request).await?;
        self.read_line().await?;
        let status = std::str::from_utf8(self.line.get(9..12).context("status line")?)?.parse()?;
        let mut head = Head {
            status,
            retry_after: None,
            etag: None,
            length: 0,
            is_chunked: false,
        };
        loop {
            self.read_line().await?;
            if self.line == b"\r\n" {
                return Ok(head);
            }
            let colon = self
                .line
                .iter()
                .position(|byte| *byte == b':')
                .context("header")?;
            let (name, value) = (&self.line[..colon], self.line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                head.length = std::str::from_utf8(value)?.parse()?;
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                head.is_chunked = value.eq_ignore_ascii_case(b"chunked");
            } else if name.eq_ignore_ascii_case(b"etag") {
                head.etag = Some(String::from_utf8_lossy(value).into_owned());
            } else if name.eq_ignore_ascii_case(b"retry-after") {
                head.retry_after = Some(String::from_utf8_lossy(value).into_owned());
            }
        }
    }

    /// Reads the body behind a head to its end.
    pub(crate) async fn body(&mut self, head: &Head, mut body: Option<&mut Vec<u8>>) -> Result<u64> {
        if !head.is_chunked {
            self.read_body(head.length, body).await?;
            return Ok(head.length);
        }
        let mut body_bytes = 0;
        while let Some(length) = self.chunk(body.as_deref_mut()).await? {
            body_bytes += length;
        }
        Ok(body_bytes)
    }

    /// The next chunk of a chunked body, and its length; `None` at its end.
    pub(crate) async fn chunk(&mut self, body: Option<&mut Vec<u8>>) -> Result<Option<u64>> {
        self.read_line().await?;
        let length = u64::from_str_radix(std::str::from_utf8(self.line.trim_ascii())?, 16)?;
        self.read_body(length, body).await?;
        self.read_line().await?; // the line end after the chunk, or after the last one
        Ok((length > 0).then_some(length))
    }

    async fn read_line(&mut self) -> Result<()> {
        self.line.clear();
        self.stream.read_until(b'\n', &mut self.line).await?;
        ensure!(self.line.ends_with(b"\n"), "the connection was closed");
        Ok(())
    }

    async fn read_body(&mut self, mut length: u64, mut body: Option<&mut Vec<u8>>) -> Result<()> {
        while length > 0 {
            let bytes = self.stream.fill_buf().await?;
            ensure!(!bytes.is_empty(), "the connection was closed in a body");
            let part = bytes.len().min(length as usize);
            if let Some(body) = &mut body {
                body.extend_from_slice(&bytes[..part]);
            }
            self.stream.consume(part);
            length -= part as u64;
        }
        Ok(())
    }
}
