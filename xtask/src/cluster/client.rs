//! Services that use our client, and the two servers they know: whatever happens to those, a provider stays registered,
//! once, and a consumer goes on with what it knows and says how old that is.

mod consumer;
mod provider;
mod watch;

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use super::servers::{Java, Place, Server, Workshop};
use crate::conformance::drivers::{self, Client, Driver};
use crate::conformance::report::{Outcome, Report};

/// Under which name the programs are in the kit's manifest.
const CLIENT: &str = "eureka-client-feed";
const ANSWER: Duration = Duration::from_secs(20);
const START: Duration = Duration::from_secs(60);
const RENEW: Duration = Duration::from_secs(2);
/// Longer than a renewal that waits for a server which hangs.
const LEASE: Duration = Duration::from_secs(12);

/// Two of ours.
pub(super) fn ours(workshop: &Workshop, report: &Report) -> Result<()> {
    let places = [Place::new("client-a", 1)?, Place::new("client-b", 1)?];
    let settings = [
        "preservation.enabled=false",
        "registry.eviction-interval=1s",
        "bootstrap.settle=2s",
        "bootstrap.retry-interval=1s",
    ];
    let servers = [
        workshop.ours(&places[0], &[places[1].url(None)], &settings),
        workshop.ours(&places[1], &[places[0].url(None)], &settings),
    ];
    let urls = places.each_ref().map(|place| place.url(None));
    Scene::open(workshop, "client", report, servers, &urls)?.play()
}

/// Two of Spring's.
pub(super) fn java(workshop: &Workshop, report: &Report) -> Result<()> {
    let needed = ["java", "mvn"].map(str::to_owned);
    if let Some(command) = drivers::missing(&needed) {
        let outcome = Outcome::Skipped(format!("this machine has no {command}"));
        report.step("client, Spring's servers", "", &outcome);
        return Ok(());
    }
    workshop.build(Java::Spring)?;
    let places = [Place::new("client-java-a", 31)?, Place::new("client-java-b", 32)?];
    let settings = [
        "eureka.client.register-with-eureka=true",
        "eureka.client.fetch-registry=true",
        "eureka.client.registryFetchIntervalSeconds=2",
        "eureka.server.useReadOnlyResponseCache=false",
        "eureka.server.enableSelfPreservation=false",
        "eureka.server.evictionIntervalTimerInMs=1000",
        "eureka.server.registrySyncRetries=3",
        "eureka.server.registrySyncRetryWaitMs=1000",
        "eureka.server.peerNodeReadTimeoutMs=1000",
        "eureka.server.peerNodeConnectTimeoutMs=1000",
    ]
    .map(str::to_owned);
    let urls = places.each_ref().map(|place| place.url(Some(Java::Spring)));
    let servers = [
        workshop.java(Java::Spring, &places[0], &[urls[1].clone()], &settings),
        workshop.java(Java::Spring, &places[1], &[urls[0].clone()], &settings),
    ];
    Scene::open(workshop, "client, Spring's servers", report, servers, &urls)?.play()
}

/// Two servers, and what is needed to start services that know them.
struct Scene<'a> {
    name: &'static str,
    report: &'a Report,
    servers: [Server; 2],
    urls: String,
    drivers: drivers::Workshop,
    client: Client,
}

impl<'a> Scene<'a> {
    fn open(
        workshop: &Workshop,
        name: &'static str,
        report: &'a Report,
        servers: [Server; 2],
        urls: &[String],
    ) -> Result<Self> {
        let drivers = drivers::Workshop::open(&workshop.folder_of_clients())?;
        let mut manifest = drivers::manifest()?.into_iter();
        let client = manifest.find(|client| client.name == CLIENT);
        let client = client.with_context(|| format!("{CLIENT} is not in the manifest"))?;
        let installed = drivers.install(CLIENT, &client.install);
        installed.map_err(anyhow::Error::msg)?;
        Ok(Self {
            name,
            report,
            servers,
            urls: urls.join(","),
            drivers,
            client,
        })
    }

    fn play(mut self) -> Result<()> {
        self.start_servers()?;
        provider::stays_registered(&mut self)?;
        consumer::goes_on(&mut self)
    }

    fn start_servers(&mut self) -> Result<()> {
        for server in &mut self.servers {
            server.spawn()?;
        }
        self.servers.iter_mut().try_for_each(Server::ready)
    }

    fn step(&self, step: &str, done: Result<String, String>) {
        self.report.step(self.name, step, &Outcome::from(done));
    }

    /// A service that registers.
    fn provider(&self, app: &str, id: &str) -> Result<Service> {
        let settings = [
            ("APP", app.to_owned()),
            ("INSTANCE_ID", id.to_owned()),
            ("HOST_NAME", "provider.kit.test".to_owned()),
            ("RENEW_SECS", RENEW.as_secs().to_string()),
            ("LEASE_SECS", LEASE.as_secs().to_string()),
        ];
        self.service(&format!("{app}-{id}"), &settings)
    }

    /// A service that finds others.
    fn consumer(&self, name: &str, settings: &[(&'static str, String)]) -> Result<Service> {
        self.service(name, settings)
    }

    fn service(&self, name: &str, settings: &[(&'static str, String)]) -> Result<Service> {
        let mut all = vec![
            ("EUREKA_URL", self.urls.clone()),
            ("APP", String::new()),
            ("FETCH_SECS", "1".to_owned()),
        ];
        all.extend_from_slice(settings);
        let scene = self
            .name
            .replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let client = self.client.named(&format!("{scene}-{}", name.to_lowercase()));
        let driver = self.drivers.start(&client, &all)?;
        let started = driver.registering(START);
        started.map_err(|why| anyhow!("{}: {why}", client.name))?;
        Ok(Service(driver))
    }
}

/// A running service; asked to leave when dropped.
struct Service(Driver);

impl Service {
    fn find(&mut self, app: &str) -> Result<usize, String> {
        let answer = self.0.ask(&format!("find {app}"), ANSWER)?;
        let count = answer.strip_prefix("found ").and_then(|count| count.parse().ok());
        count.ok_or(answer)
    }

    /// What the client says of itself.
    fn facts(&mut self) -> Result<Value, String> {
        let answer = self.0.ask("facts", ANSWER)?;
        let json = answer.strip_prefix("facts ");
        json.and_then(|json| serde_json::from_str(json).ok())
            .ok_or_else(|| answer.clone())
    }

    fn leave(&mut self) -> Result<(), String> {
        self.0.ask("leave", START)?;
        self.0.ended(START).map(drop)
    }
}
