//! A connection that is kept and carries many requests at a time, for load.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::conformance::http::{self, Response};
use crate::conformance::target::Instance;

const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// One connection. Requests go out together, answers are read in their order.
pub(super) struct Pipeline {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    out: Vec<u8>,
    waiting: usize,
}

impl Pipeline {
    pub(super) fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| address.to_string())?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        Ok(Self {
            reader: BufReader::new(stream.try_clone()?),
            stream,
            out: Vec::new(),
            waiting: 0,
        })
    }

    pub(super) fn register(&mut self, instance: &Instance) {
        let body = instance.to_json().to_string();
        self.push("POST", &format!("/eureka/apps/{}", instance.app), &body);
    }

    pub(super) fn renew(&mut self, app: &str, id: &str) {
        self.push("PUT", &format!("/eureka/apps/{app}/{id}"), "");
    }

    pub(super) fn cancel(&mut self, app: &str, id: &str) {
        self.push("DELETE", &format!("/eureka/apps/{app}/{id}"), "");
    }

    pub(super) fn list(&mut self) {
        self.push("GET", "/eureka/apps", "");
    }

    fn push(&mut self, method: &str, path: &str, body: &str) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: kit\r\nAccept: application/json\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.out.extend_from_slice(head.as_bytes());
        self.waiting += 1;
    }

    /// Sends what was pushed and reads all answers; those that are neither 2xx nor 404 end it.
    pub(super) fn exchange(&mut self) -> Result<Option<Response>> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        let mut last = None;
        for _ in 0..std::mem::take(&mut self.waiting) {
            let answer = http::read_response(&mut self.reader, "GET")?;
            let Some(answer) = answer else {
                bail!("the server closed the connection")
            };
            if !(200..300).contains(&answer.status) && answer.status != 404 {
                bail!("answered {}", answer.status);
            }
            last = Some(answer);
        }
        Ok(last)
    }
}
