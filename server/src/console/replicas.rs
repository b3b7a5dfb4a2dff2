//! The table of peers.

use std::time::Duration;

use eureka_registry_core::{Now, Wall};
use eureka_replication::{Facts, LinkState, PeerFacts};

use super::html::Html;
use super::span;
use crate::peers;

/// Strangers named on the page; the mesh remembers no more than a hundred.
const STRANGERS_MAX: usize = 100;

pub(super) fn write(now: Now, mesh: &Facts, out: &mut Html) {
    // What Eureka's consoles have always called them.
    out.raw("<h1>DS Replicas</h1>\n");
    for alarm in &mesh.alarms {
        out.raw("<p class=\"alarm\">");
        out.text(alarm.kind.name());
        out.raw(", ");
        out.text(&alarm.peer.0);
        out.raw(", for ");
        out.text(&ago(now, alarm.since));
        out.raw(": ");
        out.text(&alarm.text);
        out.raw("</p>\n");
    }
    if mesh.peers.is_empty() {
        out.raw("<p>No peers</p>\n");
    } else {
        out.raw("<table>\n<tr><th>Peer</th><th>Kind</th><th>State</th><th>Last answer</th><th>Lag</th><th>Queue</th><th>Last request from it</th><th>Differs</th></tr>\n");
        for peer in &mesh.peers {
            row(now, peer, out);
        }
        out.raw("</table>\n");
    }
    if !mesh.strangers.is_empty() {
        out.raw("<p>Batches also came from ");
        for (position, (name, _)) in mesh.strangers.iter().take(STRANGERS_MAX).enumerate() {
            if position > 0 {
                out.raw(", ");
            }
            out.text(&name.0);
        }
        out.raw(".</p>\n");
    }
}

fn row(now: Now, peer: &PeerFacts, out: &mut Html) {
    out.raw("<tr><td>");
    out.link(Some(&peer.peer.0), &peer.peer.0);
    if let Some(node) = peer.node {
        out.raw("<br>node ");
        out.text(&node.to_string());
    }
    cell(peers::kind(peer.kind), out);
    out.raw(if matches!(peer.state, LinkState::Up | LinkState::Starting) {
        "</td><td><b>"
    } else {
        "</td><td><b class=\"off\">"
    });
    out.text(peers::state(peer.state));
    out.raw("</b>");
    if let Some(error) = peer.error.as_deref().filter(|_| peer.state != LinkState::Up) {
        out.raw("<br>");
        out.text(error);
    }
    cell(&last(now, peer.last_success), out);
    cell(&exactly(peer.lag), out);
    cell(&peer.queue.to_string(), out);
    cell(&last(now, peer.inbound.last), out);
    let differs = match peer.diverged {
        Some(since) => format!("for {}", span(since)),
        None if peer.digests > 0 => "no".to_owned(),
        None => "not compared".to_owned(),
    };
    cell(&differs, out);
    out.raw("</td></tr>\n");
}

/// Ends a cell and fills the next.
fn cell(text: &str, out: &mut Html) {
    out.raw("</td><td>");
    out.text(text);
}

fn last(now: Now, moment: Option<Wall>) -> String {
    moment.map_or_else(
        || "never".to_owned(),
        |moment| format!("{} ago", ago(now, moment)),
    )
}

fn ago(now: Now, moment: Wall) -> String {
    span(Duration::from_millis(now.wall.0.saturating_sub(moment.0)))
}

/// A short time to the millisecond: what is young is what one looks for here.
fn exactly(duration: Duration) -> String {
    if duration < Duration::from_secs(10) {
        format!("{} ms", duration.as_millis())
    } else {
        span(duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::tests::busy;

    #[test]
    fn what_others_chose_is_escaped() {
        let mut facts = busy();
        let hostile = "<script>alert(1)</script>\" onmouseover=\"x";
        facts.peers[0].error = Some(hostile.into());
        facts.alarms[0].text = hostile.into();
        facts.strangers[0].0.0 = hostile.into();
        facts.peers[1].peer.0 = hostile.into();
        let mut page = Html::default();
        write(Now::default(), &facts, &mut page);
        let page = page.finish();
        assert!(
            !page.contains("<script") && !page.contains("\" onmouseover"),
            "{page}"
        );
        assert_eq!(page.matches("&lt;script&gt;alert(1)").count(), 4, "{page}");
        for part in ["busy", "1500 ms", "for 1m", "diverged", "<td>3"] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
    }
}
