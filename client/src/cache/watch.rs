//! What happens to the instances of one application, or behind one address, as a stream.

use std::cmp::Ordering;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use eureka_registry_core::{Difference, LeaseView};
use futures_core::Stream;

use super::live::{Cache, Waiter};
use super::{Instances, View, order};

/// What has become different, and the view that shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Update {
    /// The view in which it is so.
    pub view: Arc<View>,
    /// In which instances it differs, in the order of their keys. At least one; lease times alone are no difference.
    pub differences: Vec<Difference>,
}

/// A stream of what happens to some instances of a [`Cache`].
///
/// The first update has everything that is there, as new; so nothing is lost between look-up and watch. Each further one
/// is in what the newest view differs from the one before that was *read*: who reads slowly gets several changes in one,
/// and what came and went meanwhile, not at all. Nothing is queued but the instances that were told last.
///
/// It ends when the client does, after what happened last.
pub struct Watch {
    waiter: Waiter,
    cache: Cache,
    subject: Subject,
    /// What the reader knows.
    told: Instances,
    /// The view that it knows that from.
    seen: Option<Arc<View>>,
}

#[derive(Clone, Debug)]
pub(super) enum Subject {
    Application(Box<str>),
    Vip(Box<str>),
    SecureVip(Box<str>),
}

impl Watch {
    pub(super) fn new(waiter: Waiter, cache: Cache, subject: Subject) -> Self {
        Self {
            waiter,
            cache,
            subject,
            told: Instances::default(),
            seen: None,
        }
    }

    /// The next update; `None` when the client has ended. May be given up at any time, nothing is lost by that.
    pub async fn next(&mut self) -> Option<Update> {
        poll_fn(|context| self.poll(context)).await
    }

    /// The instances as they were told last.
    pub fn told(&self) -> &Instances {
        &self.told
    }

    fn poll(&mut self, context: &Context<'_>) -> Poll<Option<Update>> {
        let closed = self.waiter.wait(context.waker());
        match self.advance() {
            Some(update) => Poll::Ready(Some(update)),
            None if closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    fn advance(&mut self) -> Option<Update> {
        let view = self.cache.view();
        if self.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, &view)) {
            return None;
        }
        let found = self.subject.find(&view);
        let differences = changes(between(&self.told, &found));
        self.told = found;
        self.seen = Some(Arc::clone(&view));
        (!differences.is_empty()).then_some(Update { view, differences })
    }
}

impl Stream for Watch {
    type Item = Update;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Update>> {
        self.get_mut().poll(context)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("subject", &self.subject)
            .field("told", &self.told.len())
            .finish_non_exhaustive()
    }
}

impl Subject {
    fn find(&self, view: &View) -> Instances {
        match self {
            Self::Application(name) => view.application(name),
            Self::Vip(vip) => view.vip(vip),
            Self::SecureVip(vip) => view.secure_vip(vip),
        }
    }
}

/// Lists carry lease times, which move with every heartbeat: those are no news.
pub(super) fn changes(mut differences: Vec<Difference>) -> Vec<Difference> {
    differences.retain(|difference| match (&difference.before, &difference.after) {
        (Some(before), Some(after)) => before.instance != after.instance,
        (None, _) | (_, None) => true,
    });
    differences
}

/// In what two lists differ; both are in the order of their keys.
fn between(before: &[Arc<LeaseView>], after: &[Arc<LeaseView>]) -> Vec<Difference> {
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    let mut found = Vec::new();
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return found,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(old), Some(new)) => order(old, new),
        };
        let old = if order.is_le() { before.next() } else { None };
        let new = if order.is_ge() { after.next() } else { None };
        if let (Some(old), Some(new)) = (old, new)
            && Arc::ptr_eq(old, new)
        {
            continue;
        }
        if let Some(view) = new.or(old) {
            found.push(Difference {
                key: view.key(),
                before: old.cloned(),
                after: new.cloned(),
            });
        }
    }
}
