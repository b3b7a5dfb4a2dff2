//! The other regions: what is known of each, since when, and from where.

use std::time::Duration;

use eureka_http_api::RegionFacts;
use eureka_registry_core::Now;

use super::html::Html;
use super::span;

pub(super) fn write(now: Now, regions: &[RegionFacts], out: &mut Html) {
    if regions.is_empty() {
        return;
    }
    out.raw("<h1>Other regions</h1>\n<table>\n<tr><th>Region</th><th>Instances</th><th>Read</th><th>Server</th><th>Last failure</th></tr>\n");
    for region in regions {
        out.raw("<tr><td><b>");
        out.text(&region.name);
        out.raw("</b></td><td>");
        out.number(region.instances as u64);
        out.raw("</td><td>");
        match region.read {
            None => out.raw("<b class=\"off\">never</b>"),
            Some(read) => {
                let age = now.mono.0.saturating_sub(read.mono.0);
                out.text(&format!("{} ago", span(Duration::from_millis(age))));
            }
        }
        out.raw("</td><td>");
        out.text(region.server.as_deref().unwrap_or_default());
        out.raw("</td><td class=\"off\">");
        out.text(region.error.as_deref().unwrap_or_default());
        out.raw("</td></tr>\n");
    }
    out.raw("</table>\n");
}
