//! Goes on without servers: keeps a copy on disk, and says each second what is known of a service, from where, and how
//! old that is. Stop the server and see the age grow; start this again, still without one, and see it resolve.
//!
//! ```sh
//! cargo run -p eureka-client --example cache_without_servers -- http://127.0.0.1:8761/eureka/ orders /tmp/registry.copy
//! ```

#![allow(clippy::print_stdout)] // It talks to whoever runs it.

use std::env;
use std::error::Error;
use std::time::Duration;

use eureka_client::Client;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (server, app) = (next("http://127.0.0.1:8761/eureka/"), next("orders"));
    let client = Client::builder()
        .server(&server)
        .disk_copy(next("/tmp/registry.copy"))
        .start()?;
    let cache = client.cache();
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            _ = ticks.tick() => {
                let view = cache.view();
                let up = view.application(&app).up().count();
                println!("{up} of {app} are up, from {}, {:.1?} old", view.origin(), cache.age());
            }
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    // Writes the copy a last time.
    client.shutdown().await;
    Ok(())
}
