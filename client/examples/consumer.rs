//! Finds a service: prints who provides it, and then every change, until Ctrl-C.
//!
//! ```sh
//! cargo run -p eureka-client --example consumer -- http://127.0.0.1:8761/eureka/ orders
//! ```

#![allow(clippy::print_stdout)] // It talks to whoever runs it.

use std::env;
use std::error::Error;

use eureka_client::{Client, LeaseView};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (server, app) = (next("http://127.0.0.1:8761/eureka/"), next("orders"));
    let client = Client::builder().server(&server).discover().start()?;

    // The first update has everybody who is there.
    let mut orders = client.cache().watch(&app);
    loop {
        tokio::select! {
            Some(update) = orders.next() => {
                for difference in &update.differences {
                    match &difference.after {
                        Some(now) => println!("{} is {} at {}", difference.key.id(), now.instance.status, address(now)),
                        None => println!("{} is gone", difference.key.id()),
                    }
                }
            }
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
    }
}

fn address(view: &LeaseView) -> String {
    format!("{}:{}", view.instance.host_name, view.instance.port.number)
}
