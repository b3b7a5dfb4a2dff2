//! A proxy that answers for a server, and may answer otherwise than that would.

use std::io::{self, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

use super::http::{self, Request, Response};

/// Listens on a port of its own until dropped. Each connection serves one request.
pub(crate) struct Faulty {
    /// `127.0.0.1:port`.
    pub(crate) address: String,
    closed: Arc<AtomicBool>,
}

impl Faulty {
    /// Starts a proxy; without an answer the connection is closed.
    pub(crate) fn start(
        answer: impl Fn(Request) -> Option<Response> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let closed = Arc::new(AtomicBool::new(false));
        let (flag, answer) = (Arc::clone(&closed), Arc::new(answer));
        thread::spawn(move || {
            for client in listener.incoming() {
                if flag.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(client) = client else { continue };
                let answer = Arc::clone(&answer);
                thread::spawn(move || serve(&client, &*answer));
            }
        });
        Ok(Self { address, closed })
    }
}

impl Drop for Faulty {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // Wakes the accepting thread; if that fails, the thread ends with the process.
        drop(TcpStream::connect(&self.address));
    }
}

/// Serves one request; a connection that breaks is seen by whoever asks.
fn serve(client: &TcpStream, answer: &(impl Fn(Request) -> Option<Response> + ?Sized)) {
    let Ok(Some(request)) = http::read_request(&mut BufReader::new(client), |_| ()) else {
        return;
    };
    if let Some(response) = answer(request) {
        let mut writer = client;
        let _ = writer.write_all(&response.to_bytes());
    }
    let _ = client.shutdown(Shutdown::Both);
}

/// Changes a JSON answer; leaves any other alone.
pub(crate) fn edit(response: &mut Response, change: impl FnOnce(&mut Value)) {
    if let Ok(mut document) = response.json() {
        change(&mut document);
        response
            .headers
            .retain(|(name, _)| !name.eq_ignore_ascii_case("content-encoding"));
        response.body = document.to_string().into_bytes();
    }
}

/// The lists of instances in an `applications` document.
pub(crate) fn instance_lists(document: &mut Value) -> Vec<&mut Vec<Value>> {
    let application = document
        .pointer_mut("/applications/application")
        .and_then(Value::as_array_mut);
    let lists = application
        .into_iter()
        .flatten()
        .filter_map(|application| application["instance"].as_array_mut());
    lists.collect()
}
