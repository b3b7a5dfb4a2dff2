//! A client that is told by lines on its standard input what to do, and says what it knows: what the conformance kit and
//! `cargo xtask cluster client` run. The lines are those of xtask/conformance/drivers/README.md.
//!
//! ```sh
//! EUREKA_URL=http://127.0.0.1:8761/eureka APP=orders cargo run -p eureka-client --example conformance
//! ```

#![allow(clippy::print_stdout)] // It talks to whoever runs it.

use std::env;
use std::error::Error;
use std::fmt::Display;
use std::io::{self, BufRead, Write};
use std::str::FromStr;
use std::time::Duration;

use eureka_client::call::Scope;
use eureka_client::{Client, View};
use eureka_registry_core::{Instance, LeaseTerms, LeaseView, Port, Status};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;
use tracing_subscriber::filter::LevelFilter;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::INFO)
        .with_writer(io::stderr)
        .init();
    let runtime = Runtime::new()?;
    let client = {
        let _inside = runtime.enter();
        start()?
    };
    let id = client.registration().now();
    let id = id.map(|registration| registration.instance.id().to_owned());
    say(format_args!(
        "registering {}",
        json!({"id": id.unwrap_or_default()})
    ))?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if line.trim() == "leave" {
            break;
        }
        match answer(&client, &line) {
            Ok(answer) => say(answer)?,
            Err(why) => say(format_args!(
                "error {line}: {}",
                why.to_string().replace('\n', " ")
            ))?,
        }
    }
    // The end of the input means the same, with nobody left to be told.
    runtime.block_on(client.shutdown());
    let _ = say("left");
    Ok(())
}

fn say(line: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// The client that the environment describes.
fn start() -> Result<Client, Failure> {
    let seconds = |name: &str, default: u64| setting(name, default).map(Duration::from_secs);
    let mut builder = Client::builder()
        .fetch_interval(seconds("FETCH_SECS", 30)?)
        .feed(env::var("FEED").as_deref() != Ok("off"));
    for url in text("EUREKA_URL").split(',') {
        builder = builder.server(url);
    }
    if let Ok(address) = env::var("VIP") {
        builder = builder.scope(Scope::Vip(address.into()));
    }
    if let Ok(path) = env::var("DISK_COPY") {
        builder = builder.disk_copy(path);
    }
    if !text("APP").is_empty() {
        builder = builder.register(instance()?);
    }
    Ok(builder.start()?)
}

fn instance() -> Result<Instance, Failure> {
    let (app, id, host) = (text("APP"), text("INSTANCE_ID"), text("HOST_NAME"));
    let port = setting("INSTANCE_PORT", 8080)?;
    let url = |path: &str| Some(format!("http://{host}:{port}/{path}").into());
    Ok(Instance {
        port: Port {
            number: port,
            enabled: true,
        },
        vip_address: Some(app.to_lowercase().into()),
        secure_vip_address: Some(app.to_lowercase().into()),
        home_page_url: url(""),
        status_page_url: url("info"),
        health_check_url: url("health"),
        lease: LeaseTerms {
            renewal_interval_secs: setting("RENEW_SECS", 30)?,
            duration_secs: setting("LEASE_SECS", 90)?,
        },
        ..Instance::new(&app, &id, &host, "127.0.0.1")
    })
}

fn text(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

fn setting<T: FromStr>(name: &str, default: T) -> Result<T, Failure>
where
    T::Err: Display,
{
    match env::var(name) {
        Ok(value) => value.parse().map_err(|error| format!("{name}: {error}").into()),
        Err(_) => Ok(default),
    }
}

fn answer(client: &Client, line: &str) -> Result<String, Failure> {
    let view = client.cache().view();
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    Ok(match word {
        "find" => format!("found {}", view.application(rest).len()),
        "vip" => format!("found {}", view.vip(rest).len()),
        "svip" => format!("found {}", view.secure_vip(rest).len()),
        "show" => format!("shown {}", shown(&view, rest)),
        "facts" => format!("facts {}", facts(client, &view)),
        "status" => {
            let status = Status::parse(rest).ok_or("no such status")?;
            client.registration().set_status(status);
            "ok".to_owned()
        }
        "metadata" => {
            let (key, value) = rest.split_once(' ').ok_or("metadata KEY VALUE")?;
            client.registration().set_metadata(key, value);
            "ok".to_owned()
        }
        _ => return Err("no such word".into()),
    })
}

/// The instances of an application by their ids.
fn shown(view: &View, app: &str) -> Value {
    let instances = view.application(app);
    let shown = instances.iter().map(|view: &std::sync::Arc<LeaseView>| {
        let (id, status) = (view.instance.id(), view.instance.status.to_string());
        (id.to_owned(), json!({"status": status}))
    });
    Value::Object(shown.collect::<Map<_, _>>())
}

fn facts(client: &Client, view: &View) -> Value {
    let facts = client.facts();
    let stats = facts.stats;
    let registration = facts.registration.as_ref();
    let server = registration.and_then(|registration| registration.server.as_ref());
    json!({
        "age_ms": facts.age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        "origin": view.origin().to_string(),
        "instances": view.snapshot().instances().count(),
        "panics": facts.panics,
        "phase": registration.map(|registration| format!("{:?}", registration.phase)),
        "server": server.map(|server| server.to_string()),
        "registrations": stats.registrations,
        "renewals": stats.renewals,
        "renewals_missing": stats.renewals_missing,
        "renewals_failed": stats.renewals_failed,
        "full": stats.full,
        "unchanged": stats.unchanged,
        "delta": stats.delta,
        "feed": stats.feed,
        "fetches_failed": stats.fetches_failed,
        "hash_mismatches": stats.hash_mismatches,
        "held_empty": stats.held_empty,
        "switches": stats.switches,
    })
}
