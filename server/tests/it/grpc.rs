//! gRPC at its addresses: which ports there are, what is said at them, and what is too much.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use bytes::Bytes;
use eureka_grpc_api::proto;
use http::{HeaderMap, Request, StatusCode, Version};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_stream::StreamExt as _;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::call::Calls;
use crate::node::{Connection, Node, eureka, request, run, until};

const MIB: usize = 1 << 20;

fn reason(status: &tonic::Status) -> String {
    status
        .get_details_error_info()
        .map(|details| details.reason)
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_has_a_port_of_its_own() {
    let node = Node::start(&[]);
    let grpc = node.grpc.expect("by default");
    assert_ne!(grpc, node.address);
    let mut calls = Calls::to(&node).await;
    calls.register("A", "i").await.expect("it is taken");
    assert_eq!(node.ask("GET", "/eureka/apps/A/i").status, 200);
    assert_eq!(node.register("B", "j").status, 204);
    calls.renew("B", "j").await.expect("it is the same registry");
    // The port of REST knows nothing of it.
    let mut wrong = Calls::at(node.address, crate::call::Reads::All).await;
    let refused = wrong.renew("B", "j").await.expect_err("it is HTTP there");
    assert_eq!(refused.code(), Code::Unimplemented, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_call_is_told_so() {
    let node = Node::start(&[]);
    let grpc = node.grpc.expect("by default");
    let ask = |headers: &str| {
        let mut connection = Connection::to(grpc);
        connection.write(&request("GET", "/eureka/apps", headers, ""));
        let answer = connection.answer();
        assert_eq!(connection.end(), b"", "it is closed");
        answer
    };
    let answer = ask("");
    assert_eq!(answer.status, 415);
    assert!(
        answer.body.contains("gRPC is served at this address"),
        "{answer:?}"
    );
    let answer = ask("content-type: application/grpc\r\n");
    assert_eq!(answer.status, 505);
    assert!(answer.body.contains("HTTP/2"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn both_share_a_port_when_they_are_told_to() {
    let node = Node::serve(&["--listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"]);
    assert_eq!(node.grpc, Some(node.address));
    let mut calls = Calls::to(&node).await;
    calls.register("A", "i").await.expect("it is taken");
    assert_eq!(node.ask("GET", "/eureka/apps/A/i").status, 200);
    assert_eq!(node.ask("GET", "/").status, 200);
    // On the very connection that calls use.
    let stream = TcpStream::connect(node.address).await.expect("the node is there");
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .expect("the node is there");
    tokio::spawn(async move { drop(connection.await) });
    for (content_type, status) in [("application/json", "none"), ("application/grpc", "12")] {
        let request = Request::post(format!("http://{}/nonsense", node.address))
            .header("content-type", content_type)
            .body(Full::new(Bytes::new()))
            .expect("it is one");
        let answer = sender.send_request(request).await.expect("an answer");
        let said = answer
            .headers()
            .get("grpc-status")
            .map(|status| status.to_str().expect("text"));
        assert_eq!(said.unwrap_or("none"), status);
        let expected = if status == "none" {
            StatusCode::NOT_FOUND
        } else {
            StatusCode::OK
        };
        assert_eq!(answer.status(), expected);
    }
}

/// An address of this machine that nobody else uses: the default port of gRPC is the same on all.
fn own_host() -> Ipv4Addr {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 91, high, low)
}

fn free_port(host: Ipv4Addr) -> u16 {
    let listener = TcpListener::bind((host, 0)).expect("a free port");
    listener.local_addr().expect("it is bound").port()
}

#[test]
fn its_default_port_is_left_to_whoever_was_first() {
    let host = own_host();
    let start = || Node::serve(&["--listen", &format!("{host}:{}", free_port(host))]);
    let first = start();
    let default = SocketAddr::from((host, 9761));
    assert_eq!(first.grpc, Some(default));
    let second = start();
    assert_eq!(second.grpc, None);
    let warning = second
        .started
        .iter()
        .find(|line| line.contains("no gRPC: its default address"));
    let warning = warning.unwrap_or_else(|| panic!("{:?}", second.started));
    assert!(
        warning.contains("WARN") && warning.contains(&default.to_string()),
        "{warning}"
    );
    assert_eq!(second.register("A", "i").status, 204);
    // Who asks for it must get it.
    let third = format!("{host}:{}", free_port(host));
    let output = run(&["serve", "--listen", &third, "--grpc-listen", &default.to_string()]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&format!("cannot listen on {default}")), "{said}");
}

#[test]
fn it_can_be_off() {
    let node = Node::start(&["grpc.enabled=false"]);
    assert_eq!(node.grpc, None);
    let shared = [
        "--listen",
        "127.0.0.1:0",
        "--grpc-listen",
        "127.0.0.1:0",
        "--set",
        "grpc.enabled=false",
    ];
    assert_eq!(Node::serve(&shared).grpc, None);
}

#[test]
fn its_address_is_worked_out() {
    for (arguments, line) in [
        (&["config"][..], "grpc.listen = \"0.0.0.0:9761\" # derived"),
        (
            &["config", "--listen", "[::1]:80"],
            "grpc.listen = \"[::1]:9761\" # derived",
        ),
        (
            &["config", "--listen", "127.0.0.1:0"],
            "grpc.listen = \"127.0.0.1:0\" # derived",
        ),
        (
            &["config", "--grpc-listen", "10.0.0.1:7"],
            "grpc.listen = \"10.0.0.1:7\" # flag --grpc-listen",
        ),
    ] {
        let output = eureka(arguments).output().expect("the binary starts");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let found = text.lines().find(|line| line.starts_with("grpc.listen"));
        let found = found
            .expect("the key is there")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(found, line);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_reads_are_held_everything_that_lists_says_so() {
    let node = Node::start(&["compat.preset=eureka-netflix"]);
    let mut calls = Calls::to(&node).await;
    let list = calls
        .unary::<_, proto::ListApplicationsResponse>(
            "ListApplications",
            proto::ListApplicationsRequest::default(),
        )
        .await
        .expect_err("it is held");
    let watch = calls.watch().await.expect_err("it is held");
    for status in [list, watch] {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert_eq!(reason(&status), "READS_HELD", "{status:?}");
    }
    for headers in ["", "accept: text/event-stream\r\n"] {
        let feed = node.send("GET", "/api/v1/changes", headers, "");
        assert_eq!(feed.status, 503, "{feed:?}");
        assert!(feed.head.contains("retry-after"), "{feed:?}");
        assert!(!feed.body.is_empty(), "it says why");
    }
    calls.register("A", "i").await.expect("writes are served");
}

/// Sends the bytes of a request's body in pieces, and goes on for ever if `endless`; gives the status and its trailers.
async fn raw(node: &Node, method: &str, pieces: Vec<Bytes>, endless: bool) -> HeaderMap {
    let address = node.grpc.expect("it serves gRPC");
    let stream = TcpStream::connect(address).await.expect("the node is there");
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .expect("the node is there");
    tokio::spawn(async move { drop(connection.await) });
    let frames =
        tokio_stream::iter(pieces).map(|piece| Ok::<_, std::convert::Infallible>(Frame::data(piece)));
    let body = if endless {
        StreamBody::new(frames.chain(tokio_stream::pending())).boxed()
    } else {
        StreamBody::new(frames).boxed()
    };
    let request = Request::post(format!("http://{address}/eureka.v1.Registry/{method}"))
        .version(Version::HTTP_2)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(body)
        .expect("it is one");
    let answer = sender.send_request(request).await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK);
    let mut said = answer.headers().clone();
    let rest = answer.into_body().collect().await.expect("an end");
    said.extend(rest.trailers().cloned().unwrap_or_default());
    said
}

fn code(headers: &HeaderMap) -> Code {
    Code::from_bytes(headers.get("grpc-status").map_or(b"", |code| code.as_bytes()))
}

/// The five bytes before a message of this length.
fn head(length: usize) -> Bytes {
    let length = u32::try_from(length).expect("it is small");
    Bytes::from([&[0][..], &length.to_be_bytes()].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_megabytes_are_refused_and_cost_no_memory() {
    let node = Node::start(&[]);
    let before = node.memory();
    let length = 100 * MIB;
    let mut pieces = vec![head(length)];
    pieces.extend(std::iter::repeat_n(Bytes::from(vec![0; MIB]), 100));
    for method in ["Register", "KeepAlive"] {
        let said = crate::call::soon("a refusal", raw(&node, method, pieces.clone(), false)).await;
        assert_eq!(code(&said), Code::ResourceExhausted, "{method}: {said:?}");
    }
    let grown = node.memory().saturating_sub(before);
    assert!(grown < 32 * MIB as u64, "{} MiB more", grown / MIB as u64);
    Calls::to(&node)
        .await
        .register("A", "i")
        .await
        .expect("it goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_do_not_come_to_their_end_are_bounded_together_and_in_time() {
    let node = Node::start(&[
        "limits.body=1MiB",
        "limits.batch=1MiB",
        "limits.bodies=1MiB",
        "limits.body-timeout=1s",
    ]);
    let half = vec![head(600_000), Bytes::from(vec![0; 1000])];
    // Room is made by what is announced: there is none for a second one.
    let [one, other] = ["Register", "UpdateMetadata"].map(|method| raw(&node, method, half.clone(), true));
    let (one, other) = crate::call::soon("both end", async { tokio::join!(one, other) }).await;
    let mut codes = [code(&one), code(&other)];
    codes.sort_by_key(|code| i32::from(*code));
    assert_eq!(
        codes,
        [Code::DeadlineExceeded, Code::Unavailable],
        "{one:?} {other:?}"
    );
    assert_eq!(node.metric("eureka_body_timeouts_total"), 1.0);
    until("room is there again", || {
        let small = node.metric("eureka_requests_under_way") + node.metric("eureka_requests_that_stay");
        if small == 0.0 {
            Ok(())
        } else {
            Err(small.to_string())
        }
    });
    Calls::to(&node)
        .await
        .register("A", "i")
        .await
        .expect("there is room");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_headers_is_refused() {
    let node = Node::start(&[]);
    let mut calls = Calls::to(&node).await;
    let mut request = tonic::Request::new(proto::RenewRequest {
        renewal: Some(crate::call::renewal("A", "i")),
    });
    for n in 0..40 {
        let name: tonic::metadata::MetadataKey<_> = format!("x-{n}").parse().expect("a name");
        request
            .metadata_mut()
            .insert(name, "y".repeat(1_000).parse().expect("text"));
    }
    let codec = tonic_prost::ProstCodec::<proto::RenewRequest, proto::RenewResponse>::default();
    calls.0.ready().await.expect("the node is there");
    let path = "/eureka.v1.Registry/Renew".parse().expect("a path");
    let refused = calls
        .0
        .unary(request, path, codec)
        .await
        .expect_err("it is too much");
    assert_ne!(refused.code(), Code::NotFound, "{refused:?}");
    calls.register("A", "i").await.expect("the node goes on");
}
