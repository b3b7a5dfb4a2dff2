//! Hashes of what was reported, equal on every node: who wins where two copies have the same dirty timestamp.

use core::hash::Hasher as _;

use crate::hash::Hasher;
use crate::model::{DataCenter, Instance, Metadata, Port, Status};

/// A hash of the content of an instance as it was reported: everything but the dirty timestamp, the override and what
/// follows from it. `reported` is the status it was registered with. Part of what nodes tell each other, so it must not
/// change.
pub(crate) fn content_hash(instance: &Instance, reported: Status) -> u64 {
    let Instance {
        instance_id,
        app,
        app_group,
        host_name,
        ip_address,
        sid,
        port,
        secure_port,
        home_page_url,
        status_page_url,
        health_check_url,
        secure_health_check_url,
        vip_address,
        secure_vip_address,
        country_id,
        data_center,
        status: _,
        overridden_status: _,
        lease,
        metadata,
        last_dirty: _,
        asg_name,
    } = instance;
    let mut content = Content(crate::hash::unkeyed());
    let texts = [
        instance_id,
        &Some(app.clone()),
        app_group,
        &Some(host_name.clone()),
        &Some(ip_address.clone()),
        sid,
        home_page_url,
        status_page_url,
        health_check_url,
        secure_health_check_url,
        vip_address,
        secure_vip_address,
        asg_name,
    ];
    for text in texts {
        content.optional(text.as_deref());
    }
    content.port(*port);
    content.port(*secure_port);
    content.number(i64::from(*country_id));
    content.number(i64::from(lease.renewal_interval_secs));
    content.number(i64::from(lease.duration_secs));
    content.optional(Some(reported.as_str()));
    content.optional(Some(data_center.as_str()));
    if let DataCenter::Amazon(machine) = data_center {
        content.metadata(machine);
    }
    content.metadata(metadata);
    content.0.finish()
}

/// Writes values so that no two different ones look the same.
struct Content(Hasher);

impl Content {
    fn number(&mut self, number: i64) {
        self.0.write(&number.to_le_bytes());
    }

    fn optional(&mut self, text: Option<&str>) {
        let Some(text) = text else {
            return self.number(-1);
        };
        self.number(i64::try_from(text.len()).unwrap_or(i64::MAX));
        self.0.write(text.as_bytes());
    }

    fn port(&mut self, port: Port) {
        self.number(i64::from(port.number));
        self.number(i64::from(port.enabled));
    }

    fn metadata(&mut self, metadata: &Metadata) {
        self.number(i64::try_from(metadata.len()).unwrap_or(i64::MAX));
        for (key, value) in metadata.iter() {
            self.optional(Some(key));
            self.optional(Some(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::sync::Arc;

    use super::content_hash;
    use crate::model::{DataCenter, Instance, Port, Status};

    fn instance() -> Instance {
        Instance {
            metadata: [("zone", "a"), ("k", "v")].into_iter().collect(),
            ..Instance::new("foo", "i-1", "host-1", "10.0.0.1")
        }
    }

    fn hash(instance: &Instance) -> u64 {
        content_hash(instance, Status::Up)
    }

    #[test]
    fn is_the_same_on_every_node_and_in_every_release() {
        assert_eq!(hash(&instance()), 0x7766_1e1f_cacd_3a47);
    }

    #[test]
    fn what_follows_from_elsewhere_is_left_out() {
        let other = Instance {
            status: Status::Down,
            overridden_status: Status::Down,
            last_dirty: Some(7),
            ..instance()
        };
        assert_eq!(hash(&other), hash(&instance()));
    }

    #[test]
    fn everything_reported_counts() {
        const fn off(number: i32) -> Port {
            Port {
                number,
                enabled: false,
            }
        }
        fn x() -> Option<Arc<str>> {
            Some(Arc::from("x"))
        }
        let changes: [fn(&mut Instance); 20] = [
            |i| i.instance_id = x(),
            |i| i.app_group = x(),
            |i| i.sid = x(),
            |i| i.home_page_url = x(),
            |i| i.status_page_url = x(),
            |i| i.health_check_url = x(),
            |i| i.secure_health_check_url = x(),
            |i| i.vip_address = x(),
            |i| i.secure_vip_address = x(),
            |i| i.asg_name = x(),
            |i| i.app = Arc::from("BAR"),
            |i| i.host_name = Arc::from("host-2"),
            |i| i.ip_address = Arc::from("10.0.0.2"),
            |i| i.country_id = 2,
            |i| i.port = off(7001),
            |i| i.secure_port = off(1),
            |i| i.data_center = DataCenter::Netflix,
            |i| i.data_center = DataCenter::Amazon(i.metadata.clone()),
            |i| (i.lease.renewal_interval_secs, i.lease.duration_secs) = (90, 30),
            |i| i.metadata = [("zone", "ak"), ("", "v")].into_iter().collect(),
        ];
        let plain = instance();
        let mut hashes = BTreeSet::from([hash(&plain), content_hash(&plain, Status::Down)]);
        for change in changes {
            let mut variant = plain.clone();
            change(&mut variant);
            hashes.insert(hash(&variant));
        }
        assert_eq!(hashes.len(), changes.len() + 2, "two of them look the same");
    }
}
