//! What is asked: requests as real clients write them.

use std::io::Write;

/// The instances of the measurement: their names follow from their number.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Fleet {
    pub(super) instances: usize,
    pub(super) applications: usize,
}

/// One kind of request.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Operation {
    Renew,
    Register,
    /// What a peer sends: so many heartbeats in one request.
    Batch,
    FullGzip,
    FullIdentity,
    DeltaGzip,
    Application,
    Vip,
}

/// Heartbeats in a batch: Java's peers send no more in one.
pub(super) const BATCH: usize = 250;
/// Every so many registrations of one instance can be told apart by their dirty timestamps.
pub(super) const PASSES: u64 = 1_000_000;
/// The dirty timestamp of the first registrations.
pub(super) const DIRTY: u64 = 1_700_000_000_000;
/// Nobody renews while something else is measured, so leases are longer than those of clients.
pub(super) const LEASE: &str = r#""durationInSecs":90"#;
const LONG_LEASE: &str = r#""durationInSecs":7200"#;
/// Prime, so that with this step neither neighbours in the list nor those of one application follow each other.
const STEP: usize = 7_919;
const JSON: &str = "HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n";

impl Fleet {
    /// All instances once, in an order that means nothing.
    pub(super) fn shuffled(&self) -> impl Iterator<Item = usize> + Clone {
        (0..self.instances).map(|number| number * STEP % self.instances)
    }

    fn application(&self, instance: usize) -> usize {
        instance % self.applications
    }
}

impl Operation {
    /// All requests of this kind that differ, for instances that registered with `generation`.
    pub(super) fn requests(self, fleet: &Fleet, generation: u64) -> Vec<Vec<u8>> {
        let all: Vec<usize> = match self {
            Self::Renew | Self::Register => fleet.shuffled().collect(),
            Self::Batch => (0..fleet.instances).step_by(BATCH).collect(),
            Self::Application | Self::Vip => (0..fleet.applications).collect(),
            Self::FullGzip | Self::FullIdentity | Self::DeltaGzip => vec![0],
        };
        let request = |instance| {
            let mut request = Vec::new();
            self.write(fleet, instance, generation, &mut request);
            request
        };
        all.into_iter().map(request).collect()
    }

    /// Appends the request about an instance. A registration of a greater generation is newer; others name the
    /// generation of the last one.
    pub(super) fn write(self, fleet: &Fleet, instance: usize, generation: u64, request: &mut Vec<u8>) {
        let application = fleet.application(instance);
        let written = match self {
            Self::Renew => write!(
                request,
                "PUT /eureka/apps/APP-{application}/host-{instance}:app-{application}:8080?status=UP\
                 &lastDirtyTimestamp={} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
                DIRTY + generation
            ),
            Self::Register => {
                let body = registration(application, instance, generation, "").replace(LEASE, LONG_LEASE);
                write!(
                    request,
                    "POST /eureka/apps/APP-{application} HTTP/1.1\r\nHost: localhost\r\n\
                     Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
            }
            Self::Batch => {
                let body = batch(fleet, instance, generation);
                write!(
                    request,
                    "POST /eureka/peerreplication/batch/ {JSON}x-netflix-discovery-replication: true\r\n\
                     Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
            }
            Self::FullGzip => write!(request, "GET /eureka/apps {JSON}Accept-Encoding: gzip\r\n\r\n"),
            Self::FullIdentity => write!(request, "GET /eureka/apps {JSON}\r\n"),
            Self::DeltaGzip => write!(
                request,
                "GET /eureka/apps/delta {JSON}Accept-Encoding: gzip\r\n\r\n"
            ),
            Self::Application => write!(request, "GET /eureka/apps/APP-{application} {JSON}\r\n"),
            Self::Vip => write!(request, "GET /eureka/vips/app-{application} {JSON}\r\n"),
        };
        written.expect("a Vec takes all");
    }
}

/// An instance as Spring's client reports it; `more` is put behind its metadata.
pub(super) fn registration(application: usize, instance: usize, generation: u64, more: &str) -> String {
    let (high, middle, low) = (instance >> 16 & 255, instance >> 8 & 255, instance & 255);
    let (dirty, version, zone) = (DIRTY + generation, generation % 1000, instance % 3);
    let host = format!("host-{instance}.example.internal");
    format!(
        r#"{{"instance":{{"instanceId":"host-{instance}:app-{application}:8080","hostName":"{host}","app":"APP-{application}","ipAddr":"10.{high}.{middle}.{low}","status":"UP","overriddenStatus":"UNKNOWN","port":{{"$":8080,"@enabled":"true"}},"securePort":{{"$":443,"@enabled":"false"}},"countryId":1,"dataCenterInfo":{{"@class":"com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo","name":"MyOwn"}},"leaseInfo":{{"renewalIntervalInSecs":30,"durationInSecs":90,"registrationTimestamp":0,"lastRenewalTimestamp":0,"evictionTimestamp":0,"serviceUpTimestamp":0}},"metadata":{{"management.port":"8080","zone":"zone-{zone}","version":"1.4.{version:03}"{more}}},"homePageUrl":"http://{host}:8080/","statusPageUrl":"http://{host}:8080/actuator/info","healthCheckUrl":"http://{host}:8080/actuator/health","vipAddress":"app-{application}","secureVipAddress":"app-{application}","isCoordinatingDiscoveryServer":"false","lastUpdatedTimestamp":"{dirty}","lastDirtyTimestamp":"{dirty}"}}}}"#
    )
}

/// Heartbeats as a Spring server sends them to its peers.
fn batch(fleet: &Fleet, first: usize, generation: u64) -> String {
    let items: Vec<String> = fleet
        .shuffled()
        .cycle()
        .skip(first)
        .take(BATCH)
        .map(|instance| {
            let application = fleet.application(instance);
            let dirty = DIRTY + generation;
            format!(
                r#"{{"appName":"APP-{application}","id":"host-{instance}:app-{application}:8080","action":"Heartbeat","lastDirtyTimestamp":{dirty},"status":"UP"}}"#
            )
        })
        .collect();
    format!(r#"{{"replicationList":[{}]}}"#, items.join(","))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const FLEET: Fleet = Fleet {
        instances: 1_000,
        applications: 10,
    };

    #[test]
    fn every_instance_has_its_turn() {
        let all: BTreeSet<_> = FLEET.shuffled().collect();
        assert_eq!(all, (0..FLEET.instances).collect());
        let renewals: BTreeSet<_> = Operation::Renew.requests(&FLEET, 0).into_iter().collect();
        assert_eq!(renewals.len(), FLEET.instances);
        let batches = Operation::Batch.requests(&FLEET, 0);
        assert_eq!(batches.len(), FLEET.instances / BATCH);
        let text = String::from_utf8(batches.concat()).unwrap();
        let ids: BTreeSet<_> = text
            .split(r#""id":""#)
            .skip(1)
            .map(|rest| rest.split('"').next())
            .collect();
        assert_eq!(ids.len(), FLEET.instances);
    }

    /// `load.lua` looks for them in the first registration of each instance.
    #[test]
    fn a_first_registration_holds_the_marks_that_later_ones_replace() {
        let request = |generation| {
            let mut request = Vec::new();
            Operation::Register.write(&FLEET, 13, generation, &mut request);
            String::from_utf8(request).unwrap()
        };
        let text = request(0);
        assert!(text.contains(LONG_LEASE));
        assert_eq!(text.matches(&DIRTY.to_string()).count(), 2);
        assert_eq!(text.matches("1.4.000").count(), 1);
        assert!(text.find("1.4.000") < text.find(&DIRTY.to_string()));
        assert_eq!(text.len(), request(5 * PASSES + 123).len());
        let script = include_str!("load.lua");
        assert!(script.contains(&format!("\"{DIRTY}\"")) && script.contains("\"1.4.000\""));
    }
}
