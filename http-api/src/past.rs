//! The registry as it was, for readers who come page by page.

use std::sync::Arc;

use eureka_registry_core::{Past, PastError, Point, RegistryHandle};
use parking_lot::Mutex;

/// Keeps the last one that was asked for until its last page is read: undoing many changes for each page would cost too
/// much, and the log may move on between two pages. One only, since it keeps a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Pasts(Mutex<Option<Arc<Past>>>);

impl Pasts {
    /// The registry at a moment.
    pub(crate) fn at(&self, registry: &RegistryHandle, point: Point) -> Result<Arc<Past>, PastError> {
        if let Point::Cursor(cursor) = point
            && cursor.boot() == registry.boot()
            && let Some(past) = &*self.0.lock()
            && past.version() == cursor.version()
        {
            return Ok(Arc::clone(past));
        }
        registry.past(point).map(Arc::new)
    }

    /// There are more pages of it to come.
    pub(crate) fn keep(&self, past: Arc<Past>) {
        let before = self.0.lock().replace(past);
        // Frees a snapshot, perhaps: not under the lock.
        drop(before);
    }

    /// Its last page was read.
    pub(crate) fn let_go(&self, past: &Past) {
        let mut kept = self.0.lock();
        let is_kept = kept.as_ref().is_some_and(|kept| kept.version() == past.version());
        let before = if is_kept { kept.take() } else { None };
        drop(kept);
        drop(before);
    }
}
