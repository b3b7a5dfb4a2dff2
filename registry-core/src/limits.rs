//! What one client may register: it is sent to every reader, and kept by every node.

use core::error::Error;
use core::fmt;

use crate::model::Instance;

/// Bounds on an instance that a client registers. Peers are not held to them: what a cluster has agreed on is taken over
/// whole.
///
/// ```
/// use eureka_registry_core::{Excess, Instance, InstanceLimits};
///
/// let limits = InstanceLimits { text: 10, ..InstanceLimits::default() };
/// let mut instance = Instance::new("orders", "orders-1", "host-1", "10.0.0.1");
/// assert_eq!(instance.within(limits), Ok(()));
///
/// instance.vip_address = Some("orders,payments".into());
/// let excess = instance.within(limits).unwrap_err();
/// assert_eq!(excess, Excess::Text { field: "vip_address", limit: 10 });
/// assert_eq!(excess.to_string(), "vip_address over 10 bytes");
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InstanceLimits {
    /// Bytes of all keys and values of its metadata and of its machine's, together.
    pub metadata: usize,
    /// Bytes of any other text. Each virtual address is filed, and one that no URL can hold could not be asked for anyway.
    pub text: usize,
}

impl Default for InstanceLimits {
    /// 64 KiB of metadata, 8 KiB for any other text.
    fn default() -> Self {
        Self {
            metadata: 64 << 10,
            text: 8 << 10,
        }
    }
}

/// What of an instance is longer than a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Excess {
    /// Its metadata.
    Metadata {
        /// Bytes that would be allowed.
        limit: usize,
    },
    /// One of its texts.
    Text {
        /// Its name: that of the field of [`Instance`].
        field: &'static str,
        /// Bytes that would be allowed.
        limit: usize,
    },
}

impl Instance {
    /// Whether a client may register it: the first excess otherwise, metadata before texts.
    pub fn within(&self, limits: InstanceLimits) -> Result<(), Excess> {
        let limit = limits.metadata;
        if self.metadata_bytes() > limit {
            return Err(Excess::Metadata { limit });
        }
        let limit = limits.text;
        match self.named_texts().find(|(_, text)| text.len() > limit) {
            Some((field, _)) => Err(Excess::Text { field, limit }),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Metadata { limit } => write!(f, "metadata over {limit} bytes"),
            Self::Text { field, limit } => write!(f, "{field} over {limit} bytes"),
        }
    }
}

impl Error for Excess {}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::{Excess, InstanceLimits};
    use crate::model::{DataCenter, Instance, Metadata};

    const LIMITS: InstanceLimits = InstanceLimits { metadata: 8, text: 8 };

    fn instance() -> Instance {
        Instance::new("a", "12345678", "host", "10.0.0.1")
    }

    #[test]
    fn metadata_of_instance_and_machine_count_together() {
        let mut instance = instance();
        instance.metadata.insert("1234", "5678");
        assert_eq!(instance.within(LIMITS), Ok(()));
        let machine: Metadata = [("k", "")].into_iter().collect();
        instance.data_center = DataCenter::Amazon(machine);
        assert_eq!(instance.within(LIMITS), Err(Excess::Metadata { limit: 8 }));
    }

    #[test]
    fn every_text_is_measured_and_named() {
        let with = |field, text| {
            let mut instance = instance();
            match field {
                "app" => instance.app = text,
                "host_name" => instance.host_name = text,
                "ip_address" => instance.ip_address = text,
                "instance_id" => instance.instance_id = Some(text),
                "app_group" => instance.app_group = Some(text),
                "sid" => instance.sid = Some(text),
                "home_page_url" => instance.home_page_url = Some(text),
                "status_page_url" => instance.status_page_url = Some(text),
                "health_check_url" => instance.health_check_url = Some(text),
                "secure_health_check_url" => instance.secure_health_check_url = Some(text),
                "vip_address" => instance.vip_address = Some(text),
                "secure_vip_address" => instance.secure_vip_address = Some(text),
                _ => instance.asg_name = Some(text),
            }
            instance
        };
        for field in [
            "app",
            "host_name",
            "ip_address",
            "instance_id",
            "app_group",
            "sid",
            "home_page_url",
            "status_page_url",
            "health_check_url",
            "secure_health_check_url",
            "vip_address",
            "secure_vip_address",
            "asg_name",
        ] {
            let full = with(field, Arc::from("12345678"));
            assert_eq!(full.within(LIMITS), Ok(()), "{field}");
            let over = with(field, Arc::from("123456789"));
            let excess = Excess::Text { field, limit: 8 };
            assert_eq!(over.within(LIMITS), Err(excess), "{field}");
        }
    }
}
