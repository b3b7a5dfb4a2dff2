//! `eureka doctor`: why an instance that is registered at one server does not show at another.

mod ask;
mod examine;
mod meet;
mod observation;
mod observe;
mod read;
mod report;
mod sample;

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use eureka_registry_core::InstanceKey;
use eureka_replication::PeerAddress;
use tokio::runtime::Builder;

use super::{FAILURE, USAGE};

/// Servers asked at most.
const SERVERS: usize = 50;

/// Finds out why servers do not show the same: asks ours and Java's, changes nothing.
///
/// Exits with 0 if nothing is wrong, 1 if something is, 2 if a server cannot be asked at all.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// A server to ask, such as `http://host:8761/eureka`; `user:password@` is used and never shown. At least one.
    #[arg(long, value_name = "URL", required = true, value_parser = address)]
    server: Vec<PeerAddress>,
    /// The application of the instance in question; without it the servers are compared as wholes.
    #[arg(long, value_name = "NAME", requires = "instance")]
    app: Option<String>,
    /// The id of the instance in question.
    #[arg(long, value_name = "ID", requires = "app")]
    instance: Option<String>,
    /// How long to watch leases move. Longer than a renewal interval (30 s) it shows where heartbeats arrive.
    #[arg(long, value_name = "DURATION", default_value = "3s", value_parser = watch)]
    watch: Duration,
    /// Print `{"findings":[..],"checked":[..]}`.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> ExitCode {
    if arguments.server.len() > SERVERS {
        eprintln!("eureka: at most {SERVERS} servers are asked at a time");
        return ExitCode::from(USAGE);
    }
    let subject = arguments.app.zip(arguments.instance);
    let subject = subject.map(|(app, id)| InstanceKey::new(&app, &id));
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("eureka: no runtime: {error}");
            return ExitCode::from(FAILURE);
        }
    };
    let seen = runtime.block_on(observe::observe(arguments.server, subject, arguments.watch));
    let report = examine::examine(&seen);
    let text = if arguments.json {
        format!("{}\n", report.json())
    } else {
        report.to_string()
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(report.exit_code()),
        Err(_) => ExitCode::from(FAILURE),
    }
}

fn address(text: &str) -> Result<PeerAddress, String> {
    PeerAddress::parse(text).map_err(|error| error.to_string())
}

/// At most ten minutes.
fn watch(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration > Duration::from_secs(600) {
        return Err("at most 10min".to_owned());
    }
    Ok(duration)
}
