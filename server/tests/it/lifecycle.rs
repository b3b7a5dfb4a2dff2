//! Start and end of the process.

use std::io::Read as _;
use std::net::TcpStream;

use rustix::process::Signal;

use crate::node::{Node, registration};

/// A registration of which the last byte is missing.
fn half_a_request(node: &Node) -> (crate::node::Connection, String) {
    let body = registration("A", "i");
    let (sent, rest) = body.split_at(body.len() - 1);
    let mut connection = node.connect();
    connection.write(
        format!(
            "POST /eureka/apps/A HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{sent}",
            body.len()
        )
        .as_bytes(),
    );
    // It is under way as soon as it is counted.
    node.metric_becomes("eureka_requests_under_way", 1.0);
    (connection, rest.to_owned())
}

/// Where it serves gRPC.
fn grpc(node: &Node) -> std::net::SocketAddr {
    node.grpc.expect("on a port of its own")
}

#[test]
fn it_says_that_the_api_is_open_before_it_is_ready() {
    let node = Node::start(&["log.level=warn"]);
    let [warning, ready] = &node.started[..] else {
        panic!("{:?}", node.started);
    };
    assert!(warning.contains("WARN the Eureka API is OPEN"), "{warning}");
    assert_eq!(
        *ready,
        format!("ready http={} grpc={}", node.address, grpc(&node))
    );
    let quiet = Node::start(&["log.level=error"]);
    assert_eq!(quiet.started.len(), 1, "{:?}", quiet.started);
}

#[test]
fn sigterm_lets_requests_end_and_exits_0() {
    let node = Node::start(&[]);
    let address = node.address;
    let (mut request, rest) = half_a_request(&node);
    let mut silent = node.connect();
    node.signal(Signal::TERM);
    node.line("stopping");
    // Who has said nothing is not waited for.
    assert_eq!(silent.end(), b"");
    // No new connection is served.
    if let Ok(mut stream) = TcpStream::connect(address) {
        assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    }
    request.write(rest.as_bytes());
    assert_eq!(request.answer().status, 204);
    node.line("stopped");
    assert_eq!(node.end().code(), Some(0));
}

#[test]
fn draining_ends_in_time() {
    let node = Node::start(&["server.drain-timeout=100ms"]);
    let (mut request, _) = half_a_request(&node);
    node.signal(Signal::INT);
    node.line("stopped before all requests under way had ended");
    assert_eq!(node.end().code(), Some(0));
    assert_eq!(request.end(), b"");
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let node = Node::start(&["server.drain-timeout=1h"]);
    let (_request, _) = half_a_request(&node);
    node.signal(Signal::TERM);
    node.line("stopping");
    node.signal(Signal::TERM);
    assert_eq!(node.end().code(), Some(0));
}

#[test]
fn the_log_can_be_json_line_by_line() {
    let node = Node::start(&["log.format=json", "log.level=debug"]);
    assert_eq!(node.register("A", "i\\n2").status, 204);
    let ready: serde_json::Value =
        serde_json::from_str(&node.started[node.started.len() - 1]).expect("the ready line is an object too");
    assert_eq!(
        ready["message"],
        format!("ready http={} grpc={}", node.address, grpc(&node))
    );
    let line = node.line("registered");
    let line: serde_json::Value = serde_json::from_str(&line).expect("a line is an object");
    assert_eq!(line["message"], "registered");
    assert_eq!(line["app"], "\"A\"");
    assert_eq!(line["id"], "\"i\\n2\"");
}

#[test]
fn log_lines_quote_what_strangers_chose() {
    let node = Node::start(&[]);
    assert_eq!(node.register("A", "i\\nWARN forged").status, 204);
    assert!(
        node.line("registered")
            .ends_with(r#"registered app="A" id="i\nWARN forged" origin="client""#)
    );
}

#[test]
fn it_registers_itself_and_takes_leave() {
    let node = Node::start(&[
        "server.register=true",
        "server.hostname=me",
        "server.app-name=reg",
    ]);
    let port = node.address.port();
    let mine = node.send(
        "GET",
        &format!("/eureka/apps/REG/me:reg:{port}"),
        "accept: application/json\r\n",
        "",
    );
    assert_eq!(mine.status, 200);
    for part in [
        "\"status\":\"UP\"",
        "\"hostName\":\"me\"",
        "\"isCoordinatingDiscoveryServer\":\"true\"",
    ] {
        assert!(mine.body.contains(part), "{part} is not in {}", mine.body);
    }
    node.signal(Signal::TERM);
    node.line("cancelled");
    assert_eq!(node.end().code(), Some(0));
}
