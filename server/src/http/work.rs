//! What a request is: over which interface it came, and what kind of work it is.

use eureka_http_api::Class;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};

/// What is spoken at an address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Speaks {
    /// HTTP: Eureka's API, ours, the page.
    Http,
    /// gRPC.
    Grpc,
    /// Both, told apart by the content type.
    Both,
}

impl Speaks {
    /// Whether a request is to be answered as gRPC answers.
    pub(super) fn is_grpc<B>(self, request: &Request<B>) -> bool {
        match self {
            Self::Http => false,
            Self::Grpc => true,
            Self::Both => is_call(request),
        }
    }
}

/// Whether a request is a call of gRPC by its content type: `application/grpc`, `application/grpc+proto`; not
/// `application/grpc-web`.
pub(super) fn is_call<B>(request: &Request<B>) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type
        .and_then(|text| text.strip_prefix(b"application/grpc"))
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// The first value of a header. Requests have few headers, and to compare their names takes less than to hash a long one.
pub(super) fn header<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h HeaderValue> {
    headers
        .iter()
        .find(|(other, _)| *other == name)
        .map(|(_, value)| value)
}

/// What kind of work a request is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Work {
    /// What it costs, and what refusing it would cost.
    pub(super) class: Class,
    /// Whether it is there to wait: it counts for `limits.watchers`, and not as a request under way.
    pub(super) stays: bool,
    /// Whether it is to be answered as gRPC answers.
    pub(super) is_grpc: bool,
}

impl Work {
    /// The work of a request at an address that `speaks` so. Found out once for each request: the stack hands it on.
    pub(super) fn of<B>(request: &Request<B>, speaks: Speaks) -> Self {
        let path = request.uri().path();
        if speaks.is_grpc(request) {
            Self::of_call(path)
        } else {
            Self::of_request(request.method(), path)
        }
    }

    /// The server's own routes included: the pages show everything, like a full fetch.
    fn of_request(method: &Method, path: &str) -> Self {
        let class = match path {
            "/" | "/lastn" => Class::FullFetch,
            _ => Class::of(method, path),
        };
        Self {
            class,
            stays: class == Class::Watch,
            is_grpc: false,
        }
    }

    fn of_call(path: &str) -> Self {
        let (class, stays) = match path.strip_prefix("/eureka.v1.Registry/") {
            Some("Register") => (Class::Registration, false),
            Some("Renew" | "Cancel" | "SetStatus" | "ClearStatus" | "UpdateMetadata") => {
                (Class::Renewal, false)
            }
            Some("GetInstance" | "GetApplication" | "ListApplications") => (Class::Read, false),
            Some("Watch") => (Class::Watch, true),
            // It stays, but it carries renewals: too much to do is no reason to refuse it.
            Some("KeepAlive") => (Class::Renewal, true),
            Some(_) => (Class::Other, false),
            None => (
                Class::Other,
                path == "/grpc.health.v1.Health/Watch" || path.starts_with("/grpc.reflection."),
            ),
        };
        Self {
            class,
            stays,
            is_grpc: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(content_type: &'static str) -> Request<()> {
        Request::post("/")
            .header(CONTENT_TYPE, content_type)
            .body(())
            .expect("it is one")
    }

    #[test]
    fn the_content_type_tells_calls_from_requests() {
        for call in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;x=y",
        ] {
            assert!(is_call(&request(call)), "{call}");
            assert!(!Speaks::Http.is_grpc(&request(call)), "{call}");
            assert!(Speaks::Both.is_grpc(&request(call)), "{call}");
        }
        for other in [
            "application/grpc-web+proto",
            "application/json",
            "application/grpcx",
            "",
        ] {
            assert!(!is_call(&request(other)), "{other}");
            assert!(!Speaks::Both.is_grpc(&request(other)), "{other}");
            assert!(Speaks::Grpc.is_grpc(&request(other)), "{other}");
        }
        assert!(!is_call(&Request::get("/").body(()).expect("it is one")));
    }

    #[test]
    fn calls_are_as_much_work_as_the_requests_that_do_the_same() {
        let registry = |method: &str| Work::of_call(&format!("/eureka.v1.Registry/{method}"));
        let work = |class, stays| Work {
            class,
            stays,
            is_grpc: true,
        };
        assert_eq!(registry("Register"), work(Class::Registration, false));
        assert_eq!(registry("Cancel"), work(Class::Renewal, false));
        assert_eq!(registry("ListApplications"), work(Class::Read, false));
        assert_eq!(registry("Watch"), work(Class::Watch, true));
        assert_eq!(registry("KeepAlive"), work(Class::Renewal, true));
        assert_eq!(registry("Nonsense"), work(Class::Other, false));
        for (path, stays) in [
            ("/grpc.health.v1.Health/Check", false),
            ("/grpc.health.v1.Health/Watch", true),
            ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", true),
            ("/nonsense", false),
        ] {
            assert_eq!(Work::of_call(path), work(Class::Other, stays), "{path}");
        }
        assert_eq!(
            Work::of_request(&Method::GET, "/api/v1/changes"),
            Work {
                is_grpc: false,
                ..work(Class::Watch, true)
            }
        );
        assert_eq!(Work::of_request(&Method::GET, "/lastn").class, Class::FullFetch);
    }
}
