//! Every call that is answered at once.

use std::time::Duration;

use eureka_grpc_api::proto::{
    Application, CancelRequest, ClearStatusRequest, GetApplicationRequest, GetInstanceRequest, Instance,
    LeaseTimes, ListApplicationsRequest, ListApplicationsResponse, RegisterRequest, RenewRequest, Renewal,
    SetStatusRequest, Status, UpdateMetadataRequest,
};
use eureka_registry_core::{Config, Cursor, Status as CoreStatus};
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::fixture::{BEGIN, Fixture, instance, told};

fn not_registered() -> (Code, String, Vec<String>) {
    (Code::NotFound, "NOT_REGISTERED".to_owned(), Vec::new())
}

#[tokio::test]
async fn what_is_registered_is_read_back_with_defaults_and_lease_times() {
    let fixture = Fixture::new();
    fixture.register("orders", "orders-1").await;
    fixture.advance(Duration::from_secs(5));
    let renewal = Renewal {
        app: "Orders".to_owned(),
        instance_id: "orders-1".to_owned(),
        last_dirty_unix_ms: None,
    };
    let request = RenewRequest {
        renewal: Some(renewal),
    };
    let renewed = fixture.client().renew(request).await.unwrap();
    assert!(!renewed.into_inner().content_outdated);

    let request = GetInstanceRequest {
        app: "orders".to_owned(),
        instance_id: "orders-1".to_owned(),
    };
    let found = fixture.client().get_instance(request).await.unwrap().into_inner();
    let begin = i64::try_from(BEGIN).unwrap();
    let found = found.instance.unwrap();
    assert_eq!(found.app, "ORDERS");
    assert_eq!(found.status(), Status::Up);
    assert_eq!(found.overridden_status(), Status::Unknown);
    assert_eq!(found.port.unwrap().number, 7001);
    assert!(found.port.unwrap().enabled);
    assert_eq!(found.secure_port.unwrap().number, 7002);
    assert!(!found.secure_port.unwrap().enabled);
    assert_eq!(found.lease_terms.unwrap().renewal_interval_secs, 30);
    assert_eq!(found.lease_terms.unwrap().duration_secs, 90);
    assert_eq!(found.data_center.unwrap().name, "MyOwn");
    assert_eq!(found.country_id, Some(1));
    assert_eq!(found.last_dirty_unix_ms, Some(begin));
    let times = LeaseTimes {
        registered_unix_ms: begin,
        renewed_unix_ms: begin + 5_000,
        service_up_unix_ms: begin,
        last_updated_unix_ms: begin,
    };
    assert_eq!(found.lease_times, Some(times));
}

#[tokio::test]
async fn the_newer_of_two_registrations_is_kept() {
    let fixture = Fixture::new();
    let register = |dirty, status: Status| RegisterRequest {
        instance: Some(Instance {
            last_dirty_unix_ms: Some(dirty),
            status: status.into(),
            ..instance("orders", "orders-1")
        }),
    };
    let mut client = fixture.client();
    let first = client.register(register(20, Status::Up)).await.unwrap();
    assert!(!first.into_inner().kept_newer);
    let older = client.register(register(10, Status::Down)).await.unwrap();
    assert!(older.into_inner().kept_newer);
    let kept = fixture.registered("ORDERS", "orders-1").unwrap();
    assert_eq!((kept.status, kept.last_dirty), (CoreStatus::Up, Some(20)));

    let renew = |dirty| RenewRequest {
        renewal: Some(Renewal {
            app: "orders".to_owned(),
            instance_id: "orders-1".to_owned(),
            last_dirty_unix_ms: dirty,
        }),
    };
    for (dirty, outdated) in [
        (None, false),
        (Some(20), false),
        (Some(10), false),
        (Some(21), true),
    ] {
        let renewed = client.renew(renew(dirty)).await.unwrap();
        assert_eq!(renewed.into_inner().content_outdated, outdated, "{dirty:?}");
    }
}

#[tokio::test]
async fn a_status_is_set_and_taken_back() {
    let fixture = Fixture::new();
    fixture.register("orders", "orders-1").await;
    let mut client = fixture.client();
    let set = || SetStatusRequest {
        app: "orders".to_owned(),
        instance_id: "orders-1".to_owned(),
        status: Status::OutOfService.into(),
        last_dirty_unix_ms: Some(1_900_000_000_000),
    };
    client.set_status(set()).await.unwrap();
    let seen = fixture.registered("ORDERS", "orders-1").unwrap();
    assert_eq!(seen.status, CoreStatus::OutOfService);
    assert_eq!(seen.overridden_status, CoreStatus::OutOfService);
    assert_eq!(seen.last_dirty, Some(1_900_000_000_000));

    let clear = |status: Status| ClearStatusRequest {
        app: "orders".to_owned(),
        instance_id: "orders-1".to_owned(),
        status: status.into(),
        last_dirty_unix_ms: None,
    };
    client.clear_status(clear(Status::Up)).await.unwrap();
    let seen = fixture.registered("ORDERS", "orders-1").unwrap();
    assert_eq!(
        (seen.status, seen.overridden_status),
        (CoreStatus::Up, CoreStatus::Unknown)
    );
    // There is no override any more: nothing to take back.
    client.clear_status(clear(Status::Unspecified)).await.unwrap();
    let seen = fixture.registered("ORDERS", "orders-1").unwrap();
    assert_eq!(seen.status, CoreStatus::Up);
    client.set_status(set()).await.unwrap();
    client.clear_status(clear(Status::Unspecified)).await.unwrap();
    let seen = fixture.registered("ORDERS", "orders-1").unwrap();
    assert_eq!(seen.status, CoreStatus::Unknown);
}

#[tokio::test]
async fn metadata_is_set_pair_by_pair() {
    let fixture = Fixture::new();
    let mut given = instance("orders", "orders-1");
    given.metadata = [("zone", "a"), ("version", "1")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
    let request = RegisterRequest {
        instance: Some(given),
    };
    fixture.client().register(request).await.unwrap();
    let update = UpdateMetadataRequest {
        app: "orders".to_owned(),
        instance_id: "orders-1".to_owned(),
        metadata: [("version", "2"), ("canary", "")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
    };
    fixture.client().update_metadata(update).await.unwrap();
    let seen = fixture.registered("ORDERS", "orders-1").unwrap();
    let mut pairs: Vec<_> = seen.metadata.iter().collect();
    pairs.sort_unstable();
    assert_eq!(pairs, [("canary", ""), ("version", "2"), ("zone", "a")]);
}

#[tokio::test]
async fn what_is_cancelled_is_gone() {
    let fixture = Fixture::new();
    fixture.register("orders", "orders-1").await;
    let cancel = || CancelRequest {
        app: "orders".to_owned(),
        instance_id: "orders-1".to_owned(),
    };
    fixture.client().cancel(cancel()).await.unwrap();
    assert_eq!(fixture.registered("ORDERS", "orders-1"), None);
    let version = fixture.registry.version();
    let again = fixture.client().cancel(cancel()).await.unwrap_err();
    assert_eq!(told(&again), not_registered());
    assert_eq!(fixture.registry.version(), version);
}

#[tokio::test]
async fn whoever_is_not_registered_is_told_so_by_every_call() {
    let fixture = Fixture::new();
    fixture.register("orders", "other").await;
    let version = fixture.registry.version();
    let mut client = fixture.client();
    let (app, instance_id) = ("orders".to_owned(), "orders-1".to_owned());
    let renew = RenewRequest {
        renewal: Some(Renewal {
            app: app.clone(),
            instance_id: instance_id.clone(),
            last_dirty_unix_ms: None,
        }),
    };
    let set = SetStatusRequest {
        app: app.clone(),
        instance_id: instance_id.clone(),
        status: Status::Down.into(),
        last_dirty_unix_ms: None,
    };
    let clear = ClearStatusRequest {
        app: app.clone(),
        instance_id: instance_id.clone(),
        status: Status::Unspecified.into(),
        last_dirty_unix_ms: None,
    };
    let update = UpdateMetadataRequest {
        app: app.clone(),
        instance_id: instance_id.clone(),
        metadata: [("a".to_owned(), "b".to_owned())].into(),
    };
    let get = |app: &str| GetInstanceRequest {
        app: app.to_owned(),
        instance_id: instance_id.clone(),
    };
    let refusals = [
        client.renew(renew).await.err(),
        client.set_status(set).await.err(),
        client.clear_status(clear).await.err(),
        client.update_metadata(update).await.err(),
        client.get_instance(get("orders")).await.err(),
        client.get_instance(get("")).await.err(),
    ];
    for (index, refusal) in refusals.into_iter().enumerate() {
        assert_eq!(told(&refusal.unwrap()), not_registered(), "{index}");
    }
    assert_eq!(fixture.registry.version(), version);
}

#[tokio::test]
async fn an_id_alone_finds_the_first_application_that_has_it() {
    let fixture = Fixture::new();
    fixture.register("payments", "shared").await;
    fixture.register("orders", "shared").await;
    let request = GetInstanceRequest {
        app: String::new(),
        instance_id: "shared".to_owned(),
    };
    let found = fixture.client().get_instance(request).await.unwrap().into_inner();
    assert_eq!(found.instance.unwrap().app, "ORDERS");
}

#[tokio::test]
async fn an_application_is_told_whole_and_in_order() {
    let fixture = Fixture::new();
    for (app, id) in [("orders", "b"), ("orders", "a"), ("orders2", "c")] {
        fixture.register(app, id).await;
    }
    let get = |app: &str| GetApplicationRequest { app: app.to_owned() };
    let found = fixture
        .client()
        .get_application(get("Orders"))
        .await
        .unwrap()
        .into_inner();
    let application = found.application.unwrap();
    assert_eq!(application.name, "ORDERS");
    let ids: Vec<_> = application
        .instances
        .iter()
        .map(|instance| &*instance.instance_id)
        .collect();
    assert_eq!(ids, ["a", "b"]);
    let cursor = Cursor::parse(&found.cursor).unwrap();
    assert_eq!(cursor, fixture.registry.cursor(fixture.registry.version()));

    let none = fixture.client().get_application(get("order")).await.unwrap_err();
    assert_eq!(
        told(&none),
        (Code::NotFound, "NO_SUCH_APPLICATION".to_owned(), Vec::new())
    );
}

/// All pages, by their applications and instances.
async fn pages(fixture: &Fixture, filter: &str, page_size: u32) -> Vec<ListApplicationsResponse> {
    let mut pages: Vec<ListApplicationsResponse> = Vec::new();
    loop {
        let page_token = pages.last().map(|page| page.next_page_token.clone());
        let request = ListApplicationsRequest {
            filter: filter.to_owned(),
            page_size,
            page_token: page_token.unwrap_or_default(),
        };
        let page = fixture.client().list_applications(request).await;
        let page = page.expect("it is valid").into_inner();
        let is_last = page.next_page_token.is_empty();
        pages.push(page);
        if is_last {
            return pages;
        }
    }
}

fn shape(applications: &[Application]) -> Vec<(&str, Vec<&str>)> {
    applications
        .iter()
        .map(|application| {
            let instances = application.instances.iter();
            let ids = instances.map(|instance| &*instance.instance_id).collect();
            (&*application.name, ids)
        })
        .collect()
}

#[tokio::test]
async fn lists_come_by_pages_that_may_split_an_application() {
    let fixture = Fixture::new();
    for (app, id) in [("a", "1"), ("a", "2"), ("a", "3"), ("b", "1"), ("c", "1")] {
        fixture.register(app, id).await;
    }
    let two = pages(&fixture, "", 2).await;
    let shapes: Vec<_> = two.iter().map(|page| shape(&page.applications)).collect();
    assert_eq!(
        shapes,
        [
            vec![("A", vec!["1", "2"])],
            vec![("A", vec!["3"]), ("B", vec!["1"])],
            vec![("C", vec!["1"])],
        ]
    );
    let selected = pages(&fixture, "id == 1 && app != B", 0).await;
    assert_eq!(selected.len(), 1);
    assert_eq!(
        shape(&selected[0].applications),
        [("A", vec!["1"]), ("C", vec!["1"])]
    );
    assert!(selected[0].applications[0].instances[0].lease_times.is_some());
    let cursor = fixture.registry.cursor(fixture.registry.version()).to_string();
    assert_eq!(selected[0].cursor, cursor);
}

#[tokio::test]
async fn a_page_of_large_instances_ends_early_and_none_is_lost() {
    let fixture = Fixture::new();
    for number in 0..40 {
        let mut large = instance("large", &format!("{number:02}"));
        large.metadata = [("text".to_owned(), "x".repeat(60_000))].into();
        let request = RegisterRequest {
            instance: Some(large),
        };
        fixture.client().register(request).await.unwrap();
    }
    let pages = pages(&fixture, "", 1_000).await;
    let sizes: Vec<_> = pages
        .iter()
        .map(|page| {
            page.applications
                .iter()
                .map(|app| app.instances.len())
                .sum::<usize>()
        })
        .collect();
    assert_eq!(sizes, [18, 18, 4]);
}

#[tokio::test]
async fn a_list_that_finds_little_goes_on_behind_an_empty_page() {
    let fixture = Fixture::new();
    let instance = eureka_registry_core::Instance::new("many", "first", "h", "10.0.0.1");
    for number in 0..20_001 {
        let mut instance = instance.clone();
        instance.instance_id = Some(format!("{number:05}").into());
        let registered = fixture.registry.register(
            eureka_registry_core::Origin::Client,
            std::sync::Arc::new(instance),
            Duration::ZERO,
        );
        assert_eq!(registered, eureka_registry_core::Registered::Accepted);
    }
    let pages = pages(&fixture, "id == 20000", 10).await;
    let shapes: Vec<_> = pages.iter().map(|page| shape(&page.applications)).collect();
    assert_eq!(shapes, [vec![], vec![("MANY", vec!["20000"])]]);
}

#[tokio::test]
async fn while_reads_are_held_lists_are_unavailable_and_all_else_is_served() {
    let fixture = Fixture::held(Config::default(), eureka_grpc_api::Config::default());
    fixture.register("orders", "orders-1").await;
    let mut client = fixture.client();
    let get = GetInstanceRequest {
        app: "orders".to_owned(),
        instance_id: "orders-1".to_owned(),
    };
    client.get_instance(get).await.unwrap();
    let application = GetApplicationRequest {
        app: "orders".to_owned(),
    };
    let refusals = [
        client.get_application(application).await.err(),
        client
            .list_applications(ListApplicationsRequest::default())
            .await
            .err(),
    ];
    for refusal in refusals.map(Option::unwrap) {
        assert_eq!(
            told(&refusal),
            (Code::Unavailable, "READS_HELD".to_owned(), Vec::new())
        );
        let retry = refusal.get_details_retry_info().unwrap();
        assert_eq!(retry.retry_delay, Some(Duration::from_secs(1)));
    }
}
