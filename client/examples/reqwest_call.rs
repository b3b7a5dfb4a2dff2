//! The same as `hyper_call` through reqwest: ten lines make a tower service of its client.
//!
//! ```sh
//! cargo run -p eureka-client --features caller --example reqwest_call -- http://127.0.0.1:8761/eureka/ http://payments/hello 4
//! ```

#![allow(clippy::print_stdout)] // It talks to whoever runs it.

use std::env;
use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use eureka_client::Client;
use eureka_client::balance::BalanceConfig;
use eureka_client::caller::Caller;
use http::{Request, Response};
use tower::{Service, ServiceExt, service_fn};

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

    // The time-out of reqwest is one for each try, and one of the errors after which GET is tried again.
    let http = reqwest::Client::builder()
        .timeout(Duration::from_secs(5))
        .build()?;
    let service = service_fn(move |request: Request<Bytes>| {
        let http = http.clone();
        async move {
            let response = http.execute(request.try_into()?).await?;
            Ok::<Response<reqwest::Body>, reqwest::Error>(response.into())
        }
    });
    let config = BalanceConfig::default();
    let mut caller = Caller::new(client.cache(), config, service, reqwest::Error::is_connect);
    for _ in 0..times {
        let request = Request::get(&url).body(Bytes::new())?;
        let response = reqwest::Response::from(caller.ready().await?.call(request).await?);
        print!("{} {}", response.status(), response.text().await?);
    }
    client.shutdown().await;
    Ok(())
}
