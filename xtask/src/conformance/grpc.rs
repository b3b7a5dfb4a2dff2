//! The example programs of grpc-api, run against the gRPC address of a server and checked from its REST side.

mod faults;
mod proxy;
mod session;

use std::fs;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::drivers::{Workshop, missing, sources};
use super::http::Request;
use super::report::Outcome;
use super::selftest::judge;
use super::target::{Flavour, Target};
use faults::Fault;
use session::{STEPS, Session};

/// Where our servers listen for gRPC unless told otherwise.
const PORT: u16 = 9761;

/// The patience of the self-test: enough for a server that has just answered without a fault in less.
pub(crate) const SHORT: Duration = Duration::from_secs(10);

/// One entry of `grpc.json`: the three programs `service`, `watch` and `operate` in one language.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) what: String,
    pub(crate) language: String,
    toolchain: Vec<String>,
    install: Vec<String>,
    run: Vec<String>,
    /// Whether `operate` knows `health` and `services`.
    asks_the_server: bool,
}

/// The programs that the manifest lists.
pub(crate) fn manifest() -> Result<Vec<Client>> {
    let path = sources().join("grpc.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// Where the gRPC API of a server is, or why there is none to be tested.
#[derive(Clone, Debug)]
pub(crate) enum Endpoint {
    /// `host:port`; not yet known to be there if it was named.
    At(String),
    /// It is not to be expected.
    Absent(String),
}

impl Endpoint {
    /// What was named; else what the server says of its configuration; else the default port of the server's host, if
    /// something listens there.
    pub(crate) fn find(named: Option<&str>, target: &Target, flavour: Flavour) -> Self {
        if let Some(address) = named {
            return Self::At(address.to_owned());
        }
        if flavour != Flavour::Ours {
            return Self::Absent("Java's servers have no gRPC API".to_owned());
        }
        let host = target
            .address
            .rsplit_once(':')
            .map_or(&*target.address, |(host, _)| host);
        let node = target.send(&target.authorized(Request::new("GET", "/api/v1/node")));
        let config = node.and_then(|answer| answer.json()).unwrap_or_default()["config"].take();
        if config["grpc.enabled"] == "false" {
            return Self::Absent("it is switched off".to_owned());
        }
        match configured(&config) {
            Some(port) => Self::At(format!("{host}:{port}")),
            None if listens(&format!("{host}:{PORT}")) => Self::At(format!("{host}:{PORT}")),
            None => Self::Absent(format!(
                "nothing listens at {host}:{PORT}; --grpc names another address"
            )),
        }
    }
}

/// The port that a server was told to use, if it was and may be known.
fn configured(config: &Value) -> Option<u16> {
    let (_, port) = config["grpc.listen"].as_str()?.rsplit_once(':')?;
    port.parse().ok().filter(|port| *port != 0)
}

fn listens(address: &str) -> bool {
    let addresses = address.to_socket_addrs().into_iter().flatten();
    addresses
        .into_iter()
        .any(|address| TcpStream::connect_timeout(&address, Duration::from_secs(3)).is_ok())
}

/// What all programs of a run share.
pub(crate) struct Run<'a> {
    pub(crate) target: &'a Target,
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) workshop: &'a Workshop,
    pub(crate) run_name: &'a str,
    pub(crate) patience: Duration,
}

impl Run<'_> {
    /// Runs the programs, all at a time; each step is told as it comes.
    pub(crate) fn all(&self, clients: &[Client], tell: &(dyn Fn(&Client, &str, Outcome) + Sync)) {
        thread::scope(|scope| {
            for client in clients {
                scope.spawn(move || self.one(client, tell));
            }
        });
    }

    fn one(&self, client: &Client, tell: &(dyn Fn(&Client, &str, Outcome) + Sync)) {
        let address = match self.ready(client) {
            Ok(Ok(address)) => address,
            Ok(Err(why)) => {
                return STEPS
                    .iter()
                    .for_each(|(step, _)| tell(client, step, Outcome::Skipped(why.clone())));
            }
            Err(why) => return tell(client, "installs", Outcome::Failed(why)),
        };
        let live = Session::start(self, client, address, None, self.run_name).map(|mut session| {
            session.live(|step, outcome| {
                tell(client, step, outcome);
                true
            });
        });
        if let Err(why) = live {
            tell(client, "starts", Outcome::Failed(why));
        }
    }

    /// The address to be used by an installed client; or why it is skipped; or why it cannot be installed.
    fn ready(&self, client: &Client) -> Result<Result<&str, String>, String> {
        let address = match self.endpoint {
            Endpoint::At(address) => address,
            Endpoint::Absent(why) => return Ok(Err(why.clone())),
        };
        if let Some(command) = missing(&client.toolchain) {
            return Ok(Err(format!("this machine has no {command}")));
        }
        self.workshop.install(&client.name, &client.install)?;
        Ok(Ok(address))
    }

    /// Plants every fault before every program, `jobs` at a time; the step made for it must be the first to fail.
    pub(crate) fn self_test(&self, clients: &[Client], jobs: usize, tell: &(dyn Fn(&str, Outcome) + Sync)) {
        let mut planted = Vec::new();
        for client in clients {
            match self.ready(client) {
                Ok(Ok(address)) => {
                    let faults = faults::ALL.iter().map(Some).chain([None]);
                    planted.extend(faults.map(|fault| (client, address, fault)));
                }
                Ok(Err(why)) => tell(&client.name, Outcome::Skipped(why)),
                Err(why) => tell(&client.name, Outcome::Failed(why)),
            }
        }
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    while let Some((at, (client, address, fault))) = take(&next, &planted) {
                        let run_name = format!("{}-{at}", self.run_name);
                        let named = self.first_failure(client, address, *fault, &run_name);
                        let name = fault.map_or("without a fault", |fault| fault.name);
                        let caught_by = fault.map(|fault| fault.caught_by);
                        tell(&format!("{}, {name}", client.name), judge(caught_by, named));
                    }
                });
            }
        });
    }

    /// Lives until a step fails, and says which and why.
    fn first_failure(
        &self,
        client: &Client,
        address: &str,
        fault: Option<&'static Fault>,
        run_name: &str,
    ) -> Result<Option<(&'static str, String)>, String> {
        let mut named = None;
        let mut session = Session::start(self, client, address, fault, run_name)?;
        session.live(|step, outcome| match outcome {
            Outcome::Failed(why) => {
                named = Some((step, why));
                false
            }
            Outcome::Passed(_) | Outcome::Skipped(_) => true,
        });
        Ok(named)
    }
}

fn take<'a, T>(next: &AtomicUsize, all: &'a [T]) -> Option<(usize, &'a T)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    all.get(at).map(|each| (at, each))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_manifest_can_be_read() {
        let names: Vec<_> = manifest()
            .unwrap()
            .into_iter()
            .map(|client| client.name)
            .collect();
        assert_eq!(names, ["grpc-go", "grpc-node", "grpc-python"]);
    }

    #[test]
    fn every_fault_has_a_step_of_its_own() {
        let mut caught: Vec<_> = faults::ALL.iter().map(|fault| fault.caught_by).collect();
        caught.sort_unstable();
        caught.dedup();
        assert_eq!(caught.len(), faults::ALL.len());
        assert!(
            caught
                .iter()
                .all(|name| STEPS.iter().any(|(step, _)| step == name))
        );
    }

    #[test]
    fn a_server_of_java_has_no_grpc_and_a_named_address_is_taken_as_it_is() {
        let target = Target::parse("http://127.0.0.1:1/eureka").unwrap();
        let found = |named, flavour| Endpoint::find(named, &target, flavour);
        assert!(matches!(found(None, Flavour::Spring), Endpoint::Absent(_)));
        let Endpoint::At(address) = found(Some("h:1"), Flavour::Ours) else {
            panic!("a named address is absent");
        };
        assert_eq!(address, "h:1");
        for (listen, port) in [("0.0.0.0:1234", Some(1234)), ("[::1]:7", Some(7)), ("h:0", None)] {
            assert_eq!(configured(&json!({"grpc.listen": listen})), port);
        }
        assert_eq!(configured(&json!({})), None);
    }

    /// Whoever copies from the page copies what is run.
    #[test]
    fn the_code_on_the_page_is_that_of_the_examples() {
        let root = crate::root();
        let page = fs::read_to_string(root.join("docs/grpc.md")).unwrap();
        let mut seen = 0;
        for block in page.split("\n```").skip(1).step_by(2) {
            let (language, code) = block.split_once('\n').unwrap();
            let folder = match language {
                "python" => "python",
                "go" => "go",
                "js" => "node",
                _ => continue,
            };
            let sources = all_text(&root.join("grpc-api/examples").join(folder));
            assert!(
                sources.contains(&squeezed(code)),
                "not in the {folder} examples:\n{code}"
            );
            seen += 1;
        }
        assert!(seen >= 3, "{seen} blocks of code");
    }

    /// A text without indentation.
    fn squeezed(text: &str) -> String {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join("\n")
    }

    fn all_text(folder: &std::path::Path) -> String {
        let mut text = String::new();
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if entry.file_type().unwrap().is_dir() {
                if ["registry", "service", "watch", "operate"].contains(&&*name) {
                    text += &all_text(&entry.path());
                }
            } else if [".py", ".go", ".js"].iter().any(|suffix| name.ends_with(suffix)) {
                text += &squeezed(&fs::read_to_string(entry.path()).unwrap());
                text += "\n";
            }
        }
        text
    }
}
