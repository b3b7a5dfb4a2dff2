//! The page at `/status`.

use super::{Format, json, xml};
use crate::snapshot::LeaseView;

/// What `/status` tells about a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatusPage {
    /// Names that XML allows for elements, with their values: `num-of-cpus`, `total-avail-memory`, `current-memory-usage`, `server-uptime`.
    pub general: Vec<(&'static str, String)>,
    /// The same: `registered-replicas`, `available-replicas`, `unavailable-replicas`.
    pub application: Vec<(&'static str, String)>,
    /// The server's own instance.
    pub instance: Option<LeaseView>,
    /// Left out where nothing is configured to judge it by.
    pub healthy: Option<bool>,
}

impl StatusPage {
    /// Appends the page.
    pub fn write(&self, format: Format, out: &mut Vec<u8>) {
        match format {
            Format::Json => self.write_json(out),
            Format::Xml => self.write_xml(out),
        }
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"generalStats":"#);
        write_json_pairs(&self.general, out);
        out.extend_from_slice(br#","applicationStats":"#);
        write_json_pairs(&self.application, out);
        if let Some(view) = &self.instance {
            out.extend_from_slice(br#","instanceInfo":"#);
            json::write_status_page_instance(view, out);
        }
        if let Some(healthy) = self.healthy {
            let told: &[u8] = if healthy { b"true" } else { b"false" };
            out.extend_from_slice(br#","healthy":"#);
            out.extend_from_slice(told);
        }
        out.push(b'}');
    }

    fn write_xml(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<com.netflix.eureka.util.StatusInfo>");
        write_xml_pairs("generalStats", &self.general, out);
        write_xml_pairs("applicationStats", &self.application, out);
        if let Some(view) = &self.instance {
            xml::end_line(1, out);
            out.extend_from_slice(b"<instanceInfo>");
            xml::write_status_page_instance(view, 2, out);
            xml::end_line(1, out);
            out.extend_from_slice(b"</instanceInfo>");
        }
        if let Some(healthy) = self.healthy {
            xml::write_element(
                1,
                xml::tag!("healthy"),
                if healthy { "true" } else { "false" },
                out,
            );
        }
        xml::end_line(0, out);
        out.extend_from_slice(b"</com.netflix.eureka.util.StatusInfo>");
    }
}

fn write_json_pairs(pairs: &[(&'static str, String)], out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (name, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::write_string(name, out);
        out.push(b':');
        json::write_string(value, out);
    }
    out.push(b'}');
}

fn write_xml_pairs(element: &str, pairs: &[(&'static str, String)], out: &mut Vec<u8>) {
    xml::end_line(1, out);
    xml::write_tag(b"<", element, out);
    for (name, value) in pairs {
        xml::end_line(2, out);
        xml::write_named_element(name, value, out);
    }
    xml::end_line(1, out);
    xml::write_tag(b"</", element, out);
}
