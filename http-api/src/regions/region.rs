//! One other region: what was read of it, what of that is shown, and what changed lately.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use eureka_registry_core::{Action, Difference, InstanceKey, LeaseView, Mirror, Mono, Now, Snapshot};
use parking_lot::{Mutex, RwLock};

use super::{RegionFacts, RemoteRegion};

#[derive(Debug)]
pub(super) struct Region {
    name: Arc<str>,
    /// The applications that are shown; all of them for `None`.
    applications: Option<BTreeSet<Arc<str>>>,
    content: Mutex<Content>,
    shown: RwLock<Shown>,
    /// When something leaves the delta, in milliseconds of [`Mono`].
    next_due: AtomicU64,
    standing: Mutex<Standing>,
}

/// What readers are shown.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) snapshot: Snapshot,
    /// Counts changes of what is shown; lease times do not count.
    pub(super) version: u64,
}

#[derive(Debug, Default)]
struct Content {
    /// What was published last.
    source: Option<Snapshot>,
    mirror: Mirror,
    version: u64,
    /// When each instance leaves the delta, and the same by time.
    due: BTreeMap<InstanceKey, Mono>,
    by_due: BTreeSet<(Mono, InstanceKey)>,
}

/// How reading it went.
#[derive(Debug, Default)]
struct Standing {
    read: Option<Now>,
    server: Option<Arc<str>>,
    successes: u64,
    failures: u64,
    error: Option<Arc<str>>,
}

impl Region {
    pub(super) fn new(region: RemoteRegion) -> Self {
        let mut content = Content::default();
        let upper = |names: BTreeSet<Arc<str>>| names.iter().map(|name| name.to_uppercase().into()).collect();
        Self {
            name: region.name,
            applications: region.applications.map(upper),
            shown: RwLock::new(content.shown()),
            content: Mutex::new(content),
            next_due: AtomicU64::new(u64::MAX),
            standing: Mutex::default(),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn publish(&self, now: Now, snapshot: &Snapshot, server: &str, retention: Duration) {
        let mut content = self.content.lock();
        match content.source.replace(snapshot.clone()) {
            Some(before) => {
                let retention = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
                let due = Mono(now.mono.0.saturating_add(retention));
                for difference in snapshot.differences(&before) {
                    content.take(now, due, self.allowed(difference));
                }
            }
            // Everything is new to everybody: a full fetch is cheaper for them than so long a delta, and the hash that
            // does not fit makes them do it.
            None => {
                for view in snapshot.instances().filter(|view| self.allows(view)) {
                    content.mirror.put(of_another_region(view));
                }
                content.version += 1;
            }
        }
        content.expire(now.mono);
        self.show(&mut content);
        drop(content);
        self.confirm(now, server);
    }

    pub(super) fn confirm(&self, now: Now, server: &str) {
        let mut standing = self.standing.lock();
        standing.read = Some(now);
        standing.successes += 1;
        standing.error = None;
        if standing.server.as_deref() != Some(server) {
            standing.server = Some(server.into());
        }
    }

    pub(super) fn failed(&self, why: &str) {
        let mut standing = self.standing.lock();
        standing.failures += 1;
        standing.error = Some(why.into());
    }

    pub(super) fn is_read(&self) -> bool {
        self.standing.lock().read.is_some()
    }

    /// What is shown of it.
    pub(super) fn shown(&self) -> Shown {
        self.shown.read().clone()
    }

    /// The same, without what has been in the delta for long enough.
    pub(super) fn shown_at(&self, now: Mono) -> Shown {
        if self.next_due.load(Ordering::Relaxed) <= now.0
            // Who publishes does it, too.
            && let Some(mut content) = self.content.try_lock()
        {
            content.expire(now);
            self.show(&mut content);
        }
        self.shown()
    }

    pub(super) fn facts(&self) -> RegionFacts {
        let shown = self.shown();
        let standing = self.standing.lock();
        RegionFacts {
            name: Arc::clone(&self.name),
            read: standing.read,
            server: standing.server.clone(),
            instances: shown.snapshot.len(),
            applications: shown.snapshot.application_count(),
            successes: standing.successes,
            failures: standing.failures,
            error: standing.error.clone(),
        }
    }

    fn show(&self, content: &mut Content) {
        let next = content.by_due.first().map_or(u64::MAX, |(due, _)| due.0);
        let old = std::mem::replace(&mut *self.shown.write(), content.shown());
        self.next_due.store(next, Ordering::Relaxed);
        drop(old);
    }

    fn allows(&self, view: &LeaseView) -> bool {
        let listed = self.applications.as_ref();
        listed.is_none_or(|applications| applications.contains(&view.instance.app))
    }

    fn allowed(&self, difference: Difference) -> Difference {
        let allowed = |view: &Arc<LeaseView>| self.allows(view);
        Difference {
            before: difference.before.filter(allowed),
            after: difference.after.filter(allowed),
            ..difference
        }
    }
}

impl Content {
    fn take(&mut self, now: Now, due: Mono, difference: Difference) {
        let Difference { key, before, after } = difference;
        let (action, state) = match (&before, &after) {
            (None, None) => return,
            (None, Some(after)) => (Action::Added, after),
            (Some(_), Some(after)) => (Action::Modified, after),
            (Some(before), None) => (Action::Deleted, before),
        };
        let state = of_another_region(state);
        match &after {
            Some(_) => self.mirror.put(state.clone()),
            None => _ = self.mirror.remove(&key),
        }
        let same = before
            .zip(after)
            .is_some_and(|(before, after)| before.instance == after.instance);
        if same {
            // Lease times: no change to anybody who follows the delta.
            return;
        }
        self.version += 1;
        self.mirror.note(LeaseView {
            action,
            last_updated: now.wall,
            ..state
        });
        if let Some(earlier) = self.due.insert(key.clone(), due) {
            self.by_due.remove(&(earlier, key.clone()));
        }
        self.by_due.insert((due, key));
    }

    fn expire(&mut self, now: Mono) {
        while let Some((due, _)) = self.by_due.first()
            && *due <= now
            && let Some((_, key)) = self.by_due.pop_first()
        {
            self.due.remove(&key);
            self.mirror.forget(&key);
        }
    }

    fn shown(&mut self) -> Shown {
        Shown {
            snapshot: self.mirror.snapshot(),
            version: self.version,
        }
    }
}

/// An instance as readers here see it: not the node that answers, whatever it is where it was read.
fn of_another_region(view: &LeaseView) -> LeaseView {
    LeaseView {
        coordinating: false,
        ..view.clone()
    }
}
