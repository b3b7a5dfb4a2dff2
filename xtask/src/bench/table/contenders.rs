//! The servers that are compared: how each is found, started, and asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Row, nacos};
use crate::bench::subject::{Kind, Subject, release_directory};
use crate::bench::workload::{BATCH, Fleet, Operation};
use crate::bench::{limit, load, wrk};
use crate::cluster::servers::{Java, Place, Workshop};

/// The options of the virtual machine: it may take four times what it needs, and chooses everything else itself.
pub(super) const JAVA_OPTIONS: [&str; 1] = ["-Xmx4g"];
/// What differs from Spring's defaults: no peers, and changes leave the delta soon, so that a delta of a given size can be
/// measured.
const JAVA_SETTINGS: [&str; 4] = [
    "eureka.client.register-with-eureka=false",
    "eureka.client.fetch-registry=false",
    "eureka.server.retention-time-in-m-s-in-delta-queue=6000",
    "eureka.server.delta-retention-timer-interval-in-ms=2000",
];
/// What can be asked for besides: by default Tomcat closes a connection behind a hundred requests.
const JAVA_KEEPS_CONNECTIONS: &str = "server.tomcat.max-keep-alive-requests=-1";
/// Of `Kind::JavaFresh`.
pub(super) const JAVA_FRESH: &str = "eureka.server.use-read-only-response-cache=false";
/// As long as Java's.
const SETTINGS: [&str; 1] = ["registry.delta-retention=6s"];

/// How to start everybody.
pub(super) struct Programs {
    pub(super) eureka: PathBuf,
    /// Where requests and answers are kept.
    pub(super) folder: PathBuf,
    /// What the limit serves.
    files: Vec<PathBuf>,
    spring: Option<Workshop>,
    pub(super) java_settings: Vec<String>,
    nacos: Option<PathBuf>,
    /// Who is not there, and why.
    pub(super) absent: Vec<(Kind, String)>,
}

impl Programs {
    /// Finds those that are wanted, and builds Spring's server if that has not been done.
    pub(super) fn find(kinds: &[Kind], fleet: &Fleet, java_keeps_connections: bool) -> Result<Self> {
        let target = crate::root().join("target");
        let mut programs = Self {
            eureka: release_directory().join("eureka"),
            folder: target.join("bench"),
            files: Vec::new(),
            spring: None,
            java_settings: JAVA_SETTINGS
                .into_iter()
                .chain(java_keeps_connections.then_some(JAVA_KEEPS_CONNECTIONS))
                .map(str::to_owned)
                .collect(),
            nacos: None,
            absent: Vec::new(),
        };
        fs::create_dir_all(&programs.folder)?;
        if kinds.iter().any(|kind| kind.warms_up()) {
            let workshop = Workshop::open(&programs.eureka, &target.join("cluster"))?;
            match workshop.build(Java::Spring) {
                Ok(()) => programs.spring = Some(workshop),
                Err(error) => {
                    let why = format!("{error:#}");
                    programs
                        .absent
                        .extend([(Kind::Java, why.clone()), (Kind::JavaFresh, why)]);
                }
            }
        }
        if kinds.contains(&Kind::RNacos) {
            programs.nacos = nacos::find(&programs.folder);
            if programs.nacos.is_none() {
                programs.absent.push((Kind::RNacos, nacos::HOW.to_owned()));
            }
        }
        programs.files = programs.record(fleet)?;
        Ok(programs)
    }

    pub(super) fn has(&self, kind: Kind) -> bool {
        self.absent.iter().all(|(absent, _)| *absent != kind)
    }

    /// Starts a server without instances, and says how long it took to its first answer.
    pub(super) fn start(&self, kind: Kind) -> Result<(Subject, Duration)> {
        match kind {
            Kind::Eureka => Subject::server_until(&self.eureka, &SETTINGS.map(str::to_owned), "/eureka/apps"),
            Kind::Limit => Subject::timed_limit(&self.files),
            Kind::Java | Kind::JavaFresh => self.start_spring(kind),
            Kind::RNacos => nacos::start(self.nacos.as_deref().context("no r-nacos")?, &self.folder),
        }
    }

    fn start_spring(&self, kind: Kind) -> Result<(Subject, Duration)> {
        let workshop = self.spring.as_ref().context("no Spring server")?;
        let mut settings = self.java_settings.clone();
        if kind == Kind::JavaFresh {
            settings.push(JAVA_FRESH.to_owned());
        }
        let place = Place::new(kind.name(), 1)?;
        // It must name a peer; itself is none.
        let itself = [place.url(Some(Java::Spring))];
        let server = workshop.java_with(&JAVA_OPTIONS, Java::Spring, &place, &itself, &settings);
        Subject::start(
            kind.name(),
            [place.address; 2],
            &mut server.command(),
            "/eureka/apps",
        )
    }

    /// What the limit serves is what the server itself answers.
    fn record(&self, fleet: &Fleet) -> Result<Vec<PathBuf>> {
        let runtime = load::runtime()?;
        let (server, _) = self.start(Kind::Eureka)?;
        runtime.block_on(load::register_all(server.address, fleet))?;
        let mut files = Vec::new();
        for operation in limit::FILES {
            if operation == Operation::DeltaGzip {
                runtime.block_on(super::slices::changed_lately(server.address, fleet, 1))?;
            }
            let body = runtime.block_on(load::fetch(server.address, operation, fleet))?;
            ensure!(!body.is_empty(), "{operation:?}: an empty answer");
            files.push(self.folder.join(format!("{operation:?}")));
            fs::write(files.last().expect("one was pushed"), body)?;
        }
        Ok(files)
    }
}

/// A server with instances, whose turn it is again and again.
pub(super) struct Contender<'a> {
    pub(super) kind: Kind,
    pub(super) subject: Subject,
    pub(super) fleet: Fleet,
    /// What is measured of it.
    pub(super) rows: Vec<Row>,
    programs: &'a Programs,
    /// What all its instances registered with.
    pub(super) generation: u64,
}

impl<'a> Contender<'a> {
    /// Starts a server and registers everybody; it is stopped until its first turn.
    pub(super) fn new(programs: &'a Programs, kind: Kind, fleet: Fleet, rows: Vec<Row>) -> Result<Self> {
        let (subject, _) = programs.start(kind)?;
        let mut contender = Self {
            kind,
            subject,
            fleet,
            rows,
            programs,
            generation: 0,
        };
        contender.renew_registrations(0)?;
        Ok(contender)
    }

    /// Lets all instances register, so that what the server knows of them is known here.
    pub(super) fn renew_registrations(&mut self, generation: u64) -> Result<()> {
        let _turn = self.subject.turn()?;
        if self.kind != Kind::Limit {
            let requests = self.requests(Operation::Register, generation);
            let count = requests.len();
            let all = load::exchange_all(self.subject.address, requests, count, 16);
            load::runtime()?.block_on(all)?;
        }
        self.generation = generation;
        Ok(())
    }

    /// The requests of an operation in the API of this server.
    pub(super) fn requests(&self, operation: Operation, generation: u64) -> Vec<Vec<u8>> {
        if self.kind == Kind::RNacos {
            nacos::requests(operation, &self.fleet, generation)
        } else {
            operation.requests(&self.fleet, generation)
        }
    }

    /// The same as a file for wrk.
    pub(super) fn requests_file(&self, operation: Operation) -> Result<PathBuf> {
        // A registration's stamp is put in by the generator.
        let generation = if operation == Operation::Register {
            0
        } else {
            self.generation
        };
        let file = self.programs.folder.join(format!("requests-{operation:?}"));
        wrk::write_requests(&file, &self.requests(operation, generation))?;
        Ok(file)
    }
}

/// How many things one request asks for.
pub(super) fn items(operation: Operation) -> u64 {
    if operation == Operation::Batch {
        BATCH as u64
    } else {
        1
    }
}

/// The first line that a program says about itself.
pub(super) fn version(program: &Path, argument: &str) -> Option<String> {
    let output = Command::new(program).arg(argument).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&said);
    Some(text.lines().next()?.trim().to_owned())
}
