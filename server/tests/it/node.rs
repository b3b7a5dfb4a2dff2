//! A running server, and as much HTTP as is needed to see single bytes.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Nothing takes longer than this, or it is broken.
pub(crate) const BOUND: Duration = Duration::from_secs(20);

/// Time between two looks at what is waited for.
const PAUSE: Duration = Duration::from_millis(5);

/// The binary with nothing of the tester's environment, in an empty directory.
pub(crate) fn eureka(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_eureka"));
    command.args(arguments).env_clear().current_dir(empty_directory());
    command
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    eureka(arguments).output().expect("the binary starts")
}

pub(crate) fn empty_directory() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
    fs::create_dir_all(&path).expect("the target directory can be written");
    path
}

/// A server that is ready. It is killed when dropped.
pub(crate) struct Node {
    child: Child,
    pub(crate) address: SocketAddr,
    /// Where it serves gRPC, if it does.
    pub(crate) grpc: Option<SocketAddr>,
    /// What it said up to the line that tells where it listens.
    pub(crate) started: Vec<String>,
    lines: Receiver<String>,
}

impl Node {
    /// Starts a server on a free port with these keys set, and waits for its ready line.
    pub(crate) fn start(set: &[&str]) -> Self {
        let mut arguments = vec!["serve", "--listen", "127.0.0.1:0"];
        for pair in set {
            arguments.extend(["--set", pair]);
        }
        Self::spawn(&mut eureka(&arguments))
    }

    /// Starts a server with these arguments, and waits for its ready line.
    pub(crate) fn serve(arguments: &[&str]) -> Self {
        let mut all = vec!["serve"];
        all.extend(arguments);
        Self::spawn(&mut eureka(&all))
    }

    /// The same in a directory, where its `eureka.toml` may be.
    pub(crate) fn serve_in(directory: &Path, arguments: &[&str]) -> Self {
        let mut all = vec!["serve"];
        all.extend(arguments);
        Self::spawn(eureka(&all).current_dir(directory))
    }

    /// Starts a server that may open so many files, sockets included, and waits for its ready line.
    pub(crate) fn start_with_files(files: usize) -> Self {
        let binary = env!("CARGO_BIN_EXE_eureka");
        let script = format!("ulimit -n {files}; exec {binary} serve --listen 127.0.0.1:0");
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &script])
            .env_clear()
            .current_dir(empty_directory());
        Self::spawn(&mut shell)
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // Nobody listens any more when the test is over.
                drop(sender.send(line));
            }
        });
        let mut node = Self {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            grpc: None,
            started: Vec::new(),
            lines,
        };
        node.started = node.lines_until("ready http=");
        let ready = node.started.last().expect("it was waited for");
        let bound = |name: &str| {
            let (_, address) = ready.split_once(name)?;
            let address = address.split(['"', ' ']).next()?;
            Some(address.parse().expect("an address follows"))
        };
        let grpc = bound(" grpc=");
        node.address = bound("ready http=").expect("it was found by that");
        node.grpc = grpc;
        node
    }

    /// Waits for a log line that contains this.
    pub(crate) fn line(&self, text: &str) -> String {
        self.lines_until(text).pop().expect("the last one is it")
    }

    fn lines_until(&self, text: &str) -> Vec<String> {
        let mut seen = Vec::new();
        loop {
            let Ok(line) = self.lines.recv_timeout(BOUND) else {
                panic!("no line with {text:?} came, but {seen:#?}");
            };
            let is_it = line.contains(text);
            seen.push(line);
            if is_it {
                return seen;
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("process ids are small");
        kill_process(Pid::from_raw(pid).expect("and not zero"), signal).expect("it runs");
    }

    /// Waits for its end, by waiting for the end of its log.
    pub(crate) fn end(self) -> ExitStatus {
        self.end_with_log().0
    }

    /// The same, with what it said since lines were last asked for.
    pub(crate) fn end_with_log(mut self) -> (ExitStatus, Vec<String>) {
        let mut lines = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(BOUND) {
            lines.push(line);
        }
        (self.child.wait().expect("it was started"), lines)
    }

    /// Resident memory in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs on Linux");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .expect("it has memory");
        let kibibytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kibibytes * 1024
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::to(self.address)
    }

    /// One request on a connection of its own.
    pub(crate) fn ask(&self, method: &str, path: &str) -> Answer {
        self.send(method, path, "", "")
    }

    /// One request with header lines (each with its line end) and a body.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let mut connection = self.connect();
        connection.write(&request(
            method,
            path,
            &format!("connection: close\r\n{headers}"),
            body,
        ));
        connection.answer()
    }

    /// Registers an instance of this application and id.
    pub(crate) fn register(&self, app: &str, id: &str) -> Answer {
        self.send(
            "POST",
            &format!("/eureka/apps/{app}"),
            "content-type: application/json\r\n",
            &registration(app, id),
        )
    }

    /// Waits until `/metrics` shows this value.
    pub(crate) fn metric_becomes(&self, name: &str, value: f64) {
        let mut last = f64::NAN;
        for _ in 0..5_000 {
            last = self.metric(name);
            if last == value {
                return;
            }
        }
        panic!("{name} is {last}, not {value}");
    }

    /// One GET whose answer is JSON.
    pub(crate) fn json(&self, path: &str) -> serde_json::Value {
        let answer = self.send("GET", path, "accept: application/json\r\n", "");
        serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{path}: {error}: {answer:?}"))
    }

    /// The value of a line of `/metrics`.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.ask("GET", "/metrics").body;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .unwrap_or_else(|| panic!("no {name} in {text}"));
        line.parse().expect("a number")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Waits until something is so, asking again and again. Says what was there instead if it does not come.
pub(crate) fn until<T: std::fmt::Debug>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let (_keep, nothing) = channel::<()>();
    let mut last = String::new();
    for _ in 0..(BOUND.as_millis() / PAUSE.as_millis()) {
        match look() {
            Ok(found) => return found,
            Err(instead) => last = instead,
        }
        // Gives the processor to those who are waited for.
        let _ = nothing.recv_timeout(PAUSE);
    }
    panic!("{what}: not so, but {last}");
}

pub(crate) fn registration(app: &str, id: &str) -> String {
    format!(
        r#"{{"instance":{{"instanceId":"{id}","app":"{app}","hostName":"h","ipAddr":"10.0.0.1","status":"UP","port":{{"$":80,"@enabled":"true"}},"vipAddress":"v","dataCenterInfo":{{"@class":"com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo","name":"MyOwn"}},"lastDirtyTimestamp":"1000"}}}}"#
    )
}

/// The bytes of a request with header lines, each with its line end.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A connection that never waits longer than [`BOUND`].
pub(crate) struct Connection(pub(crate) BufReader<TcpStream>);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Connection {
    pub(crate) fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, BOUND).expect("somebody listens");
        stream.set_read_timeout(Some(BOUND)).expect("not zero");
        stream.set_write_timeout(Some(BOUND)).expect("not zero");
        Self(BufReader::new(stream))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("the node reads");
    }

    /// The next answer, read to its end.
    pub(crate) fn answer(&mut self) -> Answer {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.0.read_line(&mut head).expect("a head comes in time");
            assert_ne!(read, 0, "the connection ended after {head:?}");
        }
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map(|length| length.parse::<usize>().expect("a number"));
        let mut body = Vec::new();
        match length {
            Some(length) => self.piece(length, &mut body),
            None if head.contains("transfer-encoding: chunked") => self.chunks(&mut body),
            None => {}
        }
        Answer {
            status: status.expect("a status line"),
            head,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }

    fn chunks(&mut self, body: &mut Vec<u8>) {
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("a chunk comes in time");
            let length = usize::from_str_radix(line.trim(), 16).expect("a length");
            self.piece(length, body);
            self.piece(2, &mut Vec::new());
            if length == 0 {
                return;
            }
        }
    }

    fn piece(&mut self, length: usize, body: &mut Vec<u8>) {
        let mut piece = vec![0; length];
        self.0.read_exact(&mut piece).expect("a body comes in time");
        body.extend(piece);
    }

    /// Waits for the node to close the connection, and returns what came before.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Ok(_) => rest,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => rest,
            Err(error) => panic!("the connection stays open: {error}"),
        }
    }
}
