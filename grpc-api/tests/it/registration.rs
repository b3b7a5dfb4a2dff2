//! A registration over gRPC makes exactly the instance that one over REST makes of the same content, and what is read can be
//! registered again.

use std::sync::Arc;
use std::time::Duration;

use eureka_grpc_api::proto::{
    DataCenter, GetInstanceRequest, Instance, LeaseTerms, Port, RegisterRequest, Status,
};
use eureka_registry_core as core;
use eureka_registry_core::wire::{Dialect, Format, read_registration};
use serde_json::{Value, json};

use crate::fixture::{Fixture, instance};

/// The instance as a registry has it that got it over REST.
fn over_rest(body: &Value) -> Arc<core::Instance> {
    let body = json!({ "instance": body }).to_string();
    let read = read_registration(Format::Json, body.as_bytes(), Dialect::Lenient).expect("it is JSON");
    let app = read.app.clone().expect("it has an application");
    let given = read.validate(&app).expect("it is valid");
    let key = given.key();
    let fixture = Fixture::new();
    fixture
        .registry
        .register(core::Origin::Client, Arc::new(given), Duration::ZERO);
    fixture.registry.find(&key).expect("it is registered").instance
}

/// The same over gRPC.
async fn over_grpc(given: Instance) -> Arc<core::Instance> {
    let fixture = Fixture::new();
    let request = RegisterRequest {
        instance: Some(given),
    };
    fixture.client().register(request).await.expect("it is valid");
    let snapshot = fixture.registry.snapshot();
    let only = snapshot.instances().next().expect("it is registered");
    Arc::clone(&only.instance)
}

fn pairs(pairs: &[(&str, &str)]) -> std::collections::BTreeMap<String, String> {
    let pairs = pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    pairs.collect()
}

#[tokio::test]
async fn of_what_is_required() {
    let rest = over_rest(&json!({
        "app": "orders", "instanceId": "orders-1", "hostName": "host-1", "ipAddr": "10.0.0.1",
        "dataCenterInfo": {"name": "MyOwn"},
    }));
    assert_eq!(over_grpc(instance("orders", "orders-1")).await, rest);
}

#[tokio::test]
async fn of_everything() {
    let rest = over_rest(&json!({
        "app": "Straße", "instanceId": "Orders-1", "hostName": "host-1", "ipAddr": "10.0.0.1",
        "status": "STARTING", "port": {"$": 8080, "@enabled": "false"},
        "securePort": {"$": 8443, "@enabled": "true"},
        "vipAddress": "orders,shop", "secureVipAddress": "orders-tls",
        "metadata": {"@class": "java.util.Map", "b": "2", "a": "1", "leer": ""},
        "leaseInfo": {"renewalIntervalInSecs": 5, "durationInSecs": 15},
        "dataCenterInfo": {"name": "Netflix"},
        "appGroupName": "group", "homePageUrl": "http://a/", "statusPageUrl": "http://a/info",
        "healthCheckUrl": "http://a/health", "secureHealthCheckUrl": "https://a/health",
        "asgName": "asg", "countryId": -3, "sid": "s", "lastDirtyTimestamp": "1700000000000",
    }));
    let grpc = over_grpc(Instance {
        status: Status::Starting.into(),
        overridden_status: Status::Down.into(),
        port: Some(Port {
            number: 8080,
            enabled: false,
        }),
        secure_port: Some(Port {
            number: 8443,
            enabled: true,
        }),
        vip_address: "orders,shop".to_owned(),
        secure_vip_address: "orders-tls".to_owned(),
        metadata: pairs(&[("@class", "java.util.Map"), ("b", "2"), ("a", "1"), ("leer", "")]),
        lease_terms: Some(LeaseTerms {
            renewal_interval_secs: 5,
            duration_secs: 15,
        }),
        data_center: Some(DataCenter {
            name: "Netflix".to_owned(),
            amazon: pairs(&[]),
        }),
        app_group: "group".to_owned(),
        home_page_url: "http://a/".to_owned(),
        status_page_url: "http://a/info".to_owned(),
        health_check_url: "http://a/health".to_owned(),
        secure_health_check_url: "https://a/health".to_owned(),
        asg_name: "asg".to_owned(),
        country_id: Some(-3),
        sid: "s".to_owned(),
        last_dirty_unix_ms: Some(1_700_000_000_000),
        lease_times: Some(eureka_grpc_api::proto::LeaseTimes {
            registered_unix_ms: 1,
            ..Default::default()
        }),
        ..instance("Straße", "Orders-1")
    })
    .await;
    assert_eq!(grpc, rest);
}

#[tokio::test]
async fn of_machines_of_amazon() {
    for (id, machine) in [
        ("", &[("instance-id", "i-1"), ("local-ipv4", "10.0.0.1")][..]),
        ("", &[("availability-zone", "us-east-1a")]),
        ("orders-1", &[("@class", "x")]),
        ("", &[("instance-id", "")]),
    ] {
        let machine_json: serde_json::Map<_, _> = machine
            .iter()
            .map(|(key, value)| ((*key).to_owned(), json!(value)))
            .collect();
        let mut body = json!({
            "app": "orders", "hostName": "host-1", "ipAddr": "10.0.0.1", "dataCenterInfo": {
                "@class": "com.netflix.appinfo.AmazonInfo", "name": "Amazon", "metadata": machine_json,
            },
        });
        if !id.is_empty() {
            body["instanceId"] = json!(id);
        }
        let given = Instance {
            data_center: Some(DataCenter {
                name: "Amazon".to_owned(),
                amazon: pairs(machine),
            }),
            ..instance("orders", id)
        };
        assert_eq!(over_grpc(given).await, over_rest(&body), "{machine:?}");
    }
}

#[tokio::test]
async fn of_words_and_numbers_that_mean_none() {
    let rest = over_rest(&json!({
        "app": "orders", "instanceId": "orders-1", "hostName": "host-1", "ipAddr": "10.0.0.1",
        "sid": "na", "leaseInfo": {"renewalIntervalInSecs": 0, "durationInSecs": 0},
        "dataCenterInfo": {"name": "MyOwn"}, "countryId": 1, "lastDirtyTimestamp": "-5",
    }));
    for sid in ["na", "unknown", ""] {
        let given = Instance {
            sid: sid.to_owned(),
            lease_terms: Some(LeaseTerms::default()),
            data_center: Some(DataCenter::default()),
            last_dirty_unix_ms: Some(-5),
            ..instance("orders", "orders-1")
        };
        assert_eq!(over_grpc(given).await, rest, "{sid}");
    }
}

/// Random numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("it is small")
    }

    fn text(&mut self) -> Arc<str> {
        let letters = ["A", "b", "/", "-", "ü", "雪", "\"", " ", "<", "\0"];
        let len = 1 + self.below(6);
        (0..len)
            .map(|_| letters[self.below(letters.len())])
            .collect::<String>()
            .into()
    }

    fn optional(&mut self) -> Option<Arc<str>> {
        (self.below(2) == 0).then(|| self.text())
    }

    fn port(&mut self) -> core::Port {
        core::Port {
            number: i32::try_from(self.below(65_536)).expect("it is small"),
            enabled: self.below(2) == 0,
        }
    }

    /// In order, as gRPC gives them back.
    fn pairs(&mut self) -> core::Metadata {
        let pairs: std::collections::BTreeMap<_, _> =
            (0..self.below(4)).map(|_| (self.text(), self.text())).collect();
        pairs.iter().map(|(key, value)| (&**key, &**value)).collect()
    }

    fn instance(&mut self) -> core::Instance {
        let host = self.text();
        let blank = core::Instance::new(&self.text(), &self.text(), &host, &self.text());
        let mut machine = self.pairs();
        machine.insert("instance-id", "i-1");
        let mut sorted: Vec<_> = machine.iter().collect();
        sorted.sort_unstable();
        let machine = sorted.into_iter().collect();
        core::Instance {
            // It is upper case in every registry, like `app`.
            app_group: self.optional().map(|group| group.to_uppercase().into()),
            sid: self.optional(),
            port: self.port(),
            secure_port: self.port(),
            home_page_url: self.optional(),
            status_page_url: self.optional(),
            health_check_url: self.optional(),
            secure_health_check_url: self.optional(),
            vip_address: self.optional(),
            secure_vip_address: self.optional(),
            country_id: i32::try_from(self.below(1_000)).expect("it is small") - 500,
            data_center: match self.below(3) {
                0 => core::DataCenter::Amazon(machine),
                1 => core::DataCenter::MyOwn,
                _ => core::DataCenter::Netflix,
            },
            status: core::Status::ALL[self.below(5)],
            lease: core::LeaseTerms {
                renewal_interval_secs: u32::try_from(1 + self.below(1_000)).expect("it is small"),
                duration_secs: u32::try_from(1 + self.below(1_000)).expect("it is small"),
            },
            metadata: self.pairs(),
            last_dirty: Some(i64::try_from(self.below(1 << 40)).expect("it is small")),
            asg_name: self.optional(),
            ..blank
        }
    }
}

#[tokio::test]
async fn what_is_read_and_registered_elsewhere_is_the_same_instance() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for _ in 0..500 {
        let given = Arc::new(random.instance());
        let fixture = Fixture::new();
        fixture
            .registry
            .register(core::Origin::Client, Arc::clone(&given), Duration::ZERO);
        let get = GetInstanceRequest {
            app: given.app.to_string(),
            instance_id: given.id().to_owned(),
        };
        let read = fixture.client().get_instance(get).await.unwrap().into_inner();
        let read = read.instance.unwrap();
        assert_eq!(over_grpc(read).await, given);
    }
}
