//! When the copy is written. Time is tokio's, paused: nothing here waits.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use eureka_client::cache::Publisher;
use eureka_client::cache::copy::{CopyStats, DiskCopy, keep};
use eureka_client::call::Scope;
use eureka_registry_core::{Snapshot, Wall};
use tempfile::{TempDir, tempdir};
use tokio::task::JoinHandle;

use super::{at, publisher, server, snapshot, up};

struct Kept {
    directory: TempDir,
    copy: Arc<DiskCopy>,
    publisher: Publisher,
    task: JoinHandle<()>,
}

impl Kept {
    fn new(name: &str) -> Self {
        let directory = tempdir().unwrap();
        let copy = Arc::new(DiskCopy::new(directory.path().join(name), &Scope::All, &[]));
        let publisher = publisher();
        Self {
            task: tokio::spawn(keep(Arc::clone(&copy), publisher.cache())),
            directory,
            copy,
            publisher,
        }
    }

    fn publish(&self, millis: u64, snapshot: Snapshot) {
        self.publisher.publish(at(millis), snapshot, server());
    }

    fn stats(&self) -> (u64, u64) {
        let CopyStats { written, failed, .. } = self.copy.stats();
        (written, failed)
    }
}

/// Time is paused in these tests: this is virtual, and takes none.
async fn pass(secs: u64) {
    tokio::time::sleep(Duration::from_secs(secs)).await;
}

#[tokio::test(start_paused = true)]
async fn the_first_view_at_once_then_the_newest_each_interval() {
    let kept = Kept::new("copy");
    pass(100).await;
    assert_eq!(kept.stats(), (0, 0), "there is nothing to write");
    kept.publish(0, snapshot([up("A", "1")]));
    pass(1).await;
    assert_eq!(kept.stats(), (1, 0));
    for second in 1..=27 {
        kept.publish(second * 1_000, snapshot([up("A", &second.to_string())]));
        pass(1).await;
    }
    assert_eq!(kept.stats(), (1, 0), "not more often than each 30 seconds");
    pass(3).await;
    assert_eq!(kept.stats(), (2, 0));
    let saved = kept.copy.read().unwrap().unwrap();
    assert_eq!(saved.instances, [up("A", "27")], "the newest of them");
    assert_eq!(saved.at, at(27_000).wall, "and when that was confirmed");
}

#[tokio::test(start_paused = true)]
async fn what_is_only_confirmed_is_written_again_after_minutes_for_its_age() {
    let kept = Kept::new("copy");
    for half_minute in 0..=9 {
        kept.publish(half_minute * 30_000, snapshot([up("A", "1")]));
        pass(30).await;
    }
    assert_eq!(kept.stats(), (1, 0));
    kept.publish(300_000, snapshot([up("A", "1")]));
    pass(30).await;
    assert_eq!(kept.stats(), (2, 0));
    assert_eq!(kept.copy.read().unwrap().unwrap().at, at(300_000).wall);
}

#[tokio::test(start_paused = true)]
async fn the_last_view_when_the_client_ends() {
    let kept = Kept::new("copy");
    kept.publish(0, snapshot([up("A", "1")]));
    pass(1).await;
    kept.publish(2_000, snapshot([up("A", "2")]));
    drop(kept.publisher);
    kept.task.await.unwrap();
    let saved = kept.copy.read().unwrap().unwrap();
    assert_eq!((saved.instances, saved.at), (vec![up("A", "2")], at(2_000).wall));
    assert_eq!(kept.copy.stats().written, 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_saw_no_server_leaves_the_copy_alone() {
    let kept = Kept::new("copy");
    kept.copy.write(Wall(1), &snapshot([up("A", "old")])).unwrap();
    assert!(kept.publisher.begin_with(Wall(1), snapshot([up("A", "old")])));
    pass(1_000).await;
    drop(kept.publisher);
    kept.task.await.unwrap();
    assert_eq!(kept.copy.stats().written, 1);
    assert_eq!(kept.copy.read().unwrap().unwrap().at, Wall(1));
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_fails_is_tried_again_and_harms_nobody() {
    let kept = Kept::new("later/copy");
    kept.publish(0, snapshot([up("A", "1")]));
    pass(1).await;
    assert_eq!(kept.stats(), (0, 1));
    kept.publish(30_000, snapshot([up("A", "1")]));
    pass(30).await;
    assert_eq!(kept.stats(), (0, 2));
    fs::create_dir(kept.directory.path().join("later")).unwrap();
    kept.publish(60_000, snapshot([up("A", "1")]));
    pass(30).await;
    assert_eq!(
        kept.stats(),
        (1, 2),
        "although nothing changed: it was never written"
    );
    assert!(!kept.task.is_finished());
}
