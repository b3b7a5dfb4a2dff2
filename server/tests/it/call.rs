//! A client of gRPC: calls over one connection, as a client of any language makes them.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use eureka_grpc_api::proto;
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use tokio::net::TcpStream;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use tower::Service;

use crate::node::{BOUND, Node};

/// One connection.
#[derive(Clone)]
pub(crate) struct Channel(SendRequest<Body>);

impl Service<Request<Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}

/// How a client reads.
#[derive(Clone, Copy)]
pub(crate) enum Reads {
    /// Everything that comes.
    All,
    /// Nothing of any body, though it is there and answers pings.
    Nothing,
}

/// Calls over one connection.
pub(crate) struct Calls(pub(crate) Grpc<Channel>);

impl Calls {
    pub(crate) async fn to(node: &Node) -> Self {
        Self::at(node.grpc.expect("it serves gRPC"), Reads::All).await
    }

    pub(crate) async fn at(address: SocketAddr, reads: Reads) -> Self {
        let stream = TcpStream::connect(address).await.expect("the node is there");
        let mut client = http2::Builder::new(TokioExecutor::new());
        client
            .timer(TokioTimer::new())
            // The node looks at what a connection leaves unread when something comes over it.
            .keep_alive_interval(Duration::from_millis(50))
            .keep_alive_timeout(BOUND);
        if matches!(reads, Reads::Nothing) {
            client.initial_stream_window_size(0);
        }
        let (sender, connection) = client
            .handshake(TokioIo::new(stream))
            .await
            .expect("the node is there");
        // It ends with the sender, or when the node cuts it.
        tokio::spawn(async move { drop(connection.await) });
        let origin = Uri::builder()
            .scheme("http")
            .authority(address.to_string())
            .path_and_query("/")
            .build()
            .expect("it is one");
        Self(Grpc::with_origin(Channel(sender), origin))
    }

    /// A call with one answer.
    pub(crate) async fn unary<M, R>(&mut self, method: &str, message: M) -> Result<R, Status>
    where
        M: Message + Send + Sync + 'static,
        R: Message + Default + Send + Sync + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<M, R>::default();
        let answer = self
            .0
            .unary(tonic::Request::new(message), path(method), codec)
            .await?;
        Ok(answer.into_inner())
    }

    /// A call with a stream of answers.
    pub(crate) async fn stream<M, R>(&mut self, method: &str, message: M) -> Result<Streaming<R>, Status>
    where
        M: Message + Send + Sync + 'static,
        R: Message + Default + Send + Sync + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<M, R>::default();
        let answer = self
            .0
            .server_streaming(tonic::Request::new(message), path(method), codec)
            .await?;
        Ok(answer.into_inner())
    }

    /// A call with streams both ways.
    pub(crate) async fn streams<M, R>(
        &mut self,
        method: &str,
        messages: impl tokio_stream::Stream<Item = M> + Send + 'static,
    ) -> Result<Streaming<R>, Status>
    where
        M: Message + Send + Sync + 'static,
        R: Message + Default + Send + Sync + 'static,
    {
        self.ready().await?;
        let codec = ProstCodec::<M, R>::default();
        let answer = self
            .0
            .streaming(tonic::Request::new(messages), path(method), codec)
            .await?;
        Ok(answer.into_inner())
    }

    async fn ready(&mut self) -> Result<(), Status> {
        self.0
            .ready()
            .await
            .map_err(|error| Status::unknown(format!("the connection is gone: {error}")))
    }

    /// Registers an instance with what is required.
    pub(crate) async fn register(&mut self, app: &str, id: &str) -> Result<proto::RegisterResponse, Status> {
        let instance = Some(instance(app, id));
        self.unary("Register", proto::RegisterRequest { instance }).await
    }

    /// Renews a lease.
    pub(crate) async fn renew(&mut self, app: &str, id: &str) -> Result<proto::RenewResponse, Status> {
        let renewal = Some(renewal(app, id));
        self.unary("Renew", proto::RenewRequest { renewal }).await
    }

    /// Watches everything.
    pub(crate) async fn watch(&mut self) -> Result<Streaming<proto::WatchResponse>, Status> {
        self.stream("Watch", proto::WatchRequest::default()).await
    }
}

pub(crate) fn instance(app: &str, id: &str) -> proto::Instance {
    proto::Instance {
        app: app.to_owned(),
        instance_id: id.to_owned(),
        host_name: "h".to_owned(),
        ip_address: "10.0.0.1".to_owned(),
        ..proto::Instance::default()
    }
}

pub(crate) fn renewal(app: &str, id: &str) -> proto::Renewal {
    proto::Renewal {
        app: app.to_owned(),
        instance_id: id.to_owned(),
        last_dirty_unix_ms: None,
    }
}

/// A method of ours by its name, any other one by its path.
fn path(method: &str) -> PathAndQuery {
    let path = if method.starts_with('/') {
        method.to_owned()
    } else {
        format!("/eureka.v1.Registry/{method}")
    };
    path.parse().expect("it is one")
}

/// What comes in time.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(BOUND, future).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: not in time"),
    }
}
