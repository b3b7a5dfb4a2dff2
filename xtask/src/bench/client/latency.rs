//! From a registration to the callback at a consumer: through the change feed, and by polling.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use eureka_client::Client;
use eureka_registry_core::Difference;
use parking_lot::Mutex;

use crate::bench::load;
use crate::bench::subject::{self, Subject};
use crate::bench::watch::FLEET;
use crate::bench::watch::marks::{Marks, Sender, find};

/// Registrations that are timed.
pub(super) const CHANGES: u32 = 1_000;
/// Registrations a second: polls meet them at every moment of their interval.
pub(super) const RATE: u32 = 40;
/// How often the consumer that polls asks.
pub(super) const POLL: Duration = Duration::from_secs(1);
/// Whatever is waited for is there long before this.
const LATEST: Duration = Duration::from_secs(30);

/// Through the feed, or by polling; in microseconds, sorted.
pub(super) fn measure(feed: bool) -> Result<Vec<u32>> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(consumed(feed))
}

async fn consumed(feed: bool) -> Result<Vec<u32>> {
    let (server, _) = Subject::server(&subject::release_directory().join("eureka"), &[])?;
    load::register_all(server.address, &FLEET).await?;
    let client = Client::builder()
        .server(&format!("http://{}/eureka/", server.address))
        .feed(feed)
        .fetch_interval(POLL)
        .start()?;
    let cache = client.cache();
    let ready = tokio::time::timeout(LATEST, cache.ready()).await?;
    let view = ready.context("the client ended")?;
    ensure!(view.snapshot().len() == FLEET.instances, "{view:?}");
    // Behind the list comes the first question to the feed.
    tokio::time::sleep(POLL).await;

    let marks = Arc::new(Marks::new(CHANGES));
    let delays = Arc::new(Mutex::new(Vec::new()));
    let _listening = cache.on_change({
        let (marks, delays) = (Arc::clone(&marks), Arc::clone(&delays));
        move |update| {
            let told = update.differences.iter().filter_map(mark);
            delays.lock().extend(told.map(|number| marks.delay(number)));
        }
    });
    let sender = Sender::open(server.address)?;
    let sending = thread::spawn({
        let marks = Arc::clone(&marks);
        move || sender.send_all(&marks, RATE)
    });
    let all = async {
        while delays.lock().len() < CHANGES as usize {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let seconds = Duration::from_secs(u64::from(CHANGES / RATE));
    let told = tokio::time::timeout(seconds + LATEST, all).await;
    ensure!(
        told.is_ok(),
        "{} changes of {CHANGES} were told",
        delays.lock().len()
    );
    sending.join().map_err(|_| anyhow!("the sender failed"))??;
    client.shutdown().await;
    let mut delays = std::mem::take(&mut *delays.lock());
    delays.sort_unstable();
    Ok(delays)
}

/// The number of the change that an instance carries.
fn mark(difference: &Difference) -> Option<u32> {
    let now = difference.after.as_ref()?;
    find(now.instance.metadata.get("mark")?.as_bytes())
}
