//! The paths of the REST API, Eureka's and ours.

use std::borrow::Cow;
use std::fmt;
use std::mem;

use super::RepairKind;

/// A path of the API, its names decoded. [`Display`](fmt::Display) gives the path back, percent-encoded.
///
/// Eureka's own stand under `/eureka/` and, the same, under `/eureka/v2/`.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Route<'a> {
    /// `apps/{app}`
    App {
        /// Application name, in any case.
        app: Cow<'a, str>,
    },
    /// `apps`
    Apps,
    /// `asg/{name}/status`
    AsgStatus {
        /// Auto-scaling group.
        name: Cow<'a, str>,
    },
    /// `peerreplication/batch`
    Batch,
    /// `/api/v1/changes`
    Changes,
    /// `apps/delta`
    Delta,
    /// `healthcheck` (Netflix only)
    Healthcheck,
    /// `apps/{app}/{id}`
    Instance {
        /// Application name, in any case.
        app: Cow<'a, str>,
        /// Effective instance id.
        id: Cow<'a, str>,
    },
    /// `instances/{id}`
    InstanceById {
        /// Effective instance id.
        id: Cow<'a, str>,
    },
    /// `apps/{app}/{id}/metadata`
    InstanceMetadata {
        /// Application name, in any case.
        app: Cow<'a, str>,
        /// Effective instance id.
        id: Cow<'a, str>,
    },
    /// `apps/{app}/{id}/status`
    InstanceStatus {
        /// Application name, in any case.
        app: Cow<'a, str>,
        /// Effective instance id.
        id: Cow<'a, str>,
    },
    /// `/api/v1/instances`
    Instances,
    /// `/api/v1/lastn`
    Lastn,
    /// `/api/v1/node`
    Node,
    /// `/api/v1/peers`
    Peers,
    /// `/api/v1/preservation`
    Preservation,
    /// `/api/v1/preservation/accept`
    PreservationAccept,
    /// `/api/v1/repair/{kind}`: between nodes of ours.
    Repair(RepairKind),
    /// `svips/{address}`
    SecureVip {
        /// Secure virtual address.
        address: Cow<'a, str>,
    },
    /// `status`
    Status,
    /// `serverinfo/statusoverrides` (Netflix only)
    StatusOverrides,
    /// `vips/{address}`
    Vip {
        /// Virtual address.
        address: Cow<'a, str>,
    },
}

impl<'a> Route<'a> {
    /// The route of a path (without the query), `None` if there is none.
    ///
    /// A trailing slash and doubled ones do not matter, nor do matrix parameters. Names are percent-decoded one by one,
    /// so that `%2F` stays inside its name, `+` stands for itself and dots mean nothing; a name that is not UTF-8 or
    /// badly encoded is none.
    pub fn parse(path: &'a str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        let is_plain = memchr::memchr2(b'%', b';', path.as_bytes()).is_none();
        let mut names = [const { Cow::Borrowed("") }; LONGEST];
        let mut count = 0;
        let mut begin = 0;
        let ends = memchr::memchr_iter(b'/', path.as_bytes()).chain([path.len()]);
        for end in ends {
            let segment = &path[begin..end];
            begin = end + 1;
            let name = if is_plain {
                Cow::Borrowed(segment)
            } else {
                decode(segment.split(';').next().unwrap_or_default())?
            };
            if !name.is_empty() {
                *names.get_mut(count)? = name;
                count += 1;
            }
        }
        let names = &mut names[..count];
        match words(names)[..count] {
            ["eureka", "v2", ..] => Self::parse_eureka(&mut names[2..]),
            ["eureka", ..] => Self::parse_eureka(&mut names[1..]),
            ["api", "v1", ref rest @ ..] => Self::parse_ours(rest),
            _ => None,
        }
    }

    fn parse_eureka(names: &mut [Cow<'a, str>]) -> Option<Self> {
        let route = match words(names)[..names.len()] {
            ["apps"] => Self::Apps,
            ["apps", "delta"] => Self::Delta,
            ["apps", _] => Self::App {
                app: mem::take(&mut names[1]),
            },
            ["apps", _, _] => Self::Instance {
                app: mem::take(&mut names[1]),
                id: mem::take(&mut names[2]),
            },
            ["apps", _, _, "status"] => Self::InstanceStatus {
                app: mem::take(&mut names[1]),
                id: mem::take(&mut names[2]),
            },
            ["apps", _, _, "metadata"] => Self::InstanceMetadata {
                app: mem::take(&mut names[1]),
                id: mem::take(&mut names[2]),
            },
            ["instances", _] => Self::InstanceById {
                id: mem::take(&mut names[1]),
            },
            ["vips", _] => Self::Vip {
                address: mem::take(&mut names[1]),
            },
            ["svips", _] => Self::SecureVip {
                address: mem::take(&mut names[1]),
            },
            ["peerreplication", "batch"] => Self::Batch,
            ["asg", _, "status"] => Self::AsgStatus {
                name: mem::take(&mut names[1]),
            },
            ["status"] => Self::Status,
            ["serverinfo", "statusoverrides"] => Self::StatusOverrides,
            ["healthcheck"] => Self::Healthcheck,
            _ => return None,
        };
        Some(route)
    }

    fn parse_ours(segments: &[&str]) -> Option<Self> {
        match *segments {
            ["changes"] => Some(Self::Changes),
            ["instances"] => Some(Self::Instances),
            ["lastn"] => Some(Self::Lastn),
            ["node"] => Some(Self::Node),
            ["peers"] => Some(Self::Peers),
            ["preservation"] => Some(Self::Preservation),
            ["preservation", "accept"] => Some(Self::PreservationAccept),
            ["repair", kind] => RepairKind::parse(kind).map(Self::Repair),
            _ => None,
        }
    }

    /// The methods it has, in the order of Java's `Allow`: `["GET", "OPTIONS"]`. HEAD goes wherever GET does.
    pub fn methods(&self) -> &'static [&'static str] {
        match self {
            Self::App { .. } => &["POST", "GET", "OPTIONS"],
            Self::Instance { .. } => &["DELETE", "GET", "OPTIONS", "PUT"],
            Self::AsgStatus { .. } | Self::InstanceMetadata { .. } => &["OPTIONS", "PUT"],
            Self::InstanceStatus { .. } => &["DELETE", "OPTIONS", "PUT"],
            Self::Batch | Self::PreservationAccept | Self::Repair(_) => &["POST", "OPTIONS"],
            Self::Apps
            | Self::Changes
            | Self::Delta
            | Self::Healthcheck
            | Self::InstanceById { .. }
            | Self::Instances
            | Self::Lastn
            | Self::Node
            | Self::Peers
            | Self::Preservation
            | Self::SecureVip { .. }
            | Self::Status
            | Self::StatusOverrides
            | Self::Vip { .. } => &["GET", "OPTIONS"],
        }
    }
}

impl fmt::Display for Route<'_> {
    /// Eureka's routes in the form without `v2`, which every flavour of Spring and we serve.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // In lower case that is the path of the delta; the case of an application does not matter.
            Self::App { app } if app == "delta" => f.write_str("/eureka/apps/DELTA"),
            Self::App { app } => write!(f, "/eureka/apps/{}", Encoded(app)),
            Self::Apps => f.write_str("/eureka/apps"),
            Self::AsgStatus { name } => write!(f, "/eureka/asg/{}/status", Encoded(name)),
            Self::Batch => f.write_str("/eureka/peerreplication/batch"),
            Self::Changes => f.write_str("/api/v1/changes"),
            Self::Delta => f.write_str("/eureka/apps/delta"),
            Self::Healthcheck => f.write_str("/eureka/healthcheck"),
            Self::Instance { app, id } => {
                write!(f, "/eureka/apps/{}/{}", Encoded(app), Encoded(id))
            }
            Self::InstanceById { id } => write!(f, "/eureka/instances/{}", Encoded(id)),
            Self::InstanceMetadata { app, id } => {
                write!(f, "/eureka/apps/{}/{}/metadata", Encoded(app), Encoded(id))
            }
            Self::InstanceStatus { app, id } => {
                write!(f, "/eureka/apps/{}/{}/status", Encoded(app), Encoded(id))
            }
            Self::Instances => f.write_str("/api/v1/instances"),
            Self::Lastn => f.write_str("/api/v1/lastn"),
            Self::Node => f.write_str("/api/v1/node"),
            Self::Peers => f.write_str("/api/v1/peers"),
            Self::Preservation => f.write_str("/api/v1/preservation"),
            Self::PreservationAccept => f.write_str("/api/v1/preservation/accept"),
            Self::Repair(kind) => write!(f, "/api/v1/repair/{}", kind.as_str()),
            Self::SecureVip { address } => write!(f, "/eureka/svips/{}", Encoded(address)),
            Self::Status => f.write_str("/eureka/status"),
            Self::StatusOverrides => f.write_str("/eureka/serverinfo/statusoverrides"),
            Self::Vip { address } => write!(f, "/eureka/vips/{}", Encoded(address)),
        }
    }
}

/// The longest route is `/eureka/v2/apps/{app}/{id}/metadata`.
const LONGEST: usize = 6;

/// The names as plain text, to be compared with the words of paths.
fn words<'b>(names: &'b [Cow<'_, str>]) -> [&'b str; LONGEST] {
    let mut words = [""; LONGEST];
    for (word, name) in words.iter_mut().zip(names) {
        *word = name;
    }
    words
}

/// Decodes `%41`; `None` for bad escapes and for what is not UTF-8 then.
fn decode(segment: &str) -> Option<Cow<'_, str>> {
    if !segment.contains('%') {
        return Some(Cow::Borrowed(segment));
    }
    let mut decoded = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    loop {
        match *rest {
            [] => break,
            [b'%', high, low, ref after @ ..] => {
                let digits = [high, low].map(|digit| char::from(digit).to_digit(16));
                let [Some(high), Some(low)] = digits else {
                    return None;
                };
                decoded.push(u8::try_from(high * 16 + low).ok()?);
                rest = after;
            }
            [b'%', ..] => return None,
            [byte, ref after @ ..] => {
                decoded.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

/// A name with everything encoded but what any server takes in a path.
struct Encoded<'a>(&'a str);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &byte in self.0.as_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' | b':' => {
                    write!(f, "{}", char::from(byte))?;
                }
                b'.' if !matches!(self.0, "." | "..") => f.write_str(".")?,
                _ => write!(f, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}
