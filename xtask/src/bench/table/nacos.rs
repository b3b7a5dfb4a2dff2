//! r-nacos: a registry in Rust whose instances have heartbeats, too, over an API of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use crate::bench::subject::{Subject, free_address};
use crate::bench::workload::{Fleet, Operation};

pub(super) const HOW: &str =
    "not installed (`cargo install rnacos --version 0.8.8 --locked --root target/bench` takes some minutes)";
const HEAD: &str = "HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";

/// Where `HOW` puts it, or where the shell finds it.
pub(super) fn find(folder: &Path) -> Option<PathBuf> {
    let installed = folder.join("bin/rnacos");
    if installed.exists() {
        return Some(installed);
    }
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths)
        .map(|path| path.join("rnacos"))
        .find(|path| path.exists())
}

/// Whether it has such a thing.
pub(super) const fn knows(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Renew | Operation::Register | Operation::Application
    )
}

pub(super) fn start(program: &Path, folder: &Path) -> Result<(Subject, Duration)> {
    let address = free_address()?;
    // It takes the port behind that of gRPC, too.
    let grpc: SocketAddr = free_address()?;
    let data = folder.join("r-nacos");
    if data.exists() {
        std::fs::remove_dir_all(&data).with_context(|| data.display().to_string())?;
    }
    std::fs::create_dir_all(&data)?;
    let mut command = Command::new(program);
    command
        .env("RNACOS_HTTP_PORT", address.port().to_string())
        .env("RNACOS_GRPC_PORT", grpc.port().to_string())
        .env("RNACOS_HTTP_CONSOLE_PORT", "0")
        .env("RNACOS_DATA_DIR", data.join("db"))
        .env("RNACOS_NAMING_HEALTH_TIMEOUT_SECOND", "7200")
        .env("RNACOS_NAMING_INSTANCE_TIMEOUT_SECOND", "7200")
        .env("RUST_LOG", "warn");
    let path = "/nacos/v1/ns/service/list?pageNo=1&pageSize=10";
    Subject::start("r-nacos", [address, grpc], &mut command, path)
}

/// The requests that come nearest to those of Eureka.
pub(super) fn requests(operation: Operation, fleet: &Fleet, generation: u64) -> Vec<Vec<u8>> {
    let of_instances = |text: fn(usize, usize, &str, u64) -> String| {
        let request = |instance: usize| {
            let [high, middle, low] = [16, 8, 0].map(|bits| instance >> bits & 255);
            let ip = format!("10.{high}.{middle}.{low}");
            text(instance % fleet.applications, instance, &ip, generation).into_bytes()
        };
        fleet.shuffled().map(request).collect()
    };
    if operation == Operation::Renew {
        of_instances(beat)
    } else if operation == Operation::Register {
        of_instances(register)
    } else {
        (0..fleet.applications).map(list).collect()
    }
}

fn list(application: usize) -> Vec<u8> {
    format!(
        "GET /nacos/v1/ns/instance/list?serviceName=DEFAULT_GROUP%40%40app-{application}&namespaceId=public {HEAD}"
    )
    .into_bytes()
}

fn beat(application: usize, _instance: usize, ip: &str, _generation: u64) -> String {
    let beat = format!(
        r#"{{"cluster":"DEFAULT","ip":"{ip}","metadata":{{}},"period":5000,"port":8080,"scheduled":false,"serviceName":"DEFAULT_GROUP@@app-{application}","stopped":false,"weight":1.0}}"#
    );
    let beat = utf8_percent_encode(&beat, NON_ALPHANUMERIC);
    format!(
        "PUT /nacos/v1/ns/instance/beat?serviceName=DEFAULT_GROUP%40%40app-{application}&ip={ip}&port=8080&namespaceId=public&beat={beat} {HEAD}"
    )
}

fn register(application: usize, instance: usize, ip: &str, generation: u64) -> String {
    let (zone, version) = (instance % 3, generation % 1000);
    let metadata =
        format!(r#"{{"management.port":"8080","zone":"zone-{zone}","version":"1.4.{version:03}"}}"#);
    let metadata = utf8_percent_encode(&metadata, NON_ALPHANUMERIC);
    format!(
        "POST /nacos/v1/ns/instance?serviceName=DEFAULT_GROUP%40%40app-{application}&groupName=DEFAULT_GROUP&ip={ip}&port=8080&namespaceId=public&weight=1.0&enabled=true&healthy=true&ephemeral=true&clusterName=DEFAULT&metadata={metadata} {HEAD}"
    )
}
