//! A server that answers what a test says, byte by byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use eureka_client::Server;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// What to do about a request.
pub(super) enum Reply {
    /// Answer, and wait for the next one.
    Keep(Vec<u8>),
    /// Answer, and close.
    Close(Vec<u8>),
    /// Answer (or nothing), and keep the connection without another word.
    Hang(Vec<u8>),
}

type Respond = dyn Fn(usize, &str) -> Reply + Send + Sync;

/// Runs until it is dropped.
pub(super) struct Scripted {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    respond: Box<Respond>,
    seen: Mutex<Vec<String>>,
    connections: AtomicUsize,
}

impl Scripted {
    /// `respond` is given the number of the request, from 0, and its text.
    pub(super) async fn start(respond: impl Fn(usize, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            respond: Box::new(respond),
            seen: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        let accepting = Arc::clone(&state);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                accepting.connections.fetch_add(1, Ordering::Relaxed);
                connections.spawn(serve(Arc::clone(&accepting), stream));
            }
        });
        Self { address, state, task }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn server(&self, path: &str) -> Server {
        Server::parse(&format!("http://{}{path}", self.address)).unwrap()
    }

    /// The requests as they came.
    pub(super) fn seen(&self) -> Vec<String> {
        self.state.seen.lock().clone()
    }

    pub(super) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(state: Arc<State>, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    while let Some(text) = read(&mut stream).await {
        let number = {
            let mut seen = state.seen.lock();
            seen.push(text.clone());
            seen.len() - 1
        };
        let (bytes, then) = match (state.respond)(number, &text) {
            Reply::Keep(bytes) => (bytes, None),
            Reply::Close(bytes) => (bytes, Some(false)),
            Reply::Hang(bytes) => (bytes, Some(true)),
        };
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
        match then {
            None => {}
            Some(false) => return,
            Some(true) => std::future::pending().await,
        }
    }
}

/// One request with its body, or the end of the connection.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if body.len() >= length {
                return Some(text.into_owned());
            }
        }
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(length) => bytes.extend_from_slice(&part[..length]),
        }
    }
}
