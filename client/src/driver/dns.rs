//! Servers that are found through DNS.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError as Said, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RData;

use crate::server::{Server, ServerError};

/// For one attempt with one server of DNS.
const ATTEMPT: Duration = Duration::from_secs(2);
/// Attempts for one question.
const ATTEMPTS: usize = 2;
/// Zones of one region at most.
const ZONES_MAX: usize = 100;
/// Servers of one source at most.
const SERVERS_MAX: usize = 1_000;

/// Where servers are named.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ServerSource {
    /// By its URL. Nothing is asked.
    Url(Server),
    /// Every address of the host of this URL is a server, as of a headless service; those of IPv4, if there are any. With
    /// `https` it is one server, whatever addresses it has: its certificate is for the name.
    Name(Server),
    /// Eureka's scheme: the text of `txt.<region>.<domain>` lists zones, `<zone>.<domain>`, and the text of
    /// `txt.<zone>.<domain>` lists hosts, `host:port`s or URLs. The zone of a server is the first label of its zone's name.
    Txt {
        /// `us-east-1`
        region: String,
        /// `eureka.example.com`
        domain: String,
        /// Of hosts without one; 8761 at most places.
        port: u16,
        /// Where the API begins: `/eureka/`.
        path: String,
        /// Whether they speak TLS.
        secure: bool,
    },
}

/// Whom to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resolver {
    server: Option<SocketAddr>,
}

/// Why there are no servers from a source.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum DnsError {
    /// The system's configuration cannot be read.
    Configuration(String),
    /// No answer, or none that helps.
    Failed {
        /// What was asked for.
        name: String,
        /// What was seen.
        why: String,
    },
    /// DNS knows nothing of the kind under this name.
    Nothing {
        /// What was asked for.
        name: String,
    },
    /// It says something that names no server.
    Server(ServerError),
}

/// Several sources, and what they last said. What a source cannot tell now is taken from what it told before.
#[derive(Debug)]
pub struct Servers {
    resolver: Resolver,
    sources: Vec<(ServerSource, Vec<Arc<Server>>)>,
}

/// What came of asking all sources.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Resolved {
    /// In the order of the sources, each once.
    pub servers: Vec<Arc<Server>>,
    /// What could not be found out.
    pub failures: Vec<DnsError>,
}

impl Servers {
    /// Nothing is known of them yet.
    pub fn new(resolver: Resolver, sources: Vec<ServerSource>) -> Self {
        let sources = sources.into_iter().map(|source| (source, Vec::new()));
        Self {
            resolver,
            sources: sources.collect(),
        }
    }

    /// Asks for all of them. To be done again every five minutes or so: nothing is kept by how long it is said to be valid.
    pub async fn resolve(&mut self) -> Resolved {
        let mut resolved = Resolved::default();
        for (source, known) in &mut self.sources {
            let (found, failures) = source.resolve(&self.resolver).await;
            if failures.is_empty() {
                *known = found;
            } else {
                known.retain(|server| !found.contains(server));
                known.splice(0..0, found);
                known.truncate(SERVERS_MAX);
            }
            resolved.failures.extend(failures);
            for server in known {
                if !resolved.servers.contains(server) {
                    resolved.servers.push(Arc::clone(server));
                }
            }
        }
        resolved
    }
}

impl ServerSource {
    /// The servers, and what could not be found out: either may be empty.
    pub async fn resolve(&self, resolver: &Resolver) -> (Vec<Arc<Server>>, Vec<DnsError>) {
        let found = match self {
            Self::Url(server) => Ok(vec![Arc::new(server.clone())]),
            Self::Name(server) if server.is_secure() || server.address().is_some() => {
                Ok(vec![Arc::new(server.clone())])
            }
            Self::Name(server) => addresses(resolver, server).await,
            Self::Txt { region, domain, .. } => {
                match words(resolver, &format!("txt.{region}.{domain}")).await {
                    Ok(zones) => return self.zones(resolver, zones).await,
                    Err(error) => Err(error),
                }
            }
        };
        match found {
            Ok(servers) => (servers, Vec::new()),
            Err(error) => (Vec::new(), vec![error]),
        }
    }

    async fn zones(&self, resolver: &Resolver, zones: BTreeSet<String>) -> (Vec<Arc<Server>>, Vec<DnsError>) {
        let mut servers: Vec<Arc<Server>> = Vec::new();
        let mut failures = Vec::new();
        for zone in zones.into_iter().take(ZONES_MAX) {
            let hosts = match words(resolver, &format!("txt.{zone}")).await {
                Ok(hosts) => hosts,
                Err(error) => {
                    failures.push(error);
                    continue;
                }
            };
            let label = zone.split('.').next().unwrap_or_default();
            for host in hosts {
                match self.server(&host) {
                    Ok(server) if servers.len() < SERVERS_MAX => {
                        servers.push(Arc::new(server.in_zone(label)));
                    }
                    Ok(_) => {}
                    Err(error) => failures.push(DnsError::Server(error)),
                }
            }
        }
        (servers, failures)
    }

    /// `host`, `host:port` or a URL.
    fn server(&self, text: &str) -> Result<Server, ServerError> {
        let Self::Txt {
            port, path, secure, ..
        } = self
        else {
            return Server::parse(text);
        };
        if text.contains("://") {
            return Server::parse(text);
        }
        let scheme = if *secure { "https" } else { "http" };
        let host = text.trim_end_matches('.');
        let after_address = &host[host.rfind(']').map_or(0, |end| end + 1)..];
        let port = if after_address.contains(':') {
            String::new()
        } else {
            format!(":{port}")
        };
        Server::parse(&format!(
            "{scheme}://{host}{port}/{}",
            path.trim_start_matches('/')
        ))
    }
}

async fn addresses(resolver: &Resolver, server: &Server) -> Result<Vec<Arc<Server>>, DnsError> {
    let name = server.host();
    let mut found: BTreeSet<IpAddr> = match resolver.open()?.lookup_ip(name).await {
        Ok(found) => found.iter().collect(),
        Err(error) => return Err(failed(name, &error)),
    };
    if found.iter().any(IpAddr::is_ipv4) {
        found.retain(IpAddr::is_ipv4);
    }
    let servers = found.into_iter().take(SERVERS_MAX);
    Ok(servers
        .map(|address| Arc::new(server.clone().at(address)))
        .collect())
}

/// The words of all texts of a name, each once.
async fn words(resolver: &Resolver, name: &str) -> Result<BTreeSet<String>, DnsError> {
    let found = resolver.open()?.txt_lookup(name).await;
    let found = found.map_err(|error| failed(name, &error))?;
    let texts = found.answers().iter().filter_map(|record| {
        // Anything else is an alias on the way.
        let RData::TXT(text) = &record.data else {
            return None;
        };
        Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned())
    });
    let words: BTreeSet<String> = texts
        .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    if words.is_empty() {
        return Err(DnsError::Nothing { name: name.into() });
    }
    Ok(words)
}

fn failed(name: &str, error: &NetError) -> DnsError {
    let name = name.to_owned();
    if let NetError::Dns(Said::NoRecordsFound(said)) = error
        && matches!(said.response_code, ResponseCode::NXDomain | ResponseCode::NoError)
    {
        return DnsError::Nothing { name };
    }
    DnsError::Failed {
        name,
        why: error.to_string(),
    }
}

impl Resolver {
    /// Asks the servers that the system is configured for, read again for each question.
    pub fn system() -> Self {
        Self::default()
    }

    /// Asks this server of DNS only, and for full names.
    pub fn at(server: SocketAddr) -> Self {
        Self { server: Some(server) }
    }

    fn open(self) -> Result<TokioResolver, DnsError> {
        let configuration = |error: NetError| DnsError::Configuration(error.to_string());
        let mut builder = match self.server {
            Some(server) => {
                let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
                    connection.port = server.port();
                    connection
                });
                let server = NameServerConfig::new(server.ip(), true, connections.into());
                let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
                TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            }
            None => TokioResolver::builder_tokio().map_err(configuration)?,
        };
        let options = builder.options_mut();
        options.timeout = ATTEMPT;
        options.attempts = ATTEMPTS;
        options.cache_size = 0;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        builder.build().map_err(configuration)
    }
}

impl fmt::Display for DnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(why) => {
                write!(f, "the system's configuration of DNS cannot be read: {why}")
            }
            Self::Failed { name, why } => write!(f, "DNS does not tell about {name}: {why}"),
            Self::Nothing { name } => write!(f, "DNS knows no servers under {name}"),
            Self::Server(error) => write!(f, "DNS names a server that cannot be one: {error}"),
        }
    }
}

impl std::error::Error for DnsError {}
