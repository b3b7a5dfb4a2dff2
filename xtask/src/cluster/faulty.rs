//! A peer that answers nonsense, or nothing.

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;

use crate::conformance::http;

/// What it does with a batch. Everything else it answers as a Java server would: 404.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mood {
    /// This status and no body.
    Status(u16),
    /// 200 and a body that is no JSON.
    Garbage,
    /// 200 and no body.
    Empty,
    /// Takes the request and never answers.
    Silent,
    /// Takes no connection: those that wait fill its queue.
    Full,
}

/// The peer. Dropping it leaves it to the end of the process.
pub(super) struct Faulty {
    pub(super) address: SocketAddr,
    mood: Arc<Mutex<Mood>>,
    batches: Arc<AtomicU64>,
    /// Connections that fill the queue.
    waiting: Mutex<Vec<TcpStream>>,
}

impl Faulty {
    pub(super) fn new() -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let mood = Arc::new(Mutex::new(Mood::Status(500)));
        let batches = Arc::new(AtomicU64::new(0));
        let (moods, counted) = (Arc::clone(&mood), Arc::clone(&batches));
        thread::spawn(move || {
            loop {
                if *moods.lock() == Mood::Full {
                    thread::park_timeout(Duration::from_millis(50));
                } else if let Ok((stream, _)) = listener.accept() {
                    let (mood, batches) = (Arc::clone(&moods), Arc::clone(&counted));
                    thread::spawn(move || serve(&stream, &mood, &batches));
                }
            }
        });
        Ok(Self {
            address,
            mood,
            batches,
            waiting: Mutex::default(),
        })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/eureka/", self.address)
    }

    /// Changes its mood. A full queue is filled here.
    pub(super) fn be(&self, mood: Mood) {
        *self.mood.lock() = mood;
        let mut waiting = self.waiting.lock();
        waiting.clear();
        if mood == Mood::Full {
            // It stands in accept and takes one more; then connections pile up until the system lets none in.
            for _ in 0..2_000 {
                match TcpStream::connect_timeout(&self.address, Duration::from_millis(200)) {
                    Ok(stream) => waiting.push(stream),
                    Err(_) => break,
                }
            }
        }
    }

    /// Batches it has received.
    pub(super) fn batches(&self) -> u64 {
        self.batches.load(Ordering::Relaxed)
    }
}

fn serve(stream: &TcpStream, mood: &Mutex<Mood>, batches: &AtomicU64) {
    let mut reader = BufReader::new(stream);
    while let Ok(Some(request)) = http::read_request(&mut reader, |_| ()) {
        let mut answer: &[u8] = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        let text;
        if request.target.contains("peerreplication") {
            batches.fetch_add(1, Ordering::Relaxed);
            text = match *mood.lock() {
                Mood::Status(status) => format!("HTTP/1.1 {status} -\r\nContent-Length: 0\r\n\r\n"),
                Mood::Garbage => {
                    "HTTP/1.1 200 -\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n<garbage>"
                        .to_owned()
                }
                Mood::Empty => "HTTP/1.1 200 -\r\nContent-Length: 0\r\n\r\n".to_owned(),
                Mood::Silent | Mood::Full => String::new(),
            };
            answer = text.as_bytes();
        }
        let mut stream = stream;
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}
