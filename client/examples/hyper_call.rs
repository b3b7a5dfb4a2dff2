//! Calls `http://payments/hello`, where `payments` is a name of the registry, through hyper-util's client.
//!
//! ```sh
//! cargo run -p eureka-client --features caller --example hyper_call -- http://127.0.0.1:8761/eureka/ http://payments/hello 4
//! ```

#![allow(clippy::print_stdout)] // It talks to whoever runs it.

use std::env;
use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use eureka_client::Client;
use eureka_client::balance::BalanceConfig;
use eureka_client::caller::{Caller, Served};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use tower::{Service, ServiceExt};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (server, url) = (
        next("http://127.0.0.1:8761/eureka/"),
        next("http://payments/hello"),
    );
    let times: usize = next("4").parse()?;

    let client = Client::builder().server(&server).discover().start()?;
    tokio::time::timeout(Duration::from_secs(10), client.cache().ready()).await?;

    let http = legacy::Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let config = BalanceConfig::default();
    let mut caller = Caller::new(client.cache(), config, http, legacy::Error::is_connect)
        .try_within(Duration::from_secs(5));
    for _ in 0..times {
        let request = Request::get(&url).body(Full::default())?;
        let response = caller.ready().await?.call(request).await?;
        let served = response.extensions().get::<Served>().cloned();
        let (status, body) = (response.status(), response.into_body().collect().await?);
        print!("{status} {}", String::from_utf8_lossy(&body.to_bytes()));
        if let Some(served) = served.filter(|served| served.tries > 1) {
            println!("  that was try number {}", served.tries);
        }
    }
    client.shutdown().await;
    Ok(())
}
