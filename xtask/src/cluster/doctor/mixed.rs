//! Set-ups of one Java server and nodes of ours.

use anyhow::Result;

use super::java::settings;
use super::{Doctor, await_instance, instance, name, register, start};
use crate::cluster::relay::Relay;
use crate::cluster::servers::{Java, Place, Workshop};

/// One Java server throughout; nodes of ours come and go.
pub(super) fn all(workshop: &Workshop, doctor: &Doctor<'_>) -> Result<()> {
    let java_place = Place::new("doctor-mixed-java", 21)?;
    let own_place = Place::new("doctor-mixed-ours", 22)?;
    let [to_ours, to_java] = [Relay::new(own_place.address)?, Relay::new(java_place.address)?];
    let java_url = java_place.url(Some(Java::Spring));
    let own_url = own_place.url(None);
    let mut java = workshop.java(Java::Spring, &java_place, &[to_ours.url()], &settings(&[]));
    let mut own = workshop.ours(&own_place, &[to_java.url()], &["replication.digest-interval=1s"]);
    start(std::slice::from_mut(&mut java))?;
    java.ready()?;
    start(std::slice::from_mut(&mut own))?;
    let (java_name, own_name) = (name(&java_url), name(&own_url));
    let both = [java_name.as_str(), own_name.as_str()];
    let first = instance("mixed-1");
    register(&java, &first)?;
    await_instance(&own, &first, true)?;
    own.ready()?;
    doctor.compared(&both, "a healthy pair", None);
    to_ours.cut();
    let second = instance("mixed-2");
    register(&java, &second)?;
    doctor.of(
        &both,
        &second,
        "Java does not reach ours",
        Some(("one-way-link", &both)),
    );
    to_ours.mend();
    java.target().renew(&second.app, &second.id)?;
    await_instance(&own, &second, true)?;
    to_java.cut();
    doctor.compared(
        &both,
        "ours does not reach Java",
        Some(("one-way-link", &[both[1], both[0]])),
    );
    to_java.mend();
    doctor.compared(&both, "both ways are mended", None);
    own.kill();
    // Its peers are others.
    let mut own = workshop.ours(&own_place, &[], &[]);
    start(std::slice::from_mut(&mut own))?;
    own.ready()?;
    doctor.compared(
        &both,
        "ours has no peers",
        Some(("not-a-peer", &[both[1], both[0]])),
    );
    own.kill();
    // Java's host name is that of the node of ours, too.
    let place = Place::new("doctor-mixed-same-host", 21)?;
    let same_host = name(&place.url(None));
    java.kill();
    let mut java = workshop.java(Java::Spring, &java_place, &[place.url(None)], &settings(&[]));
    let mut own = workshop.ours(&place, std::slice::from_ref(&java_url), &[]);
    start(std::slice::from_mut(&mut java))?;
    java.ready()?;
    start(std::slice::from_mut(&mut own))?;
    register(&java, &first)?;
    let both = [java_name.as_str(), same_host.as_str()];
    own.ready()?;
    doctor.of(
        &both,
        &first,
        "a Java server with the host of ours",
        Some(("taken-for-itself", &both)),
    );
    Ok(())
}
