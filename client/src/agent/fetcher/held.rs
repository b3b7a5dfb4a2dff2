//! What is held of a registry, and what full lists, deltas and changes make of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use eureka_registry_core::wire::Applications;
use eureka_registry_core::{
    Action, Instance, InstanceKey, LeaseView, Mirror, Mono, Snapshot, reconcile_hash,
};

use crate::call::{Change, Scope};
use crate::server::Server;

#[derive(Debug)]
pub(super) struct Held {
    scope: Scope,
    mirror: Mirror,
    /// What was told last.
    snapshot: Snapshot,
    /// What was touched since then.
    touched: BTreeSet<InstanceKey>,
    /// Where it is from; `None` for nothing, and for what was known from before.
    base: Option<Base>,
}

/// The server whose list is held.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) server: Arc<Server>,
    /// As of when: the request was sent then.
    pub(super) asked: Mono,
    /// Of the full list, as long as nothing else was applied.
    tag: Option<Arc<str>>,
    /// Instances of the full list could not be understood.
    is_incomplete: bool,
}

/// What came of a delta.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Taken {
    /// What is held has the hash of the server's list.
    Matching,
    /// The hash was not compared.
    Unchecked,
    /// What is held has another hash.
    Differing,
}

impl Held {
    pub(super) fn new(scope: Scope) -> Self {
        let mut mirror = Mirror::new();
        Self {
            scope,
            snapshot: mirror.snapshot(),
            mirror,
            touched: BTreeSet::new(),
            base: None,
        }
    }

    pub(super) fn begin_with(&mut self, views: Vec<LeaseView>) {
        if self.base.is_none() {
            for view in views {
                self.put(view);
            }
            self.snapshot();
        }
    }

    pub(super) fn base(&self) -> Option<&Base> {
        self.base.as_ref()
    }

    /// Tags mean something to the server only that gave them.
    pub(super) fn tag(&self, server: &Arc<Server>) -> Option<Arc<str>> {
        let base = self.base.as_ref().filter(|base| base.server == *server)?;
        base.tag.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.snapshot.is_empty()
    }

    /// What is held is what the server has.
    pub(super) fn confirm(&mut self, asked: Mono) {
        if let Some(base) = &mut self.base {
            base.asked = asked;
        }
    }

    /// A full list takes the place of what is held.
    pub(super) fn replace(
        &mut self,
        server: &Arc<Server>,
        asked: Mono,
        applications: Applications,
        tag: Option<Arc<str>>,
    ) {
        let is_incomplete = applications.left_out > 0;
        let mut gone: BTreeSet<_> = self.snapshot.instances().map(|view| view.key()).collect();
        for view in applications.instances {
            gone.remove(&view.key());
            self.put(view);
        }
        for key in gone {
            self.remove(key);
        }
        self.base = Some(Base {
            server: Arc::clone(server),
            asked,
            tag,
            is_incomplete,
        });
    }

    /// A delta is applied. It can be [rolled back](Self::roll_back) until the next snapshot.
    pub(super) fn apply_delta(&mut self, asked: Mono, applications: Applications) -> Taken {
        let is_incomplete = applications.left_out > 0;
        for view in applications.instances {
            match view.action {
                Action::Deleted => self.remove(view.key()),
                Action::Added | Action::Modified => self.put(view),
            }
        }
        let Some(base) = &mut self.base else {
            return Taken::Unchecked;
        };
        base.tag = None;
        let taken = match applications.hash {
            Some(hash) if !is_incomplete && !base.is_incomplete => {
                match *reconcile_hash(self.mirror.counts()) == *hash {
                    true => Taken::Matching,
                    false => return Taken::Differing,
                }
            }
            Some(_) | None => Taken::Unchecked,
        };
        base.asked = asked;
        taken
    }

    /// The changes of one answer of a feed, whole.
    pub(super) fn apply_changes(&mut self, asked: Mono, changes: Vec<Change>) {
        for change in changes {
            if change.action == Action::Deleted || !self.is_in_scope(&change.view.instance) {
                self.remove(change.view.key());
            } else {
                self.put(change.view);
            }
        }
        if let Some(base) = &mut self.base {
            base.tag = None;
            base.asked = asked;
        }
    }

    /// As it was at the last snapshot.
    pub(super) fn roll_back(&mut self) {
        for key in std::mem::take(&mut self.touched) {
            match self.snapshot.instance(&key) {
                Some(view) => self.mirror.put((**view).clone()),
                None => drop(self.mirror.remove(&key)),
            }
        }
    }

    pub(super) fn snapshot(&mut self) -> Snapshot {
        if !self.touched.is_empty() {
            self.touched.clear();
            self.snapshot = self.mirror.snapshot();
        }
        self.snapshot.clone()
    }

    /// A view that differs in the time of its last renewal alone is no news: full lists would else change everything.
    fn put(&mut self, mut view: LeaseView) {
        let key = view.key();
        if !self.touched.contains(&key)
            && let Some(held) = self.snapshot.instance(&key)
        {
            let renewed = view.lease.renewed;
            view.lease.renewed = held.lease.renewed;
            if view == **held {
                return;
            }
            view.lease.renewed = renewed;
        }
        self.touched.insert(key);
        self.mirror.put(view);
    }

    fn remove(&mut self, key: InstanceKey) {
        if self.mirror.remove(&key) {
            self.touched.insert(key);
        }
    }

    fn is_in_scope(&self, instance: &Instance) -> bool {
        let has = |list: &Option<Arc<str>>, address: &str| {
            list.as_ref()
                .is_some_and(|list| list.split(',').any(|element| element == address))
        };
        match &self.scope {
            Scope::All => true,
            Scope::Vip(address) => has(&instance.vip_address, address),
            Scope::SecureVip(address) => has(&instance.secure_vip_address, address),
        }
    }
}
