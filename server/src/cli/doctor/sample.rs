//! Which instances to look at one by one when whole servers are compared.

use std::collections::{BTreeMap, BTreeSet};

use eureka_registry_core::{InstanceKey, LeaseView};

use super::observation::List;

/// Instances named at most, of each kind.
pub(super) const NAMED: usize = 20;
/// Instances that look the same everywhere: their leases show whether heartbeats arrive.
const ALIKE: usize = 8;

/// Those that some list lacks, those that differ, and some that do neither, spread over all.
pub(super) fn choose(lists: &[&List]) -> Vec<InstanceKey> {
    let lists: Vec<BTreeMap<InstanceKey, &LeaseView>> = lists
        .iter()
        .filter_map(|list| match list {
            List::Open(instances) => Some(instances.iter().map(|view| (view.key(), view)).collect()),
            List::Held | List::Unreadable(_) => None,
        })
        .collect();
    let all: BTreeSet<&InstanceKey> = lists.iter().flat_map(|list| list.keys()).collect();
    let (common, missing): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|key| lists.iter().all(|list| list.contains_key(key)));
    let (alike, differing): (Vec<_>, Vec<_>) = common.into_iter().partition(|key| {
        let mut instances = lists.iter().map(|list| &list[*key].instance);
        let first = instances.next();
        instances.all(|instance| first == Some(instance))
    });
    let step = alike.len().div_ceil(ALIKE).max(1);
    let missing = missing.into_iter().take(NAMED);
    let differing = differing.into_iter().take(NAMED);
    let alike = alike.into_iter().step_by(step);
    missing.chain(differing).chain(alike).cloned().collect()
}
