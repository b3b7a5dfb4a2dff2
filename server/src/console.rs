//! The page at `/`: what is registered, and how the node is. Plain HTML without a script.

mod html;
mod overview;
mod recent;
mod regions;
mod replicas;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::{Duration, UNIX_EPOCH};

use eureka_registry_core::{RegistryHandle, Wall};
use eureka_replication::Facts;

use self::html::Html;
use crate::config::Settings;
use crate::regions::Regions;

/// Renders the pages.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    hostname: String,
    listen: String,
    grpc: String,
    preserves: bool,
    started: Wall,
}

impl Console {
    /// The pages of a node that serves at `listen`, and gRPC at `grpc` if it does.
    pub(crate) fn new(
        settings: &Settings,
        listen: SocketAddr,
        grpc: Option<SocketAddr>,
        registry: &RegistryHandle,
    ) -> Self {
        Self {
            hostname: settings.server.hostname.clone(),
            listen: listen.to_string(),
            grpc: grpc.map_or_else(|| "off".to_owned(), |grpc| grpc.to_string()),
            preserves: settings.preservation.enabled,
            started: registry.now().wall,
        }
    }

    /// `/`: applications, instances, status, preservation, peers.
    /// `watchers` are told of changes.
    pub(crate) fn page(
        &self,
        registry: &RegistryHandle,
        mesh: &Facts,
        regions: &Regions,
        watchers: usize,
    ) -> String {
        let mut out = self.begin("Eureka");
        overview::write(self, registry, mesh, regions, watchers, &mut out);
        end(out)
    }

    /// `/lastn`: the last thousand registrations and cancels.
    pub(crate) fn recent(&self, registry: &RegistryHandle) -> String {
        let mut out = self.begin("Eureka: recent leases");
        recent::write(registry, &mut out);
        end(out)
    }

    fn begin(&self, title: &str) -> Html {
        let mut out = Html::default();
        out.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
        out.text(title);
        out.raw("</title>\n<style>\n");
        out.raw(STYLE);
        out.raw("</style>\n</head>\n<body>\n<nav><strong>Eureka</strong> ");
        out.text(&self.hostname);
        out.raw(" &middot; <a href=\"/\">Home</a> &middot; <a href=\"/lastn\">Last 1000 since startup</a></nav>\n");
        out
    }
}

const STYLE: &str = "\
body{font:15px/1.4 system-ui,sans-serif;margin:1rem auto;max-width:75rem;padding:0 1rem;color:#222;background:#fff}
table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}
th,td{border:1px solid #ccc;padding:.25rem .5rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}
th{background:#eee}
.alarm{border:2px solid #b00;color:#b00;padding:.5rem 1rem;font-weight:bold}
.off{color:#b00}
";

fn end(mut out: Html) -> String {
    out.raw("</body>\n</html>\n");
    out.finish()
}

/// A moment as `2026-01-31T12:34:56Z`.
fn moment(wall: Wall) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(wall.0)).to_string()
}

/// A duration as `1day 2h 3m`, to the second below a minute.
fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let rounded = if seconds < 60 { seconds } else { seconds / 60 * 60 };
    let mut text = String::new();
    write!(
        text,
        "{}",
        humantime::format_duration(Duration::from_secs(rounded))
    )
    .expect("writing to a string cannot fail");
    text
}
