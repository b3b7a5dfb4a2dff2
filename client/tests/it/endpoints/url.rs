//! What names a server, what does not, and what is shown of it.

use eureka_client::{Server, ServerError};

#[test]
fn parts() {
    for (text, shown, host, port, path) in [
        ("http://a", "http://a:80/", "a", 80, "/"),
        ("http://a/", "http://a:80/", "a", 80, "/"),
        ("https://a", "https://a:443/", "a", 443, "/"),
        (
            "HTTP://A.Example:8761/Eureka",
            "http://a.example:8761/Eureka/",
            "a.example",
            8761,
            "/Eureka/",
        ),
        (
            "hTTpS://a:1/eureka/v2/",
            "https://a:1/eureka/v2/",
            "a",
            1,
            "/eureka/v2/",
        ),
        (
            "http://10.0.0.1:65535/eureka",
            "http://10.0.0.1:65535/eureka/",
            "10.0.0.1",
            65_535,
            "/eureka/",
        ),
        (
            "http://[::1]/eureka/",
            "http://[::1]:80/eureka/",
            "[::1]",
            80,
            "/eureka/",
        ),
        (
            "http://[FD00::1]:8761/eureka/",
            "http://[fd00::1]:8761/eureka/",
            "[fd00::1]",
            8761,
            "/eureka/",
        ),
        (
            " \thttp://under_score:8761/eureka/\r\n",
            "http://under_score:8761/eureka/",
            "under_score",
            8761,
            "/eureka/",
        ),
        ("http://a//x", "http://a:80//x/", "a", 80, "//x/"),
        ("http://a/x@y:z", "http://a:80/x@y:z/", "a", 80, "/x@y:z/"),
    ] {
        let server = Server::parse(text).unwrap();
        assert_eq!(server.to_string(), shown);
        assert_eq!(
            (server.host(), server.port(), server.path()),
            (host, port, path),
            "{text}"
        );
        assert_eq!(server.is_secure(), shown.starts_with("https"));
        assert_eq!((server.zone(), server.credentials()), (None, None));
        let again = Server::parse(shown).unwrap();
        assert_eq!(again, server, "what is shown names the same server");
    }
}

#[test]
fn what_names_no_server() {
    for (text, error) in [
        ("", ServerError::Scheme),
        ("a:8761/eureka/", ServerError::Scheme),
        ("http:/a", ServerError::Scheme),
        ("ftp://a/", ServerError::Scheme),
        ("httpß://a", ServerError::Scheme),
        ("http://", ServerError::Host),
        ("http:///eureka/", ServerError::Host),
        ("http://:8761/", ServerError::Host),
        ("http://name:secret@/", ServerError::Host),
        ("http://name:secret@:80/", ServerError::Host),
        ("http://[]/", ServerError::Host),
        ("http://[::1/", ServerError::Host),
        ("http://[::1]x/", ServerError::Host),
        ("http://[10.0.0.1]/", ServerError::Host),
        ("http://[fe80::1%25eth0]/", ServerError::Host),
        ("http://a%20b/", ServerError::Host),
        ("http://a,http://b/", ServerError::Several),
        ("http://a:1/eureka/,https://b:1/eureka/", ServerError::Several),
        ("http://a,b/", ServerError::Host),
        ("http://::1/", ServerError::Host),
        ("http://a:/", ServerError::Port),
        ("http://a:0/", ServerError::Port),
        ("http://a:65536/", ServerError::Port),
        ("http://a:+80/", ServerError::Port),
        ("http://a:80x/", ServerError::Port),
        ("http://name:pass/word@a/", ServerError::Port),
        ("http://a/?x", ServerError::Query),
        ("http://a/#x", ServerError::Query),
        ("http://a b/", ServerError::Character),
        ("http://a/\u{0}", ServerError::Character),
        ("http://ä/", ServerError::Character),
        ("http://a/\"", ServerError::Character),
        ("http://a\\b/", ServerError::Character),
    ] {
        assert_eq!(Server::parse(text), Err(error), "{text:?}");
    }
}

#[test]
fn credentials_are_kept_and_never_shown() {
    for (text, credentials) in [
        ("http://name:secret@a/", "name:secret"),
        ("http://name@a/", "name"),
        ("http://name:@a/", "name:"),
        ("http://:secret@a/", ":secret"),
        ("http://na%40me:se%3Acr%25et@a/", "na%40me:se%3Acr%25et"),
        ("http://name:se@cret@a/", "name:se@cret"),
        ("http://name:se:cret@[::1]:1/", "name:se:cret"),
    ] {
        let server = Server::parse(text).unwrap().in_zone("x");
        assert_eq!(server.credentials(), Some(credentials));
        let shown = format!("{server} {server:?}");
        assert!(!shown.contains('@'), "{shown}");
        for part in ["name", "secret", "cret", "se%3A"] {
            assert!(!shown.contains(part), "{shown}");
        }
        assert!(shown.contains("in x"));
    }
    assert_eq!(Server::parse("http://@a/").unwrap().credentials(), None);
    for text in [
        "http://name:secret@a:99999/",
        "http://name:secret@/",
        "http://name:se cret@a/",
    ] {
        let error = Server::parse(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("cret"));
    }
}

#[cfg(feature = "http")]
#[test]
fn any_text_is_refused_or_names_a_server_whose_url_names_it_again() {
    let mut random = fastrand::Rng::with_seed(6);
    let pieces = [
        "http://", "https://", "HTTP://", "name", ":", "@", "%40", "/", "[", "]", "::1", "a", ".", "8761",
        "0", "-", " ", "?", "#", "é", "eureka", "v2", "\\", "+", "\n", "%", "_", "99999",
    ];
    let mut read = 0;
    for _ in 0..50_000 {
        let mut text = String::from(if random.u8(..4) > 0 { "http://" } else { "" });
        for _ in 0..random.usize(..8) {
            text.push_str(pieces[random.usize(..pieces.len())]);
        }
        let Ok(server) = Server::parse(&text) else {
            continue;
        };
        read += 1;
        assert!(
            server.path().starts_with('/') && server.path().ends_with('/'),
            "{text}"
        );
        assert!(server.port() > 0 && !server.host().is_empty(), "{text}");
        let shown = server.to_string();
        assert!(http::Uri::try_from(shown.as_str()).is_ok(), "{text}: {shown}");
        let again = Server::parse(&shown).unwrap();
        assert_eq!(again.to_string(), shown, "{text}");
        assert_eq!(again.credentials(), None);
    }
    assert!(read > 1_000, "{read}");
}
