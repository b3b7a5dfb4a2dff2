//! The limit: hyper with a handler that reads the body, looks at the path and answers 200 with bytes it already has.
//!
//! It runs as many threads as the server, with the same allocator, and takes connections in one loop.

use std::convert::Infallible;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use super::workload::Operation;

/// What is served from files, in the order of the arguments; what has no file is answered with nothing.
pub(super) const FILES: [Operation; 6] = [
    Operation::FullGzip,
    Operation::FullIdentity,
    Operation::DeltaGzip,
    Operation::Application,
    Operation::Vip,
    Operation::Batch,
];

/// Serves until it is killed.
pub(super) fn serve(address: SocketAddr, files: &[String]) -> Result<()> {
    ensure!(files.len() <= FILES.len(), "at most a file for each of {FILES:?}");
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
                let service = service_fn(move |request| answer(Arc::clone(&files), request));
                // A connection that breaks is the generator's business: it counts answers.
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    })
}

async fn answer(
    files: Arc<[Bytes]>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = asked(&request)
        .and_then(|operation| FILES.iter().position(|file| *file == operation))
        .and_then(|file| files.get(file).cloned())
        .unwrap_or_default();
    // What cannot be read breaks the connection in any case.
    let _ = request.into_body().collect().await;
    let mut response = Response::new(Full::new(body));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn asked(request: &Request<Incoming>) -> Option<Operation> {
    let path = request.uri().path();
    if *request.method() != Method::GET {
        return path
            .starts_with("/eureka/peerreplication/")
            .then_some(Operation::Batch);
    }
    match path {
        "/eureka/apps" if request.headers().contains_key(ACCEPT_ENCODING) => Some(Operation::FullGzip),
        "/eureka/apps" => Some(Operation::FullIdentity),
        "/eureka/apps/delta" => Some(Operation::DeltaGzip),
        _ if path.starts_with("/eureka/apps/") => Some(Operation::Application),
        _ if path.starts_with("/eureka/vips/") => Some(Operation::Vip),
        _ => None,
    }
}
