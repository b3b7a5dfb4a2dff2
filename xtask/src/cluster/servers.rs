//! Server processes: how each kind is built, started, asked and ended.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::conformance::http::poll;
use crate::conformance::target::Target;
use crate::stopwatch::Stopwatch;

const BUILD_MAX: Duration = Duration::from_secs(20 * 60);
const START_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(30);

/// Whose Java server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Java {
    Spring,
    Netflix,
}

impl Java {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Spring => "spring",
            Self::Netflix => "netflix",
        }
    }

    /// Where its API is.
    const fn path(self) -> &'static str {
        match self {
            Self::Spring => "/eureka",
            Self::Netflix => "/eureka/v2",
        }
    }
}

/// Where servers are built and run.
pub(crate) struct Workshop {
    program: PathBuf,
    root: PathBuf,
}

impl Workshop {
    pub(crate) fn open(program: &Path, root: &Path) -> Result<Self> {
        let program = program
            .canonicalize()
            .with_context(|| format!("no server at {}: build it first", program.display()))?;
        fs::create_dir_all(root.join("logs")).with_context(|| root.display().to_string())?;
        Ok(Self {
            program,
            root: root.canonicalize()?,
        })
    }

    /// Builds a Java server, if that has not been done.
    pub(crate) fn build(&self, java: Java) -> Result<()> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("cluster")
            .join(java.name());
        let folder = self.folder(java);
        crate::conformance::drivers::copy_changed(&sources, &folder)?;
        let command = ["mvn", "-q", "-B", "-DskipTests", "-f", "pom.xml", "package"].map(str::to_owned);
        let log = self.log(&format!("{}-build", java.name()));
        let stopwatch = Stopwatch::start();
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(File::create(&log)?)
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start mvn")?;
        while stopwatch.elapsed() < BUILD_MAX {
            match child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("building {} failed: {status}, see {}", java.name(), log.display()),
                None => std::thread::sleep(Duration::from_millis(100)),
            }
        }
        child.kill()?;
        bail!("building {} takes too long, see {}", java.name(), log.display())
    }

    /// A server of ours at `place`, not started yet.
    pub(crate) fn ours(&self, place: &Place, peers: &[String], settings: &[&str]) -> Server {
        let mut arguments = vec![
            "serve".to_owned(),
            "--listen".to_owned(),
            place.address.to_string(),
        ];
        for peer in peers {
            arguments.extend(["--peer".to_owned(), peer.clone()]);
        }
        let hostname = format!("server.hostname={}", place.address.ip());
        // Whoever compiles beside it takes the processors: that is no reason to shed.
        for setting in [&*hostname, "limits.lag=1m"].iter().chain(settings) {
            arguments.extend(["--set".to_owned(), (*setting).to_owned()]);
        }
        self.server(place, "/eureka", self.program.clone(), arguments)
    }

    /// A Java server at `place` that registers itself with its peers and fetches from them, not started yet.
    pub(super) fn java(&self, java: Java, place: &Place, peers: &[String], settings: &[String]) -> Server {
        // Many of them run side by side, and none of them for long.
        let small = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
        self.java_with(&small, java, place, peers, settings)
    }

    /// The same with options of the virtual machine.
    pub(crate) fn java_with(
        &self,
        options: &[&str],
        java: Java,
        place: &Place,
        peers: &[String],
        settings: &[String],
    ) -> Server {
        let mut arguments: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
        let folder = self.folder(java);
        let (ip, port, peers) = (place.address.ip(), place.address.port(), peers.join(","));
        match java {
            Java::Spring => {
                let jar = folder.join("target/eureka-server.jar").display().to_string();
                arguments.extend(["-jar".to_owned(), jar]);
                arguments.extend([
                    format!("--server.address={ip}"),
                    format!("--server.port={port}"),
                    format!("--eureka.instance.hostname={ip}"),
                    format!("--eureka.instance.ip-address={ip}"),
                    format!("--eureka.instance.instance-id=spring:{port}"),
                    format!("--eureka.client.service-url.defaultZone={peers}"),
                ]);
                arguments.extend(settings.iter().map(|setting| format!("--{setting}")));
            }
            Java::Netflix => {
                let folders = [folder.join("webapp"), self.root.join(format!("tomcat-{port}"))];
                let jars = format!("{0}/target/netflix-server.jar:{0}/target/lib/*", folder.display());
                for package in ["util", "lang", "text"] {
                    arguments.push(format!("--add-opens=java.base/java.{package}=ALL-UNNAMED"));
                }
                arguments.extend(["-Deureka.server.props=none".to_owned(), "-cp".to_owned(), jars]);
                arguments.extend(["kit.NetflixServer".to_owned(), ip.to_string(), port.to_string()]);
                arguments.extend(folders.map(|folder| folder.display().to_string()));
                arguments.extend([
                    format!("eureka.hostname={ip}"),
                    format!("eureka.port={port}"),
                    format!("eureka.serviceUrl.default={peers}"),
                    format!("eureka.serviceUrl.defaultZone={peers}"),
                ]);
                arguments.extend(settings.iter().cloned());
            }
        }
        self.server(place, java.path(), PathBuf::from("java"), arguments)
    }

    fn server(&self, place: &Place, path: &'static str, program: PathBuf, arguments: Vec<String>) -> Server {
        Server {
            name: place.name,
            address: place.address,
            path,
            program,
            arguments,
            log: self.log(place.name),
            process: None,
        }
    }

    /// The program of this project.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Where the clients of the conformance kit are installed; beside its own, so that nothing is built twice.
    pub(super) fn folder_of_clients(&self) -> PathBuf {
        self.root.with_file_name("conformance")
    }

    fn folder(&self, java: Java) -> PathBuf {
        self.root.join(java.name())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.root.join("logs").join(format!("{name}.log"))
    }
}

/// A name and a loopback address with a free port.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(super) name: &'static str,
    pub(crate) address: SocketAddr,
}

impl Place {
    /// `host` is the last byte of the loopback address.
    pub(crate) fn new(name: &'static str, host: u8) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 0, host), 0))?;
        Ok(Self {
            name,
            address: listener.local_addr()?,
        })
    }

    /// The URL of an API there.
    pub(crate) fn url(&self, java: Option<Java>) -> String {
        format!("http://{}{}/", self.address, java.map_or("/eureka", Java::path))
    }
}

/// One server; dropping it ends the process.
pub(crate) struct Server {
    pub(super) name: &'static str,
    pub(super) address: SocketAddr,
    path: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    process: Option<Child>,
}

impl Server {
    /// Starts the process; does not wait for it.
    pub(crate) fn spawn(&mut self) -> Result<()> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let child = self
            .command()
            .current_dir(std::env::temp_dir())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        self.process = Some(child);
        Ok(())
    }

    /// What starts it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }

    /// Waits until somebody listens.
    pub(super) fn listening(&mut self) -> Result<()> {
        let stopwatch = Stopwatch::start();
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = self
                .process
                .as_mut()
                .and_then(|child| child.try_wait().ok().flatten())
            {
                bail!("{} ended: {status}, see {}", self.name, self.log.display());
            }
            if stopwatch.elapsed() > START_MAX {
                bail!("{} does not listen, see {}", self.name, self.log.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Waits until it answers a list with 200.
    pub(crate) fn ready(&mut self) -> Result<()> {
        self.listening()?;
        let target = self.target();
        let listed = poll(START_MAX, || match target.get("/apps") {
            Ok(answer) if answer.status == 200 => Ok(()),
            Ok(answer) => Err(format!("GET /apps: {}", answer.status)),
            Err(error) => Err(error.to_string()),
        });
        listed.map_err(|why| anyhow::anyhow!("{}: {why}, see {}", self.name, self.log.display()))
    }

    /// Its API.
    pub(super) fn target(&self) -> Target {
        Target::parse(&format!("http://{}{}", self.address, self.path))
            .expect("the address of a server is one")
    }

    /// The number of its process.
    pub(super) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Child::id)
    }

    /// Sends it a signal, such as `STOP`.
    pub(super) fn signal(&self, signal: &str) -> Result<()> {
        let Some(pid) = self.pid() else {
            bail!("{} does not run", self.name)
        };
        let status = Command::new("kill")
            .args([&format!("-{signal}"), &pid.to_string()])
            .status()?;
        if !status.success() {
            bail!("{} could not be sent {signal}", self.name);
        }
        Ok(())
    }

    /// Ends it at once, as a power cut would.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.process.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Asks it to end and waits; `true` if it exited with 0 (Java's servers end with 143).
    pub(super) fn stop(&mut self) -> Result<bool> {
        self.signal("TERM")?;
        let Some(mut child) = self.process.take() else {
            return Ok(false);
        };
        let stopwatch = Stopwatch::start();
        while stopwatch.elapsed() < STOP_MAX {
            if let Some(status) = child.try_wait()? {
                return Ok(status.success());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill()?;
        child.wait()?;
        Ok(false)
    }

    /// Resident memory in bytes.
    pub(super) fn memory(&self) -> Option<u64> {
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.pid()?)).ok()?;
        let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
