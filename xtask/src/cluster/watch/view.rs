//! What a watcher knows, built from what it was told, and what is wrong with that.

use std::collections::BTreeMap;

use serde_json::Value;

use super::writer::{APP, Log};
use crate::conformance::target::instances;
use crate::watchers::{Changed, Ending, Key, Seen, Told};

/// Faults that are told; all are counted.
const TOLD: usize = 3;

/// The instances by what the messages said.
#[derive(Debug, Default)]
pub(super) struct View {
    server: usize,
    instances: BTreeMap<Key, Seen>,
    /// What came of a snapshot. It replaces what is known when it is complete: where the stream breaks before, another server
    /// may go on from the cursor.
    incoming: Option<BTreeMap<Key, Seen>>,
    /// The last one that was received, at the end of a snapshot or behind it.
    pub(super) cursor: Option<String>,
    snapshots: Vec<String>,
    changes: u64,
    /// Of them, those made by the writer at this very server.
    marked: u64,
    pub(super) endings: Vec<Ending>,
    faults: Vec<String>,
}

impl View {
    /// Takes in a message from a server; `log` is what was written at each.
    pub(super) fn take(&mut self, server: usize, told: Told, log: &Log) {
        match told {
            Told::Reset(reason) => {
                self.snapshots.push(reason);
                self.incoming = Some(BTreeMap::new());
            }
            Told::Instances(instances) => self.incoming.get_or_insert_default().extend(instances),
            Told::Synced { cursor, instances } => {
                self.instances = self.incoming.take().unwrap_or_default();
                if self.instances.len() as u64 != instances {
                    let fault = format!(
                        "a snapshot of {} instances that says {instances}",
                        self.instances.len()
                    );
                    self.faults.push(fault);
                }
                (self.server, self.cursor) = (server, Some(cursor));
            }
            Told::Changed(change) => self.change(server, change, log),
            Told::Alive { cursor: Some(cursor) } => {
                // Without a filter there is nothing that it could have moved behind.
                if self.is_synced() && self.cursor.as_ref() != Some(&cursor) {
                    self.faults
                        .push(format!("alive at {cursor} after {:?}", self.cursor));
                }
            }
            Told::Alive { cursor: None } => {}
        }
    }

    fn change(&mut self, server: usize, change: Changed, log: &Log) {
        let follows = match (self.cursor.as_deref().and_then(version), version(&change.cursor)) {
            (Some((boot, last)), Some((now, next))) => boot == now && next == last + 1,
            _ => false,
        };
        if !self.is_synced() || self.server != server || !follows {
            let fault = format!("{} came after {:?}", change.cursor, self.cursor);
            self.faults.push(fault);
        }
        let number = change.after.as_ref().and_then(number);
        if let Some(number) = number.filter(|_| change.key.0 == APP && !change.by_peer) {
            self.marked += 1;
            if let Some((id, before)) = log.before(server, number) {
                let known = self.instances.get(&(APP.to_owned(), id)).and_then(self::number);
                if known.is_none_or(|known| known < before) {
                    let fault = format!("{number} came before {before}, which was written first");
                    self.faults.push(fault);
                }
            }
        }
        self.changes += 1;
        self.cursor = Some(change.cursor);
        match change.after {
            Some(seen) => self.instances.insert(change.key, seen),
            None => self.instances.remove(&change.key),
        };
    }

    /// Takes in that a stream has ended. What it said of a snapshot is no use to the next one.
    pub(super) fn end(&mut self, ending: Ending) {
        self.incoming = None;
        self.endings.push(ending);
    }

    fn is_synced(&self) -> bool {
        self.cursor.is_some() && self.incoming.is_none()
    }

    pub(super) fn is_synced_with(&self, server: usize) -> Result<(), String> {
        if self.is_synced() && self.server == server {
            return Ok(());
        }
        let (at, last) = (self.server, self.endings.last());
        Err(format!(
            "watches {at}, synced: {}, last: {last:?}",
            self.is_synced()
        ))
    }

    /// Whether it is exactly this, of this server.
    pub(super) fn equals(&self, server: usize, listed: &BTreeMap<Key, Seen>) -> Result<(), String> {
        self.is_synced_with(server)?;
        if self.instances == *listed {
            return Ok(());
        }
        let other = |(key, seen): &(&Key, &Seen)| self.instances.get(*key) != Some(seen);
        let differs = listed.iter().find(other);
        let seen = differs.map(|(key, _)| self.instances.get(key));
        Err(format!(
            "{} seen, {} listed; {differs:?} is seen as {seen:?}",
            self.instances.len(),
            listed.len()
        ))
    }

    pub(super) fn snapshots(&self) -> usize {
        self.snapshots.len()
    }

    /// Whether a stream has ended like that.
    pub(super) fn ended_with(&self, status: u16, reason: &str) -> bool {
        let mut endings = self.endings.iter();
        endings.any(|ending| ending.status == status && ending.reason == reason)
    }

    pub(super) fn account(&self) -> Result<String, String> {
        if self.faults.is_empty() && self.changes > 0 {
            return Ok(format!(
                "{} changes, {} of them written here, {} snapshots",
                self.changes,
                self.marked,
                self.snapshots.len()
            ));
        }
        let told = &self.faults[..self.faults.len().min(TOLD)];
        Err(format!(
            "{} changes, {} faults: {}",
            self.changes,
            self.faults.len(),
            told.join("; ")
        ))
    }
}

/// What `GET /apps` says, as watchers see it.
pub(super) fn listed(list: &Value) -> BTreeMap<Key, Seen> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let seen = |instance: &Value| Seen {
        status: text(&instance["status"]),
        overridden: text(&instance["overriddenStatus"]),
        dirty: instance["lastDirtyTimestamp"]
            .as_str()
            .and_then(|dirty| dirty.parse().ok())
            .unwrap_or(0),
        metadata: instance["metadata"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect(),
    };
    instances(list)
        .into_iter()
        .map(|instance| {
            (
                (text(&instance["app"]), text(&instance["instanceId"])),
                seen(instance),
            )
        })
        .collect()
}

/// The mark of the writer.
fn number(seen: &Seen) -> Option<u64> {
    seen.metadata.get("number")?.parse().ok()
}

/// A cursor names the start of a server, and the version of its registry, which grows by one with each change.
fn version(cursor: &str) -> Option<(&str, u64)> {
    let (boot, version) = cursor.rsplit_once('.')?;
    Some((boot, version.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(number: u64) -> Seen {
        Seen {
            status: "UP".to_owned(),
            overridden: "UNKNOWN".to_owned(),
            dirty: 1,
            metadata: [("number".to_owned(), number.to_string())].into(),
        }
    }

    fn changed(cursor: &str, number: u64) -> Told {
        Told::Changed(Changed {
            cursor: cursor.to_owned(),
            key: (APP.to_owned(), Log::id(number)),
            after: Some(seen(number)),
            by_peer: false,
        })
    }

    fn synced() -> View {
        let mut view = View::default();
        let begin = [
            Told::Reset("START".to_owned()),
            Told::Synced {
                cursor: "b.4".to_owned(),
                instances: 0,
            },
        ];
        for told in begin {
            view.take(0, told, &Log::default());
        }
        view
    }

    #[test]
    fn what_follows_is_no_fault_and_what_skips_is_one() {
        let log = Log::default();
        (1..4).for_each(|number| log.push(0, number));
        for (cursors, faults) in [
            (["b.5", "b.6"], 0),
            (["b.5", "b.7"], 1),
            (["b.5", "b.5"], 1),
            (["b.5", "c.6"], 1),
        ] {
            let mut view = synced();
            for (cursor, number) in cursors.into_iter().zip(1..) {
                view.take(0, changed(cursor, number), &log);
            }
            assert_eq!(view.faults.len(), faults, "{cursors:?}: {:?}", view.faults);
        }
    }

    #[test]
    fn a_write_that_was_not_told_is_a_fault_even_if_versions_follow() {
        let log = Log::default();
        (1..4).for_each(|number| log.push(0, number));
        let mut view = synced();
        view.take(0, changed("b.5", 1), &log);
        view.take(0, changed("b.6", 3), &log);
        assert_eq!(view.faults.len(), 1, "{:?}", view.faults);
    }

    #[test]
    fn a_change_of_another_server_needs_a_snapshot_first() {
        let mut view = synced();
        view.take(1, changed("b.5", 1), &Log::default());
        assert_eq!(view.faults.len(), 1);
        assert!(view.account().is_err());
    }

    #[test]
    fn half_a_snapshot_replaces_nothing() {
        let log = Log::default();
        (1..3).for_each(|number| log.push(0, number));
        let mut view = synced();
        view.take(0, changed("b.5", 1), &log);
        view.take(1, Told::Reset("OTHER_SERVER".to_owned()), &log);
        view.take(1, changed("c.7", 2), &log);
        assert_eq!(view.faults.len(), 1, "the snapshot was not complete");
        let mut view = synced();
        view.take(0, changed("b.5", 1), &log);
        view.take(1, Told::Reset("OTHER_SERVER".to_owned()), &log);
        view.end(Ending::broken(&"the server is gone"));
        view.take(0, changed("b.6", 2), &log);
        assert_eq!(
            (view.faults.len(), view.instances.len()),
            (0, 2),
            "{:?}",
            view.faults
        );
    }

    #[test]
    fn a_snapshot_is_as_large_as_it_says() {
        let mut view = View::default();
        view.take(
            0,
            Told::Instances(vec![((APP.to_owned(), "i".to_owned()), seen(1))]),
            &Log::default(),
        );
        let cursor = "b.1".to_owned();
        view.take(0, Told::Synced { cursor, instances: 2 }, &Log::default());
        assert_eq!(view.faults.len(), 1);
    }
}
