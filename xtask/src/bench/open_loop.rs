//! An open loop: requests leave at a fixed rate, however long the answers take, as those of many independent clients do.
//!
//! A closed loop sends less while the server stands still, and so hides that it did. Here every request has a moment at
//! which it is due, evenly spaced, and its latency counts from that moment, also if it had to wait for a connection.
//! One thread of its own with epoll, because a pause between two requests is shorter than what a runtime's timers know.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use super::delays::quantile;
use crate::stopwatch::Stopwatch;

/// Who has no answer so long after the last request left will have none.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Room for a good part of a long answer.
const BUFFER: usize = 256 * 1024;
/// The kernel may wake a thread so much later than it asked, in nanoseconds; by default that is 50 us.
const SLACK: Option<NonZeroU64> = NonZeroU64::new(1_000);
/// What a chunked body ends with.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// When requests are due, and over what.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) address: SocketAddr,
    /// Requests a second.
    pub(super) rate: f64,
    pub(super) duration: Duration,
    /// At most so many requests are under way; further ones wait, and their clocks run.
    pub(super) connections: usize,
}

/// What came back.
#[derive(Debug, Default)]
pub(super) struct Timed {
    /// Answers that were no 2xx.
    pub(super) refused: u64,
    /// The longest that a request left after it was due, in microseconds: if no connection was free the server was
    /// slow, else this program was.
    pub(super) late: u32,
    /// In microseconds, sorted once all are there.
    latencies: Vec<u32>,
}

impl Timed {
    pub(super) fn count(&self) -> u64 {
        self.latencies.len() as u64
    }

    /// The latency in microseconds that this share of the answers did not exceed.
    pub(super) fn quantile(&self, share: f64) -> u32 {
        quantile(&self.latencies, share)
    }

    pub(super) fn longest(&self) -> u32 {
        self.quantile(1.0)
    }

    /// Takes in what came back from another run.
    pub(super) fn add(&mut self, other: Self) {
        self.refused += other.refused;
        self.late = self.late.max(other.late);
        self.latencies.extend(other.latencies);
        self.latencies.sort_unstable();
    }
}

/// Sends the requests that `write` appends, given the number of each, and waits for their answers. It blocks, and sends no
/// more once `done` is set.
pub(super) fn run(
    schedule: &Schedule,
    done: &AtomicBool,
    write: impl FnMut(usize, &mut Vec<u8>),
) -> Result<Timed> {
    // Without it requests leave up to 50 us late, to whatever server.
    rustix::thread::set_current_timer_slack(SLACK)?;
    let mut open = Open::new(schedule, write)?;
    open.run(done)?;
    open.timed.latencies.sort_unstable();
    Ok(open.timed)
}

struct Open<W> {
    epoll: OwnedFd,
    lines: Vec<Line>,
    /// Lines without a request, the one that rested longest first.
    idle: VecDeque<usize>,
    rate: f64,
    total: usize,
    next: usize,
    /// When the last request left.
    left: Duration,
    write: W,
    stopwatch: Stopwatch,
    buffer: Vec<u8>,
    timed: Timed,
}

/// One connection, with one request at a time.
struct Line {
    stream: TcpStream,
    request: Vec<u8>,
    sent: usize,
    due: Duration,
    answer: Answer,
}

/// How much of an answer is there.
#[derive(Default)]
struct Answer {
    /// The head as far as it came, empty once it was read.
    head: Vec<u8>,
    status: Option<u16>,
    body: Body,
}

enum Body {
    Counted(usize),
    /// The last bytes that came, as many as say that it is the end.
    Chunked(Vec<u8>),
}

impl Default for Body {
    fn default() -> Self {
        Self::Counted(0)
    }
}

impl<W: FnMut(usize, &mut Vec<u8>)> Open<W> {
    fn new(schedule: &Schedule, write: W) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut lines = Vec::new();
        for number in 0..schedule.connections {
            let stream = TcpStream::connect(schedule.address)?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
            lines.push(Line {
                stream,
                request: Vec::new(),
                sent: 0,
                due: Duration::ZERO,
                answer: Answer::default(),
            });
        }
        let total = (schedule.rate * schedule.duration.as_secs_f64()) as usize;
        Ok(Self {
            epoll,
            idle: (0..lines.len()).collect(),
            lines,
            rate: schedule.rate,
            total,
            next: 0,
            left: Duration::ZERO,
            write,
            stopwatch: Stopwatch::start(),
            buffer: vec![0; BUFFER],
            timed: Timed {
                latencies: Vec::with_capacity(total),
                ..Timed::default()
            },
        })
    }

    fn run(&mut self, done: &AtomicBool) -> Result<()> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(self.lines.len());
        while self.timed.latencies.len() < self.total {
            if done.load(Ordering::Relaxed) {
                self.total = self.next;
            }
            self.send_due()?;
            let wait = self.wait();
            ensure!(
                self.stopwatch.elapsed() < self.left.max(self.due(self.total)) + ANSWER_MAX,
                "{} of {} requests have no answer",
                self.total - self.timed.latencies.len(),
                self.total
            );
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => bail!(error),
            }
            for event in events.drain(..) {
                self.go_on(event.data.u64() as usize)?;
            }
        }
        Ok(())
    }

    fn due(&self, number: usize) -> Duration {
        Duration::from_secs_f64(number as f64 / self.rate)
    }

    /// Sends what is due as far as there are connections for it.
    fn send_due(&mut self) -> Result<()> {
        while self.next < self.total {
            let (due, now) = (self.due(self.next), self.stopwatch.elapsed());
            if due > now {
                break;
            }
            let Some(idle) = self.idle.pop_front() else {
                break;
            };
            self.timed.late = self.timed.late.max(micros(now - due));
            self.left = now;
            let line = &mut self.lines[idle];
            line.request.clear();
            line.sent = 0;
            line.due = due;
            line.answer = Answer::default();
            (self.write)(self.next, &mut line.request);
            self.next += 1;
            self.push(idle)?;
        }
        Ok(())
    }

    /// Until the next request is due, or for a while if nobody could take it.
    fn wait(&self) -> Timespec {
        let pause = if self.next < self.total && !self.idle.is_empty() {
            self.due(self.next).saturating_sub(self.stopwatch.elapsed())
        } else {
            Duration::from_millis(100)
        };
        Timespec {
            tv_sec: pause.as_secs() as i64,
            tv_nsec: i64::from(pause.subsec_nanos()),
        }
    }

    /// Writes as much of a request as the socket takes.
    fn push(&mut self, number: usize) -> Result<()> {
        let line = &mut self.lines[number];
        let is_again = line.sent > 0;
        while line.sent < line.request.len() {
            match line.stream.write(&line.request[line.sent..]) {
                Ok(0) => bail!("the server takes nothing more"),
                Ok(length) => line.sent += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => bail!(error),
            }
        }
        let is_left = line.sent < line.request.len();
        if is_left != is_again {
            let mut interest = epoll::EventFlags::IN;
            interest.set(epoll::EventFlags::OUT, is_left);
            let data = epoll::EventData::new_u64(number as u64);
            epoll::modify(&self.epoll, &line.stream, data, interest)?;
        }
        Ok(())
    }

    /// Something happened to a connection.
    fn go_on(&mut self, number: usize) -> Result<()> {
        if self.lines[number].sent < self.lines[number].request.len() {
            self.push(number)?;
        }
        let line = &mut self.lines[number];
        loop {
            let length = match line.stream.read(&mut self.buffer) {
                Ok(0) => bail!("the server closed a connection"),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => bail!(error),
            };
            if let Some(status) = line.answer.take(&self.buffer[..length])? {
                let latency = self.stopwatch.elapsed().saturating_sub(line.due);
                self.timed.latencies.push(micros(latency));
                self.timed.refused += u64::from(!(200..300).contains(&status));
                self.idle.push_back(number);
                return Ok(());
            }
            if length < self.buffer.len() {
                return Ok(());
            }
        }
    }
}

impl Answer {
    /// Takes what arrived; the status once all of it is there.
    fn take(&mut self, bytes: &[u8]) -> Result<Option<u16>> {
        if let Some(status) = self.status {
            return Ok(self.body.take(bytes)?.then_some(status));
        }
        self.head.extend_from_slice(bytes);
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = head.parse(&self.head)? else {
            return Ok(None);
        };
        let status = head.code.context("no status")?;
        let value = |name: &str| {
            let found = head
                .headers
                .iter()
                .find(|header| header.name.eq_ignore_ascii_case(name));
            found.map(|header| header.value)
        };
        self.body = match (value("content-length"), value("transfer-encoding")) {
            (Some(length), _) => Body::Counted(std::str::from_utf8(length)?.parse()?),
            (None, Some(_)) => Body::Chunked(b"\r\n".to_vec()),
            (None, None) => Body::Counted(0),
        };
        self.status = Some(status);
        let head = std::mem::take(&mut self.head);
        Ok(self.body.take(&head[length..])?.then_some(status))
    }
}

impl Body {
    /// Takes a part of the body and says whether that was the end. Nothing comes after it: there is one request at a time.
    fn take(&mut self, bytes: &[u8]) -> Result<bool> {
        match self {
            Self::Counted(left) => {
                *left = left.checked_sub(bytes.len()).context("more than the head said")?;
                Ok(*left == 0)
            }
            Self::Chunked(end) => {
                end.extend_from_slice(&bytes[bytes.len().saturating_sub(LAST_CHUNK.len())..]);
                end.drain(..end.len().saturating_sub(LAST_CHUNK.len()));
                Ok(end == LAST_CHUNK)
            }
        }
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const ANSWERS: [&[u8]; 3] = [
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
    ];

    #[test]
    fn an_answer_is_complete_with_its_last_byte() {
        for (answer, status) in ANSWERS.into_iter().zip([200, 200, 404]) {
            for cut in 1..answer.len() {
                let mut taken = Answer::default();
                assert_eq!(taken.take(&answer[..cut]).unwrap(), None);
                assert_eq!(taken.take(&answer[cut..]).unwrap(), Some(status));
            }
        }
    }

    /// A server that answers the first request late makes those wait that are due meanwhile, and their clocks run.
    #[test]
    fn who_waits_for_a_connection_is_timed_from_when_it_was_due() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let schedule = Schedule {
            address: listener.local_addr().unwrap(),
            rate: 1_000.0,
            duration: Duration::from_millis(50),
            connections: 1,
        };
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 4];
            let mut first = true;
            while stream.read_exact(&mut request).is_ok() {
                if std::mem::take(&mut first) {
                    std::thread::park_timeout(Duration::from_millis(100));
                }
                stream.write_all(ANSWERS[0]).unwrap();
            }
        });
        let mut numbers = Vec::new();
        let timed = run(&schedule, &AtomicBool::new(false), |number, request| {
            numbers.push(number);
            request.extend_from_slice(b"next");
        });
        let timed = timed.unwrap();
        server.join().unwrap();
        assert_eq!(numbers, (0..50).collect::<Vec<_>>());
        assert_eq!((timed.count(), timed.refused), (50, 0));
        // The last one was due 49 ms after the start and left after 100 ms.
        assert!(timed.quantile(0.0) >= 40_000, "{timed:?}");
        assert!(timed.longest() >= 90_000, "{timed:?}");
    }
}
