//! Addresses of peers.

use std::fmt;

use eureka_registry_core::PeerId;

/// The URL of a peer's Eureka API, in parts.
#[derive(Clone, Eq, PartialEq)]
pub struct PeerAddress {
    /// `http` or `https`.
    pub scheme: String,
    /// From the user part, percent-decoded: user name and password of basic authentication. Never shown.
    pub credentials: Option<(String, String)>,
    /// Name or address, lower case, IPv6 in brackets.
    pub host: String,
    /// Given or that of the scheme.
    pub port: u16,
    /// Without a slash at the end: `/eureka` or `/eureka/v2`.
    pub path: String,
}

/// Why a text is no address of a peer.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AddressError {
    /// Neither `http` nor `https`.
    Scheme,
    /// No host.
    Host,
    /// The port is no number from 1 to 65,535.
    Port,
    /// There is a query or a fragment.
    Suffix,
}

impl PeerAddress {
    /// The name of the peer: its URL without credentials.
    pub fn id(&self) -> PeerId {
        PeerId(format!("{}://{}:{}{}", self.scheme, self.host, self.port, self.path).into())
    }
}

impl fmt::Debug for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id().0)
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "the URL of a peer begins with http:// or https://",
            Self::Host => "the URL of a peer names a host",
            Self::Port => "the port in the URL of a peer is a number from 1 to 65535",
            Self::Suffix => "the URL of a peer has neither query nor fragment",
        })
    }
}

impl std::error::Error for AddressError {}
