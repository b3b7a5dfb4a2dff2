//! What tower's balancers are fed with: the instances of a target that can be called, as they come and go.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use eureka_registry_core::{Difference, Instance, InstanceKey, Status};
use futures_core::Stream;
use tower::discover::Change;

use crate::balance::{Addressing, Endpoint, Target};
use crate::cache::{Cache, Watch};

/// A [`tower::discover::Discover`] over a [`Cache`]: `Insert` for every instance of a target that is UP and can be called,
/// `Remove` when it is not any more.
///
/// `make` is called for each insert, and makes the service that calls the instance at that endpoint. An instance that
/// is reached elsewhere now (another host, port, or scheme) is removed and inserted anew; other changes of it, metadata among
/// them, change nothing: the service is the same, and so is what was learnt of its load.
///
/// It never fails. When the client ends, so does this stream, and a balancer keeps what it has.
pub struct Discover<F> {
    watch: Watch,
    addressing: Addressing,
    inserted: BTreeMap<InstanceKey, Endpoint>,
    /// What one update of the watch comes to, at most two for each instance in it.
    pending: VecDeque<Pending>,
    make: F,
}

enum Pending {
    Insert(InstanceKey, Arc<Instance>, Endpoint),
    Remove(InstanceKey),
}

impl<F, S> Discover<F>
where
    F: FnMut(&Arc<Instance>, &Endpoint) -> S,
{
    /// The instances of this target. [`Target::SecureVip`] means secure ports, whatever `addressing` says.
    pub fn new(cache: &Cache, target: &Target, mut addressing: Addressing, make: F) -> Self {
        addressing.secure |= matches!(target, Target::SecureVip(_));
        Self {
            watch: match target {
                Target::App(name) => cache.watch(name),
                Target::Vip(name) => cache.watch_vip(name),
                Target::SecureVip(name) => cache.watch_secure_vip(name),
            },
            addressing,
            inserted: BTreeMap::new(),
            pending: VecDeque::new(),
            make,
        }
    }
}

impl<F> Discover<F> {
    fn learn(&mut self, difference: Difference) {
        let key = difference.key;
        let now = difference
            .after
            .filter(|view| view.instance.status == Status::Up)
            .and_then(|view| {
                let endpoint = Endpoint::of(&view.instance, self.addressing)?;
                Some((Arc::clone(&view.instance), endpoint))
            });
        let endpoint = now.as_ref().map(|(_, endpoint)| endpoint);
        if self.inserted.get(&key) == endpoint {
            return;
        }
        if self.inserted.remove(&key).is_some() {
            self.pending.push_back(Pending::Remove(key.clone()));
        }
        if let Some((instance, endpoint)) = now {
            self.inserted.insert(key.clone(), endpoint.clone());
            self.pending.push_back(Pending::Insert(key, instance, endpoint));
        }
    }
}

impl<F, S> Stream for Discover<F>
where
    F: FnMut(&Arc<Instance>, &Endpoint) -> S + Unpin,
{
    type Item = Result<Change<InstanceKey, S>, Infallible>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            match this.pending.pop_front() {
                Some(Pending::Insert(key, instance, endpoint)) => {
                    let service = (this.make)(&instance, &endpoint);
                    return Poll::Ready(Some(Ok(Change::Insert(key, service))));
                }
                Some(Pending::Remove(key)) => return Poll::Ready(Some(Ok(Change::Remove(key)))),
                None => {}
            }
            let Some(update) = ready!(Pin::new(&mut this.watch).poll_next(context)) else {
                return Poll::Ready(None);
            };
            for difference in update.differences {
                this.learn(difference);
            }
        }
    }
}

impl<F> fmt::Debug for Discover<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discover")
            .field("watch", &self.watch)
            .field("inserted", &self.inserted.len())
            .finish_non_exhaustive()
    }
}
