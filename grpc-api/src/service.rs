//! The service: which part answers a request.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tonic::body::Body;
use tonic::codegen::{Body as HttpBody, StdError};
use tonic::{Status, Streaming};
use tower::Service;

use crate::deadline::Deadline;
use crate::keep_alive::{self, KeepingAlive};
use crate::node::Node;
use crate::proto::registry_server::{Registry, RegistryServer};
use crate::proto::{
    CancelRequest, CancelResponse, ClearStatusRequest, ClearStatusResponse, GetApplicationRequest,
    GetApplicationResponse, GetInstanceRequest, GetInstanceResponse, KeepAliveRequest,
    ListApplicationsRequest, ListApplicationsResponse, RegisterRequest, RegisterResponse, RenewRequest,
    RenewResponse, SetStatusRequest, SetStatusResponse, UpdateMetadataRequest, UpdateMetadataResponse,
    WatchRequest,
};
use crate::refusal::Refusal;
use crate::watch::{self, Watching};

/// Answers gRPC requests. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GrpcService {
    registry: RegistryServer<Calls>,
}

/// An answer under way.
type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl GrpcService {
    pub(crate) fn new(node: &Arc<Node>) -> Self {
        let registry = RegistryServer::new(Calls(Arc::clone(node)));
        Self {
            registry: registry.max_decoding_message_size(node.config.message),
        }
    }
}

impl<B> Service<Request<B>> for GrpcService
where
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<B>) -> Answering {
        match Deadline::of(request.headers()) {
            Err(refusal) => {
                let answer = Status::from(refusal).into_http();
                return Box::pin(async { Ok(answer) });
            }
            Ok(Some(deadline)) => {
                request.extensions_mut().insert(deadline);
            }
            Ok(None) => {}
        }
        self.registry.call(request)
    }
}

/// The calls of `eureka.v1.Registry`.
#[derive(Clone, Debug)]
struct Calls(Arc<Node>);

type Answer<T> = Result<tonic::Response<T>, Status>;

#[tonic::async_trait]
impl Registry for Calls {
    async fn register(&self, _: tonic::Request<RegisterRequest>) -> Answer<RegisterResponse> {
        Err(Refusal::Unimplemented.into())
    }

    async fn renew(&self, _: tonic::Request<RenewRequest>) -> Answer<RenewResponse> {
        Err(Refusal::Unimplemented.into())
    }

    async fn cancel(&self, _: tonic::Request<CancelRequest>) -> Answer<CancelResponse> {
        Err(Refusal::Unimplemented.into())
    }

    async fn set_status(&self, _: tonic::Request<SetStatusRequest>) -> Answer<SetStatusResponse> {
        Err(Refusal::Unimplemented.into())
    }

    async fn clear_status(&self, _: tonic::Request<ClearStatusRequest>) -> Answer<ClearStatusResponse> {
        Err(Refusal::Unimplemented.into())
    }

    async fn update_metadata(
        &self,
        _: tonic::Request<UpdateMetadataRequest>,
    ) -> Answer<UpdateMetadataResponse> {
        Err(Refusal::Unimplemented.into())
    }

    async fn get_instance(&self, _: tonic::Request<GetInstanceRequest>) -> Answer<GetInstanceResponse> {
        Err(Refusal::Unimplemented.into())
    }

    async fn get_application(
        &self,
        _: tonic::Request<GetApplicationRequest>,
    ) -> Answer<GetApplicationResponse> {
        Err(Refusal::Unimplemented.into())
    }

    async fn list_applications(
        &self,
        _: tonic::Request<ListApplicationsRequest>,
    ) -> Answer<ListApplicationsResponse> {
        Err(Refusal::Unimplemented.into())
    }

    type WatchStream = Watching;

    async fn watch(&self, request: tonic::Request<WatchRequest>) -> Answer<Watching> {
        let deadline = deadline(&request);
        watch::start(&self.0, request.into_inner(), deadline).map(tonic::Response::new)
    }

    type KeepAliveStream = KeepingAlive;

    async fn keep_alive(&self, request: tonic::Request<Streaming<KeepAliveRequest>>) -> Answer<KeepingAlive> {
        let deadline = deadline(&request);
        let stream = keep_alive::start(&self.0, request.into_inner(), deadline);
        Ok(tonic::Response::new(stream))
    }
}

fn deadline<T>(request: &tonic::Request<T>) -> Option<tokio::time::Instant> {
    request.extensions().get::<Deadline>().map(|deadline| deadline.0)
}
