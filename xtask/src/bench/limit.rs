//! The limit: hyper with a handler that looks at the path and answers 200 with bytes it already has.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::workload::Operation;

/// What is served from files, in the order of the arguments.
pub(super) const FILES: [Operation; 3] = [Operation::FullGzip, Operation::FullIdentity, Operation::DeltaGzip];

/// Serves until it is killed.
pub(super) fn serve(address: SocketAddr, files: &[String]) -> Result<()> {
    ensure!(files.len() == FILES.len(), "one file for each of {FILES:?}");
    let read = |file: &String| fs::read(file).map(Bytes::from).with_context(|| file.clone());
    let files: Arc<[Bytes]> = files.iter().map(read).collect::<Result<_>>()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async move {
        let listener = TcpListener::bind(address).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let files = Arc::clone(&files);
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let answer = answer(&files, &request);
                    async { Ok::<_, Infallible>(answer) }
                });
                // A connection that breaks is the generator's business: it counts answers.
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    })
}

fn answer(files: &[Bytes], request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let file = match request.uri().path() {
        "/eureka/apps" if request.headers().contains_key(ACCEPT_ENCODING) => Some(0),
        "/eureka/apps" => Some(1),
        "/eureka/apps/delta" => Some(2),
        _ => None,
    };
    let body = file.map_or_else(Bytes::new, |file| files[file].clone());
    let mut response = Response::new(Full::new(body));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
