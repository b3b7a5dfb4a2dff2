//! `eureka doctor` on servers with a planted fault: each set-up must show that fault, and only that.
//!
//! Here the servers are scripted, so that every fault can be had at once; `cargo xtask doctor-setups` plants them in real ones.

mod addresses;
mod content;
mod leases;
mod links;
mod lists;
mod questions;
mod scripted;

use std::process::Output;

use serde_json::Value;

use crate::node::eureka;

/// What the doctor said of these servers.
#[derive(Debug)]
struct Diagnosis {
    findings: Vec<Value>,
    checked: Vec<String>,
    exit: Option<i32>,
    output: String,
}

impl Diagnosis {
    /// Asks about one instance.
    fn of(servers: &[&str], app: &str, id: &str) -> Self {
        Self::with(servers, &["--app", app, "--instance", id])
    }

    /// Compares the servers as wholes.
    fn compared(servers: &[&str]) -> Self {
        Self::with(servers, &[])
    }

    fn with(servers: &[&str], more: &[&str]) -> Self {
        let Output {
            status,
            stdout,
            stderr,
        } = run(servers, &[&["--json"], more].concat());
        let output = format!(
            "{}{}",
            String::from_utf8_lossy(&stdout),
            String::from_utf8_lossy(&stderr)
        );
        let json: Value = serde_json::from_slice(&stdout).unwrap_or_else(|_| panic!("no JSON: {output}"));
        let checked = json["checked"].as_array().expect("an array");
        let checked = checked
            .iter()
            .map(|line| line.as_str().expect("a text").to_owned());
        Self {
            findings: json["findings"].as_array().expect("an array").clone(),
            checked: checked.collect(),
            exit: status.code(),
            output,
        }
    }

    /// This fault was found, with these servers in this order, and no other.
    #[track_caller]
    fn is(&self, name: &str, servers: &[&str]) {
        let found: Vec<_> = self.findings.iter().map(|finding| &finding["name"]).collect();
        assert_eq!(found, [name], "{self:#?}");
        let named: Vec<_> = self.findings[0]["servers"]
            .as_array()
            .expect("an array")
            .iter()
            .collect();
        assert_eq!(named, servers, "{self:#?}");
        for part in ["sentence", "remedy"] {
            assert_ne!(self.findings[0][part].as_str(), Some(""), "{self:#?}");
        }
        assert_ne!(
            self.findings[0]["evidence"].as_array().map(Vec::len),
            Some(0),
            "{self:#?}"
        );
        assert_eq!(self.exit, Some(1), "{self:#?}");
    }

    /// Nothing is wrong.
    #[track_caller]
    fn is_healthy(&self) {
        assert!(self.findings.is_empty(), "{self:#?}");
        assert_eq!(self.exit, Some(0), "{self:#?}");
    }

    /// Some evidence of the one finding says this.
    #[track_caller]
    fn evidence(&self, text: &str) {
        let evidence = self.findings[0]["evidence"].as_array().expect("an array");
        let says = |line: &Value| line.as_str().is_some_and(|line| line.contains(text));
        assert!(evidence.iter().any(says), "{text:?} is not in {self:#?}");
    }
}

fn run(servers: &[&str], more: &[&str]) -> Output {
    // One look is enough where nothing moves.
    let mut arguments = vec!["doctor", "--watch", "0s"];
    for server in servers {
        arguments.extend(["--server", server]);
    }
    arguments.extend(more);
    eureka(&arguments).output().expect("the binary starts")
}
