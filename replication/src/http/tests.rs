//! One request at a time against peers that misbehave.

use std::io::Read as _;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::*;

#[path = "../../tests/it/driver/scripted.rs"]
mod scripted;

use scripted::{Reply, Scripted, answer as written, json};

const OWN: NodeId = NodeId([1, 2]);
/// For what must come; and for what must not.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(300);

fn transport(address: SocketAddr, connect_within: Duration) -> Transport {
    let url = format!("http://user:pass%20word@{address}/eureka");
    let identity = Identity {
        node: OWN,
        address: Arc::from("10.0.0.9"),
        connect_within,
    };
    Transport::new(PeerAddress::parse(&url).expect("a URL"), &identity)
}

fn asking(body: &[u8], within: Duration) -> Asking {
    Asking {
        method: Method::POST,
        path: String::from("/eureka/peerreplication/batch/"),
        body: Bytes::copy_from_slice(body),
        compressed: false,
        within,
        longest: 1 << 20,
        anew: false,
    }
}

async fn asked(transport: &Transport, asking: &Asking) -> Result<Vec<u8>, Failed> {
    transport.ask(asking).await?.into_success(asking, OWN)
}

/// What a peer that does this makes of a request.
async fn outcome(reply: Reply, within: Duration) -> Result<Vec<u8>, Failed> {
    let peer = Scripted::start(move |_| reply.clone()).await;
    asked(&transport(peer.address, LONG), &asking(b"{}", within)).await
}

async fn failure(reply: Reply, within: Duration) -> (Failure, String) {
    let failed = outcome(reply, within).await.expect_err("a failure");
    (failed.failure, failed.text.to_string())
}

#[tokio::test]
async fn statuses_have_classes() {
    for (status, class) in [
        (503, Failure::Busy),
        (429, Failure::Busy),
        (408, Failure::Busy),
        (400, Failure::Rejected),
        (413, Failure::TooLarge),
        (401, Failure::Misconfigured),
        (403, Failure::Misconfigured),
        (404, Failure::Misconfigured),
        (405, Failure::Misconfigured),
        (415, Failure::Misconfigured),
        (301, Failure::Misconfigured),
        (421, Failure::Own),
        (500, Failure::Unreachable),
        (502, Failure::Unreachable),
        (504, Failure::Unreachable),
    ] {
        let headers = [("location", "http://127.0.0.1:1/"), ("retry-after", "7")];
        let reply = Reply::Keep(written(status, &headers, b"why\r\nnot"));
        let failed = outcome(reply, LONG).await.expect_err("a failure");
        assert_eq!(failed.failure, class, "{status}");
        assert_eq!(failed.retry_after, Some(Duration::from_secs(7)));
        let text = format!("POST /eureka/peerreplication/batch/: {status} ");
        assert!(failed.text.starts_with(&text), "{}", failed.text);
        assert!(failed.text.ends_with(": whynot"), "{}", failed.text);
    }
}

#[tokio::test]
async fn success_is_json_with_content() {
    let body = outcome(Reply::Keep(json(200, "{}")), LONG)
        .await
        .expect("a success");
    assert_eq!(body, b"{}");
    let html = written(200, &[("content-type", "text/html")], b"<html>");
    for (reply, why) in [
        (json(200, ""), "the answer is empty"),
        (written(204, &[], b""), "the answer is empty"),
        (html, "the answer is not JSON"),
        (b"hello, this is not HTTP\r\n\r\n".to_vec(), "invalid HTTP"),
        (Vec::new(), "connection closed"),
    ] {
        let (class, text) = failure(Reply::Close(reply), LONG).await;
        assert_eq!(class, Failure::Unreachable, "{text}");
        assert!(text.contains(why), "{text}");
    }
}

#[tokio::test]
async fn answers_that_do_not_end_in_time_are_busy() {
    let head = b"HTTP/1.1 200 So\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{".to_vec();
    for begun in [Vec::new(), b"HTTP/1.1 2".to_vec(), head] {
        let (class, text) = failure(Reply::Hang(begun), SHORT).await;
        assert_eq!(class, Failure::Busy, "{text}");
        assert!(text.ends_with("no answer within 300ms"), "{text}");
    }
}

#[tokio::test]
async fn answers_that_break_off_or_never_end_are_none() {
    let head = b"HTTP/1.1 200 So\r\ncontent-type: application/json\r\n".to_vec();
    let with_length =
        |length: &str| [&head[..], b"content-length: ", length.as_bytes(), b"\r\n\r\n{"].concat();
    let (class, text) = failure(Reply::Close(with_length("10")), LONG).await;
    assert_eq!(class, Failure::Unreachable, "{text}");
    let (class, text) = failure(Reply::Hang(with_length("99999999")), LONG).await;
    assert_eq!(class, Failure::Unreachable, "{text}");
    assert!(text.contains("longer than 1048576 bytes"), "{text}");
    let chunked = [&head[..], b"transfer-encoding: chunked\r\n\r\n"].concat();
    let chunk = [b"10000\r\n".to_vec(), vec![b' '; 0x10000], b"\r\n".to_vec()].concat();
    let (class, text) = failure(Reply::Flood(chunked, chunk), LONG).await;
    assert_eq!(class, Failure::Unreachable, "{text}");
    assert!(text.contains("longer than 1048576 bytes"), "{text}");
}

#[tokio::test]
async fn answers_are_unpacked_up_to_their_limit() {
    let gzip = [("content-type", "application/json"), ("content-encoding", "gzip")];
    let small = written(200, &gzip, &answer::gzip(br#"{"a":1}"#));
    assert_eq!(
        outcome(Reply::Keep(small), LONG).await.expect("a success"),
        br#"{"a":1}"#
    );
    let mut random = 1_u32;
    let long: Vec<u8> = std::iter::repeat_with(|| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        random.to_be_bytes()[0]
    })
    .take(1 << 19)
    .collect();
    let packed = answer::gzip(&long);
    assert!(packed.len() > HEAVY / 16, "it is unpacked elsewhere");
    assert_eq!(
        outcome(Reply::Keep(written(200, &gzip, &packed)), LONG)
            .await
            .expect("a success"),
        long
    );
    let cut = written(200, &gzip, &packed[..packed.len() / 2]);
    let bomb = written(200, &gzip, &answer::gzip(&vec![b' '; (1 << 20) + 1]));
    let broken = written(200, &gzip, b"this is not packed");
    let strange = written(200, &[("content-encoding", "br")], b"whatever");
    for (reply, why) in [
        (bomb, "longer than 1048576 bytes"),
        (broken, "cannot be unpacked"),
        (cut, "cannot be unpacked"),
        (strange, "encoding"),
    ] {
        let (class, text) = failure(Reply::Keep(reply), LONG).await;
        assert_eq!(class, Failure::Unreachable, "{text}");
        assert!(text.contains(why), "{text}");
    }
}

#[tokio::test]
async fn a_node_that_answers_to_itself() {
    let id = OWN.to_string();
    let headers = [
        ("content-type", "application/json"),
        ("x-eureka-node", id.as_str()),
    ];
    let failed = outcome(Reply::Keep(written(200, &headers, b"{}")), LONG).await;
    let failed = failed.expect_err("a failure");
    assert_eq!((failed.failure, failed.node), (Failure::Own, Some(OWN)));
}

#[tokio::test]
async fn connections_are_kept_and_closed_when_idle() {
    let peer = Scripted::start(|_| Reply::Keep(json(200, "{}"))).await;
    let transport = transport(peer.address, LONG);
    for _ in 0..3 {
        asked(&transport, &asking(b"{}", LONG)).await.expect("a success");
    }
    let connections: Vec<_> = peer.received().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 0, 0]);
    let counts = ConnectionCounts {
        opened: 1,
        reused: 2,
        stale: 0,
    };
    assert_eq!(transport.counts(), counts);
    for _ in 0..=SWEEPS_MAX {
        transport.sweep();
    }
    asked(&transport, &asking(b"{}", LONG)).await.expect("a success");
    assert_eq!(peer.received()[3].connection, 1, "the old one was closed");
    transport.sweep();
    asked(&transport, &asking(b"{}", LONG)).await.expect("a success");
    assert_eq!(peer.received()[4].connection, 1, "in use again meanwhile");
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_no_failure() {
    // Answers the first request of every connection, and closes when the second comes.
    let mut last = None;
    let peer = Scripted::start(move |request| {
        let is_first = last.replace(request.connection) != Some(request.connection);
        if is_first {
            Reply::Keep(json(200, "{}"))
        } else {
            Reply::Close(Vec::new())
        }
    })
    .await;
    let transport = transport(peer.address, LONG);
    for _ in 0..3 {
        asked(&transport, &asking(b"{}", LONG)).await.expect("a success");
    }
    let counts = ConnectionCounts {
        opened: 3,
        reused: 0,
        stale: 2,
    };
    assert_eq!(transport.counts(), counts);
    assert_eq!(peer.received().len(), 5, "each lost request was sent once more");
}

#[tokio::test]
async fn a_new_connection_that_is_closed_is_a_failure() {
    let peer = Scripted::start(|_| Reply::Close(Vec::new())).await;
    let transport = transport(peer.address, LONG);
    let failed = asked(&transport, &asking(b"{}", LONG))
        .await
        .expect_err("a failure");
    assert_eq!(failed.failure, Failure::Unreachable);
    let received = peer.until("a request", |received| !received.is_empty()).await;
    assert_eq!(received.len(), 1, "sent once");
}

#[tokio::test]
async fn an_answer_that_comes_before_the_request_was_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let peer = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        stream.peek(&mut [0]).await.expect("a request");
        let answer = written(413, &[("connection", "close")], b"");
        stream.write_all(&answer).await.expect("it reads");
        stream.shutdown().await.expect("it reads");
        // Unread bytes are left: the system resets the connection.
    });
    let body = vec![b' '; 16 << 20];
    let failed = asked(&transport(address, LONG), &asking(&body, LONG)).await;
    let failed = failed.expect_err("a failure");
    assert_eq!(failed.failure, Failure::TooLarge, "{}", failed.text);
    peer.await.expect("no panic");
}

#[tokio::test]
async fn nobody_listens_or_nobody_accepts() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        listener.local_addr().expect("it is bound")
    };
    let failed = asked(&transport(closed, LONG), &asking(b"{}", LONG)).await;
    assert_eq!(failed.expect_err("a failure").failure, Failure::Unreachable);

    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port");
    let listener = socket.listen(1).expect("it is bound");
    let full = listener.local_addr().expect("it is bound");
    let mut waiting = Vec::new();
    while let Ok(stream) = timeout(SHORT, TcpStream::connect(full)).await {
        waiting.push(stream);
        assert!(waiting.len() < 100, "the queue of one connection is never full");
    }
    let failed = asked(&transport(full, SHORT), &asking(b"{}", LONG)).await;
    let failed = failed.expect_err("a failure");
    assert_eq!(failed.failure, Failure::Unreachable);
    assert!(failed.text.contains("no connection within"), "{}", failed.text);
}

#[tokio::test]
async fn requests_are_those_of_a_java_server_and_name_the_node() {
    let peer = Scripted::start(|_| Reply::Keep(json(200, "{}"))).await;
    let transport = transport(peer.address, LONG);
    asked(&transport, &asking(b"{}", LONG)).await.expect("a success");
    let request = &peer.received()[0];
    assert_eq!(request.target, "POST /eureka/peerreplication/batch/");
    assert_eq!(request.body, b"{}");
    for (name, value) in [
        ("host", &*peer.address.to_string()),
        ("accept", "application/json"),
        ("accept-encoding", "gzip"),
        ("content-type", "application/json"),
        ("discoveryidentity-name", "DefaultServer"),
        ("discoveryidentity-version", "1.0"),
        ("discoveryidentity-id", "10.0.0.9"),
        ("x-eureka-node", "00000000000000010000000000000002"),
        ("authorization", "Basic dXNlcjpwYXNzIHdvcmQ="),
    ] {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
    assert_eq!(request.header("content-encoding"), None);
    assert!(
        !format!("{transport:?}").contains("dXNlcjpwYXNzIHdvcmQ"),
        "never shown"
    );
    assert!(!format!("{transport:?}").contains("pass word"), "never shown");
}

#[tokio::test]
async fn a_probe_takes_a_new_connection_and_the_next_request_takes_that_one() {
    let peer = Scripted::start(|_| Reply::Keep(json(200, "{}"))).await;
    let transport = transport(peer.address, LONG);
    for anew in [false, true, false] {
        let asking = Asking {
            anew,
            ..asking(b"{}", LONG)
        };
        asked(&transport, &asking).await.expect("a success");
    }
    let counts = transport.counts();
    assert_eq!((counts.opened, counts.reused), (2, 1));
}

#[tokio::test]
async fn only_long_bodies_are_packed_and_only_if_asked_for() {
    let peer = Scripted::start(|_| Reply::Keep(json(200, "{}"))).await;
    let transport = transport(peer.address, LONG);
    let long = vec![b'x'; COMPRESSED_FROM];
    for (body, compressed) in [(&long[..], false), (&long[1..], true), (&long[..], true)] {
        let asking = Asking {
            compressed,
            ..asking(body, LONG)
        };
        asked(&transport, &asking).await.expect("a success");
    }
    let received = peer.received();
    assert_eq!(received[0].header("content-encoding"), None);
    assert_eq!(received[1].header("content-encoding"), None);
    assert_eq!(received[2].header("content-encoding"), Some("gzip"));
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&received[2].body[..])
        .read_to_end(&mut unpacked)
        .expect("it is packed");
    assert_eq!(unpacked, long);
}

#[tokio::test]
async fn addresses_of_ipv6() {
    // Not every machine has it.
    let Ok(listener) = TcpListener::bind("[::1]:0").await else {
        return;
    };
    let peer = Scripted::on(listener, |_| Reply::Keep(json(200, "{}")));
    let transport = transport(peer.address, LONG);
    asked(&transport, &asking(b"{}", LONG)).await.expect("a success");
    let host = format!("[::1]:{}", peer.address.port());
    assert_eq!(peer.received()[0].header("host"), Some(&*host));
}

#[test]
fn what_a_peer_wrote_is_quoted_briefly() {
    let why = format!("`{}\u{1b}[2J\n` twice", "x".repeat(1 << 20));
    let text = asking(b"", LONG).garbage(why, None).text;
    assert_eq!(text.len(), "POST /eureka/peerreplication/batch/: ".len() + WHY);
    assert_eq!(clipped("a\u{1b}[2J\nb", 40), "a[2Jb");
}
