//! A server as it would be with a wrong clock: a proxy before it changes the times in its answers.

use std::io::{BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::conformance::http;

const PATIENCE: Duration = Duration::from_secs(10);

/// The proxy; it lives to the end of the process.
pub(super) struct Skewed {
    address: SocketAddr,
}

impl Skewed {
    /// A proxy whose answers say that it is the year 2001.
    pub(super) fn before(server: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || pass(&stream, server));
            }
        });
        Ok(Self { address })
    }

    /// Where it is, with the path of Eureka's API behind it.
    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

fn pass(mut stream: &TcpStream, server: SocketAddr) {
    let request = http::read_request(&mut BufReader::new(stream), |_| ());
    let Ok(Some(request)) = request else { return };
    let Ok(mut answer) = http::exchange(&server.to_string(), &request, PATIENCE) else {
        return;
    };
    for (name, value) in &mut answer.headers {
        if name.eq_ignore_ascii_case("date") {
            "Mon, 01 Jan 2001 00:00:00 GMT".clone_into(value);
        }
    }
    // The client may have gone.
    drop(stream.write_all(&answer.to_bytes()));
}
