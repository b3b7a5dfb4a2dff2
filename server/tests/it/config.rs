//! Where configuration comes from, and what is said about mistakes.

use std::fs;
use std::net::TcpListener;
use std::process::Output;

use eureka_server::config::{Config, KEYS, Sources};

use crate::node::{empty_directory, eureka, run};

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// The line of a key in the output of `eureka config`, without its padding.
fn shown(output: &Output, key: &str) -> String {
    let text = stdout(output);
    let line = text.lines().find(|line| line.starts_with(&format!("{key} =")));
    let line = line.unwrap_or_else(|| panic!("no {key} in {text}{}", stderr(output)));
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn alone_it_prints_help() {
    let output = run(&[]);
    assert!(output.status.success());
    assert!(stdout(&output).contains("serve"), "{output:?}");
}

#[test]
fn a_wrong_command_line_exits_64() {
    for arguments in [
        ["serve", "--nonsense"],
        ["serve", "--set=novalue"],
        ["nonsense", "--help=1"],
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(64), "{arguments:?}: {output:?}");
    }
}

#[test]
fn every_mistake_is_reported_at_once() {
    let directory = empty_directory();
    fs::write(
        directory.join("eureka.toml"),
        "[registry]\neviction-interval = 5\nevction-interval = \"5s\"\n\n[limits]\nbody = 1979-05-27\n[broken\n",
    )
    .unwrap();
    let output = eureka(&[
        "serve",
        "--listen",
        "nowhere",
        "--peer",
        "b:8761",
        "--set",
        "tls.cert=x",
    ])
    .current_dir(directory)
    .env("EUREKA_PRESERVATION__THRESHOLD", "85")
    .output()
    .unwrap();
    assert_eq!(output.status.code(), Some(64));
    let text = stderr(&output);
    for mistake in [
        "eureka.toml:2: registry.eviction-interval: \"5\" is not a duration",
        "eureka.toml:3: registry.evction-interval: there is no such key; did you mean registry.eviction-interval?",
        "eureka.toml:6: limits.body: no key takes a value of type datetime",
        "eureka.toml:7: not TOML",
        "environment EUREKA_PRESERVATION__THRESHOLD: preservation.threshold: \"85\" is not a number from 0 to 1",
        "flag --listen: server.listen: \"nowhere\" is not an address",
        "flag --peer: peers.urls: URL number 1: the URL of a peer begins with http",
        "flag --set: tls.cert: not available in this version",
        "has 8 mistakes",
    ] {
        assert!(text.contains(mistake), "{mistake:?} is not in {text}");
    }
}

#[test]
fn a_missing_file_is_a_mistake_only_if_it_was_named() {
    let output = run(&["config", "--config", "absent.toml"]);
    assert_eq!(output.status.code(), Some(64));
    assert!(stderr(&output).contains("absent.toml"), "{output:?}");
    assert!(run(&["config"]).status.success());
}

#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let directory = empty_directory();
    fs::write(
        directory.join("eureka.toml"),
        "registry.eviction-interval = \"1s\"\nregistry.delta-retention = \"1s\"\nregistry.renewal-interval = \"1s\"\n",
    )
    .unwrap();
    let output = eureka(&["config", "--set", "registry.renewal-interval=3s"])
        .current_dir(directory)
        .env("EUREKA_REGISTRY__DELTA_RETENTION", "2s")
        .env("EUREKA_REGISTRY__RENEWAL_INTERVAL", "2s")
        .output()
        .unwrap();
    assert_eq!(
        shown(&output, "registry.eviction-interval"),
        "registry.eviction-interval = \"1s\" # eureka.toml:1"
    );
    assert_eq!(
        shown(&output, "registry.delta-retention"),
        "registry.delta-retention = \"2s\" # environment EUREKA_REGISTRY__DELTA_RETENTION"
    );
    assert_eq!(
        shown(&output, "registry.renewal-interval"),
        "registry.renewal-interval = \"3s\" # flag --set"
    );
}

#[test]
fn only_names_with_a_double_underscore_are_ours() {
    let output = eureka(&["config"])
        .env("EUREKA_PORT", "tcp://10.0.0.1:8761")
        .env("EUREKA_SERVER_LISTEN", "nowhere")
        .env("EUREKA_LIMITS__RATE_LIMITER__BURST", "7")
        .output()
        .unwrap();
    assert_eq!(
        shown(&output, "server.listen"),
        "server.listen = \"0.0.0.0:8761\" # default"
    );
    assert!(shown(&output, "limits.rate-limiter.burst").starts_with("limits.rate-limiter.burst = 7 "));
    let text = stdout(&output);
    assert!(text.contains("# ignored: environment EUREKA_PORT"), "{text}");
    assert!(
        text.contains("# ignored: environment EUREKA_SERVER_LISTEN"),
        "{text}"
    );
}

#[test]
fn explicit_values_win_over_a_preset() {
    let output = run(&[
        "config",
        "--set",
        "compat.preset=eureka-java",
        "--set",
        "registry.lease-expiry=exact",
    ]);
    assert_eq!(
        shown(&output, "preservation.measure"),
        "preservation.measure = \"heartbeats\" # preset eureka-java"
    );
    assert_eq!(
        shown(&output, "registry.lease-expiry"),
        "registry.lease-expiry = \"exact\" # flag --set"
    );
}

#[test]
fn the_table_is_right_about_itself() {
    for preset in ["none", "eureka-java", "eureka-netflix"] {
        let sources = Sources {
            flags: vec![("--set", "compat.preset".to_owned(), preset.to_owned())],
            ..Sources::default()
        };
        // Every default and preset value is set here; a wrong one panics.
        let config = Config::load(&sources).expect("no mistake");
        assert_eq!(config.settings.compat.preset.name(), preset);
    }
    let mut names: Vec<_> = KEYS.iter().map(|key| key.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), KEYS.len(), "a key is there twice");
}

#[test]
fn what_it_prints_is_a_configuration_file() {
    let first = run(&[
        "config",
        "--set",
        "limits.rate-limiter.privileged-clients=a, b",
        "--set",
        "compat.preset=eureka-java",
    ]);
    let directory = empty_directory();
    fs::write(directory.join("eureka.toml"), &first.stdout).unwrap();
    let second = eureka(&["config"]).current_dir(directory).output().unwrap();
    let values = |output| -> Vec<String> {
        let text: String = stdout(output);
        text.lines()
            .map(|line| line.split('#').next().unwrap_or_default().trim().to_owned())
            .collect()
    };
    assert_eq!(values(&first), values(&second), "{}", stderr(&second));
    assert!(values(&first).contains(&"limits.rate-limiter.privileged-clients = [\"a\", \"b\"]".to_owned()));
}

#[test]
fn a_value_that_may_be_a_secret_is_not_repeated() {
    let output = eureka(&["config"])
        .env("EUREKA_AUTH__PASSWORD", "hunter2")
        .env("EUREKA_NONSENSE__TOKEN", "hunter2")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(
        stderr(&output).contains("auth.password: not available"),
        "{output:?}"
    );
    assert!(!stderr(&output).contains("hunter2"), "{output:?}");
}

#[test]
fn an_address_in_use_is_a_failure_not_a_mistake() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["serve", "--listen", &address]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        stderr(&output).contains(&format!("cannot listen on {address}")),
        "{output:?}"
    );
}
