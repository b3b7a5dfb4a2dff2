//! Clusters with a planted fault: `eureka doctor` must name that fault, and no other.

mod java;
mod mixed;
mod ours;
mod skewed;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::servers::{Server, Workshop};
use crate::conformance::http::poll;
use crate::conformance::report::{Outcome, Report};
use crate::conformance::target::Instance;

/// Until a fault that was planted is what the doctor says: a replication, a lease that is late, an eviction.
const PATIENCE: Duration = Duration::from_secs(60);
const APP: &str = "KIT-DOCTOR";

/// Nodes of ours alone.
pub(super) fn ours(workshop: &Workshop, report: &Report) -> Result<()> {
    let doctor = Doctor::new("ours", workshop, report);
    ours::links(workshop, &doctor)?;
    ours::addresses(workshop, &doctor)?;
    ours::reads(workshop, &doctor)?;
    ours::leases(workshop, &doctor)
}

/// Two Spring servers, and what can be wrong between them.
pub(super) fn java(workshop: &Workshop, report: &Report) -> Result<()> {
    java::links(workshop, &Doctor::new("java", workshop, report))
}

/// Java servers whose peers' addresses lead elsewhere than they believe.
pub(super) fn addresses(workshop: &Workshop, report: &Report) -> Result<()> {
    java::addresses(workshop, &Doctor::new("java", workshop, report))
}

/// Java servers that do not show what they have; Netflix' own server.
pub(super) fn reads(workshop: &Workshop, report: &Report) -> Result<()> {
    let doctor = Doctor::new("java", workshop, report);
    java::reads(workshop, &doctor)?;
    java::netflix(workshop, &doctor)
}

/// A Spring server and nodes of ours.
pub(super) fn mixed(workshop: &Workshop, report: &Report) -> Result<()> {
    mixed::all(workshop, &Doctor::new("mixed", workshop, report))
}

/// Runs the doctor and compares what it says.
struct Doctor<'a> {
    kind: &'static str,
    program: PathBuf,
    report: &'a Report,
}

/// What should be found, with the servers in order.
type Expected<'a> = Option<(&'a str, &'a [&'a str])>;

impl<'a> Doctor<'a> {
    fn new(kind: &'static str, workshop: &Workshop, report: &'a Report) -> Self {
        Self {
            kind,
            program: workshop.program().to_owned(),
            report,
        }
    }

    /// Of this instance, the doctor says this and nothing else.
    fn of(&self, servers: &[&str], instance: &Instance, what: &str, expected: Expected<'_>) {
        let subject = ["--app", &instance.app, "--instance", &instance.id];
        self.step(servers, &subject, what, expected);
    }

    /// Of the servers as wholes, the doctor says this and nothing else.
    fn compared(&self, servers: &[&str], what: &str, expected: Expected<'_>) {
        self.step(servers, &[], what, expected);
    }

    fn step(&self, servers: &[&str], subject: &[&str], what: &str, expected: Expected<'_>) {
        let seen = poll(PATIENCE, || {
            let (findings, text, code) = self.ask(servers, subject)?;
            let wanted = match expected {
                None => i32::from(!findings.is_empty()) == code && findings.is_empty(),
                Some((name, about)) => {
                    let code_wanted = if name == "server-unreachable" { 2 } else { 1 };
                    findings.len() == 1
                        && findings[0]["name"] == name
                        && findings[0]["servers"] == Value::from(about.to_vec())
                        && code == code_wanted
                }
            };
            if wanted {
                Ok(findings
                    .first()
                    .map_or_else(String::new, |finding| finding["name"].to_string()))
            } else {
                Err(format!("exit code {code}: {text}"))
            }
        });
        let name = format!("doctor, {}", self.kind);
        self.report.step(&name, what, &Outcome::from(seen));
    }

    fn ask(&self, servers: &[&str], subject: &[&str]) -> Result<(Vec<Value>, String, i32), String> {
        let mut command = Command::new(&self.program);
        command.args(["doctor", "--json", "--watch", "1s"]).args(subject);
        for server in servers {
            command.args(["--server", server]);
        }
        let output = command.output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let json: Value = serde_json::from_slice(&output.stdout).map_err(|error| {
            format!(
                "no JSON ({error}): {text}{}",
                String::from_utf8_lossy(&output.stderr)
            )
        })?;
        let findings = json["findings"].as_array().cloned().unwrap_or_default();
        Ok((findings, text, output.status.code().unwrap_or(-1)))
    }
}

/// How the doctor calls a server: without a slash at the end.
fn name(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}

/// An instance whose lease lasts; nothing in these set-ups renews, and thirty seconds are the interval.
fn instance(id: &str) -> Instance {
    Instance::new(APP, id)
}

/// Starts them at the same time and waits for all to listen.
fn start(servers: &mut [Server]) -> Result<()> {
    for server in servers.iter_mut() {
        server.spawn()?;
    }
    for server in servers {
        server.listening()?;
    }
    Ok(())
}

/// Waits until a server has an instance, or has not.
fn await_instance(server: &Server, instance: &Instance, wanted: bool) -> Result<()> {
    let seen = poll(PATIENCE, || {
        let has = server.target().instance(&instance.app, &instance.id)?.is_some();
        (has == wanted)
            .then_some(())
            .ok_or_else(|| format!("it has it: {has}"))
    });
    seen.map_err(|why| anyhow::anyhow!("{}: {}: {why}", server.name, instance.id))
}

/// Registers at a server as its peer would: it tells nobody.
fn register_as_peer(server: &Server, instance: &Value) -> Result<()> {
    let target = server.target();
    let request = target
        .request("POST", &format!("/apps/{APP}"))
        .header("x-netflix-discovery-replication", "true")
        .json(instance);
    let answer = target.send(&request)?;
    anyhow::ensure!(answer.status == 204, "registration as a peer: {}", answer.status);
    Ok(())
}

/// Registers, and says why not.
fn register(server: &Server, instance: &Instance) -> Result<()> {
    let answer = server.target().register(instance)?;
    anyhow::ensure!(
        answer.status == 204,
        "registration at {}: {}",
        server.name,
        answer.status
    );
    Ok(())
}
