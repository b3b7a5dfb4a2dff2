//! Which answer a status is, whatever else comes with it.

use super::*;

fn refused(status: u16, retry_after: Option<u64>) -> Answer {
    Answer::Refused {
        status,
        retry_after: retry_after.map(Duration::from_secs),
    }
}

async fn all_are(cases: impl IntoIterator<Item = (Call, Vec<u8>, Answer)>) {
    for (call, bytes, expected) in cases {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert_eq!(answer(call.clone(), bytes).await, expected, "{call:?} {text}");
    }
}

#[tokio::test]
async fn statuses() {
    let gone = r#"{"cursor":"b.1"}"#;
    let held = || Call::Fetch {
        what: Scope::All,
        regions: Arc::new([]),
        held: Some("W/\"1\"".into()),
    };
    let page = "<html>oh no</html>";
    all_are([
        (renew(), with("200", "", ""), Answer::Done),
        (
            renew(),
            with("200", "Content-Type: text/html\r\n", ""),
            Answer::Done,
        ),
        (
            renew(),
            with("200", "Content-Type: application/json\r\n", "{"),
            Answer::Done,
        ),
        (renew(), with("404", "", ""), Answer::NotFound),
        (
            renew(),
            with("404", "Content-Type: text/html\r\n", page),
            Answer::NotFound,
        ),
        (
            Call::Register(instance()),
            b"HTTP/1.1 204 X\r\n\r\n".to_vec(),
            Answer::Done,
        ),
        (
            Call::Register(instance()),
            with("400", "", "no"),
            refused(400, None),
        ),
        (
            Call::Register(instance()),
            with("413", "", ""),
            refused(413, None),
        ),
        (
            Call::Cancel(InstanceKey::new("a", "b")),
            with("404", "", ""),
            Answer::NotFound,
        ),
        (held(), b"HTTP/1.1 304 X\r\n\r\n".to_vec(), Answer::Unchanged),
        (fetch(), b"HTTP/1.1 304 X\r\n\r\n".to_vec(), refused(304, None)),
        (renew(), b"HTTP/1.1 304 X\r\n\r\n".to_vec(), refused(304, None)),
        (fetch(), b"HTTP/1.1 204 X\r\n\r\n".to_vec(), refused(204, None)),
        (fetch(), with("404", "", ""), Answer::NotFound),
        (fetch(), with("403", "", ""), refused(403, None)),
        (changes(), with("410", "", gone), Answer::Gone),
        (changes(), with("404", "", page), Answer::NotFound),
        (fetch(), with("410", "", ""), refused(410, None)),
    ])
    .await;
}

#[tokio::test]
async fn refusals() {
    let page = "<html>oh no</html>";
    all_are([
        (
            renew(),
            with("401", "WWW-Authenticate: Basic\r\n", ""),
            refused(401, None),
        ),
        (
            renew(),
            with("502", "Content-Type: text/html\r\n", page),
            refused(502, None),
        ),
        (
            changes(),
            with("503", "Retry-After: 7\r\n", "busy"),
            refused(503, Some(7)),
        ),
        (
            renew(),
            with("429", "Retry-After:  120 \r\n", ""),
            refused(429, Some(120)),
        ),
        (
            renew(),
            with("503", "Retry-After: soon\r\n", ""),
            refused(503, None),
        ),
        (
            renew(),
            with("503", "Retry-After: -1\r\n", ""),
            refused(503, None),
        ),
        (
            renew(),
            with("503", "Retry-After: Fri, 31 Dec 1999 23:59:59 GMT\r\n", ""),
            refused(503, Some(0)),
        ),
    ])
    .await;
}

#[tokio::test]
async fn retry_after_as_a_date() {
    let bytes = with("503", "Retry-After: Thu, 01 Jan 2099 00:00:00 GMT\r\n", "");
    let Answer::Refused {
        retry_after: Some(wait),
        ..
    } = answer(renew(), bytes).await
    else {
        panic!("a date is understood")
    };
    let years = wait.as_secs() / 31_536_000;
    assert!((1..74).contains(&years), "from now, not from 1970: {years}");
}

#[tokio::test]
async fn redirects_are_answers_and_not_followed() {
    let server = Scripted::start(|_, _| Reply::Keep(with("302", "Location: /elsewhere\r\n", ""))).await;
    let pool = Pool::default();
    assert_eq!(
        pool.send(&request(server.server("/"), fetch())).await,
        refused(302, None)
    );
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn bodies_without_sense() {
    let garbage = |answer: Answer| {
        let Answer::Garbage(why) = answer else {
            panic!("{answer:?}")
        };
        why
    };
    let html = "Content-Type: text/html\r\n";
    let gzipped = "Content-Encoding: gzip\r\n";
    let brotli = "Content-Encoding: br\r\n";
    let mut torn = gzip(LIST.as_bytes());
    torn.truncate(torn.len() / 2);
    for (call, bytes) in [
        (fetch(), with("200", html, "<html><body>sign in</body></html>")),
        (fetch(), with("200", "", "<html><body>sign in</body></html>")),
        (fetch(), with("200", "", "")),
        (fetch(), with("200", "", &LIST[..LIST.len() / 2])),
        (fetch(), with("200", gzipped, LIST)),
        (fetch(), with("200", gzipped, torn)),
        (fetch(), with("200", brotli, LIST)),
        (changes(), with("200", "", "{}")),
        (changes(), with("200", "", LIST)),
        (changes(), with("200", "", r#"{"cursor":"","changes":[]}"#)),
        (
            changes(),
            with(
                "200",
                "",
                format!(r#"{{"cursor":"{}","changes":[]}}"#, "c".repeat(2_000)),
            ),
        ),
        (renew(), with("200", html, "<html><body>sign in</body></html>")),
        (
            Call::Register(instance()),
            with("200", "Content-Type: text/html;charset=utf-8\r\n", "<html>"),
        ),
        (fetch(), with("200", "", "x".repeat(10_000))),
    ] {
        let text = String::from_utf8_lossy(&bytes)
            .chars()
            .take(300)
            .collect::<String>();
        let why = garbage(answer(call, bytes).await);
        assert!(!why.is_empty() && why.chars().count() <= 300, "{text}: {why}");
    }
}

#[tokio::test]
async fn a_tag_that_would_fill_the_head_of_a_request_is_not_kept() {
    for (length, kept) in [(1_024, true), (1_025, false)] {
        let headers = format!("ETag: {}\r\n", "e".repeat(length));
        let (_, tag) = listed(answer(fetch(), with("200", &headers, LIST)).await);
        assert_eq!(tag.is_some(), kept, "{length}");
    }
}

#[tokio::test]
async fn no_answer_is_longer_than_allowed() {
    let mut config = PoolConfig::default();
    config.max_body = 10_000;
    let pool = Pool::new(config);
    let long = " ".repeat(10_001);
    let unpacked = with("200", "Content-Encoding: gzip\r\n", gzip(long.as_bytes()));
    let endless = format!("HTTP/1.1 200 X\r\n\r\n{long}").into_bytes();
    let promised = b"HTTP/1.1 200 X\r\nContent-Length: 10001\r\n\r\n".to_vec();
    for bytes in [with("200", "", &long), unpacked, endless, promised] {
        let server = Scripted::start(move |_, _| Reply::Hang(bytes.clone())).await;
        let answer = pool.send(&request(server.server("/"), fetch())).await;
        assert_eq!(
            answer,
            Answer::Garbage("the answer is longer than 10000 bytes".into())
        );
    }
    let spaces = " ".repeat(10_000 - LIST.len());
    let server = Scripted::start(move |_, _| Reply::Keep(with("200", "", format!("{LIST}{spaces}")))).await;
    assert_eq!(
        listed(pool.send(&request(server.server("/"), fetch())).await)
            .0
            .len(),
        1
    );
}
