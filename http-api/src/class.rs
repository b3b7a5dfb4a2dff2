//! What kind of work a request is: the server sheds by it when it has too much to do.

use http::Method;

/// Kinds of work, those that are refused first under overload first.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Class {
    /// The whole registry.
    FullFetch,
    /// A delta, an application, a virtual address, an instance, a page of the filtered list.
    Read,
    /// The change feed, in both its forms: what is asked for is to wait, so it is not a request under way.
    Watch,
    /// A registration.
    Registration,
    /// Whatever keeps the registry true and costs little: renewals, cancels, changes of status and metadata.
    Renewal,
    /// What servers send each other.
    Peer,
    /// Everything else.
    Other,
}

impl Class {
    /// The class of a request by its method and path; looks at no more than it must.
    pub fn of(method: &Method, path: &str) -> Self {
        let mut segments = Segments::of(path);
        match segments.next() {
            Some(b"eureka") => {}
            Some(b"api") => return Self::of_ours(segments.next(), segments.next(), method),
            Some(_) | None => return Self::Other,
        }
        let mut first = segments.next();
        if first == Some(b"v2") {
            first = segments.next();
        }
        let reads = method == Method::GET || method == Method::HEAD;
        match (first, segments.next(), segments.has_more()) {
            (Some(b"apps"), None, _) if reads => Self::FullFetch,
            (Some(b"apps" | b"vips" | b"svips" | b"instances"), _, _) if reads => Self::Read,
            (Some(b"apps"), Some(_), false) if method == Method::POST => Self::Registration,
            (Some(b"apps"), Some(_), true) if method == Method::PUT || method == Method::DELETE => {
                Self::Renewal
            }
            (Some(b"peerreplication"), Some(b"batch"), false) => Self::Peer,
            _ => Self::Other,
        }
    }

    fn of_ours(version: Option<&[u8]>, resource: Option<&[u8]>, method: &Method) -> Self {
        match (version, resource) {
            (Some(b"v1"), Some(b"changes")) if method == Method::GET => Self::Watch,
            (Some(b"v1"), Some(b"changes" | b"instances" | b"lastn")) => Self::Read,
            (Some(b"v1"), Some(b"repair")) if method == Method::POST => Self::Peer,
            _ => Self::Other,
        }
    }
}

/// What stands between the slashes of a path, if anything does. They are a few bytes each: to search them by anything better
/// than one by one takes longer.
struct Segments<'a> {
    rest: &'a [u8],
}

impl<'a> Segments<'a> {
    fn of(path: &'a str) -> Self {
        let mut segments = Self {
            rest: path.as_bytes(),
        };
        segments.skip_slashes();
        segments
    }

    fn has_more(&self) -> bool {
        !self.rest.is_empty()
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == b'/');
        let (segment, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        self.skip_slashes();
        (!segment.is_empty()).then_some(segment)
    }

    fn skip_slashes(&mut self) {
        while let [b'/', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_flavours_of_path_are_alike() {
        let cases = [
            ("GET", "apps", Class::FullFetch),
            ("HEAD", "apps/", Class::FullFetch),
            ("GET", "apps/delta", Class::Read),
            ("GET", "apps/A", Class::Read),
            ("GET", "apps/A/i", Class::Read),
            ("GET", "vips/v", Class::Read),
            ("POST", "apps/A", Class::Registration),
            ("PUT", "apps/A/i", Class::Renewal),
            ("DELETE", "apps/A/i", Class::Renewal),
            ("PUT", "apps/A/i/status", Class::Renewal),
            ("POST", "peerreplication/batch/", Class::Peer),
            ("GET", "status", Class::Other),
            ("OPTIONS", "apps", Class::Other),
        ];
        for (method, path, class) in cases {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            for prefix in ["/eureka/", "/eureka/v2/", "//eureka//"] {
                assert_eq!(
                    Class::of(&method, &format!("{prefix}{path}")),
                    class,
                    "{prefix}{path}"
                );
            }
        }
        assert_eq!(Class::of(&Method::GET, "/apps"), Class::Other);
        assert_eq!(Class::of(&Method::GET, "/api/v1/instances"), Class::Read);
        assert_eq!(Class::of(&Method::GET, "/api/v1/changes"), Class::Watch);
        assert_eq!(
            Class::of(&Method::HEAD, "/api/v1/changes"),
            Class::Read,
            "it does not wait"
        );
        assert_eq!(Class::of(&Method::POST, "/api/v1/repair/compare"), Class::Peer);
        assert_eq!(Class::of(&Method::GET, "/health/live"), Class::Other);
        // What is not there is no reason to take a long body.
        for path in [
            "/api/v2/repair/compare",
            "/eureka/peerreplication/x",
            "/eureka/peerreplication/batch/x",
        ] {
            assert_eq!(Class::of(&Method::POST, path), Class::Other, "{path}");
        }
    }

    #[test]
    fn full_fetches_go_first() {
        assert!(Class::FullFetch < Class::Read);
        assert!(Class::Read < Class::Registration);
        assert!(Class::Registration < Class::Renewal);
    }
}
