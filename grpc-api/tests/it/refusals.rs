//! Requests that can be read and make no sense: each is refused with the field that is wrong, and changes nothing.

use eureka_grpc_api::Config;
use eureka_grpc_api::proto::{
    CancelRequest, ClearStatusRequest, DataCenter, GetApplicationRequest, GetInstanceRequest, Instance,
    LeaseTerms, ListApplicationsRequest, Port, RegisterRequest, RenewRequest, Renewal, SetStatusRequest,
    UpdateMetadataRequest,
};
use tonic::{Code, Status};

use crate::fixture::{Fixture, instance, told};

/// Number of no status.
const NONE: i32 = 6;

fn invalid(fields: &[&str]) -> (Code, String, Vec<String>) {
    let fields = fields.iter().map(|field| (*field).to_owned()).collect();
    (Code::InvalidArgument, "INVALID_FIELDS".to_owned(), fields)
}

/// Registers something, runs the case, and sees that nothing changed: no version, no snapshot, no lease.
async fn refused<F>(fields: &[&str], case: impl FnOnce(crate::fixture::Client) -> F)
where
    F: Future<Output = Result<(), Status>>,
{
    let fixture = Fixture::new();
    fixture.register("orders", "orders-1").await;
    fixture.advance(std::time::Duration::from_secs(1));
    let before = (fixture.registry.stats(), fixture.registered("ORDERS", "orders-1"));
    let edition = fixture.registry.snapshot().edition();
    let status = case(fixture.client()).await.expect_err("refused");
    assert_eq!(told(&status), invalid(fields));
    assert!(
        status.message().starts_with(fields[0]),
        "{} does not begin with {}",
        status.message(),
        fields[0]
    );
    let after = (fixture.registry.stats(), fixture.registered("ORDERS", "orders-1"));
    assert_eq!(after, before, "{fields:?}");
    assert_eq!(fixture.registry.snapshot().edition(), edition, "{fields:?}");
}

/// What is wrong with a registration, and how it is bent to that.
type Bend = (&'static [&'static str], fn(&mut Instance));

const BENT: &[Bend] = &[
    (&["instance.app"], |it| it.app.clear()),
    (&["instance.host_name"], |it| it.host_name.clear()),
    (&["instance.ip_address"], |it| it.ip_address.clear()),
    (
        &["instance.app", "instance.host_name", "instance.ip_address"],
        |it| *it = Instance::default(),
    ),
    (&["instance.status"], |it| it.status = NONE),
    (&["instance.status"], |it| it.status = -1),
    (&["instance.port.number"], |it| it.port = port(-1)),
    (&["instance.port.number"], |it| it.port = port(65_536)),
    (&["instance.secure_port.number"], |it| {
        it.secure_port = port(i32::MAX)
    }),
    (&["instance.lease_terms.renewal_interval_secs"], |it| {
        it.lease_terms = Some(LeaseTerms {
            renewal_interval_secs: 1 << 31,
            duration_secs: 1,
        });
    }),
    (&["instance.lease_terms.duration_secs"], |it| {
        it.lease_terms = Some(LeaseTerms {
            renewal_interval_secs: 0,
            duration_secs: u32::MAX,
        });
    }),
    (&["instance.data_center.name"], |it| {
        it.data_center = data_center("amazon", &[]);
    }),
    (&["instance.data_center.amazon"], |it| {
        it.data_center = data_center("MyOwn", &[("instance-id", "i-1")]);
    }),
    (&["instance.app"], |it| it.app = long()),
    (&["instance.instance_id"], |it| it.instance_id = long()),
    (&["instance.host_name"], |it| it.host_name = long()),
    (&["instance.ip_address"], |it| it.ip_address = long()),
    (&["instance.vip_address"], |it| it.vip_address = long()),
    (&["instance.secure_vip_address"], |it| {
        it.secure_vip_address = long()
    }),
    (&["instance.app_group"], |it| it.app_group = long()),
    (&["instance.home_page_url"], |it| it.home_page_url = long()),
    (&["instance.status_page_url"], |it| it.status_page_url = long()),
    (&["instance.health_check_url"], |it| it.health_check_url = long()),
    (&["instance.secure_health_check_url"], |it| {
        it.secure_health_check_url = long();
    }),
    (&["instance.asg_name"], |it| it.asg_name = long()),
    (&["instance.sid"], |it| it.sid = long()),
    (&["instance.metadata"], |it| {
        it.metadata = [("k".to_owned(), "v".repeat(64 << 10))].into();
    }),
    (&["instance.metadata"], |it| {
        it.metadata = [("k".to_owned(), "v".repeat(40 << 10))].into();
        it.data_center = data_center("Amazon", &[("k", &"v".repeat(24 << 10))]);
    }),
];

fn port(number: i32) -> Option<Port> {
    Some(Port {
        number,
        enabled: true,
    })
}

fn data_center(name: &str, amazon: &[(&str, &str)]) -> Option<DataCenter> {
    let amazon = amazon
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Some(DataCenter {
        name: name.to_owned(),
        amazon: amazon.collect(),
    })
}

/// One byte over the limit.
fn long() -> String {
    "x".repeat((8 << 10) + 1)
}

#[tokio::test]
async fn registrations() {
    for (fields, bend) in BENT {
        refused(fields, async move |mut client| {
            let mut bent = instance("orders", "orders-1");
            bend(&mut bent);
            let request = RegisterRequest { instance: Some(bent) };
            client.register(request).await.map(drop)
        })
        .await;
    }
    refused(&["instance"], async |mut client| {
        client.register(RegisterRequest::default()).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn what_is_exactly_as_long_as_allowed_is_taken() {
    let fixture = Fixture::new();
    let mut exact = instance("orders", "orders-1");
    exact.vip_address = "x".repeat(8 << 10);
    exact.metadata = [("k".to_owned(), "v".repeat((64 << 10) - 1))].into();
    exact.port = port(65_535);
    exact.secure_port = port(0);
    let request = RegisterRequest {
        instance: Some(exact),
    };
    fixture.client().register(request).await.unwrap();
    assert!(fixture.registered("ORDERS", "orders-1").is_some());
}

#[tokio::test]
async fn keys_that_are_none() {
    for (app, id, fields) in [
        ("", "orders-1", &["app"][..]),
        ("orders", "", &["instance_id"]),
        ("", "", &["app", "instance_id"]),
    ] {
        let (app, instance_id) = (app.to_owned(), id.to_owned());
        let prefixed: Vec<_> = fields.iter().map(|field| format!("renewal.{field}")).collect();
        let prefixed: Vec<_> = prefixed.iter().map(|field| &**field).collect();
        let renewal = Renewal {
            app: app.clone(),
            instance_id: instance_id.clone(),
            last_dirty_unix_ms: None,
        };
        refused(&prefixed, async move |mut client| {
            let request = RenewRequest {
                renewal: Some(renewal),
            };
            client.renew(request).await.map(drop)
        })
        .await;
        let key = (app, instance_id);
        let (app, instance_id) = key.clone();
        refused(fields, async move |mut client| {
            let request = CancelRequest { app, instance_id };
            client.cancel(request).await.map(drop)
        })
        .await;
        let (app, instance_id) = key.clone();
        refused(fields, async move |mut client| {
            let request = SetStatusRequest {
                app,
                instance_id,
                status: 1,
                last_dirty_unix_ms: None,
            };
            client.set_status(request).await.map(drop)
        })
        .await;
        let (app, instance_id) = key.clone();
        refused(fields, async move |mut client| {
            let request = ClearStatusRequest {
                app,
                instance_id,
                status: 1,
                last_dirty_unix_ms: None,
            };
            client.clear_status(request).await.map(drop)
        })
        .await;
        let (app, instance_id) = key;
        refused(fields, async move |mut client| {
            let request = UpdateMetadataRequest {
                app,
                instance_id,
                metadata: [("k".to_owned(), "v".to_owned())].into(),
            };
            client.update_metadata(request).await.map(drop)
        })
        .await;
    }
    refused(&["renewal"], async |mut client| {
        client.renew(RenewRequest::default()).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn statuses_that_are_none() {
    let (app, instance_id) = ("orders", "orders-1");
    for status in [0, NONE, -1] {
        refused(&["status"], async move |mut client| {
            let request = SetStatusRequest {
                app: app.to_owned(),
                instance_id: instance_id.to_owned(),
                status,
                last_dirty_unix_ms: Some(i64::MAX),
            };
            client.set_status(request).await.map(drop)
        })
        .await;
    }
    refused(&["status"], async |mut client| {
        let request = ClearStatusRequest {
            app: app.to_owned(),
            instance_id: instance_id.to_owned(),
            status: NONE,
            last_dirty_unix_ms: None,
        };
        client.clear_status(request).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn metadata_that_is_none_or_too_much() {
    for value in [None, Some("v".repeat(64 << 10))] {
        refused(&["metadata"], async |mut client| {
            let request = UpdateMetadataRequest {
                app: "orders".to_owned(),
                instance_id: "orders-1".to_owned(),
                metadata: value.map(|value| ("k".to_owned(), value)).into_iter().collect(),
            };
            client.update_metadata(request).await.map(drop)
        })
        .await;
    }
}

#[tokio::test]
async fn metadata_is_bounded_together_with_what_is_there() {
    let fixture = Fixture::with(Config {
        limits: eureka_registry_core::InstanceLimits {
            metadata: 10,
            text: 100,
        },
        ..Config::default()
    });
    let mut client = fixture.client();
    let mut held = instance("orders", "orders-1");
    held.metadata = [("12".to_owned(), "345".to_owned())].into();
    let request = RegisterRequest { instance: Some(held) };
    client.register(request).await.unwrap();
    let update = |value: &str| UpdateMetadataRequest {
        app: "orders".to_owned(),
        instance_id: "orders-1".to_owned(),
        metadata: [("k".to_owned(), value.to_owned())].into(),
    };
    let version = fixture.registry.version();
    let status = client.update_metadata(update("12345")).await.unwrap_err();
    assert_eq!(told(&status), invalid(&["metadata"]));
    assert_eq!(fixture.registry.version(), version);
    client.update_metadata(update("1234")).await.unwrap();
}

#[tokio::test]
async fn questions_that_make_no_sense() {
    refused(&["instance_id"], async |mut client| {
        client.get_instance(GetInstanceRequest::default()).await.map(drop)
    })
    .await;
    refused(&["instance_id"], async |mut client| {
        let request = GetInstanceRequest {
            app: "orders".to_owned(),
            instance_id: String::new(),
        };
        client.get_instance(request).await.map(drop)
    })
    .await;
    refused(&["app"], async |mut client| {
        client
            .get_application(GetApplicationRequest::default())
            .await
            .map(drop)
    })
    .await;
    for (field, request) in [
        ("filter", list("app = ORDERS", 0, "")),
        ("filter", list(&"(".repeat(5_000), 0, "")),
        ("page_size", list("", 1_001, "")),
        ("page_size", list("", u32::MAX, "")),
        ("page_token", list("", 0, "*")),
        ("page_token", list("", 0, "b3JkZXJz")),
    ] {
        refused(&[field], async |mut client| {
            client.list_applications(request).await.map(drop)
        })
        .await;
    }
}

fn list(filter: &str, page_size: u32, page_token: &str) -> ListApplicationsRequest {
    ListApplicationsRequest {
        filter: filter.to_owned(),
        page_size,
        page_token: page_token.to_owned(),
    }
}
