//! Servers that close, hang and answer by halves; connections that many share.

use tokio::net::TcpListener;

use super::*;

const OK: &str = "HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n";

fn soon(server: Server, call: Call) -> Request {
    Request {
        within: Duration::from_millis(200),
        ..request(server, call)
    }
}

fn unreachable(answer: Answer) -> String {
    let Answer::Unreachable(why) = answer else {
        panic!("{answer:?}")
    };
    why
}

#[tokio::test]
async fn connections_are_kept() {
    let server = Scripted::start(|_, _| Reply::Keep(with("200", "", "not needed"))).await;
    let pool = Pool::default();
    for _ in 0..5 {
        assert_eq!(
            pool.send(&request(server.server("/"), renew())).await,
            Answer::Done
        );
    }
    assert_eq!(
        (server.connections(), pool.stats().sent_again, pool.stats().sent),
        (1, 0, 5)
    );
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_fails_no_request() {
    // The second request is read, so that the close cannot be noticed before it was sent.
    let server = Scripted::start(|number, _| match number {
        1 => Reply::Close(Vec::new()),
        _ => Reply::Keep(OK.into()),
    })
    .await;
    let pool = Pool::default();
    for _ in 0..3 {
        assert_eq!(
            pool.send(&request(server.server("/"), renew())).await,
            Answer::Done
        );
    }
    assert_eq!((pool.stats().sent_again, server.seen().len()), (1, 4));
    assert!(server.connections() >= 2);
}

#[tokio::test]
async fn a_request_is_sent_again_once_and_not_over_a_new_connection_that_broke() {
    let server = Scripted::start(|number, _| match number {
        0 => Reply::Keep(OK.into()),
        _ => Reply::Close(Vec::new()),
    })
    .await;
    let pool = Pool::default();
    assert_eq!(
        pool.send(&request(server.server("/"), renew())).await,
        Answer::Done
    );
    unreachable(pool.send(&request(server.server("/"), renew())).await);
    assert_eq!(server.seen().len(), 3, "once more over a new connection");
    unreachable(pool.send(&request(server.server("/"), renew())).await);
    assert_eq!(server.seen().len(), 4, "a new connection has nothing to excuse");
    assert_eq!(pool.stats().sent_again, 1);
}

#[tokio::test]
async fn half_an_answer_is_none() {
    for bytes in [
        &b"HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\n{\"applications\""[..],
        b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"app",
        b"HTTP/1.1 200 X\r\nContent-Le",
        b"SSH-2.0-OpenSSH_9.6\r\n",
    ] {
        let server = Scripted::start(|_, _| Reply::Close(bytes.to_vec())).await;
        let why = unreachable(Pool::default().send(&request(server.server("/"), fetch())).await);
        assert!(!why.is_empty() && why.chars().count() <= 300, "{why}");
    }
}

#[tokio::test]
async fn a_status_is_not_held_up_by_a_body_that_does_not_come() {
    for (status, expected) in [("200", Answer::Done), ("404", Answer::NotFound)] {
        let bytes = format!("HTTP/1.1 {status} X\r\nContent-Length: 100\r\n\r\nhalf").into_bytes();
        for reply in [Reply::Hang, Reply::Close] {
            let bytes = bytes.clone();
            let server = Scripted::start(move |_, _| reply(bytes.clone())).await;
            assert_eq!(
                Pool::default().send(&request(server.server("/"), renew())).await,
                expected
            );
        }
    }
}

#[tokio::test]
async fn nobody_there() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let server = Server::parse(&format!("http://name:secret@127.0.0.1:{port}/eureka/")).unwrap();
    let why = unreachable(Pool::default().send(&request(server, renew())).await);
    assert!(!why.contains("name") && !why.contains("secret"), "{why}");
    assert!(why.to_lowercase().contains("refused"), "the cause is told: {why}");
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn tls_needs_its_feature() {
    let server = Server::parse("https://127.0.0.1:1/").unwrap();
    let why = unreachable(Pool::default().send(&request(server, renew())).await);
    assert!(why.contains("`tls`"), "{why}");
}

#[tokio::test]
async fn everything_ends_in_time() {
    let pool = Pool::default();
    for bytes in [
        "",
        "HTTP/1.1 200 X\r\nContent-Le",
        "HTTP/1.1 200 X\r\nContent-Length: 9\r\n\r\n{",
    ] {
        let server = Scripted::start(|_, _| Reply::Hang(bytes.into())).await;
        let answer = pool.send(&soon(server.server("/"), fetch())).await;
        assert_eq!(answer, Answer::TimedOut);
    }
    assert_eq!(pool.stats().timed_out, 3);
}

#[tokio::test]
async fn the_wait_for_a_turn_counts_and_takes_none_of_another_server() {
    let server = Scripted::start(|_, _| Reply::Hang(Vec::new())).await;
    let mut config = PoolConfig::default();
    config.connections = 1;
    let pool = Pool::new(config);
    let first = request(server.server("/"), renew());
    let holding = tokio::spawn({
        let pool = pool.clone();
        async move { pool.send(&first).await }
    });
    while server.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        pool.send(&soon(server.server("/"), renew())).await,
        Answer::TimedOut
    );
    assert_eq!(server.seen().len(), 1, "it had no turn");
    let stats = pool.stats();
    assert_eq!((stats.waited, stats.sent, stats.timed_out), (1, 1, 1));
    let other = Scripted::start(|_, _| Reply::Keep(OK.into())).await;
    assert_eq!(
        pool.send(&request(other.server("/"), renew())).await,
        Answer::Done
    );
    holding.abort();
    assert!(holding.await.is_err());
    assert_eq!(
        pool.send(&soon(server.server("/"), renew())).await,
        Answer::TimedOut
    );
    assert_eq!(server.seen().len(), 2, "the turn went on");
}

#[tokio::test]
async fn long_polls_take_no_turn() {
    let server = Scripted::start(|_, text| match text.contains("/changes") {
        true => Reply::Hang(Vec::new()),
        false => Reply::Keep(OK.into()),
    })
    .await;
    let mut config = PoolConfig::default();
    config.connections = 1;
    let pool = Pool::new(config);
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let (pool, poll) = (pool.clone(), request(server.server("/"), changes()));
            tokio::spawn(async move { pool.send(&poll).await })
        })
        .collect();
    while server.seen().len() < 3 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        pool.send(&request(server.server("/"), renew())).await,
        Answer::Done
    );
    assert_eq!(pool.stats().waited, 0);
    for poll in waiting {
        poll.abort();
    }
}
