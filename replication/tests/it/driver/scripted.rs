//! A peer on a real socket that does exactly what a test wants, also what no HTTP library would do.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// No test waits longer for what must come.
const BOUND: Duration = Duration::from_secs(20);

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    /// Counted from zero.
    pub(crate) connection: usize,
    /// The first line without the version: `GET /eureka/apps/`.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// What the peer does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Writes this and waits for the next request.
    Keep(Vec<u8>),
    /// Writes this and closes.
    Close(Vec<u8>),
    /// Writes this and then nothing more, for ever.
    Hang(Vec<u8>),
    /// Writes this, then the second part again and again until nobody reads it.
    Flood(Vec<u8>, Vec<u8>),
}

/// The peer. It ends when it is dropped.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

type Script = Box<dyn FnMut(&Received) -> Reply + Send>;

struct Shared {
    script: Mutex<Script>,
    received: Mutex<Vec<Received>>,
    changed: Notify,
}

impl Received {
    /// The first header of this name, in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let (_, value) = headers.find(|(field, _)| field.eq_ignore_ascii_case(name))?;
        Some(value)
    }
}

impl Scripted {
    /// Listens on a port of the system's choice, or on this one.
    pub(crate) async fn start(script: impl FnMut(&Received) -> Reply + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        Self::on(listener, script)
    }

    pub(crate) fn on(listener: TcpListener, script: impl FnMut(&Received) -> Reply + Send + 'static) -> Self {
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            received: Mutex::default(),
            changed: Notify::new(),
        });
        let address = listener.local_addr().expect("it is bound");
        let task = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self {
            address,
            shared,
            task,
        }
    }

    /// All requests so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.shared.received.lock().clone()
    }

    /// Waits until the requests so far are as wanted.
    pub(crate) async fn until(&self, what: &str, wanted: impl Fn(&[Received]) -> bool) -> Vec<Received> {
        let come = timeout(BOUND, async {
            loop {
                let changed = self.shared.changed.notified();
                if wanted(&self.shared.received.lock()) {
                    return;
                }
                changed.await;
            }
        });
        if come.await.is_err() {
            panic!("{what} never came; what came: {:#?}", self.received());
        }
        self.received()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An answer with a JSON body.
pub(crate) fn json(status: u16, body: &str) -> Vec<u8> {
    answer(status, &[("content-type", "application/json")], body.as_bytes())
}

pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut answer = format!("HTTP/1.1 {status} So\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        answer += &format!("{name}: {value}\r\n");
    }
    answer += "\r\n";
    [answer.as_bytes(), body].concat()
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Connections end with the peer.
    let mut connections = tokio::task::JoinSet::new();
    for connection in 0.. {
        let Ok((stream, _)) = listener.accept().await else {
            return;
        };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            serve(connection, stream, &shared).await;
        });
    }
}

/// Until either side closes.
async fn serve(connection: usize, mut stream: TcpStream, shared: &Shared) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let received = read(connection, &mut stream, &mut buffer).await?;
        let reply = (shared.script.lock())(&received);
        shared.received.lock().push(received);
        shared.changed.notify_waiters();
        match reply {
            Reply::Keep(bytes) => stream.write_all(&bytes).await.ok()?,
            Reply::Close(bytes) => return stream.write_all(&bytes).await.ok(),
            Reply::Hang(bytes) => {
                stream.write_all(&bytes).await.ok()?;
                let mut ignored = [0; 64];
                while stream.read(&mut ignored).await.ok()? > 0 {}
                return None;
            }
            Reply::Flood(head, part) => {
                stream.write_all(&head).await.ok()?;
                loop {
                    stream.write_all(&part).await.ok()?;
                }
            }
        }
    }
}

/// Reads one request; bodies have a length, as this project's do.
async fn read(connection: usize, stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Received> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let target = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let headers: Vec<_> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    buffer.drain(..end + 4);
    let mut received = Received {
        connection,
        target,
        headers,
        body: Vec::new(),
    };
    let length: usize = received
        .header("content-length")
        .map_or(0, |length| length.parse().expect("a number"));
    while buffer.len() < length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    received.body = buffer.drain(..length).collect();
    Some(received)
}
