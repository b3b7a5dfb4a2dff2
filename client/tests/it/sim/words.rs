//! What a trace says.

use eureka_client::agent::{Event, Fetched};
use eureka_client::call::{Answer, Call};
use eureka_registry_core::{Command, Instance, Snapshot};

pub(super) fn short(call: &Call) -> String {
    match call {
        Call::Register(instance) => format!("register {}", content(instance)),
        Call::Renew {
            key,
            status,
            last_dirty,
        } => format!("renew {key} {status} dirty {last_dirty}"),
        Call::Cancel(key) => format!("cancel {key}"),
        other => format!("{other:?}"),
    }
}

pub(super) fn command_text(command: &Command) -> String {
    match command {
        Command::Register { instance, age } => format!("register {} of {age:?}", content(instance)),
        Command::Renew { key, last_dirty, .. } => format!("renew {key} dirty {last_dirty:?}"),
        other => format!("{other:?}"),
    }
}

pub(super) fn content(instance: &Instance) -> String {
    let metadata: Vec<_> = instance
        .metadata
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let dirty = instance.last_dirty.unwrap_or_default();
    let page = instance.home_page_url.as_deref().unwrap_or_default();
    let (key, status, metadata) = (instance.key(), instance.status, metadata.join(","));
    format!("{key} {status} dirty {dirty} [{metadata}] {page}")
}

pub(super) fn told(answer: &Answer) -> String {
    match answer {
        Answer::List { applications, tag } => {
            let list: Vec<_> = applications
                .instances
                .iter()
                .map(|view| format!("{:?} {}", view.action, content(&view.instance)))
                .collect();
            format!("{tag:?} {:?}: {}", applications.hash, list.join("; "))
        }
        Answer::Changes {
            cursor,
            changes,
            remote,
        } => {
            let list: Vec<_> = changes
                .iter()
                .map(|change| format!("{:?} {}", change.action, content(&change.view.instance)))
                .collect();
            format!("changes to {cursor} remote {remote}: {}", list.join("; "))
        }
        other => format!("{other:?}"),
    }
}

pub(super) fn heard(event: &Event) -> String {
    match event {
        Event::Fetched(Fetched {
            snapshot,
            server,
            kind,
            ..
        }) => format!("fetched {kind:?} of {server}: {}", list(snapshot)),
        other => format!("{other:?}"),
    }
}

pub(super) fn list(snapshot: &Snapshot) -> String {
    let list: Vec<_> = snapshot.instances().map(|view| content(&view.instance)).collect();
    list.join("; ")
}
