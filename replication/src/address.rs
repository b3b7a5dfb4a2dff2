//! Addresses of peers.

use std::fmt;
use std::net::Ipv6Addr;

use eureka_registry_core::PeerId;

/// Where Eureka's API is if the URL does not say.
pub(crate) const DEFAULT_PATH: &str = "/eureka";

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
    /// No host, or one that no host can have.
    Host,
    /// The port is no number from 1 to 65,535.
    Port,
    /// There is a query or a fragment.
    Suffix,
    /// The path has characters that a URL cannot have.
    Path,
    /// A percent sign in user name or password is not followed by two digits, or what they say is no text.
    Credentials,
}

impl PeerAddress {
    /// Reads `http[s]://[user:password@]host[:port][/path]`. Without a path it is `/eureka`; slashes at the end are dropped.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(AddressError::Scheme)?;
        let scheme = scheme.to_ascii_lowercase();
        let default_port = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return Err(AddressError::Scheme),
        };
        if rest.contains(['?', '#']) {
            return Err(AddressError::Suffix);
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let (host, port) = split_port(place)?;
        Ok(Self {
            scheme,
            credentials: user.map(credentials).transpose()?,
            host: checked_host(host)?,
            port: port.unwrap_or(default_port),
            path: checked_path(path)?,
        })
    }

    /// The name of the peer: its URL without credentials.
    pub fn id(&self) -> PeerId {
        PeerId(format!("{}://{}:{}{}", self.scheme, self.host, self.port, self.path).into())
    }

    /// Whether this is the address of a node with these host names (and addresses) that listens on `port`. With `host_only`
    /// the port does not matter, as in Java, where two nodes on one host can therefore not be peers.
    pub fn is_own<S: AsRef<str>>(&self, hosts: &[S], port: u16, host_only: bool) -> bool {
        let mut hosts = hosts.iter().map(|host| bare(host.as_ref()));
        let host = bare(&self.host);
        (host_only || self.port == port) && hosts.any(|own| own.eq_ignore_ascii_case(host))
    }
}

impl fmt::Debug for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id().0)
    }
}

/// Without brackets and without the dot that ends a full name.
fn bare(host: &str) -> &str {
    host.trim_matches(['[', ']']).trim_end_matches('.')
}

/// `host`, `host:port`, `[address]`, `[address]:port`.
pub(crate) fn split_port(place: &str) -> Result<(&str, Option<u16>), AddressError> {
    let end = match place.rfind(']') {
        Some(bracket) => bracket + 1,
        None => place.find(':').unwrap_or(place.len()),
    };
    let (host, port) = place.split_at(end);
    if port.is_empty() {
        return Ok((host, None));
    }
    let digits = port.strip_prefix(':').ok_or(AddressError::Host)?;
    let digits = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.and_then(|digits| digits.parse().ok()) {
        Some(0) | None => Err(AddressError::Port),
        Some(port) => Ok((host, Some(port))),
    }
}

/// The host in lower case; an address of IPv6 as the standard writes it, in brackets.
pub(crate) fn checked_host(host: &str) -> Result<String, AddressError> {
    if let Some(address) = host.strip_prefix('[') {
        let address = address.strip_suffix(']').ok_or(AddressError::Host)?;
        let address: Ipv6Addr = address.parse().map_err(|_| AddressError::Host)?;
        return Ok(format!("[{address}]"));
    }
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if host.is_empty() || host.len() > 253 || !host.bytes().all(fine) {
        return Err(AddressError::Host);
    }
    Ok(host.to_ascii_lowercase())
}

fn checked_path(path: &str) -> Result<String, AddressError> {
    if !path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(AddressError::Path);
    }
    let path = path.trim_end_matches('/');
    Ok(String::from(if path.is_empty() { DEFAULT_PATH } else { path }))
}

/// User name and password. The first colon parts them; a password may have more.
fn credentials(text: &str) -> Result<(String, String), AddressError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    Ok((percent_decoded(user)?, percent_decoded(password)?))
}

fn percent_decoded(text: &str) -> Result<String, AddressError> {
    let mut parts = text.split('%');
    let mut bytes = Vec::from(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.get(..2).ok_or(AddressError::Credentials)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(AddressError::Credentials);
        }
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| AddressError::Credentials)?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).map_err(|_| AddressError::Credentials)
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => "the URL of a peer begins with http:// or https://",
            Self::Host => "the URL of a peer names a host",
            Self::Port => "the port in the URL of a peer is a number from 1 to 65535",
            Self::Suffix => "the URL of a peer has neither query nor fragment",
            Self::Path => "the path in the URL of a peer has only characters that a URL may have",
            Self::Credentials => "a percent sign in user name or password of a peer's URL is followed by two hexadecimal digits",
        })
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> PeerAddress {
        PeerAddress::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn a_url_in_parts() {
        let address = parsed("HTTP://user:se%63ret:%2F%c3%A9@Peer-1.Example:8761/eureka/v2///");
        assert_eq!(address.id().0.as_ref(), "http://peer-1.example:8761/eureka/v2");
        assert_eq!(
            address.credentials,
            Some((String::from("user"), String::from("secret:/é")))
        );
        assert_eq!(
            format!("{address:?}"),
            "http://peer-1.example:8761/eureka/v2",
            "shows no password"
        );
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        for (text, id) in [
            ("http://a", "http://a:80/eureka"),
            ("https://a/", "https://a:443/eureka"),
            (" https://a:8443/registry/ ", "https://a:8443/registry"),
            ("http://[::1]", "http://[::1]:80/eureka"),
            ("http://[0:0::1]:9/", "http://[::1]:9/eureka"),
            ("http://10.0.0.1:1/eureka/", "http://10.0.0.1:1/eureka"),
        ] {
            assert_eq!(&*parsed(text).id().0, id);
        }
        assert_eq!(
            parsed("http://me@a").credentials,
            Some((String::from("me"), String::new()))
        );
        assert_eq!(parsed("http://a").credentials, None);
    }

    #[test]
    fn what_is_no_address_of_a_peer() {
        for (text, error) in [
            ("", AddressError::Scheme),
            ("a:8761", AddressError::Scheme),
            ("ftp://a", AddressError::Scheme),
            ("http://", AddressError::Host),
            ("http:///eureka", AddressError::Host),
            ("http://user:x@/eureka", AddressError::Host),
            ("http://a b/", AddressError::Host),
            ("http://::1/", AddressError::Port),
            ("http://[::1/", AddressError::Port),
            ("http://[::g]/", AddressError::Host),
            ("http://[::1]x/", AddressError::Host),
            ("http://a:/", AddressError::Port),
            ("http://a:0/", AddressError::Port),
            ("http://a:65536/", AddressError::Port),
            ("http://a:+1/", AddressError::Port),
            ("http://a/?x", AddressError::Suffix),
            ("http://a/#x", AddressError::Suffix),
            ("http://a/b c", AddressError::Path),
            ("http://a/\n/", AddressError::Path),
            ("http://%:x@a/", AddressError::Credentials),
            ("http://x:%+1@a/", AddressError::Credentials),
            ("http://x:%ff@a/", AddressError::Credentials),
        ] {
            let found = PeerAddress::parse(text).map(|address| address.id());
            assert_eq!(found, Err(error), "{text}");
        }
    }

    #[test]
    fn own_by_host_and_port() {
        let own = ["Me.example.", "::1", "10.0.0.1"];
        assert!(parsed("http://me.example:8761").is_own(&own, 8761, false));
        assert!(
            !parsed("http://me.example:8762").is_own(&own, 8761, false),
            "another node on this host"
        );
        assert!(
            parsed("http://me.example:8762").is_own(&own, 8761, true),
            "Java's rule"
        );
        assert!(!parsed("http://you.example:8761").is_own(&own, 8761, true));
        assert!(parsed("http://[::1]:1").is_own(&own, 1, false));
    }
}
