//! The instances of one size, and the requests about them.

use std::fmt;
use std::io::Write;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, ensure};
use serde::Serialize;

use super::super::workload::{DIRTY, Fleet, LEASE, Operation, registration};

/// Leases that are not meant to end outlast the whole run.
const LONG_SECONDS: u64 = 3_600;
/// Items of a batch, as Java's servers send them.
pub(super) const BATCH: usize = 250;

/// How many instances in how many applications, as `100000` or `10000:1`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Size {
    pub(crate) instances: usize,
    pub(crate) applications: usize,
}

impl FromStr for Size {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (instances, applications) = match text.split_once(':') {
            Some((instances, applications)) => (instances, Some(applications)),
            None => (text, None),
        };
        let instances: usize = instances.parse().context("instances")?;
        ensure!(instances >= 1_000, "at least 1000 instances");
        let applications = match applications {
            Some(applications) => applications.parse().context("applications")?,
            None => (instances / 100).clamp(1_000, 10_000),
        };
        ensure!((1..=instances).contains(&applications), "applications");
        Ok(Self {
            instances,
            applications,
        })
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.instances, self.applications)
    }
}

/// Who does what: spread over all applications, and every request finds who can answer it.
#[derive(Debug)]
pub(super) struct Crowd {
    pub(super) size: Size,
    /// They renew and never change.
    pub(super) steady: Vec<usize>,
    /// A tenth, which registers again with other content.
    pub(super) changing: Vec<usize>,
    /// A tenth, which is evicted at the end.
    pub(super) mortal: Vec<usize>,
    /// Every change is a newer one.
    changes: AtomicUsize,
}

impl Crowd {
    pub(super) fn new(size: Size) -> Self {
        let mut crowd = Self {
            size,
            steady: Vec::new(),
            changing: Vec::new(),
            mortal: Vec::new(),
            changes: AtomicUsize::new(0),
        };
        for number in 0..size.instances {
            // Without a pattern that the numbers of applications or pages could have, too.
            let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            match mixed % 10 {
                0 => crowd.changing.push(number),
                1 => crowd.mortal.push(number),
                _ => crowd.steady.push(number),
            }
        }
        crowd
    }

    pub(super) fn fleet(&self) -> Fleet {
        Fleet {
            instances: self.size.instances,
            applications: self.size.applications,
        }
    }

    /// The request that registers the next changing instance with new content.
    pub(super) fn write_change(&self, request: &mut Vec<u8>) {
        let change = self.changes.fetch_add(1, Ordering::Relaxed) + 1;
        let number = self.changing[change * 7_919 % self.changing.len()];
        self.write_registration(number, LONG_SECONDS, change as u64, request);
    }

    /// The request that registers an instance whose lease lasts so long.
    pub(super) fn write_registration(
        &self,
        number: usize,
        seconds: u64,
        generation: u64,
        request: &mut Vec<u8>,
    ) {
        let application = number % self.size.applications;
        let body = lasting(registration(application, number, generation, ""), seconds);
        write!(
            request,
            "POST /eureka/apps/APP-{application} HTTP/1.1\r\nHost: localhost\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("a Vec takes all");
    }

    /// The renewal of the `turn`-th instance that does not change, over and over.
    pub(super) fn write_renewal(&self, turn: usize, request: &mut Vec<u8>) {
        let number = self.steady[turn % self.steady.len()];
        Operation::Renew.write(&self.fleet(), number, 0, request);
    }

    /// A peer's batch that renews the `turn`-th lot of instances that do not change.
    pub(super) fn write_batch(&self, turn: usize, request: &mut Vec<u8>) {
        let first = turn * BATCH;
        let items = (first..first + BATCH).map(|turn| {
            let number = self.steady[turn % self.steady.len()];
            let application = number % self.size.applications;
            format!(
                r#"{{"appName":"APP-{application}","id":"host-{number}:app-{application}:8080","lastDirtyTimestamp":{DIRTY},"status":"UP","action":"Heartbeat"}}"#
            )
        });
        write_list(items, request);
    }

    /// A peer's batch that registers these instances: the fastest way to fill a server.
    pub(super) fn write_fill(&self, numbers: std::ops::Range<usize>, request: &mut Vec<u8>) {
        let items = numbers.map(|number| {
            let application = number % self.size.applications;
            let body = lasting(registration(application, number, 0, ""), LONG_SECONDS);
            let instance = body.strip_prefix(r#"{"instance":"#).and_then(|rest| rest.strip_suffix('}'));
            let instance = instance.expect("a registration has this root");
            format!(
                r#"{{"appName":"APP-{application}","id":"host-{number}:app-{application}:8080","lastDirtyTimestamp":{DIRTY},"status":"UP","instanceInfo":{instance},"action":"Register"}}"#
            )
        });
        write_list(items, request);
    }
}

fn lasting(registration: String, seconds: u64) -> String {
    registration.replace(LEASE, &format!(r#""durationInSecs":{seconds}"#))
}

fn write_list(items: impl Iterator<Item = String>, request: &mut Vec<u8>) {
    let mut body = String::from(r#"{"replicationList":["#);
    for (position, item) in items.enumerate() {
        if position > 0 {
            body.push(',');
        }
        body += &item;
    }
    body += "]}";
    write!(
        request,
        "POST /eureka/peerreplication/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("a Vec takes all");
}

/// A list of everything, in one of its forms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) title: &'static str,
    pub(super) gzip: bool,
    headers: &'static str,
}

impl Form {
    pub(super) const GZIP: Self = Self::new("gzip, JSON", true, "Accept: application/json\r\n");
    pub(super) const PLAIN: Self = Self::new("plain, JSON", false, "Accept: application/json\r\n");
    /// What nobody has asked for when `GZIP` and `PLAIN` are there.
    pub(super) const OTHERS: [Self; 3] = [
        Self::new(
            "gzip, compact JSON",
            true,
            "Accept: application/json\r\nX-Eureka-Accept: compact\r\n",
        ),
        Self::new("gzip, XML", true, "Accept: application/xml\r\n"),
        Self::new(
            "gzip, compact XML",
            true,
            "Accept: application/xml\r\nX-Eureka-Accept: compact\r\n",
        ),
    ];
    pub(super) const PLAIN_COMPACT: Self = Self::new(
        "plain, compact JSON",
        false,
        "Accept: application/json\r\nX-Eureka-Accept: compact\r\n",
    );

    const fn new(title: &'static str, gzip: bool, headers: &'static str) -> Self {
        Self { title, gzip, headers }
    }

    pub(super) fn request(&self, path: &str) -> Vec<u8> {
        let encoding = if self.gzip {
            "Accept-Encoding: gzip\r\n"
        } else {
            ""
        };
        format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\n{}{encoding}\r\n",
            self.headers
        )
        .into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_written() {
        let size = |text: &str| {
            text.parse::<Size>()
                .map(|size| (size.instances, size.applications))
        };
        assert_eq!(size("10000").unwrap(), (10_000, 1_000));
        assert_eq!(size("1000000").unwrap(), (1_000_000, 10_000));
        assert_eq!(size("10000:1").unwrap(), (10_000, 1));
        for wrong in ["", "999", "1000:0", "1000:1001", "many"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn everybody_has_one_part_and_every_application_all_of_them() {
        let size = Size {
            instances: 100_000,
            applications: 1_000,
        };
        let crowd = Crowd::new(size);
        let parts = [&crowd.steady, &crowd.changing, &crowd.mortal];
        let mut all: Vec<usize> = parts.into_iter().flatten().copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..size.instances).collect::<Vec<_>>());
        for part in parts {
            let applications: BTreeSet<_> = part.iter().map(|number| number % 1_000).collect();
            assert_eq!(applications.len(), 1_000);
        }
        assert!((9_000..11_000).contains(&crowd.mortal.len()));
        assert!((9_000..11_000).contains(&crowd.changing.len()));
    }
}
