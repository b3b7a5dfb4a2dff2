//! What the agent fetched on its way to those who read it. Tasks of their own, for clients that discover: neither a slow
//! listener nor a slow disk keeps a renewal from being sent.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Mirror, Now, Snapshot};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tracing::{info, warn};

use super::shared::Shared;
use crate::cache::Publisher;
use crate::cache::copy::{DiskCopy, Saved, keep};
use crate::server::Server;

/// For the last copy on disk, and for listeners that are being called, when the client ends.
const END_WITHIN: Duration = Duration::from_secs(5);
/// For the copy on disk, when the client starts: so long no server is read.
const COPY_WITHIN: Duration = Duration::from_secs(5);

/// The tasks, which end with this.
#[derive(Debug)]
pub(super) struct Publishing {
    newest: watch::Sender<Option<Told>>,
    copy: CopyRead,
    tasks: JoinSet<()>,
}

/// Whether the copy on disk has been read. Tells nothing: it ends.
#[derive(Clone, Debug)]
pub(super) struct CopyRead(watch::Receiver<()>);

/// What a server told, and when.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) now: Now,
    pub(super) snapshot: Snapshot,
    pub(super) server: Arc<Server>,
}

impl Publishing {
    pub(super) fn start(shared: Arc<Shared>, mut publisher: Publisher, copy: Option<Arc<DiskCopy>>) -> Self {
        let (newest, told) = watch::channel(None);
        let (reading, read) = watch::channel(());
        let mut tasks = JoinSet::new();
        if let Some(copy) = &copy {
            tasks.spawn(keep(Arc::clone(copy), publisher.cache()));
        }
        tasks.spawn(publisher.teller().run());
        tasks.spawn(publish(shared, publisher, copy.map(|copy| (copy, reading)), told));
        Self {
            newest,
            copy: CopyRead(read),
            tasks,
        }
    }

    /// Shows this to the readers soon. What is newer takes its place if they are slow.
    pub(super) fn show(&self, told: Told) {
        self.newest.send_replace(Some(told));
    }

    /// Who wants to read a server waits for the copy on disk: else a server that was started again as well, and answers
    /// sooner than the disk, would have it that nobody is there.
    pub(super) fn copy(&self) -> CopyRead {
        self.copy.clone()
    }

    /// Shows what was told last, and writes it to disk.
    pub(super) async fn end(self) {
        let Self {
            newest, mut tasks, ..
        } = self;
        drop(newest);
        let ended = timeout(END_WITHIN, async { while tasks.join_next().await.is_some() {} });
        if ended.await.is_err() {
            warn!("a listener or the disk takes too long; the client ends without it");
        }
    }
}

impl CopyRead {
    /// Waits until it has been read, or there is none, or it takes too long.
    pub(super) async fn wait(mut self) {
        let read = timeout(COPY_WITHIN, async { while self.0.changed().await.is_ok() {} });
        if read.await.is_err() {
            warn!("the copy on disk takes long to read; servers are asked before it is known");
        }
    }
}

/// Ends when nobody can tell anything any more.
async fn publish(
    shared: Arc<Shared>,
    publisher: Publisher,
    copy: Option<(Arc<DiskCopy>, watch::Sender<()>)>,
    mut told: watch::Receiver<Option<Told>>,
) {
    let mut loading = JoinSet::new();
    let mut reading = copy.map(|(copy, reading)| {
        loading.spawn_blocking(move || copy.load());
        reading
    });
    loop {
        tokio::select! {
            biased;
            changed = told.changed() => {
                if changed.is_err() {
                    return;
                }
                let newest = told.borrow_and_update().clone();
                if let Some(Told { now, snapshot, server }) = newest {
                    publisher.publish(now, snapshot, server);
                }
            }
            Some(loaded) = loading.join_next() => {
                if let Ok(Some(saved)) = loaded {
                    begin_with(&shared, &publisher, saved);
                }
                drop(reading.take());
            }
        }
    }
}

fn begin_with(shared: &Shared, publisher: &Publisher, saved: Saved) {
    let mut mirror = Mirror::new();
    for view in &saved.instances {
        mirror.put(view.clone());
    }
    if publisher.begin_with(saved.at, mirror.snapshot()) {
        info!(instances = saved.instances.len(), "begins with the copy on disk");
        shared.change(|agent, now| agent.begin_with(now, saved.instances));
    }
}
