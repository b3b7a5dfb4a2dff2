//! An axum service that is registered once it listens, and leaves without losing a request: first the registry, then those
//! who still call, then the requests under way.
//!
//! ```sh
//! cargo run -p eureka-client --example axum_graceful -- http://127.0.0.1:8761/eureka/ payments 0
//! ```
//! The port 0 takes any that is free. SIGTERM or Ctrl-C ends it.

#![allow(clippy::print_stdout)] // It talks to whoever runs it.

use std::env;
use std::error::Error;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use eureka_client::{Client, Instance};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// How long others may go on calling an instance that has left: those that use the change feed know at once, those that
/// poll, within their interval (30 s unless they set another), which is what belongs here then.
const LINGER: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (server, app) = (next("http://127.0.0.1:8761/eureka/"), next("payments"));
    let port: u16 = next("0").parse()?;

    // Who listens before it registers refuses nobody.
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let port = listener.local_addr()?.port();
    let id = format!("localhost:{app}:{port}");
    let router = Router::new()
        .route("/hello", get(hello))
        .with_state(format!("hello from {id}\n"));
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = axum::serve(listener, router).with_graceful_shutdown(async {
        // It also ends if the sender is gone.
        let _ = stopped.await;
    });
    let serving = tokio::spawn(serving.into_future());

    let instance = Instance {
        port: port.into(),
        vip_address: Some(app.as_str().into()),
        ..Instance::new(&app, &id, "localhost", "127.0.0.1")
    };
    let client = Client::builder().server(&server).register(instance).start()?;
    client.registration().wait_registered().await;
    println!("{id} is registered and listens on port {port}");

    terminated().await?;
    let cancelled = client.shutdown().await;
    println!("left the registry (cancelled: {cancelled}), serving on for {LINGER:?}");
    tokio::time::sleep(LINGER).await;
    let _ = stop.send(());
    serving.await??;
    println!("done");
    Ok(())
}

async fn hello(State(text): State<String>) -> String {
    text
}

/// SIGTERM, as orchestrators send it, or Ctrl-C.
#[cfg(unix)]
async fn terminated() -> Result<(), Box<dyn Error>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut sigterm = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = sigterm.recv() => {}
        pressed = tokio::signal::ctrl_c() => pressed?,
    }
    Ok(())
}

#[cfg(not(unix))]
async fn terminated() -> Result<(), Box<dyn Error>> {
    Ok(tokio::signal::ctrl_c().await?)
}
