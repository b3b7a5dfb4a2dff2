//! Registrations that carry a number, and when each was sent.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use memchr::memmem;

use super::FLEET;
use crate::bench::workload::registration;
use crate::conformance::http::read_response;
use crate::stopwatch::Stopwatch;

const MARK: &[u8] = b"mark-";
const DIGITS: usize = 8;
/// Spreads consecutive changes over the applications; has no factor in common with the number of instances.
const STEP: usize = 7_919;

/// When each change was sent, in microseconds since these marks were made.
pub(in crate::bench) struct Marks {
    stopwatch: Stopwatch,
    sent: Vec<AtomicU32>,
}

impl Marks {
    pub(in crate::bench) fn new(changes: u32) -> Self {
        Self {
            stopwatch: Stopwatch::start(),
            sent: (0..changes).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// How many changes there will be.
    pub(in crate::bench) fn count(&self) -> u32 {
        self.sent.len() as u32
    }

    /// Microseconds since a change was sent.
    pub(in crate::bench) fn delay(&self, number: u32) -> u32 {
        let sent = self.sent[number as usize].load(Ordering::Acquire);
        self.now().saturating_sub(sent)
    }

    fn now(&self) -> u32 {
        self.stopwatch.elapsed().as_micros() as u32
    }
}

/// The number of the first change that is marked in these bytes.
pub(in crate::bench) fn find(bytes: &[u8]) -> Option<u32> {
    let start = memmem::find(bytes, MARK)? + MARK.len();
    std::str::from_utf8(bytes.get(start..start + DIGITS)?)
        .ok()?
        .parse()
        .ok()
}

/// A connection that registers one changed instance after the other.
pub(in crate::bench) struct Sender {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Sender {
    pub(in crate::bench) fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            answers: BufReader::new(stream.try_clone()?),
            stream,
        })
    }

    /// Sends all marked changes at their times.
    pub(in crate::bench) fn send_all(mut self, marks: &Marks, rate: u32) -> Result<()> {
        let stopwatch = Stopwatch::start();
        for number in 0..marks.count() {
            let request = request(number);
            let due = Duration::from_secs(1) / rate * number;
            std::thread::sleep(due.saturating_sub(stopwatch.elapsed()));
            marks.sent[number as usize].store(marks.now(), Ordering::Release);
            self.stream.write_all(&request)?;
            self.taken()?;
        }
        Ok(())
    }

    /// Sends changes with these numbers together.
    pub(in crate::bench) fn send(&mut self, numbers: std::ops::Range<u32>) -> Result<()> {
        let requests: Vec<u8> = numbers.clone().flat_map(request).collect();
        self.stream.write_all(&requests)?;
        numbers.into_iter().try_for_each(|_| self.taken())
    }

    fn taken(&mut self) -> Result<()> {
        let answer = read_response(&mut self.answers, "POST")?.context("the server closed the connection")?;
        ensure!(answer.status == 204, "registration: {}", answer.status);
        Ok(())
    }
}

fn request(number: u32) -> Vec<u8> {
    let instance = number as usize * STEP % FLEET.instances;
    let application = instance % FLEET.applications;
    let mark = format!(r#","mark":"mark-{number:08}""#);
    let body = registration(application, instance, u64::from(number) + 1, &mark);
    let length = body.len();
    let head = format!(
        "POST /eureka/apps/APP-{application} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    [head, body].concat().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_in_whatever_carries_it() {
        assert_eq!(find(&request(1_234)), Some(1_234));
        assert_eq!(find(b"\x0a\x04mark\x12\x0dmark-00000007\x1a"), Some(7));
        assert_eq!(find(b"mark-0000"), None);
        assert_eq!(find(b"metadata"), None);
    }
}
