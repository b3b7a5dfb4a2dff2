//! A recording proxy: passes every byte on at once and writes down the exchanges it sees.

use std::io::{self, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::http::{self, Request, Response};

/// Listens on a port of its own until dropped.
#[derive(Debug)]
pub(crate) struct Tee {
    /// `127.0.0.1:port`.
    pub(crate) address: String,
    log: Log,
    closed: Arc<AtomicBool>,
}

/// A request that passed, with its answer once that has passed too.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) request: Request,
    pub(crate) response: Option<Response>,
}

type Log = Arc<Mutex<Vec<Exchange>>>;

impl Tee {
    /// Starts a proxy before `upstream` (`host:port`).
    pub(crate) fn start(upstream: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let log = Log::default();
        let closed = Arc::new(AtomicBool::new(false));
        let (upstream, kept, flag) = (upstream.to_owned(), Arc::clone(&log), Arc::clone(&closed));
        thread::spawn(move || {
            for client in listener.incoming() {
                if flag.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(client) = client else { continue };
                let (upstream, log) = (upstream.clone(), Arc::clone(&kept));
                // A connection that fails ends; the client sees that and copes as it does.
                thread::spawn(move || drop(relay(&client, &upstream, &log)));
            }
        });
        Ok(Self { address, log, closed })
    }

    /// How many answered exchanges fit.
    pub(crate) fn count(&self, fits: impl Fn(&Request, &Response) -> bool) -> usize {
        let log = self.log.lock();
        let fitting = |exchange: &&Exchange| {
            exchange
                .response
                .as_ref()
                .is_some_and(|response| fits(&exchange.request, response))
        };
        log.iter().filter(fitting).count()
    }

    /// Everything that passed, in the order of the requests.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.log.lock().clone()
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Relaxed);
        // Wakes the accepting thread; if that fails, the thread ends with the process.
        drop(TcpStream::connect(&self.address));
    }
}

fn relay(client: &TcpStream, upstream: &str, log: &Log) -> io::Result<()> {
    let hour = Duration::from_secs(3600);
    let server = http::connect(upstream, hour).map_err(|error| io::Error::other(error.to_string()))?;
    client.set_nodelay(true)?;
    let (announce, announced) = mpsc::channel();
    let (from, to, requests) = (client.try_clone()?, server.try_clone()?, Arc::clone(log));
    let upward = thread::spawn(move || {
        let mut reader = BufReader::new(Forwarding { from: &from, to: &to });
        while let Ok(Some(_)) = record_request(&mut reader, &requests, &announce) {}
        // What is no HTTP passes unrecorded.
        let _ = io::copy(&mut reader, &mut io::sink());
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut reader = BufReader::new(Forwarding {
        from: &server,
        to: client,
    });
    // Bytes of an answer arrive only after its request was announced, so reading first cannot block it.
    while fill(&mut reader) {
        let Ok((index, method)) = announced.recv() else {
            break;
        };
        let Ok(Some(response)) = http::read_response(&mut reader, &method) else {
            break;
        };
        if let Some(exchange) = log.lock().get_mut::<usize>(index) {
            exchange.response = Some(response);
        }
    }
    let _ = io::copy(&mut reader, &mut io::sink());
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    let _ = upward.join();
    Ok(())
}

fn record_request(
    reader: &mut impl io::BufRead,
    log: &Log,
    announce: &mpsc::Sender<(usize, String)>,
) -> Result<Option<()>, http::HttpError> {
    let mut index = 0;
    let request = http::read_request(reader, |head| {
        let mut log = log.lock();
        index = log.len();
        log.push(Exchange {
            request: head.clone(),
            response: None,
        });
        // The other half may be gone already; then nobody waits for this.
        let _ = announce.send((index, head.method.clone()));
    })?;
    let Some(request) = request else { return Ok(None) };
    if let Some(exchange) = log.lock().get_mut(index) {
        exchange.request = request;
    }
    Ok(Some(()))
}

/// Whether more bytes came before the end of the connection.
fn fill(reader: &mut impl io::BufRead) -> bool {
    reader.fill_buf().is_ok_and(|bytes| !bytes.is_empty())
}

/// Reads from one side and writes what it read to the other before anybody looks at it.
struct Forwarding<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
}

impl Read for Forwarding<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(buffer)?;
        self.to.write_all(&buffer[..count])?;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufRead;

    #[test]
    fn exchanges_pass_unchanged_and_are_written_down() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = server.local_addr().unwrap().to_string();
        let seen = thread::spawn(move || {
            let (stream, _) = server.accept().unwrap();
            let mut reader = BufReader::new(&stream);
            let mut lines = Vec::new();
            for _ in 0..2 {
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    lines.push(line.clone());
                    if line == "\r\n" {
                        break;
                    }
                }
                (&stream)
                    .write_all(b"HTTP/1.1 404 \r\nX-Odd:1\r\ncontent-length: 3\r\n\r\nabc")
                    .unwrap();
            }
            lines.concat()
        });
        let tee = Tee::start(&upstream).unwrap();
        let mut stream = TcpStream::connect(&tee.address).unwrap();
        // Bytes that never come fail the test, they do not hang it.
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let sent = "put /a HTTP/1.1\r\nhOST: x\r\n\r\nGET /b HTTP/1.1\r\n\r\n";
        stream.write_all(sent.as_bytes()).unwrap();
        let expected = b"HTTP/1.1 404 \r\nX-Odd:1\r\ncontent-length: 3\r\n\r\nabc".repeat(2);
        let mut got = vec![0; expected.len()];
        stream.read_exact(&mut got).unwrap();
        assert_eq!(got, expected);
        assert_eq!(seen.join().unwrap(), sent);
        drop(stream);
        let counted = http::poll(Duration::from_secs(5), || {
            let count = tee.count(|_, response| response.status == 404 && response.body == b"abc");
            if count == 2 {
                Ok(())
            } else {
                Err(format!("{count} exchanges"))
            }
        });
        counted.unwrap();
        assert_eq!(tee.exchanges()[1].request.target, "/b");
    }
}
