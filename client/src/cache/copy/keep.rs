//! Keeps a copy on disk in step with a cache.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::Wall;
use tokio::time::Instant;

use super::{CopyError, DiskCopy};
use crate::cache::{Cache, Origin, View};

/// A copy is written at most this often.
pub(super) const INTERVAL: Duration = Duration::from_secs(30);
/// So many intervals later it is written again although nothing changed: its age is worth something, too.
const UNCHANGED: u32 = 10;

/// Writes what the cache shows to disk, at most once each interval of the copy, until the client that keeps the cache
/// ends; then a last time, and returns. Waits for the disk on tokio's threads for that. Failures are logged when they
/// begin and when they end, and never reach anybody else.
pub async fn keep(copy: Arc<DiskCopy>, cache: Cache) {
    let mut keeper = Keeper {
        copy,
        written: None,
        failing: false,
    };
    let mut seen = cache.view();
    keeper.write_if_due(&seen, false).await;
    while let Some(newer) = cache.newer_than(&seen).await {
        seen = newer;
        let mut pause = pin!(tokio::time::sleep(keeper.pause()));
        loop {
            tokio::select! {
                biased;
                newer = cache.newer_than(&seen) => match newer {
                    Some(newer) => seen = newer,
                    None => break,
                },
                () = &mut pause => break,
            }
        }
        keeper.write_if_due(&seen, false).await;
    }
    keeper.write_if_due(&seen, true).await;
}

struct Keeper {
    copy: Arc<DiskCopy>,
    /// What was written or tried last, and when.
    written: Option<(Instant, Arc<View>)>,
    failing: bool,
}

impl Keeper {
    /// How long to wait before the next time.
    fn pause(&self) -> Duration {
        let since = self.written.as_ref().map(|(at, _)| at.elapsed());
        since.map_or(Duration::ZERO, |since| self.copy.interval.saturating_sub(since))
    }

    async fn write_if_due(&mut self, view: &Arc<View>, last: bool) {
        let (Origin::Server(_), Some(confirmed)) = (view.origin(), view.confirmed()) else {
            return;
        };
        if !self.is_due(view, last) {
            return;
        }
        let (copy, shown) = (Arc::clone(&self.copy), Arc::clone(view));
        let write = move || copy.write(confirmed.wall, shown.snapshot());
        let result = tokio::task::spawn_blocking(write).await;
        self.written = Some((Instant::now(), Arc::clone(view)));
        match result {
            Ok(result) => self.tell(result, confirmed.wall),
            Err(error) => tracing::error!(%error, "writing the registry copy did not end"),
        }
    }

    fn is_due(&self, view: &Arc<View>, last: bool) -> bool {
        match &self.written {
            None => true,
            Some((_, written)) if Arc::ptr_eq(written, view) => last && self.failing,
            Some(_) if last || self.failing => true,
            Some((at, written)) => {
                at.elapsed() >= UNCHANGED * self.copy.interval
                    || !view.snapshot().differences(written.snapshot()).is_empty()
            }
        }
    }

    fn tell(&mut self, result: Result<(), CopyError>, saved: Wall) {
        let path = self.copy.path().display();
        match result {
            Ok(()) if self.failing => {
                tracing::info!(%path, saved = saved.0, "the registry copy is written again");
            }
            Ok(()) => tracing::debug!(%path, saved = saved.0, "wrote the registry copy"),
            Err(error) if !self.failing => {
                tracing::warn!(%path, %error, "the registry copy cannot be written");
                self.failing = true;
                return;
            }
            Err(error) => {
                tracing::debug!(%path, %error, "the registry copy still cannot be written");
                return;
            }
        }
        self.failing = false;
    }
}
