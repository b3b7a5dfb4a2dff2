//! What is beneath the calls: content types, frames, sizes, compression, deadlines.

use std::convert::Infallible;
use std::io::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use eureka_grpc_api::proto::{GetInstanceRequest, RegisterRequest};
use eureka_grpc_api::{Config, Grpc, Reason};
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body::Frame;
use http_body_util::Full;
use prost::Message as _;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tower::ServiceExt as _;

use crate::fixture::{Fixture, frame, instance, refused, request, told};

/// Every call that takes one message.
const CALLS: [&str; 10] = [
    "Register",
    "Renew",
    "Cancel",
    "SetStatus",
    "ClearStatus",
    "UpdateMetadata",
    "GetInstance",
    "GetApplication",
    "ListApplications",
    "Watch",
];

fn registration() -> Vec<u8> {
    let request = RegisterRequest {
        instance: Some(instance("orders", "orders-1")),
    };
    request.encode_to_vec()
}

#[tokio::test]
async fn only_posts_of_the_right_type_are_grpc() {
    let fixture = Fixture::new();
    for (kind, status) in [
        ("application/grpc", 200),
        ("application/grpc+proto", 200),
        ("Application/gRPC; charset=utf-8", 200),
        ("", 415),
        ("application/json", 415),
        ("application/grpc-web", 415),
        ("application/grpc+json", 415),
        ("application/grpcx", 415),
    ] {
        let mut request = request("Register", frame(0, &registration()));
        request
            .headers_mut()
            .insert("content-type", kind.parse().unwrap());
        let version = fixture.registry.version();
        let answer = fixture.grpc.service().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), status, "{kind}");
        assert!(!answer.headers().contains_key("grpc-status"), "{kind}");
        let is_taken = status == 200;
        assert_eq!(fixture.registry.version() != version, is_taken, "{kind}");
    }
    let mut get = request("Register", Bytes::new());
    *get.method_mut() = http::Method::GET;
    let answer = fixture.grpc.service().oneshot(get).await.unwrap();
    assert_eq!(answer.status(), 405);
    assert_eq!(answer.headers()["allow"], "POST");
}

#[tokio::test]
async fn what_is_not_there_is_unimplemented() {
    let fixture = Fixture::new();
    for path in [
        "/",
        "/eureka.v1.Registry",
        "/eureka.v1.Registry/",
        "/eureka.v1.Registry/register",
        "/eureka.v2.Registry/Register",
        "/grpc.health.v1.Health/List",
    ] {
        let mut request = request("Register", frame(0, &registration()));
        *request.uri_mut() = path.parse().unwrap();
        let (status, _) = refused(&fixture, request).await;
        assert_eq!(status.code(), Code::Unimplemented, "{path}");
    }
    assert_eq!(fixture.registry.version(), 0);
}

#[tokio::test]
async fn what_cannot_be_read_is_the_clients_fault() {
    let fixture = Fixture::new();
    let whole = frame(0, &registration());
    let cut = whole.slice(..whole.len() - 1);
    let bodies = [
        frame(0, &[0x0a, 5, b'a']),
        frame(0, &[0x0a, 1, 0xff]),
        frame(0, &[0x07]),
        Bytes::new(),
        cut,
        Bytes::from_static(&[0, 0, 0]),
    ];
    for call in CALLS {
        for (index, body) in bodies.iter().enumerate() {
            let (status, _) = refused(&fixture, request(call, body.clone())).await;
            let expected = (Code::InvalidArgument, "UNREADABLE".to_owned(), Vec::new());
            assert_eq!(told(&status), expected, "{call} {index}: {}", status.message());
        }
    }
    assert_eq!(fixture.registry.version(), 0);
}

#[tokio::test]
async fn a_compression_flag_that_makes_no_sense_is_internal_as_specified() {
    let fixture = Fixture::new();
    for flag in [1, 2] {
        let (status, _) = refused(&fixture, request("Register", frame(flag, &registration()))).await;
        assert_eq!(status.code(), Code::Internal, "{flag}");
    }
    assert_eq!(fixture.registry.version(), 0);
}

#[tokio::test]
async fn messages_have_a_limit_also_when_they_are_inflated() {
    let message = registration();
    let config = |message| Config {
        message,
        ..Config::default()
    };
    let too_large = (Code::ResourceExhausted, "TOO_LARGE".to_owned(), Vec::new());

    let fixture = Fixture::with(config(message.len() - 1));
    let (status, _) = refused(&fixture, request("Register", frame(0, &message))).await;
    assert_eq!(told(&status), too_large);

    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(&vec![0; 1 << 20]).unwrap();
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 10_000);
    let fixture = Fixture::with(config(10_000));
    let mut compressed = request("Register", frame(1, &bomb));
    compressed
        .headers_mut()
        .insert("grpc-encoding", "gzip".parse().unwrap());
    let (status, _) = refused(&fixture, compressed).await;
    assert_eq!(told(&status), too_large);
    assert_eq!(fixture.registry.version(), 0);
}

#[tokio::test]
async fn requests_may_be_compressed_and_answers_are_not() {
    let fixture = Fixture::new();
    let mut client = fixture
        .client()
        .send_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Gzip);
    let request = RegisterRequest {
        instance: Some(instance("orders", "orders-1")),
    };
    client.register(request).await.unwrap();
    let get = GetInstanceRequest {
        app: "orders".to_owned(),
        instance_id: "orders-1".to_owned(),
    };
    let answer = client.get_instance(get).await.unwrap();
    assert_eq!(answer.metadata().get("grpc-encoding"), None);

    let mut deflated = crate::fixture::request("Register", frame(1, b"x"));
    deflated
        .headers_mut()
        .insert("grpc-encoding", "deflate".parse().unwrap());
    let (status, headers) = refused(&fixture, deflated).await;
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(headers["grpc-accept-encoding"], "gzip,identity");
}

#[tokio::test]
async fn a_deadline_that_has_passed_or_is_none_changes_nothing() {
    let fixture = Fixture::new();
    let timed = |timeout: &str| {
        let mut request = request("Register", frame(0, &registration()));
        request
            .headers_mut()
            .insert("grpc-timeout", timeout.parse().unwrap());
        request
    };
    let (status, _) = refused(&fixture, timed("0n")).await;
    assert_eq!(status.code(), Code::DeadlineExceeded);
    for bad in ["", "1", "-1S", "100000000S", "1h"] {
        let (status, _) = refused(&fixture, timed(bad)).await;
        let expected = (Code::InvalidArgument, "INVALID_TIMEOUT".to_owned(), Vec::new());
        assert_eq!(told(&status), expected, "{bad}");
    }
    assert_eq!(fixture.registry.version(), 0);
    let answer = fixture.grpc.service().oneshot(timed("99999999H")).await.unwrap();
    assert!(!answer.headers().contains_key("grpc-status"));
    assert_eq!(fixture.registry.version(), 1);
}

/// A body that never comes.
struct Stalled;

impl http_body::Body for Stalled {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_does_not_arrive_in_time_is_given_up() {
    let fixture = Fixture::new();
    let mut stalled = request("Register", Bytes::new()).map(|_: Full<Bytes>| Stalled);
    stalled
        .headers_mut()
        .insert("grpc-timeout", "1500m".parse().unwrap());
    let began = tokio::time::Instant::now();
    let (status, _) = refused(&fixture, stalled).await;
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(began.elapsed(), Duration::from_millis(1_500));
}

#[tokio::test]
async fn layers_refuse_in_the_same_form() {
    let retry = Duration::from_secs(7);
    let answer = Grpc::refuse(Code::Unavailable, Reason::Overloaded, Some(retry));
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/grpc");
    let status = Status::from_header_map(answer.headers()).unwrap();
    assert_eq!(
        told(&status),
        (Code::Unavailable, "OVERLOADED".to_owned(), Vec::new())
    );
    let details = status.get_details_retry_info().unwrap();
    assert_eq!(details.retry_delay, Some(retry));
}
