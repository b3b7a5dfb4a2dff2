//! Bad manners at the socket: none of them may hold a connection for ever, or cost memory.

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::Duration;

use crate::node::{Node, registration, request};

const MIB: u64 = 1 << 20;

#[test]
fn a_connection_that_says_nothing_is_closed() {
    let node = Node::start(&["limits.header-timeout=200ms"]);
    for first in [
        "",
        "P",
        "PRI * HTTP/2.0\r\n\r\nSM",
        "GET /eureka/apps HTTP/1.1\r\nhost: ",
    ] {
        let mut connection = node.connect();
        connection.write(first.as_bytes());
        assert_eq!(connection.end(), b"", "after {first:?}");
    }
    assert_eq!(
        node.metric("eureka_connections_closed_total{reason=\"head\"}"),
        4.0
    );
}

#[test]
fn a_head_that_comes_in_drops_is_closed() {
    let node = Node::start(&["limits.header-timeout=300ms", "limits.idle-timeout=1h"]);
    let mut connection = node.connect();
    // A request before: the head's time starts anew with its first byte.
    connection.write(&request("GET", "/health/live", "", ""));
    assert_eq!(connection.answer().status, 200);
    let stream = connection.0.get_mut();
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut sent = 0;
    loop {
        if stream.write_all(b"G").is_err() {
            break;
        }
        sent += 1;
        assert!(sent < 1000, "twenty seconds, and still open");
        match stream.read(&mut [0; 64]) {
            Ok(0) => break,
            Ok(_) => panic!("an answer to half a head"),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
}

#[test]
fn a_connection_at_rest_is_kept_longer_than_a_head_may_take_but_not_for_ever() {
    let node = Node::start(&["limits.header-timeout=100ms", "limits.idle-timeout=700ms"]);
    let mut connection = node.connect();
    connection.write(&request("GET", "/health/live", "", ""));
    assert_eq!(connection.answer().status, 200);
    // Three times the header time-out without a byte.
    let stream = connection.0.get_mut();
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let error = stream.read(&mut [0; 1]).expect_err("nothing comes");
    assert!(
        matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        "{error}"
    );
    stream.set_read_timeout(Some(crate::node::BOUND)).unwrap();
    connection.write(&request("GET", "/health/live", "", ""));
    assert_eq!(connection.answer().status, 200);
    assert_eq!(connection.end(), b"");
    assert_eq!(
        node.metric("eureka_connections_closed_total{reason=\"idle\"}"),
        1.0
    );
}

#[test]
fn a_flood_of_headers_is_answered_431() {
    let node = Node::start(&[]);
    let one_long = format!("x: {}\r\n", "y".repeat(40_000));
    let many: String = (0..150).map(|n| format!("x-{n}: y\r\n")).collect();
    for headers in [one_long, many] {
        let answer = node.send("GET", "/eureka/apps", &headers, "");
        assert_eq!(answer.status, 431);
    }
    let fits = format!("x: {}\r\n", "y".repeat(30_000));
    assert_eq!(node.send("GET", "/health/live", &fits, "").status, 200);
}

#[test]
fn a_long_url_is_answered_414() {
    let node = Node::start(&[]);
    let path = format!("/eureka/apps/{}", "A".repeat(9_000));
    assert_eq!(node.ask("GET", &path).status, 414);
}

#[test]
fn a_body_that_does_not_come_is_answered_408() {
    let node = Node::start(&["limits.body-timeout=200ms"]);
    let mut connection = node.connect();
    connection.write(b"POST /eureka/apps/A HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{\"insta");
    let answer = connection.answer();
    assert_eq!(answer.status, 408);
    assert!(answer.head.contains("connection: close"), "{answer:?}");
    assert_eq!(connection.end(), b"");
    assert_eq!(node.metric("eureka_body_timeouts_total"), 1.0);
    assert_eq!(node.ask("GET", "/eureka/apps/A").status, 404);
}

#[test]
fn a_hundred_megabytes_are_answered_413_and_cost_no_memory() {
    let node = Node::start(&[]);
    let before = node.memory();
    let announced = "POST /eureka/apps/A HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 104857600\r\n\r\n";
    let chunked = "POST /eureka/apps/A HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    for (head, piece) in [
        (announced, "x".repeat(1 << 16)),
        (chunked, format!("10000\r\n{}\r\n", "x".repeat(1 << 16))),
    ] {
        let mut connection = node.connect();
        connection.write(head.as_bytes());
        // The node may close before all of it is sent, but its answer must arrive.
        for _ in 0..1600 {
            if connection.0.get_mut().write_all(piece.as_bytes()).is_err() {
                break;
            }
        }
        assert_eq!(connection.answer().status, 413);
    }
    let grown = node.memory().saturating_sub(before);
    assert!(grown < 32 * MIB, "{} MiB more", grown / MIB);
    assert_eq!(node.register("A", "i").status, 204);
}

#[test]
fn who_is_refused_early_is_not_cut_while_sending() {
    let node = Node::start(&["limits.body=1KiB", "limits.bodies=64MiB"]);
    let mut connection = node.connect();
    connection.write(b"POST /eureka/apps/A HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1048576\r\n\r\n");
    connection.write("x".repeat(1 << 19).as_bytes());
    let answer = connection.answer();
    assert_eq!(answer.status, 413);
    assert!(answer.head.contains("connection: close"), "{answer:?}");
    assert_eq!(connection.end(), b"");
    // A reset would lose the answer for clients that read only after they have sent everything.
    for _ in 0..8 {
        connection.write("x".repeat(1 << 16).as_bytes());
    }
}

#[test]
fn bodies_are_bounded_together() {
    let node = Node::start(&["limits.body=1MiB", "limits.batch=1MiB", "limits.bodies=1MiB"]);
    let head = b"POST /eureka/apps/A HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n";
    // None of them is too large, and none of them comes to its end.
    let mut held: Vec<_> = (0..3).map(|_| node.connect()).collect();
    for connection in &mut held {
        connection.write(head);
        connection.write("x".repeat(600_000).as_bytes());
    }
    let refused = (0..3).cycle().take(3_000).find_map(|number: usize| {
        let stream = held[number].0.get_mut();
        stream.set_read_timeout(Some(Duration::from_millis(5))).ok()?;
        stream.peek(&mut [0; 1]).ok()?;
        Some(held[number].answer())
    });
    assert_eq!(refused.expect("one of them is refused").status, 503);
    assert!(node.metric("eureka_bodies_refused_total") >= 1.0);
    drop(held);
    node.metric_becomes("eureka_requests_under_way", 0.0);
    assert_eq!(node.register("A", "i").status, 204);
}

#[test]
fn a_reader_that_does_not_read_is_cut() {
    let node = Node::start(&["limits.write-timeout=300ms"]);
    let mut connection = node.connect();
    let requests = request("GET", "/metrics", "", "").repeat(2_000);
    // Some ten megabytes of answers: more than the kernel keeps for a reader that does not come.
    let stream = connection.0.get_mut();
    let _ = stream.write_all(&requests);
    node.metric_becomes("eureka_connections_closed_total{reason=\"unread\"}", 1.0);
}

#[test]
fn connections_are_counted_and_bounded() {
    let node = Node::start(&["limits.connections=3"]);
    let mut held: Vec<_> = (0..3).map(|_| node.connect()).collect();
    for connection in &mut held {
        connection.write(&request("GET", "/health/live", "", ""));
        assert_eq!(connection.answer().status, 200);
    }
    let mut refused = node.connect();
    let said = String::from_utf8(refused.end()).unwrap();
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 503 "), "{said:?}");
    held[0].write(&request("GET", "/metrics", "", ""));
    let metrics = held[0].answer().body;
    assert!(metrics.contains("eureka_connections 3\n"), "{metrics}");
    assert!(
        metrics.contains("eureka_connections_closed_total{reason=\"limit\"} 1\n"),
        "{metrics}"
    );
}

#[test]
fn without_free_files_it_waits_and_goes_on() {
    let node = Node::start_with_files(40);
    let held: Vec<_> = (0..60).map(|_| node.connect()).collect();
    node.line("a connection could not be accepted");
    drop(held);
    assert_eq!(node.ask("GET", "/health/ready").status, 200);
    assert!(node.metric("eureka_accept_errors_total") >= 1.0);
}

#[test]
fn nonsense_is_answered_400_and_changes_nothing() {
    let node = Node::start(&[]);
    assert_eq!(node.register("A", "i").status, 204);
    for nonsense in [
        "NONSENSE\r\n\r\n",
        "GET /eureka/apps HTTP/1.1\r\nhost x\r\n\r\n",
        "POST /eureka/apps/A HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        "POST /eureka/apps/A HTTP/1.1\r\nhost: x\r\ncontent-length: five\r\n\r\n",
    ] {
        let mut connection = node.connect();
        connection.write(nonsense.as_bytes());
        let answer = String::from_utf8_lossy(&connection.end()).into_owned();
        assert!(answer.starts_with("HTTP/1.1 400 "), "{nonsense:?}: {answer:?}");
    }
    let list = node.send("GET", "/eureka/apps", "accept: application/json\r\n", "");
    assert!(list.body.contains("\"UP_1_\""), "{list:?}");
}

#[test]
fn what_a_body_should_not_be_is_a_4xx_with_a_reason() {
    let node = Node::start(&[]);
    let json = "content-type: application/json\r\n";
    let xml = "content-type: application/xml\r\n";
    let deep = "[".repeat(100_000);
    let doctype = "<!DOCTYPE a [<!ENTITY x \"y\">]><instance><app>A</app><hostName>&x;</hostName></instance>";
    for (headers, body) in [
        (json, "{\"instance\": {"),
        (json, "{\"instance\": 5}"),
        (json, deep.as_str()),
        (json, "\u{1}"),
        (xml, "<instance><app>A</app>"),
        (xml, doctype),
    ] {
        let answer = node.send("POST", "/eureka/apps/A", headers, body);
        assert_eq!(answer.status, 400, "{:.60}", body);
        assert!(!answer.body.is_empty(), "{:.60}", body);
    }
    let mut connection = node.connect();
    connection.write(b"POST /eureka/apps/A HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n\"\xff\xfe\"");
    assert_eq!(connection.answer().status, 400);
    assert_eq!(
        node.send(
            "POST",
            "/eureka/apps/A",
            "content-type: text/plain\r\n",
            &registration("A", "i")
        )
        .status,
        415
    );
    assert_eq!(node.ask("GET", "/eureka/nonsense").status, 404);
    assert_eq!(node.ask("GET", "/eureka/apps/%ff").status, 404);
    assert_eq!(node.metric("eureka_instances{status=\"UP\"}"), 0.0);
    assert_eq!(node.metric("eureka_panics_total"), 0.0);
}
