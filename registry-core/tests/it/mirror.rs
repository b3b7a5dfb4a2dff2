//! The mirror against a sorted map: what was put is there, and nothing else, however one asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use eureka_registry_core::{
    Action, Instance, InstanceKey, LeaseTerms, LeaseTimes, LeaseView, Mirror, Reads, Snapshot, Status, Wall,
    reconcile_hash,
};

/// A sequence without pattern, the same in every run.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The same id occurs in three applications, and addresses are shared.
fn view(sequence: &mut Sequence) -> LeaseView {
    let (app, id) = (sequence.below(3), sequence.below(300));
    let mut instance = Instance::new(&format!("app-{app}"), &format!("i-{id}"), "host", "10.0.0.1");
    instance.status = Status::ALL[usize::try_from(sequence.below(5)).expect("small")];
    instance.vip_address = match sequence.below(4) {
        0 => None,
        1 => Some("one".into()),
        2 => Some("one,two".into()),
        _ => Some(format!("v-{}", sequence.below(5)).into()),
    };
    instance.secure_vip_address = (sequence.below(2) == 0).then(|| "secure".into());
    LeaseView {
        instance: Arc::new(instance),
        action: Action::Added,
        last_updated: Wall(sequence.below(1_000)),
        lease: LeaseTimes {
            terms: LeaseTerms::default(),
            registered: Wall(1),
            renewed: Wall(2),
            evicted: Wall(0),
            service_up: Wall(1),
        },
        coordinating: false,
    }
}

type Model = BTreeMap<InstanceKey, LeaseView>;

fn same<'a>(
    found: impl IntoIterator<Item = &'a Arc<LeaseView>>,
    expected: impl Iterator<Item = &'a LeaseView>,
) -> bool {
    found.into_iter().map(|view| &**view).eq(expected)
}

fn has(list: Option<&Arc<str>>, address: &str) -> bool {
    list.is_some_and(|list| list.split(',').any(|element| element == address))
}

fn check(snapshot: &Snapshot, model: &Model) {
    assert_eq!((snapshot.len(), snapshot.reads()), (model.len(), Reads::Open));
    assert!(same(snapshot.instances(), model.values()));
    let mut counts = [0; 5];
    for view in model.values() {
        counts[view.instance.status as usize] += 1;
    }
    assert_eq!(
        (snapshot.counts(), snapshot.hash()),
        (counts, reconcile_hash(counts))
    );

    let mut applications: BTreeMap<&str, Vec<&LeaseView>> = BTreeMap::new();
    for view in model.values() {
        applications.entry(&view.instance.app).or_default().push(view);
    }
    assert_eq!(snapshot.application_count(), applications.len());
    assert_eq!(snapshot.applications().count(), applications.len());
    for (name, instances) in applications {
        let application = snapshot.application(name).expect("it has instances");
        assert!(same(application.instances(), instances.into_iter()));
    }
    for id in ["i-0", "i-7", "i-299", "i-nobody"] {
        let expected = model.values().filter(|view| view.instance.id() == id);
        assert!(same(&snapshot.by_id(id), expected), "{id}");
    }
    for address in ["one", "two", "v-3", "", "secure"] {
        let plain = model
            .values()
            .filter(|view| !address.is_empty() && has(view.instance.vip_address.as_ref(), address));
        assert!(same(&snapshot.by_vip(address), plain), "{address}");
        let secure = model
            .values()
            .filter(|view| !address.is_empty() && has(view.instance.secure_vip_address.as_ref(), address));
        assert!(same(&snapshot.by_secure_vip(address), secure), "{address}");
    }
}

#[test]
fn is_a_sorted_map_of_what_was_put() {
    let mut sequence = Sequence(3);
    let (mut mirror, mut model) = (Mirror::new(), Model::new());
    let mut kept = Vec::new();
    let mut vanished = 0;
    for step in 0..9_000 {
        let version = mirror.snapshot().version();
        let view = view(&mut sequence);
        let key = view.key();
        // Grows for a third, shrinks until nothing is left, grows again.
        let grows = (sequence.below(100) < 85) != (3_000..6_500).contains(&step);
        if grows {
            mirror.put(view.clone());
            model.insert(key.clone(), view);
        } else {
            let key = match step % 3 {
                // Also those that are there, so that nothing is left some day.
                0 => key.clone(),
                _ => model.keys().next().cloned().unwrap_or_else(|| key.clone()),
            };
            assert_eq!(mirror.remove(&key), model.remove(&key).is_some(), "step {step}");
            vanished += usize::from(model.is_empty());
        }
        assert!(mirror.snapshot().version() <= version + 1);
        assert_eq!(mirror.counts(), mirror.snapshot().counts());
        assert_eq!(
            mirror.snapshot().instance(&key).map(|view| &**view),
            model.get(&key)
        );
        if step % 150 == 0 || model.len() < 3 {
            let snapshot = mirror.snapshot();
            check(&snapshot, &model);
            kept.push((snapshot, model.clone()));
            kept.truncate(60);
        }
    }
    assert!(model.len() > 500 && vanished > 0, "{} {vanished}", model.len());
    for (snapshot, then) in kept {
        check(&snapshot, &then);
    }
}

#[test]
fn a_version_counts_changes_and_no_look() {
    let mut sequence = Sequence(1);
    let (one, mut other) = (view(&mut sequence), view(&mut sequence));
    let mut mirror = Mirror::default();
    assert_eq!(mirror.snapshot().version(), 0);
    mirror.put(one.clone());
    assert_eq!(mirror.snapshot().version(), 1);
    assert_eq!(mirror.snapshot().edition(), mirror.snapshot().edition());
    assert!(!mirror.remove(&other.key()));
    assert_eq!(mirror.snapshot().version(), 1, "there was nothing to remove");
    other.action = Action::Deleted;
    mirror.note(other.clone());
    let noted = mirror.snapshot();
    assert_eq!((noted.version(), noted.len(), noted.delta().len()), (2, 1, 1));
    assert_eq!(*noted.delta()[0], other);
    mirror.put(one.clone());
    assert_eq!(
        mirror.snapshot().delta_len(),
        1,
        "what is listed is not in the delta by itself"
    );
    mirror.forget(&other.key());
    let forgotten = mirror.snapshot();
    assert_eq!((forgotten.version(), forgotten.delta_len()), (4, 0));
    assert!(mirror.remove(&one.key()));
    let end = mirror.snapshot();
    assert_eq!(
        (end.version(), end.application_count(), end.delta_len()),
        (5, 0, 0)
    );
}
