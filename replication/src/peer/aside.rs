//! Items that a peer refuses, set aside for a while.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use eureka_registry_core::{InstanceKey, Mono};

use crate::message::Action;

/// At most so many instances; the one set aside first is tried again before its time.
const ASIDE_MAX: usize = 1_000;

/// Instances with what is not to be sent of them.
#[derive(Debug, Default)]
pub(super) struct Aside {
    held: HashMap<InstanceKey, (Action, Mono)>,
    order: VecDeque<InstanceKey>,
}

impl Aside {
    /// Nothing of this kind goes for so long.
    pub(super) fn put(&mut self, now: Mono, key: InstanceKey, action: Action, pause: Duration) {
        if self
            .held
            .insert(key.clone(), (action, now.after(pause)))
            .is_some()
        {
            self.order.retain(|held| *held != key);
        }
        self.order.push_back(key);
        while self.order.len() > ASIDE_MAX {
            if let Some(first) = self.order.pop_front() {
                self.held.remove(&first);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.held.len(), self.order.len());
        self.held.len()
    }

    /// Whether this is not to be sent now.
    pub(super) fn holds(&mut self, now: Mono, key: &InstanceKey, action: Action) -> bool {
        if self.held.is_empty() {
            return false;
        }
        match self.held.get(key) {
            Some((_, until)) if now >= *until => {
                self.held.remove(key);
                self.order.retain(|held| held != key);
                false
            }
            Some((held, _)) => *held == action,
            None => false,
        }
    }
}
