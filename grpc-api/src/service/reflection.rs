//! Server reflection: what the server can be asked, for tools without the .proto.

use std::convert::Infallible;

use http::{Request, Response};
use tonic::body::Body;
use tonic::codegen::{Body as HttpBody, StdError};
use tonic_reflection::server::Builder;
use tower::Service as _;
use tower::util::BoxCloneSyncService;

use crate::proto::DESCRIPTORS;

type Boxed = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Both versions of the same service: tools ask for the one, or the other.
pub(super) struct Reflection {
    v1: Boxed,
    v1alpha: Boxed,
}

impl Reflection {
    /// Of our own service and of health. A request may have so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let builder = || {
            Builder::configure()
                .register_encoded_file_descriptor_set(DESCRIPTORS)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let valid = "what a compiler wrote can be read";
        let v1 = builder().build_v1().expect(valid);
        let v1alpha = builder().build_v1alpha().expect(valid);
        Self {
            v1: Boxed::new(v1.max_decoding_message_size(bytes)),
            v1alpha: Boxed::new(v1alpha.max_decoding_message_size(bytes)),
        }
    }

    pub(super) async fn v1<B>(&self, request: Request<B>) -> Result<Response<Body>, Infallible>
    where
        B: HttpBody<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<StdError> + Send + 'static,
    {
        self.v1.clone().call(request.map(Body::new)).await
    }

    pub(super) async fn v1alpha<B>(&self, request: Request<B>) -> Result<Response<Body>, Infallible>
    where
        B: HttpBody<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<StdError> + Send + 'static,
    {
        self.v1alpha.clone().call(request.map(Body::new)).await
    }
}
