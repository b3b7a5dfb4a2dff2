//! HTTP/2 by prior knowledge on the same port.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::TcpStream;

use crate::node::{BOUND, Node};

type Sender = http2::SendRequest<Empty<Bytes>>;

async fn connect(node: &Node) -> Sender {
    let stream = TcpStream::connect(node.address).await.expect("the node is there");
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .expect("the node is there");
    // It ends with the sender.
    tokio::spawn(async move { drop(connection.await) });
    sender
}

fn get(node: &Node, path: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("http://{}{path}", node.address))
        .body(Empty::new())
        .expect("the node is there")
}

#[tokio::test]
async fn many_requests_share_a_connection() {
    let node = Node::start(&[]);
    assert_eq!(node.register("A", "i").status, 204);
    let mut sender = connect(&node).await;
    let answers: Vec<_> = (0..200)
        .map(|_| sender.send_request(get(&node, "/eureka/apps/A/i")))
        .collect();
    for answer in answers {
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(body.starts_with(b"<instance>"), "{body:?}");
    }
    assert_eq!(node.metric("eureka_connections"), 2.0);
}

#[tokio::test]
async fn a_flood_of_headers_is_refused() {
    let node = Node::start(&[]);
    let mut sender = connect(&node).await;
    let mut request = get(&node, "/health/live");
    for n in 0..40 {
        let name: hyper::header::HeaderName = format!("x-{n}").parse().unwrap();
        request
            .headers_mut()
            .insert(name, "y".repeat(1_000).parse().unwrap());
    }
    // Refused by a status or by a reset of the stream; either way the node goes on.
    if let Ok(answer) = sender.send_request(request).await {
        assert_eq!(answer.status(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    }
    let mut sender = connect(&node).await;
    let answer = sender.send_request(get(&node, "/health/live")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_stream_that_takes_nothing_ends_its_connection() {
    let node = Node::start(&["limits.write-timeout=300ms"]);
    let stream = TcpStream::connect(node.address).await.expect("the node is there");
    let mut client = http2::Builder::new(TokioExecutor::new());
    client
        .timer(TokioTimer::new())
        // The client is there and asks for pings all the time, but has no room for bodies.
        .keep_alive_interval(Duration::from_millis(50))
        .keep_alive_timeout(BOUND)
        .initial_stream_window_size(0);
    let (mut sender, connection) = client.handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request: Request<Empty<Bytes>> = get(&node, "/eureka/apps");
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    tokio::time::timeout(BOUND, connection)
        .await
        .expect("the node ends the connection")
        .expect("no panic")
        .expect_err("it is cut");
    assert_eq!(
        node.metric("eureka_connections_closed_total{reason=\"unread\"}"),
        1.0
    );
}
