//! A service that others find: registers with the servers given, renews, and leaves on Ctrl-C.
//!
//! ```sh
//! cargo run -p eureka-client --example provider -- http://127.0.0.1:8761/eureka/ orders 8080
//! ```

#![allow(clippy::print_stdout)] // It talks to whoever runs it.

use std::env;
use std::error::Error;

use eureka_client::{Client, Instance};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [server, app, port] = arguments();
    let instance = Instance {
        port: port.parse::<u16>()?.into(),
        // Clients that find services by their virtual address, Spring's for example, look for this.
        vip_address: Some(app.as_str().into()),
        ..Instance::new(&app, &format!("localhost:{app}:{port}"), "localhost", "127.0.0.1")
    };
    let client = Client::builder().server(&server).register(instance).start()?;

    // Does not wait for a server: a service works without one, too, and the client goes on trying.
    let registered = client.registration().wait_registered();
    tokio::spawn(async move {
        if registered.await {
            println!("{app} is registered at {server}: Ctrl-C ends it");
        }
    });
    tokio::signal::ctrl_c().await?;

    // DOWN, then gone. Dropping the client does the same in the background, if the runtime goes on for long enough.
    let cancelled = client.shutdown().await;
    println!("cancelled at the server: {cancelled}");
    Ok(())
}

fn arguments() -> [String; 3] {
    let mut arguments = env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    [
        next("http://127.0.0.1:8761/eureka/"),
        next("orders"),
        next("8080"),
    ]
}
