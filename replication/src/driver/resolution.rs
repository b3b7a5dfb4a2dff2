//! Where the peers are: what is configured, and what DNS makes of it.

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use eureka_registry_core::PeerId;
use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::address::PeerAddress;
use crate::dns::Resolver;
use crate::resolve::{Answer, DnsSource, Question, Resolution, Template};

/// For one question to DNS, whatever servers and search domains there are.
const QUESTION: Duration = Duration::from_secs(10);
/// For the addresses of one host.
const LOCATING: Duration = Duration::from_secs(5);

/// Peers as they are configured, checked.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    urls: Vec<PeerAddress>,
    dns: Vec<DnsSource>,
    template: Template,
    own: Own,
}

/// By what a URL is recognised to be this node's own, see [`PeerAddress::is_own`].
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// Its host names and addresses.
    pub hosts: Vec<String>,
    /// On which it listens.
    pub port: u16,
    /// Whether the port does not matter, as in Java.
    pub host_only: bool,
}

/// Why peers cannot be configured so.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SourcesError {
    /// A URL begins with `https://`: this version speaks no TLS.
    Https(PeerId),
}

impl Sources {
    /// `template` is for hosts that DNS lists without a URL.
    pub fn new(
        urls: Vec<PeerAddress>,
        dns: Vec<DnsSource>,
        template: Template,
        own: Own,
    ) -> Result<Self, SourcesError> {
        match urls.iter().find(|address| !is_supported(address)) {
            Some(address) => Err(SourcesError::Https(address.id())),
            None => Ok(Self {
                urls,
                dns,
                template,
                own,
            }),
        }
    }
}

/// What came of the last round of questions.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// Answers to be taken again where DNS fails.
    remembered: Vec<(Question, Answer)>,
    /// This node left out; `None` if nothing is known that could replace what was known before.
    pub(super) peers: Option<Vec<PeerAddress>>,
    /// What went wrong, for people.
    pub(super) error: Option<String>,
}

impl Round {
    /// The next round.
    ///
    /// A question that fails is answered as it was before. Names that lead to nothing at all are an error, too: in the end
    /// every node would be alone, because a zone was empty for a moment.
    pub(super) async fn next(mut self, sources: &Sources, resolver: Resolver) -> Self {
        let mut remembered = Vec::new();
        let mut errors = Vec::new();
        let mut resolution = Resolution::new(
            sources.template.clone(),
            sources.urls.clone(),
            sources.dns.clone(),
        );
        while let Some(question) = resolution.poll_question() {
            let answer = match timeout(QUESTION, resolver.ask(&question)).await {
                Ok(Ok(answer)) => Some(answer),
                Ok(Err(error)) => {
                    errors.push(error.to_string());
                    self.recall(&question)
                }
                Err(_) => {
                    errors.push(format!("DNS does not answer {question:?} within {QUESTION:?}"));
                    self.recall(&question)
                }
            };
            if let Some(answer) = &answer {
                remembered.push((question.clone(), answer.clone()));
            }
            resolution.answer(answer.unwrap_or_else(|| nothing(&question)));
        }
        let found = resolution.finish();
        let mut peers = found.addresses;
        let is_nothing = peers.is_empty() && !sources.dns.is_empty();
        if is_nothing && errors.is_empty() {
            errors.push(String::from("the names in peers.dns lead to no peer"));
        }
        let own = &sources.own;
        peers.retain(|address| !address.is_own(&own.hosts, own.port, own.host_only));
        let unsupported = peers.len();
        peers.retain(is_supported);
        if unsupported > peers.len() {
            errors.push(String::from(
                "DNS lists peers with https, which this version does not speak",
            ));
        }
        if !found.strange.is_empty() {
            errors.push(format!("DNS lists what is no peer: {:?}", found.strange));
        }
        if found.left_out > 0 {
            errors.push(format!("{} peers too many are left out", found.left_out));
        }
        Self {
            remembered,
            peers: (!is_nothing).then_some(peers),
            error: (!errors.is_empty()).then(|| errors.join("; ")),
        }
    }

    fn recall(&mut self, question: &Question) -> Option<Answer> {
        let position = self.remembered.iter().position(|(asked, _)| asked == question)?;
        Some(self.remembered.swap_remove(position).1)
    }
}

/// The addresses of a peer's host as this system sees them; none if it sees none.
pub(super) async fn locate(host: &str, port: u16) -> Vec<IpAddr> {
    let name = host.trim_start_matches('[').trim_end_matches(']');
    match timeout(LOCATING, lookup_host((name, port))).await {
        Ok(Ok(found)) => found.map(|address| address.ip()).collect(),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

fn is_supported(address: &PeerAddress) -> bool {
    address.scheme == "http"
}

fn nothing(question: &Question) -> Answer {
    match question {
        Question::Addresses(_) => Answer::Addresses(Vec::new()),
        Question::Services(_) => Answer::Services(Vec::new()),
        Question::Texts(_) => Answer::Texts(Vec::new()),
    }
}

impl fmt::Display for SourcesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Https(peer) => write!(
                f,
                "{}: peers are spoken to without TLS in this version: http://, please",
                peer.0
            ),
        }
    }
}

impl std::error::Error for SourcesError {}

#[cfg(test)]
mod tests;
