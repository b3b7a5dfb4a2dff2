//! A server as clients name it: a URL, a zone, perhaps a name and a password.

use std::fmt;
#[cfg(feature = "dns")]
use std::net::IpAddr;
use std::net::Ipv6Addr;
use std::sync::Arc;

/// A server's address: `http://host:8761/eureka/`. What is shown of it has no credentials.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Server {
    secure: bool,
    host: Arc<str>,
    port: u16,
    /// Begins and ends with a slash.
    path: Arc<str>,
    zone: Option<Arc<str>>,
    credentials: Option<Credentials>,
}

#[derive(Clone, Eq, Hash, PartialEq)]
struct Credentials {
    /// As in the URL: percent-encoded.
    text: Arc<str>,
}

/// Why a URL names no server.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ServerError {
    /// It does not begin with `http://` or `https://`.
    Scheme,
    /// There is no host in it, or it is none.
    Host,
    /// The port is no number from 1 to 65535.
    Port,
    /// It has a query or a fragment.
    Query,
    /// There is another URL in it: each server is named by itself.
    Several,
    /// It has white space, a control character, or something else that does not belong into a URL.
    Character,
}

impl Server {
    /// Reads `http[s]://[name:password@]host[:port][/path]`. A missing slash at the end is added, white space around it does
    /// not matter. An `@` may stand in a password as it is; a `/`, `?`, `#` or `%` has to be percent-encoded.
    pub fn parse(text: &str) -> Result<Self, ServerError> {
        let text = text.trim_ascii();
        let (secure, rest) = match (strip(text, "http://"), strip(text, "https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(ServerError::Scheme),
        };
        if !rest
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte))
        {
            return Err(ServerError::Character);
        }
        if rest.contains(['?', '#']) {
            return Err(ServerError::Query);
        }
        if rest.contains("://") {
            return Err(ServerError::Several);
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (credentials, address) = match authority.rsplit_once('@') {
            Some((credentials, address)) => (Some(credentials), address),
            None => (None, authority),
        };
        let (host, port) = split(address)?;
        let port = match port {
            Some(port) => number(port).ok_or(ServerError::Port)?,
            None if secure => 443,
            None => 80,
        };
        let slash = if path.ends_with('/') { "" } else { "/" };
        Ok(Self {
            secure,
            host: host.to_ascii_lowercase().into(),
            port,
            path: format!("{path}{slash}").into(),
            zone: None,
            credentials: credentials
                .filter(|text| !text.is_empty())
                .map(|text| Credentials { text: text.into() }),
        })
    }

    /// The same server, said to be in a zone.
    #[must_use]
    pub fn in_zone(self, zone: &str) -> Self {
        Self {
            zone: Some(zone.into()),
            ..self
        }
    }

    /// The same server at one of its addresses.
    #[cfg(feature = "dns")]
    pub(crate) fn at(self, address: IpAddr) -> Self {
        let host = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        Self {
            host: host.into(),
            ..self
        }
    }

    /// The address, if it is named by one.
    #[cfg(feature = "dns")]
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        host.parse().ok()
    }

    /// Whether it speaks TLS.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host: a name, an IPv4 address, or an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Who answers there: with another name, password, path or zone it is still the same.
    #[cfg(feature = "http")]
    pub(crate) fn host_and_port(&self) -> (Arc<str>, u16) {
        (Arc::clone(&self.host), self.port)
    }

    /// Where its API begins, with a slash at both ends: `/eureka/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its zone.
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// `name:password`, percent-encoded as in the URL. Not for display.
    pub fn credentials(&self) -> Option<&str> {
        self.credentials.as_ref().map(|credentials| &*credentials.text)
    }
}

/// What follows a scheme, in any case.
fn strip<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let head = text.get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then(|| &text[scheme.len()..])
}

fn split(address: &str) -> Result<(&str, Option<&str>), ServerError> {
    let end = match address.strip_prefix('[') {
        Some(rest) => rest.find(']').ok_or(ServerError::Host)? + 2,
        None => address.find(':').unwrap_or(address.len()),
    };
    let (host, port) = address.split_at(end);
    if !is_host(host) {
        return Err(ServerError::Host);
    }
    match port.strip_prefix(':') {
        Some(port) => Ok((host, Some(port))),
        None if port.is_empty() => Ok((host, None)),
        None => Err(ServerError::Host),
    }
}

/// A name, an IPv4 address, or an IPv6 address in brackets, without a scope.
fn is_host(text: &str) -> bool {
    match text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            !text.is_empty() && text.bytes().all(allowed)
        }
    }
}

/// Digits alone: `u16` would take a sign, too.
fn number(port: &str) -> Option<u16> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    port.parse().ok().filter(|port| digits && *port > 0)
}

/// The URL, without credentials.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}{}", self.host, self.port, self.path)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({self}")?;
        if let Some(zone) = &self.zone {
            write!(f, " in {zone}")?;
        }
        f.write_str(")")
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "the URL of a server begins with http:// or https://",
            Self::Host => "there is no host in the URL of a server",
            Self::Port => "the port in the URL of a server is a number from 1 to 65535",
            Self::Query => "the URL of a server has neither query nor fragment",
            Self::Several => {
                "there is more than one URL where one server is to be named: name each by itself"
            }
            Self::Character => "there is a character in the URL of a server that does not belong there",
        })
    }
}

impl std::error::Error for ServerError {}
