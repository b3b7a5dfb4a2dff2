//! Paths.

use std::borrow::Cow;

use eureka_registry_core::wire::{RepairKind, Route};

fn instance<'a>(app: &'a str, id: &'a str) -> Option<Route<'a>> {
    Some(Route::Instance {
        app: app.into(),
        id: id.into(),
    })
}

#[test]
fn both_prefixes_slashes_and_matrix_parameters_lead_to_the_same_route() {
    for path in [
        "/eureka/apps",
        "/eureka/apps/",
        "/eureka/v2/apps",
        "/eureka/v2/apps/",
        "/eureka//apps",
        "/eureka/apps;x=1",
    ] {
        assert_eq!(Route::parse(path), Some(Route::Apps), "{path}");
    }
    assert_eq!(Route::parse("/eureka/apps/delta"), Some(Route::Delta));
    assert_eq!(Route::parse("/eureka/peerreplication/batch/"), Some(Route::Batch));
    assert_eq!(
        Route::parse("/api/v1/preservation/accept"),
        Some(Route::PreservationAccept)
    );
    for kind in RepairKind::ALL {
        let path = format!("/api/v1/repair/{}", kind.as_str());
        let route = Route::Repair(kind);
        assert_eq!(route.to_string(), path);
        assert_eq!(Route::parse(&path), Some(route), "{path}");
    }
}

#[test]
fn names_are_decoded_one_by_one() {
    for (path, id) in [
        ("h%3Afoo%3a8080", "h:foo:8080"),
        ("my%20host", "my host"),
        ("a+b", "a+b"),
        ("a%2Fb", "a/b"),
        ("a%252Fb", "a%2Fb"),
        ("%2e%2E", ".."),
        ("..", ".."),
        ("a%00%0a", "a\0\n"),
        ("h%C3%B4st", "hôst"),
        ("hôst", "hôst"),
        ("a%3Bv=1", "a;v=1"),
        ("delta", "delta"),
    ] {
        let path = format!("/eureka/v2/apps/APP/{path}");
        assert_eq!(Route::parse(&path), instance("APP", id), "{path}");
    }
}

#[test]
fn what_is_no_path_of_ours_is_none() {
    for path in [
        "",
        "/",
        "eureka/apps",
        "/apps",
        "/v2/apps",
        "/eureka",
        "/eureka/",
        "/eureka/v2",
        "/eureka/v1/apps",
        "/eureka/v3/apps",
        "/eureka/APPS",
        "/eureka/foo",
        "/eureka/vips",
        "/eureka/instances/",
        "/eureka/serverinfo",
        "/eureka/apps/A/i/foo",
        "/eureka/apps/A/i/status/x",
        "/eureka/peerreplication",
        "/eureka/asg/a",
        "/api/v1",
        "/api/v2/node",
        "/api/v1/repair",
        "/api/v1/repair/root",
        "/api/v1/repair/Compare",
        "/api/v1/repair/copy/x",
        "/api/v1/repair/..%2fcopy",
        "/eureka/repair/copy",
        "/api/repair/copy",
        "/eureka/apps/%zz",
        "/eureka/apps/%2",
        "/eureka/apps/%",
        "/eureka/apps/%ff",
        "/eureka/apps/A/%C3",
        "/eureka/js/foo.js",
    ] {
        assert_eq!(Route::parse(path), None, "{path}");
    }
    assert_eq!(Route::parse(&"/eureka/apps".repeat(100_000)), None);
    assert_eq!(Route::parse(&"/".repeat(1_000_000)), None);
}

#[test]
fn only_the_exact_word_delta_is_reserved() {
    for app in ["DELTA", "Delta", "deltas"] {
        let route = Route::App { app: app.into() };
        assert_eq!(Route::parse(&format!("/eureka/apps/{app}")), Some(route));
    }
    let lower = Route::App { app: "delta".into() };
    assert_eq!(lower.to_string(), "/eureka/apps/DELTA");
}

#[test]
fn methods_are_listed_in_java_s_order() {
    let allow = |path: &str| Route::parse(path).expect("a route").methods().join(",");
    assert_eq!(allow("/eureka/apps"), "GET,OPTIONS");
    assert_eq!(allow("/eureka/apps/A"), "POST,GET,OPTIONS");
    assert_eq!(allow("/eureka/apps/A/i"), "DELETE,GET,OPTIONS,PUT");
    assert_eq!(allow("/eureka/asg/a/status"), "OPTIONS,PUT");
    assert_eq!(allow("/eureka/peerreplication/batch"), "POST,OPTIONS");
    assert_eq!(allow("/api/v1/repair/copy"), "POST,OPTIONS");
}

#[test]
fn a_printed_route_is_parsed_again() {
    for id in [
        "h:foo:8080",
        "a/b",
        "..",
        ".",
        "a b+c%;d?#é😀\0",
        "v1.2-x_~",
        "delta",
    ] {
        let (app, id) = (Cow::Borrowed("A/ é"), Cow::Borrowed(id));
        for route in [
            Route::App { app: app.clone() },
            Route::Instance {
                app: app.clone(),
                id: id.clone(),
            },
            Route::InstanceStatus {
                app: app.clone(),
                id: id.clone(),
            },
            Route::InstanceMetadata { app, id: id.clone() },
            Route::InstanceById { id: id.clone() },
            Route::Vip { address: id.clone() },
            Route::SecureVip { address: id.clone() },
            Route::AsgStatus { name: id.clone() },
        ] {
            let path = route.to_string();
            assert!(path.bytes().all(|byte| byte.is_ascii_graphic()), "{path}");
            assert_eq!(Route::parse(&path), Some(route), "{path}");
        }
    }
}
