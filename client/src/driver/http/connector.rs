//! How connections are made.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{PoolConfig, reason};
#[cfg(feature = "tls")]
use crate::driver::tls::Secure;

type Connecting = Pin<Box<dyn Future<Output = Result<Wire, ConnectError>> + Send>>;

/// Connects to a server.
#[derive(Clone, Debug)]
pub(super) struct Connector {
    plain: HttpConnector,
    within: Duration,
    #[cfg(feature = "tls")]
    secure: Secure,
}

/// A connection, secured or not.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    answered: Answered,
}

/// Whether a connection has brought an answer already: then a server may close it at any time without being at fault.
#[derive(Clone, Debug, Default)]
pub(super) struct Answered(Arc<AtomicBool>);

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// TCP, or the name.
    Plain(String),
    /// TLS.
    #[cfg(feature = "tls")]
    Secure(String),
    /// A server that speaks TLS, and this crate was built without it.
    #[cfg(not(feature = "tls"))]
    NoTls,
    /// It took too long.
    Late,
}

trait Stream: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Stream for T {}

impl Connector {
    pub(super) fn new(config: &PoolConfig) -> Self {
        let mut plain = HttpConnector::new();
        // Each address of a name has its part of it.
        plain.set_connect_timeout(Some(config.connect_timeout));
        plain.set_nodelay(true);
        plain.enforce_http(false);
        Self {
            plain,
            within: config.connect_timeout,
            #[cfg(feature = "tls")]
            secure: Secure::new(config.tls.clone()),
        }
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = Wire;
    type Error = ConnectError;
    type Future = Connecting;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        self.plain
            .poll_ready(context)
            .map_err(|error| ConnectError::Plain(reason(&error)))
    }

    fn call(&mut self, uri: Uri) -> Connecting {
        let within = self.within;
        let connector = self.clone();
        Box::pin(async move {
            timeout(within, connector.connect(uri))
                .await
                .unwrap_or(Err(ConnectError::Late))
        })
    }
}

impl Connector {
    async fn connect(mut self, uri: Uri) -> Result<Wire, ConnectError> {
        let secure = uri.scheme_str() == Some("https");
        #[cfg(not(feature = "tls"))]
        if secure {
            return Err(ConnectError::NoTls);
        }
        #[cfg(feature = "tls")]
        let host = uri.host().unwrap_or_default().to_owned();
        let connecting = tower_service::Service::call(&mut self.plain, uri);
        let stream: TokioIo<TcpStream> = connecting
            .await
            .map_err(|error| ConnectError::Plain(reason(&error)))?;
        #[cfg(feature = "tls")]
        if secure {
            let secured = self.secure.secure(&host, stream.into_inner()).await;
            return Ok(Wire::over(TokioIo::new(secured.map_err(ConnectError::Secure)?)));
        }
        Ok(Wire::over(stream))
    }
}

impl Wire {
    fn over(stream: impl Stream + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            answered: Answered::default(),
        }
    }
}

impl Answered {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.answered.clone())
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(why) => f.write_str(why),
            #[cfg(feature = "tls")]
            Self::Secure(why) => write!(f, "TLS: {why}"),
            #[cfg(not(feature = "tls"))]
            Self::NoTls => f.write_str("https needs the feature `tls` of eureka-client"),
            Self::Late => f.write_str("no connection in time"),
        }
    }
}

impl std::error::Error for ConnectError {}
