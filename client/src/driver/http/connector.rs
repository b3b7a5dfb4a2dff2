//! How connections are made.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::PoolConfig;

type Connecting = Pin<Box<dyn Future<Output = Result<TokioIo<TcpStream>, ConnectError>> + Send>>;

/// Connects to a server.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    plain: HttpConnector,
}

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// TCP.
    Plain(Box<dyn std::error::Error + Send + Sync>),
    /// A server that speaks TLS, and this crate was built without it.
    NoTls,
}

impl Connector {
    pub(super) fn new(config: &PoolConfig) -> Self {
        let mut plain = HttpConnector::new();
        plain.set_connect_timeout(Some(config.connect_timeout));
        plain.set_nodelay(true);
        plain.enforce_http(true);
        Self { plain }
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = Connecting;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.plain
            .poll_ready(context)
            .map_err(|error| ConnectError::Plain(error.into()))
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        if uri.scheme_str() == Some("https") {
            return Box::pin(async { Err(ConnectError::NoTls) });
        }
        let connecting = self.plain.call(uri);
        Box::pin(async {
            connecting
                .await
                .map_err(|error| ConnectError::Plain(error.into()))
        })
    }
}

impl std::fmt::Display for ConnectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain(error) => write!(f, "{error}"),
            Self::NoTls => f.write_str("https needs the feature `tls`"),
        }
    }
}

impl std::error::Error for ConnectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Plain(error) => error.source(),
            Self::NoTls => None,
        }
    }
}
