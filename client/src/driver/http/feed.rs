//! The answers of a change feed, `/api/v1/changes`.

use std::fmt;
use std::sync::Arc;

use eureka_registry_core::{
    Action, DataCenter, Instance, LeaseTerms, LeaseTimes, LeaseView, Metadata, Port, Status, Wall,
};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::call::{Answer, Change};

/// A longer cursor is none of ours, and does not fit into a URL.
const CURSOR_MAX: usize = 1_024;

#[derive(Deserialize)]
struct Body {
    cursor: Arc<str>,
    changes: Vec<Told>,
    #[serde(default)]
    remote: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    action: String,
    at: u64,
    app: String,
    id: String,
    host: String,
    ip: String,
    status: String,
    overridden_status: String,
    port: ToldPort,
    secure_port: ToldPort,
    vip: Option<Arc<str>>,
    secure_vip: Option<Arc<str>>,
    group: Option<Arc<str>>,
    data_center: String,
    amazon: Option<Pairs>,
    #[serde(default)]
    metadata: Pairs,
    renewal_interval_secs: u32,
    duration_secs: u32,
    last_dirty: Option<i64>,
    /// Absent: it is `id`.
    #[serde(default, deserialize_with = "given")]
    instance_id: Option<Option<Arc<str>>>,
    home_page: Option<Arc<str>>,
    status_page: Option<Arc<str>>,
    health_check: Option<Arc<str>>,
    secure_health_check: Option<Arc<str>>,
    asg: Option<Arc<str>>,
    country_id: Option<i32>,
    sid: Option<Arc<str>>,
}

#[derive(Deserialize)]
struct ToldPort {
    number: i32,
    enabled: bool,
}

/// A field that is there, also as `null`.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Arc<str>>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Reads an answer with status 200.
pub(super) fn read(bytes: &[u8]) -> Result<Answer, serde_json::Error> {
    let body: Body = serde_json::from_slice(bytes)?;
    if !(1..=CURSOR_MAX).contains(&body.cursor.len()) {
        return Err(serde_json::Error::custom("a cursor without end, or none"));
    }
    Ok(Answer::Changes {
        cursor: body.cursor,
        changes: body.changes.into_iter().map(Told::into_change).collect(),
        remote: body.remote,
    })
}

impl Told {
    fn into_change(self) -> Change {
        let action = match &*self.action {
            "DELETED" => Action::Deleted,
            "MODIFIED" => Action::Modified,
            _ => Action::Added,
        };
        let at = Wall(self.at);
        let instance = self.into_instance();
        let lease = LeaseTimes {
            terms: instance.lease,
            registered: at,
            renewed: at,
            evicted: Wall(0),
            service_up: Wall(0),
        };
        Change {
            action,
            view: LeaseView {
                instance: Arc::new(instance),
                action,
                last_updated: at,
                lease,
                coordinating: false,
            },
        }
    }

    fn into_instance(self) -> Instance {
        let mut instance = Instance::new(&self.app, &self.id, &self.host, &self.ip);
        if let Some(sent) = self.instance_id {
            instance.instance_id = sent;
        }
        let status = |text: &str| Status::parse(text).unwrap_or(Status::Unknown);
        instance.status = status(&self.status);
        instance.overridden_status = status(&self.overridden_status);
        instance.port = self.port.into();
        instance.secure_port = self.secure_port.into();
        instance.vip_address = self.vip;
        instance.secure_vip_address = self.secure_vip;
        instance.app_group = self.group;
        instance.data_center = match (&*self.data_center, self.amazon) {
            ("Amazon", machine) => DataCenter::Amazon(machine.unwrap_or_default().0),
            ("Netflix", _) => DataCenter::Netflix,
            _ => DataCenter::MyOwn,
        };
        instance.metadata = self.metadata.0;
        instance.lease = LeaseTerms {
            renewal_interval_secs: self.renewal_interval_secs,
            duration_secs: self.duration_secs,
        };
        instance.last_dirty = self.last_dirty;
        instance.home_page_url = self.home_page;
        instance.status_page_url = self.status_page;
        instance.health_check_url = self.health_check;
        instance.secure_health_check_url = self.secure_health_check;
        instance.asg_name = self.asg;
        instance.country_id = self.country_id.unwrap_or(1);
        instance.sid = self.sid;
        instance
    }
}

impl From<ToldPort> for Port {
    fn from(port: ToldPort) -> Self {
        Self {
            number: port.number,
            enabled: port.enabled,
        }
    }
}

/// An object of texts, in the order in which they come.
#[derive(Default)]
struct Pairs(Metadata);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of texts")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Pairs, M::Error> {
        let mut told = Vec::new();
        while let Some(pair) = map.next_entry::<Arc<str>, Arc<str>>()? {
            told.push(pair);
        }
        let mut pairs = Metadata::default();
        pairs.extend(told);
        Ok(Pairs(pairs))
    }
}
