//! Asks DNS what the resolution of peers wants to know.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError as Said, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RData;
use hickory_resolver::{ResolverBuilder, TokioResolver};

use crate::resolve::{Answer, Question};

/// For one attempt with one server.
const ATTEMPT: Duration = Duration::from_secs(2);
/// Attempts for one question.
const ATTEMPTS: usize = 2;

/// Where names are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resolver {
    server: Option<SocketAddr>,
}

/// DNS did not answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum DnsError {
    /// The system's configuration cannot be read.
    Configuration(String),
    /// There was no answer, or the server says that something is wrong there.
    Failed {
        /// Whom was asked for.
        name: String,
        /// What was seen.
        text: String,
    },
}

impl Resolver {
    /// Asks the servers that the system is configured for, read again for each question.
    pub fn system() -> Self {
        Self::default()
    }

    /// Asks this server only, and for full names.
    pub fn at(server: SocketAddr) -> Self {
        Self { server: Some(server) }
    }

    /// A name that does not exist, or has nothing of the kind, has an empty answer.
    pub async fn ask(&self, question: &Question) -> Result<Answer, DnsError> {
        let resolver = self.open()?;
        match question {
            Question::Addresses(name) => {
                let addresses = match resolver.lookup_ip(name.as_str()).await {
                    Ok(found) => found.iter().collect(),
                    Err(error) => empty(name, error)?,
                };
                Ok(Answer::Addresses(addresses))
            }
            Question::Services(name) => {
                let found = resolver.srv_lookup(name.as_str()).await;
                let services = records(name, found, |data| {
                    let RData::SRV(service) = data else { return None };
                    // The root stands for a service that is decidedly not there.
                    (!service.target.is_root()).then(|| (service.target.to_utf8(), service.port))
                });
                Ok(Answer::Services(services?))
            }
            Question::Texts(name) => {
                let found = resolver.txt_lookup(name.as_str()).await;
                let texts = records(name, found, |data| {
                    let RData::TXT(text) = data else { return None };
                    Some(String::from_utf8_lossy(&text.txt_data.concat()).into_owned())
                });
                Ok(Answer::Texts(texts?))
            }
        }
    }

    fn open(&self) -> Result<TokioResolver, DnsError> {
        let configuration = |error: NetError| DnsError::Configuration(error.to_string());
        let mut builder = match self.server {
            Some(server) => configured(server),
            None => TokioResolver::builder_tokio().map_err(configuration)?,
        };
        options(builder.options_mut());
        builder.build().map_err(configuration)
    }
}

/// Nothing is kept: a round of questions comes once a minute, and is to see what is there.
fn options(options: &mut ResolverOpts) {
    options.timeout = ATTEMPT;
    options.attempts = ATTEMPTS;
    options.cache_size = 0;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
}

fn configured(server: SocketAddr) -> ResolverBuilder<TokioRuntimeProvider> {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()].map(|mut connection| {
        connection.port = server.port();
        connection
    });
    let server = NameServerConfig::new(server.ip(), true, connections.into());
    let config = ResolverConfig::from_parts(None, Vec::new(), vec![server]);
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
}

/// Records that are of the kind asked for: an alias on the way is not.
fn records<T>(
    name: &str,
    found: Result<Lookup, NetError>,
    read: impl Fn(&RData) -> Option<T>,
) -> Result<Vec<T>, DnsError> {
    match found {
        Ok(found) => Ok(found
            .answers()
            .iter()
            .filter_map(|record| read(&record.data))
            .collect()),
        Err(error) => empty(name, error),
    }
}

fn empty<T>(name: &str, error: NetError) -> Result<Vec<T>, DnsError> {
    if let NetError::Dns(Said::NoRecordsFound(said)) = &error
        && matches!(said.response_code, ResponseCode::NXDomain | ResponseCode::NoError)
    {
        return Ok(Vec::new());
    }
    Err(DnsError::Failed {
        name: name.to_owned(),
        text: error.to_string(),
    })
}

impl fmt::Display for DnsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(text) => {
                write!(f, "the system's configuration of DNS cannot be read: {text}")
            }
            Self::Failed { name, text } => write!(f, "DNS does not tell about {name}: {text}"),
        }
    }
}

impl std::error::Error for DnsError {}
