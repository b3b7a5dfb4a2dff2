//! SIGHUP: what changes while the node runs, what needs a restart, and what a mistake does.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

use crate::cluster::{free_ports, member, opens, shows, url};
use crate::node::{Node, empty_directory};

fn configure(directory: &Path, text: &str) {
    fs::write(directory.join("eureka.toml"), text).expect("the directory can be written");
}

#[test]
fn sighup_adds_a_peer() {
    let directory = empty_directory();
    let [port, nobody] = free_ports();
    // With a peer of its own, or it would repair nothing.
    let peer = member(port, &[nobody], &[]);
    configure(&directory, "replication.digest-interval = \"1s\"\n");
    let node = Node::serve_in(&directory, &["--listen", "127.0.0.1:0"]);
    assert_eq!(node.register("A", "before").status, 204);
    configure(
        &directory,
        &format!(
            "replication.digest-interval = \"1s\"\npeers.urls = [\"{}\"]\n",
            url(port)
        ),
    );
    node.signal(Signal::HUP);
    let line = node.line("SIGHUP");
    assert!(line.contains("applied=[\"peers.urls\"]"), "{line}");
    // What was there before is brought by repair, what comes after by replication.
    shows(&peer, "/eureka/apps/A/before", &[]);
    assert_eq!(node.register("A", "after").status, 204);
    shows(&peer, "/eureka/apps/A/after", &[]);
    opens(&node);
}

#[test]
fn sighup_changes_the_level_and_names_what_needs_a_restart() {
    let directory = empty_directory();
    configure(&directory, "");
    let node = Node::serve_in(&directory, &["--listen", "127.0.0.1:0"]);
    configure(&directory, "log.level = \"debug\"\nlimits.body = \"1MiB\"\n");
    node.signal(Signal::HUP);
    let line = node.line("SIGHUP: the configuration was read again");
    assert!(line.contains("applied=[\"log.level\"]"), "{line}");
    let line = node.line("SIGHUP: these keys");
    assert!(
        line.contains("keys=[\"limits.body\"]") && line.contains("restart"),
        "{line}"
    );
    assert_eq!(node.ask("GET", "/health/live").status, 200);
    node.line("uri=/health/live");
}

#[test]
fn a_wrong_file_changes_nothing() {
    let directory = empty_directory();
    configure(&directory, "");
    let node = Node::serve_in(&directory, &["--listen", "127.0.0.1:0"]);
    configure(
        &directory,
        "log.level = \"loud\"\npeers.urls = [\"http://operator:hunter2@b:x/\"]\n",
    );
    node.signal(Signal::HUP);
    let mistake = node.line("eureka.toml:1: log.level");
    assert!(mistake.contains("ERROR"), "{mistake}");
    let mistake = node.line("eureka.toml:2: peers.urls");
    assert!(!mistake.contains("hunter2"), "{mistake}");
    node.line("nothing was changed");
    assert_eq!(node.json("/api/v1/peers")["peers"], serde_json::json!([]));
    assert_eq!(node.register("A", "i").status, 204);
    node.line("registered");
}
