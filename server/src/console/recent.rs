//! The page of the last registrations and cancels.

use eureka_registry_core::{Recent, RegistryHandle};

use super::html::Html;
use super::moment;

pub(super) fn write(registry: &RegistryHandle, out: &mut Html) {
    out.raw("<h1>Last 1000 cancelled leases</h1>\n");
    table(&registry.recent_cancels(), out);
    out.raw("<h1>Last 1000 newly registered leases</h1>\n");
    table(&registry.recent_registrations(), out);
}

fn table(entries: &[Recent], out: &mut Html) {
    if entries.is_empty() {
        return out.raw("<p>No results available</p>\n");
    }
    out.raw("<table>\n<tr><th>Timestamp</th><th>Lease</th></tr>\n");
    for entry in entries {
        out.raw("<tr><td>");
        out.text(&moment(entry.at));
        out.raw("</td><td>");
        out.text(entry.key.app());
        out.raw("(");
        out.text(entry.key.id());
        out.raw(")</td></tr>\n");
    }
    out.raw("</table>\n");
}
