//! Tower's balancer over the instances of an application: of two drawn at random, the one with fewer requests under way.
//!
//! ```sh
//! cargo run -p eureka-client --features tower --example tower_balance -- http://127.0.0.1:8761/eureka/ payments /hello 6
//! ```

#![allow(clippy::print_stdout)] // It talks to whoever runs it.

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eureka_client::balance::{Addressing, Endpoint, Target};
use eureka_client::discover::Discover;
use eureka_client::{Client, Instance};
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use tower::balance::p2c::Balance;
use tower::load::{CompleteOnResponse, PendingRequestsDiscover};
use tower::{Service, ServiceExt, service_fn};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (server, app) = (next("http://127.0.0.1:8761/eureka/"), next("payments"));
    let (path, times): (String, usize) = (next("/hello"), next("6").parse()?);

    let client = Client::builder().server(&server).discover().start()?;
    let http = legacy::Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    // One service for each instance; they share connections through the one client.
    let make = move |_: &Arc<Instance>, endpoint: &Endpoint| {
        let (http, endpoint) = (http.clone(), endpoint.clone());
        service_fn(move |path: String| {
            let uri: Result<Uri, _> = format!("{endpoint}{path}").parse();
            let http = http.clone();
            async move {
                let request = Request::get(uri?).body(Full::default())?;
                let body = http.request(request).await?.into_body().collect().await?;
                Ok::<Bytes, Box<dyn Error + Send + Sync>>(body.to_bytes())
            }
        })
    };
    let target = Target::app(&app);
    let discover = Discover::new(&client.cache(), &target, Addressing::default(), make);
    let discover = PendingRequestsDiscover::new(discover, CompleteOnResponse::default());
    let mut balance = Balance::new(discover);
    for _ in 0..times {
        // Waits as long as nobody is there.
        let ready = tokio::time::timeout(Duration::from_secs(10), balance.ready()).await?;
        let body = ready.map_err(|error| error.to_string())?.call(path.clone()).await;
        let body = body.map_err(|error| error.to_string())?;
        print!("{}", String::from_utf8_lossy(&body));
    }
    client.shutdown().await;
    Ok(())
}
