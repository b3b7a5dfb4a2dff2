//! Readers who follow the changes: a copy kept by them is the registry, also through a filter.

use std::collections::BTreeMap;
use std::sync::Arc;

use eureka_registry_core::{Action, Change, Changes, Filter, Instance, InstanceKey, Now, Registry, Seen};

type Copy = BTreeMap<InstanceKey, Arc<Instance>>;

/// A reader without a filter, and some with one.
pub(super) struct Followers {
    version: u64,
    whole: Copy,
    filtered: Vec<(Filter, Copy)>,
    /// How often each kind of answer was seen: hidden, whole, entered, left.
    pub(super) seen: [u64; 4],
}

impl Followers {
    pub(super) fn new() -> Self {
        let filters = [
            "status == UP",
            "app == A || vip == w",
            "!(zone == x) && status in (UP, OUT_OF_SERVICE)",
            "override != UNKNOWN",
        ];
        let filter = |text| (Filter::parse(text).expect("it is a filter"), Copy::new());
        Self {
            version: 0,
            whole: Copy::new(),
            filtered: filters.into_iter().map(filter).collect(),
            seen: [0; 4],
        }
    }

    /// Reads on, and compares.
    pub(super) fn follow(&mut self, now: Now, registry: &mut Registry) -> Result<(), String> {
        let snapshot = registry.snapshot(now);
        let held: Copy = snapshot
            .instances()
            .map(|view| (view.key(), Arc::clone(&view.instance)))
            .collect();
        match registry.changes(now, self.version, usize::MAX) {
            Changes::Since { changes, current } => {
                for change in &changes {
                    self.hear(change)?;
                }
                self.version = current;
            }
            Changes::Lost { current } => {
                self.version = current;
                self.whole.clone_from(&held);
                for (filter, copy) in &mut self.filtered {
                    *copy = selected(filter, &held);
                }
            }
        }
        if self.whole != held {
            return Err(format!("a reader holds {:?}, not {held:?}", self.whole));
        }
        for (filter, copy) in &self.filtered {
            let expected = selected(filter, &held);
            if *copy != expected {
                return Err(format!("{filter:?}: a reader holds {copy:?}, not {expected:?}"));
            }
        }
        Ok(())
    }

    fn hear(&mut self, change: &Change) -> Result<(), String> {
        let before = match change.action {
            Action::Deleted => self.whole.remove(&change.key),
            Action::Added | Action::Modified => self
                .whole
                .insert(change.key.clone(), Arc::clone(&change.instance)),
        };
        if before != change.before {
            return Err(format!("before {change:?} there was {before:?}"));
        }
        for (filter, copy) in &mut self.filtered {
            let seen = filter.sees(change);
            let held = copy.contains_key(&change.key);
            match seen {
                Seen::Hidden if held => return Err(format!("{filter:?} hides {change:?}")),
                Seen::Entered if held => return Err(format!("{filter:?} is entered twice by {change:?}")),
                Seen::Whole if change.action == Action::Deleted && !held => {
                    return Err(format!("{filter:?} never showed what goes by {change:?}"));
                }
                Seen::Left if !held => return Err(format!("{filter:?} is left twice by {change:?}")),
                Seen::Hidden => {}
                Seen::Left => drop(copy.remove(&change.key)),
                Seen::Whole if change.action == Action::Deleted => drop(copy.remove(&change.key)),
                Seen::Whole | Seen::Entered => {
                    copy.insert(change.key.clone(), Arc::clone(&change.instance));
                }
            }
            self.seen[seen as usize] += 1;
        }
        Ok(())
    }
}

fn selected(filter: &Filter, held: &Copy) -> Copy {
    let selected = held.iter().filter(|(_, instance)| filter.matches(instance));
    selected
        .map(|(key, instance)| (key.clone(), Arc::clone(instance)))
        .collect()
}
