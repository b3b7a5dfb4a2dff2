//! Whom a balancer picks from, and where such an instance is reached.

use std::fmt;
use std::sync::Arc;

use eureka_registry_core::{Instance, Port};

/// Which instances are picked from.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Target {
    /// Those of an application, in any case.
    App(Arc<str>),
    /// Those of which one element of `vipAddress` is this.
    Vip(Arc<str>),
    /// Those of which one element of `secureVipAddress` is this, at their secure ports.
    SecureVip(Arc<str>),
}

impl Target {
    /// The application of this name.
    pub fn app(name: &str) -> Self {
        Self::App(name.into())
    }

    /// The virtual address of this name.
    pub fn vip(name: &str) -> Self {
        Self::Vip(name.into())
    }

    /// The secure virtual address of this name.
    pub fn secure_vip(name: &str) -> Self {
        Self::SecureVip(name.into())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::App(name) => write!(f, "application {name}"),
            Self::Vip(name) => write!(f, "virtual address {name}"),
            Self::SecureVip(name) => write!(f, "secure virtual address {name}"),
        }
    }
}

/// How to call an instance: which host and which port.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Addressing {
    /// Only secure ports will do. [`Target::SecureVip`] means that in any case.
    pub secure: bool,
    /// `ipAddr` instead of `hostName`: for networks that do not resolve the names under which instances register. (Java's
    /// clients call the name, and a certificate names it.)
    pub by_address: bool,
}

/// Where an instance is reached. Shows as `http://host:port`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Endpoint {
    secure: bool,
    host: Arc<str>,
    port: u16,
}

impl Endpoint {
    /// Where to call this instance: at its plain port if that is enabled, else over TLS at its secure port if that is. A
    /// port counts as enabled only from 1 to 65535. `None` if there is no such port, or no host: then it cannot be called.
    pub fn of(instance: &Instance, addressing: Addressing) -> Option<Self> {
        let plain = usable(instance.port).filter(|_| !addressing.secure);
        let (secure, port) = match (plain, usable(instance.secure_port)) {
            (Some(port), _) => (false, port),
            (None, Some(port)) => (true, port),
            (None, None) => return None,
        };
        let host = if addressing.by_address {
            &instance.ip_address
        } else {
            &instance.host_name
        };
        if host.is_empty() {
            return None;
        }
        let host = if host.contains(':') && !host.starts_with('[') {
            format!("[{host}]").into()
        } else {
            Arc::clone(host)
        };
        Some(Self { secure, host, port })
    }

    /// Whether TLS is spoken there.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// A name, an IPv4 address, or an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// From 1 to 65535.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port`.
    pub fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

fn usable(port: Port) -> Option<u16> {
    u16::try_from(port.number)
        .ok()
        .filter(|number| port.enabled && *number > 0)
}
