//! Values as text, as all three sources give them, turned into types.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use bytesize::ByteSize;
use eureka_client::Server;
use eureka_replication::PeerAddress;
use eureka_replication::resolve::DnsSource;

use super::settings::Regions;

/// `true` or `false`.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| expected(text, "either true or false"))
}

/// A duration that may be zero.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| expected(text, "a duration such as \"90s\" or \"15m\""))
}

/// A duration above zero, and not longer than a year: beyond that somebody mistook the unit.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration < Duration::from_millis(1) || duration > Duration::from_secs(366 * 24 * 3600) {
        return Err(expected(text, "between \"1ms\" and a year"));
    }
    Ok(duration)
}

/// A number of bytes.
pub(super) fn size(text: &str, least: u64) -> Result<usize, String> {
    let size: ByteSize = text
        .parse()
        .map_err(|_| expected(text, "a size such as \"64KiB\" or \"10MiB\""))?;
    if size.as_u64() < least {
        return Err(expected(text, format_args!("at least {least} bytes")));
    }
    usize::try_from(size.as_u64()).map_err(|_| expected(text, "a size that fits this machine"))
}

/// A whole number in a range.
pub(super) fn count<T: Copy + Display + FromStr + PartialOrd>(
    text: &str,
    least: T,
    most: T,
) -> Result<T, String> {
    match text.parse::<T>() {
        Ok(count) if count >= least && count <= most => Ok(count),
        Ok(_) | Err(_) => Err(expected(
            text,
            format_args!("a whole number from {least} to {most}"),
        )),
    }
}

/// A share from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        Ok(_) | Err(_) => Err(expected(text, "a number from 0 to 1")),
    }
}

/// An IP address with a port.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        expected(
            text,
            "an address with a port, such as \"0.0.0.0:8761\" or \"[::]:8761\"",
        )
    })
}

/// Text without control characters; may be empty.
pub(super) fn text(text: &str) -> Result<String, String> {
    if text.chars().any(char::is_control) {
        return Err(expected(text, "text without control characters"));
    }
    Ok(text.to_owned())
}

/// Texts separated by commas.
pub(super) fn list(text: &str) -> Result<Vec<String>, String> {
    Ok(text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Base URLs of peers separated by commas; one that is there twice counts once. What is wrong is said without the URL: it may
/// hold a password.
pub(super) fn urls(text: &str) -> Result<Vec<PeerAddress>, String> {
    let mut addresses: Vec<PeerAddress> = Vec::new();
    for (position, url) in list(text)?.iter().enumerate() {
        let address =
            PeerAddress::parse(url).map_err(|error| format!("URL number {}: {error}", position + 1))?;
        if address.scheme == "https" {
            return Err(format!(
                "URL number {}: https is not available in this version: it has no TLS",
                position + 1
            ));
        }
        if addresses.iter().all(|known| known.id() != address.id()) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// Names behind which peers are found, separated by commas.
pub(super) fn sources(text: &str) -> Result<Vec<DnsSource>, String> {
    let parse = |entry: &String| {
        // Whoever takes a URL for a name may have a password in it.
        DnsSource::parse(entry).map_err(|error| format!("{:?}: {error}", masked(entry)))
    };
    list(text)?.iter().map(parse).collect()
}

/// Regions with their servers: `name=url url`, separated by commas; a name that is there again adds to it. What is wrong is
/// said without the URL: it may hold a password.
pub(super) fn regions(text: &str) -> Result<BTreeMap<String, Vec<Server>>, String> {
    let mut regions: BTreeMap<String, Vec<Server>> = BTreeMap::new();
    for (position, entry) in list(text)?.iter().enumerate() {
        let wrong = |why: &dyn Display| format!("region number {}: {why}", position + 1);
        let Some((name, urls)) = entry.split_once('=').filter(|(name, _)| !name.contains(':')) else {
            return Err(wrong(
                &"a name and URLs are expected, as in \"west=http://host:8761/eureka/\"",
            ));
        };
        let servers = regions
            .entry(region_name(name).map_err(|why| wrong(&why))?)
            .or_default();
        for url in urls.split_whitespace() {
            let server = Server::parse(url).map_err(|error| wrong(&error))?;
            if server.is_secure() {
                return Err(wrong(&"https is not available in this version: it has no TLS"));
            }
            if !servers.contains(&server) {
                servers.push(server);
            }
        }
        if servers.is_empty() {
            return Err(wrong(&"it has no URL"));
        }
    }
    if regions.len() > eureka_http_api::RemoteRegions::MAX {
        let most = eureka_http_api::RemoteRegions::MAX;
        return Err(format!("there are more than {most} regions"));
    }
    Ok(regions)
}

/// Applications by region: `name=APP,APP`, separated by commas, too: what has no `=` belongs to the name before. `*` is a name.
pub(super) fn applications(text: &str) -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let mut regions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut region = None;
    for entry in list(text)? {
        let names = match entry.split_once('=') {
            Some((name, names)) => {
                let name = match name.trim() {
                    Regions::OTHERS => Regions::OTHERS.to_owned(),
                    name => region_name(name)?,
                };
                regions.entry(name.clone()).or_default();
                region = Some(name);
                names
            }
            None => &*entry,
        };
        let Some(known) = region.as_ref().and_then(|region| regions.get_mut(region)) else {
            return Err(expected(
                &entry,
                "a region with applications, such as \"west=ORDERS\"",
            ));
        };
        known.extend(names.split_whitespace().map(str::to_uppercase));
    }
    Ok(regions)
}

fn region_name(text: &str) -> Result<String, String> {
    let name = text.trim().to_lowercase();
    let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(plain) {
        return Err(expected(
            text,
            "a name of a region: letters, digits, `-`, `_` and `.`",
        ));
    }
    Ok(name)
}

/// How long to wait, or for ever.
pub(super) fn patience(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "forever" => Ok(None),
        text => duration(text)
            .map(Some)
            .map_err(|why| format!("{why} or \"forever\"")),
    }
}

/// The URLs of a list without their user names and passwords, for people.
pub(super) fn masked(text: &str) -> String {
    let masked = |url: &str| match url.rsplit_once('@') {
        Some((before, rest)) if before.starts_with("https:") => format!("https://***@{rest}"),
        Some((before, rest)) if before.starts_with("http:") => format!("http://***@{rest}"),
        Some((_, rest)) => format!("***@{rest}"),
        None => url.to_owned(),
    };
    text.split(',')
        .map(|url| masked(url.trim()))
        .collect::<Vec<_>>()
        .join(",")
}

/// The same where each entry is a region: `name=url url`.
pub(super) fn masked_regions(text: &str) -> String {
    let whole = |entry: &str| {
        let (name, urls) = entry.split_once('=').unwrap_or(("", entry));
        let urls: Vec<String> = urls.split_whitespace().map(masked).collect();
        format!("{}={}", masked(name).trim(), urls.join(" "))
    };
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries.map(whole).collect::<Vec<_>>().join(",")
}

/// One of a few words.
pub(super) fn choice<T>(text: &str, names: &[&str], parsed: Option<T>) -> Result<T, String> {
    parsed.ok_or_else(|| expected(text, format_args!("one of {}", names.join(", "))))
}

fn expected(text: &str, what: impl Display) -> String {
    format!("{text:?} is not {what}")
}
