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
