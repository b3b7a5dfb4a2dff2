//! What the stack answers when it lets a request go no further: the one place where that is chosen, for both interfaces.

use std::time::Duration;

use eureka_grpc_api::{Grpc, Reason};
use http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode, Version};
use tonic::{Code, Status};

use super::Body;

/// How long too much to do lasts, until somebody looks again.
const RETRY: Duration = Duration::from_secs(1);

/// Why a request goes no further. It has changed nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Refusal {
    /// There is too much to do.
    Overloaded,
    /// There are `limits.watchers` already.
    Watchers,
    /// It did not come within `limits.body-timeout`.
    Slow,
    /// All bodies together exceed `limits.bodies`.
    Bodies,
    /// Something panicked.
    Panic,
}

impl Refusal {
    /// As the interface says it on which the request came.
    pub(super) fn answer(self, is_grpc: bool, version: Version) -> Response<Body> {
        if is_grpc {
            self.over_grpc()
        } else {
            self.over_http(version)
        }
    }

    /// As REST says it. Nothing of what is left of the request is read.
    fn over_http(self, version: Version) -> Response<Body> {
        let (status, reason) = match self {
            Self::Overloaded | Self::Bodies => (StatusCode::SERVICE_UNAVAILABLE, ""),
            Self::Watchers => (
                StatusCode::SERVICE_UNAVAILABLE,
                "as many requests wait for changes already as the node allows (limits.watchers)\n",
            ),
            Self::Slow => (StatusCode::REQUEST_TIMEOUT, ""),
            Self::Panic => (StatusCode::INTERNAL_SERVER_ERROR, ""),
        };
        let mut response = Response::new(Body::from(eureka_http_api::Body::from(reason)));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if !reason.is_empty() {
            let text = HeaderValue::from_static("text/plain; charset=utf-8");
            headers.insert(CONTENT_TYPE, text);
        }
        if let Some(after) = self.retry_after() {
            headers.insert(RETRY_AFTER, after.as_secs().into());
        }
        // Of the request something is still on its way: no other one can follow.
        if matches!(self, Self::Slow | Self::Bodies) && version < Version::HTTP_2 {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    /// As gRPC says it.
    fn over_grpc(self) -> Response<Body> {
        let response = match self {
            Self::Overloaded | Self::Watchers | Self::Bodies => {
                // The .proto promises a time to wait, also where REST gives none.
                let after = self.retry_after().unwrap_or(RETRY);
                Grpc::refuse(Code::Unavailable, Reason::Overloaded, Some(after))
            }
            Self::Slow => {
                Status::deadline_exceeded("the request did not come within limits.body-timeout").into_http()
            }
            Self::Panic => {
                Status::internal("the node has a bug; the registry is as it was before").into_http()
            }
        };
        response.map(Body::from)
    }

    /// As the stream of a call says it that was answered already.
    pub(super) fn of_stream(self) -> Status {
        let response = self.over_grpc();
        Status::from_header_map(response.headers())
            .unwrap_or_else(|| Status::unavailable("the node has too much to do"))
    }

    /// How long who is refused is asked to wait. Watches are long: room among them does not come within a second.
    fn retry_after(self) -> Option<Duration> {
        match self {
            Self::Overloaded => Some(RETRY),
            Self::Watchers => Some(Duration::from_secs(10)),
            Self::Slow | Self::Bodies | Self::Panic => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt as _;

    use super::*;

    #[test]
    fn a_refused_call_is_a_status_of_grpc() {
        for (refusal, code, retry) in [
            (Refusal::Overloaded, Code::Unavailable, true),
            (Refusal::Watchers, Code::Unavailable, true),
            (Refusal::Bodies, Code::Unavailable, false),
            (Refusal::Slow, Code::DeadlineExceeded, false),
            (Refusal::Panic, Code::Internal, false),
        ] {
            let response = refusal.over_grpc();
            assert_eq!(response.status(), StatusCode::OK, "{refusal:?}");
            let status = refusal.of_stream();
            assert_eq!(status.code(), code, "{refusal:?}");
            let waits = status.get_details_retry_info().is_some();
            assert_eq!(waits, code == Code::Unavailable, "{refusal:?}");
            assert_eq!(
                refusal
                    .over_http(Version::HTTP_11)
                    .headers()
                    .contains_key(RETRY_AFTER),
                retry,
                "{refusal:?}"
            );
        }
    }
}
