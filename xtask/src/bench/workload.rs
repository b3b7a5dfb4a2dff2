//! What is asked: requests as real clients write them.

use std::io::Write;

/// The instances of the measurement: their names follow from their number.
#[derive(Clone, Debug)]
pub(super) struct Fleet {
    pub(super) instances: usize,
    pub(super) applications: usize,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum Operation {
    Renew,
    Register,
    FullGzip,
    /// The same while 100 registrations a second change the list.
    FullGzipBusy,
    FullIdentity,
    DeltaGzip,
}

impl Operation {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Renew => "renew",
            Self::Register => "register again, changed",
            Self::FullGzip => "full fetch, gzip",
            Self::FullGzipBusy => "full fetch, gzip, 100 changes/s",
            Self::FullIdentity => "full fetch, identity",
            Self::DeltaGzip => "delta fetch of 100 changes, gzip",
        }
    }

    /// Appends the request about an instance. `generation` makes each registration a newer one than the last.
    pub(super) fn write(self, fleet: &Fleet, instance: usize, generation: u64, request: &mut Vec<u8>) {
        let application = instance % fleet.applications;
        let written = match self {
            Self::Renew => write!(
                request,
                "PUT /eureka/apps/APP-{application}/host-{instance}:app-{application}:8080?status=UP\
                 &lastDirtyTimestamp={DIRTY} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
            ),
            Self::Register => {
                let body = registration(application, instance, generation, "");
                write!(
                    request,
                    "POST /eureka/apps/APP-{application} HTTP/1.1\r\nHost: localhost\r\n\
                     Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
            }
            Self::FullGzip | Self::FullGzipBusy => {
                write!(request, "GET /eureka/apps {JSON}Accept-Encoding: gzip\r\n\r\n")
            }
            Self::FullIdentity => write!(request, "GET /eureka/apps {JSON}\r\n"),
            Self::DeltaGzip => write!(
                request,
                "GET /eureka/apps/delta {JSON}Accept-Encoding: gzip\r\n\r\n"
            ),
        };
        written.expect("a Vec takes all");
    }
}

const DIRTY: u64 = 1_700_000_000_000;
const JSON: &str = "HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n";

/// An instance as Spring's client reports it; `more` is put behind its metadata.
pub(super) fn registration(application: usize, instance: usize, generation: u64, more: &str) -> String {
    let (high, middle, low) = (instance >> 16 & 255, instance >> 8 & 255, instance & 255);
    let (dirty, version, zone) = (DIRTY + generation, generation % 1000, instance % 3);
    let host = format!("host-{instance}.example.internal");
    format!(
        r#"{{"instance":{{"instanceId":"host-{instance}:app-{application}:8080","hostName":"{host}","app":"APP-{application}","ipAddr":"10.{high}.{middle}.{low}","status":"UP","overriddenStatus":"UNKNOWN","port":{{"$":8080,"@enabled":"true"}},"securePort":{{"$":443,"@enabled":"false"}},"countryId":1,"dataCenterInfo":{{"@class":"com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo","name":"MyOwn"}},"leaseInfo":{{"renewalIntervalInSecs":30,"durationInSecs":90,"registrationTimestamp":0,"lastRenewalTimestamp":0,"evictionTimestamp":0,"serviceUpTimestamp":0}},"metadata":{{"management.port":"8080","zone":"zone-{zone}","version":"1.4.{version}"{more}}},"homePageUrl":"http://{host}:8080/","statusPageUrl":"http://{host}:8080/actuator/info","healthCheckUrl":"http://{host}:8080/actuator/health","vipAddress":"app-{application}","secureVipAddress":"app-{application}","isCoordinatingDiscoveryServer":"false","lastUpdatedTimestamp":"{dirty}","lastDirtyTimestamp":"{dirty}"}}}}"#
    )
}
