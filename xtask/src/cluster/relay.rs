//! One direction of one link: a relay between a server and its peer that can be cut.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;

const OPEN: u8 = 0;
const CUT: u8 = 1;

/// Forwards connections from its own port to another.
pub(super) struct Relay {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    to: Vec<SocketAddr>,
    connections: AtomicUsize,
    state: AtomicU8,
    streams: Mutex<Vec<TcpStream>>,
}

impl Relay {
    /// A relay to `to`, open.
    pub(super) fn new(to: SocketAddr) -> Result<Self> {
        Self::balancing(vec![to])
    }

    /// A relay that leads each connection to the next of several.
    pub(super) fn balancing(to: Vec<SocketAddr>) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            to,
            connections: AtomicUsize::new(0),
            state: AtomicU8::new(OPEN),
            streams: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&accepting);
                thread::spawn(move || shared.serve(&stream));
            }
        });
        Ok(Self { address, shared })
    }

    /// The URL of the API behind it.
    pub(super) fn url(&self) -> String {
        format!("http://{}/eureka/", self.address)
    }

    /// Closes what is open and every new connection at once.
    pub(super) fn cut(&self) {
        self.shared.set(CUT);
    }

    /// Forwards again.
    pub(super) fn mend(&self) {
        self.shared.set(OPEN);
    }
}

impl Shared {
    /// Changes the state; connections from before do not outlive it.
    fn set(&self, state: u8) {
        self.state.store(state, Ordering::SeqCst);
        for stream in self.streams.lock().drain(..) {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    fn serve(self: &Arc<Self>, stream: &TcpStream) {
        match self.state.load(Ordering::SeqCst) {
            OPEN => {}
            _ => return,
        }
        let turn = self.connections.fetch_add(1, Ordering::Relaxed);
        let Ok(onward) = TcpStream::connect_timeout(&self.to[turn % self.to.len()], Duration::from_secs(5))
        else {
            return;
        };
        self.keep(stream);
        self.keep(&onward);
        thread::scope(|scope| {
            scope.spawn(|| self.copy(stream, &onward));
            self.copy(&onward, stream);
        });
    }

    fn keep(&self, stream: &TcpStream) {
        if let Ok(stream) = stream.try_clone() {
            self.streams.lock().push(stream);
        }
    }

    fn copy(&self, mut from: &TcpStream, mut to: &TcpStream) {
        let mut buffer = [0; 16 * 1024];
        loop {
            let count = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        // Both ends learn that this is over.
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}
