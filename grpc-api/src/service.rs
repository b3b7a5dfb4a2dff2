//! The service: which part answers a request, and what all requests have in common.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use tokio::time::{Instant, timeout_at};
use tonic::body::Body;
use tonic::codec::CompressionEncoding;
use tonic::codegen::{Body as HttpBody, StdError};
use tonic::{Code, Status};
use tonic_health::pb::health_server::HealthServer;
use tower::Service;

use crate::figures::Method;
use crate::node::Node;
use crate::proto::registry_server::RegistryServer;
use crate::refusal::{self, Refusal};

mod calls;
mod deadline;
mod health;
mod reflection;
mod streamed;

use calls::Calls;
use deadline::Deadline;
use health::Health;
use reflection::Reflection;
use streamed::Streamed;

/// Bytes a message of a stream of renewals may have: its buffer is kept as long as the stream.
const RENEWALS_BYTES: usize = 256 << 10;
/// Bytes of a request for health or reflection.
const QUESTION_BYTES: usize = 16 << 10;

/// Answers gRPC requests: `eureka.v1.Registry`, `grpc.health.v1.Health` and `grpc.reflection.v1.ServerReflection` (also
/// as `v1alpha`). Cheap to clone.
///
/// A request that is none of gRPC's, by method or content type, is answered 405 or 415.
#[derive(Clone)]
pub struct GrpcService {
    parts: Arc<Parts>,
}

struct Parts {
    node: Arc<Node>,
    registry: RegistryServer<Calls>,
    renewals: RegistryServer<Calls>,
    health: HealthServer<Health>,
    reflection: Reflection,
}

/// An answer under way.
type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl GrpcService {
    pub(crate) fn new(node: &Arc<Node>) -> Self {
        // Compressed requests are read, within the same limit. Answers are not compressed: those of a watch are encoded once
        // for all streams, and a small one grows.
        let registry =
            RegistryServer::new(Calls(Arc::clone(node))).accept_compressed(CompressionEncoding::Gzip);
        let message = node.config.message;
        let health = HealthServer::new(Health(Arc::clone(node)));
        Self {
            parts: Arc::new(Parts {
                node: Arc::clone(node),
                renewals: registry
                    .clone()
                    .max_decoding_message_size(message.min(RENEWALS_BYTES)),
                registry: registry.max_decoding_message_size(message),
                health: health.max_decoding_message_size(QUESTION_BYTES),
                reflection: Reflection::new(QUESTION_BYTES),
            }),
        }
    }
}

impl<B> Service<Request<B>> for GrpcService
where
    B: HttpBody<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Answering {
        let parts = Arc::clone(&self.parts);
        Box::pin(async move { Ok(parts.answer(request).await) })
    }
}

impl Parts {
    async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: HttpBody<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<StdError> + Send + 'static,
    {
        if let Some(answer) = no_grpc(&request) {
            return answer;
        }
        let method = Method::of(request.uri().path());
        let figures = &self.node.figures;
        let (answer, until) = match Deadline::of(request.headers()) {
            Ok(deadline) => (self.in_time(method, request, deadline).await, deadline),
            Err(refusal) => (Status::from(refusal).into_http(), None),
        };
        match code(&answer) {
            None if method.is_streamed() => Streamed::around(answer, &self.node, method, until),
            ended => {
                figures.answered(method, ended.unwrap_or(Code::Ok));
                answer
            }
        }
    }

    /// Answers in time, or says that it could not. A call whose request has arrived is carried out at once: it is either
    /// done or not, never half.
    async fn in_time<B>(
        &self,
        method: Method,
        mut request: Request<B>,
        deadline: Option<Deadline>,
    ) -> Response<Body>
    where
        B: HttpBody<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<StdError> + Send + 'static,
    {
        let Some(deadline) = deadline else {
            return self.dispatch(method, request).await;
        };
        if deadline.0 <= Instant::now() {
            return Status::from(Refusal::DeadlineExceeded).into_http();
        }
        request.extensions_mut().insert(deadline);
        match timeout_at(deadline.0, self.dispatch(method, request)).await {
            Ok(answer) => answer,
            Err(_) => Status::from(Refusal::DeadlineExceeded).into_http(),
        }
    }

    async fn dispatch<B>(&self, method: Method, request: Request<B>) -> Response<Body>
    where
        B: HttpBody<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<StdError> + Send + 'static,
    {
        let Ok(answer) = match method {
            Method::Other => Ok(Status::from(Refusal::UnknownMethod).into_http()),
            Method::HealthCheck | Method::HealthWatch => self.health.clone().call(request).await,
            Method::Reflection => self.reflection.v1(request).await,
            Method::ReflectionAlpha => self.reflection.v1alpha(request).await,
            Method::KeepAlive => self.renewals.clone().call(request).await,
            Method::Cancel
            | Method::ClearStatus
            | Method::GetApplication
            | Method::GetInstance
            | Method::ListApplications
            | Method::Register
            | Method::Renew
            | Method::SetStatus
            | Method::UpdateMetadata
            | Method::Watch => self.registry.clone().call(request).await,
        };
        // Our own refusals have none of these codes: the request could not be read.
        match code(&answer) {
            Some(Code::Internal | Code::OutOfRange | Code::ResourceExhausted) => {
                match Status::from_header_map(answer.headers()) {
                    Some(error) => refusal::unread(error).into_http(),
                    None => answer,
                }
            }
            _ => answer,
        }
    }
}

impl fmt::Debug for GrpcService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcService").finish_non_exhaustive()
    }
}

/// The status in the head of an answer: there if the call ended without a message.
fn code(answer: &Response<Body>) -> Option<Code> {
    let code = answer.headers().get(Status::GRPC_STATUS)?;
    Some(Code::from_bytes(code.as_bytes()))
}

/// What is answered to a request that is none of gRPC's, as its specification has it.
fn no_grpc<B>(request: &Request<B>) -> Option<Response<Body>> {
    if request.method() != http::Method::POST {
        let mut answer = empty(StatusCode::METHOD_NOT_ALLOWED);
        answer
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("POST"));
        return Some(answer);
    }
    (!has_grpc_type(request.headers())).then(|| empty(StatusCode::UNSUPPORTED_MEDIA_TYPE))
}

/// `application/grpc`, also with `+proto` and with parameters.
fn has_grpc_type(headers: &HeaderMap) -> bool {
    let Some(Ok(given)) = headers.get(CONTENT_TYPE).map(HeaderValue::to_str) else {
        return false;
    };
    let kind = given.split(';').next().unwrap_or_default().trim();
    ["application/grpc", "application/grpc+proto"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(kind))
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer
}
