//! From names to addresses of peers: what to ask DNS, and what its answers mean. Whoever owns it does the asking.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::net::IpAddr;

use crate::address::{AddressError, DEFAULT_PATH, PeerAddress, checked_host, split_port};

/// At most this many peers; what is more is left out and counted.
pub const PEERS_MAX: usize = 1_000;
/// At most this many zones of one region.
const ZONES_MAX: usize = 100;

/// An entry of `peers.dns`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DnsSource {
    /// `name:port`: every address of the name is a peer, as of a headless service.
    Addresses {
        /// Whose addresses.
        name: String,
        /// On which they listen.
        port: u16,
    },
    /// `srv:name`: its targets with their ports.
    Services {
        /// Usually `_eureka._tcp.<domain>`.
        name: String,
    },
    /// `txt:name`: Eureka's scheme. The text of `txt.<region>.<domain>` lists zones, `<zone>.<domain>`, and the text of
    /// `txt.<zone>.<domain>` lists host names or whole URLs.
    Zones {
        /// Usually `txt.<region>.<domain>`.
        name: String,
    },
}

/// Why an entry of `peers.dns` is none.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SourceError {
    /// Neither `name:port` nor `srv:name` nor `txt:name`.
    Form,
    /// It is no name.
    Name,
    /// The port is no number from 1 to 65,535, or there is none.
    Port,
}

/// What to ask DNS.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Question {
    /// The A and AAAA records of this name.
    Addresses(String),
    /// Its SRV records.
    Services(String),
    /// Its TXT records.
    Texts(String),
}

/// What DNS answers to the [`Question`] of the same kind. A name that does not exist has an empty answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answer {
    /// Addresses.
    Addresses(Vec<IpAddr>),
    /// Targets and their ports.
    Services(Vec<(String, u16)>),
    /// Texts, each with its parts joined.
    Texts(Vec<String>),
}

/// How the URL of a peer is made from a host name or an address.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Template {
    /// `http` or `https`.
    pub scheme: String,
    /// Of hosts that are listed without one.
    pub port: u16,
    /// Without a slash at the end.
    pub path: String,
}

/// One round of questions, for all entries of `peers.urls` and `peers.dns`.
///
/// ```
/// use eureka_replication::resolve::{Answer, DnsSource, Question, Resolution, Template};
///
/// let source = DnsSource::parse("txt:txt.north.example.com").expect("Eureka's scheme");
/// let mut resolution = Resolution::new(Template::default(), Vec::new(), vec![source]);
/// while let Some(question) = resolution.poll_question() {
///     // Here somebody asks DNS.
///     let texts = match question {
///         Question::Texts(name) if name == "txt.north.example.com" => vec!["north-1.example.com".into()],
///         Question::Texts(name) if name == "txt.north-1.example.com" => vec!["host-1.example.com host-2.example.com".into()],
///         _ => Vec::new(),
///     };
///     resolution.answer(Answer::Texts(texts));
/// }
/// let peers = resolution.finish();
/// assert_eq!(&*peers.addresses[1].id().0, "http://host-2.example.com:8761/eureka");
/// ```
#[derive(Debug)]
pub struct Resolution {
    template: Template,
    questions: VecDeque<(Question, Meaning)>,
    asked: Option<Meaning>,
    found: Resolved,
    known: BTreeSet<String>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Resolved {
    /// Listed URLs in their order, then what DNS said, entry by entry and sorted within an answer. Each once.
    pub addresses: Vec<PeerAddress>,
    /// Left out: there were more than [`PEERS_MAX`].
    pub left_out: usize,
    /// Parts of answers that name no peer, at most ten of them.
    pub strange: Vec<String>,
}

/// What the answer to a question is for.
#[derive(Clone, Debug)]
enum Meaning {
    /// Addresses of peers that listen on this port.
    Addresses(u16),
    Services,
    /// The zones of a region.
    Region,
    /// The hosts of a zone.
    Zone,
}

impl DnsSource {
    /// Reads `name:port`, `srv:name` or `txt:name`.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let (head, tail) = text.trim().split_once(':').ok_or(SourceError::Form)?;
        match head {
            "srv" => Ok(Self::Services { name: name(tail)? }),
            "txt" => Ok(Self::Zones { name: name(tail)? }),
            _ => match split_port(text.trim()) {
                Ok((host, Some(port))) => Ok(Self::Addresses {
                    name: name(host)?,
                    port,
                }),
                Ok((_, None)) | Err(_) => Err(SourceError::Port),
            },
        }
    }
}

impl Resolution {
    /// Begins with the listed URLs; for the rest there is something to ask.
    pub fn new(template: Template, urls: Vec<PeerAddress>, sources: Vec<DnsSource>) -> Self {
        let mut resolution = Self {
            template,
            questions: VecDeque::new(),
            asked: None,
            found: Resolved::default(),
            known: BTreeSet::new(),
        };
        for address in urls {
            resolution.add(address);
        }
        for source in sources {
            resolution.questions.push_back(match source {
                DnsSource::Addresses { name, port } => (Question::Addresses(name), Meaning::Addresses(port)),
                DnsSource::Services { name } => (Question::Services(name), Meaning::Services),
                DnsSource::Zones { name } => (Question::Texts(name), Meaning::Region),
            });
        }
        resolution
    }

    /// The next thing to ask. The same again if the last was not answered.
    pub fn poll_question(&mut self) -> Option<Question> {
        let (question, meaning) = self.questions.front()?;
        self.asked = Some(meaning.clone());
        Some(question.clone())
    }

    /// The answer to the last question. One of another kind counts as empty.
    pub fn answer(&mut self, answer: Answer) {
        let Some(meaning) = self.asked.take() else { return };
        self.questions.pop_front();
        match (meaning, answer) {
            (Meaning::Addresses(port), Answer::Addresses(addresses)) => self.take_addresses(addresses, port),
            (Meaning::Services, Answer::Services(mut services)) => {
                services.sort();
                for (target, port) in services {
                    self.add_host(&target, port);
                }
            }
            (Meaning::Region, Answer::Texts(texts)) => {
                let zones: BTreeSet<_> = words(&texts).take(ZONES_MAX).collect();
                // Before the other sources, so that the order is that of the entries.
                for zone in zones.into_iter().rev() {
                    match name(zone) {
                        Ok(zone) => {
                            let question = Question::Texts(format!("txt.{zone}"));
                            self.questions.push_front((question, Meaning::Zone));
                        }
                        Err(_) => self.strange(zone),
                    }
                }
            }
            (Meaning::Zone, Answer::Texts(texts)) => {
                let hosts: BTreeSet<_> = words(&texts).collect();
                for host in hosts {
                    self.take_host(host);
                }
            }
            (_, Answer::Addresses(_) | Answer::Services(_) | Answer::Texts(_)) => {}
        }
    }

    /// What was found so far; everything once [`poll_question`](Self::poll_question) has nothing more to ask.
    pub fn finish(self) -> Resolved {
        self.found
    }

    /// A name that has addresses of both kinds usually has two of each host: then those of IPv4 will do.
    fn take_addresses(&mut self, mut addresses: Vec<IpAddr>, port: u16) {
        addresses.sort();
        let only_v4 = addresses.iter().any(IpAddr::is_ipv4);
        for address in addresses {
            match address {
                IpAddr::V4(address) => self.add_host(&address.to_string(), port),
                IpAddr::V6(address) if !only_v4 => self.add_host(&format!("[{address}]"), port),
                IpAddr::V6(_) => {}
            }
        }
    }

    /// `http://host:port/path`, `host` or `host:port`.
    fn take_host(&mut self, text: &str) {
        if text.contains("://") {
            match PeerAddress::parse(text) {
                Ok(address) => self.add(address),
                // It may have a password.
                Err(_) => self.strange("a URL"),
            }
            return;
        }
        match split_port(text) {
            Ok((host, port)) => self.add_host(host, port.unwrap_or(self.template.port)),
            Err(_) => self.strange(text),
        }
    }

    fn add_host(&mut self, host: &str, port: u16) {
        match checked_host(host.trim_end_matches('.')) {
            Ok(host) if port != 0 => self.add(PeerAddress {
                scheme: self.template.scheme.clone(),
                credentials: None,
                host,
                port,
                path: self.template.path.clone(),
            }),
            Ok(_) | Err(_) => self.strange(host),
        }
    }

    fn add(&mut self, address: PeerAddress) {
        let id = String::from(&*address.id().0);
        if self.known.contains(&id) {
            return;
        }
        if self.known.len() == PEERS_MAX {
            self.found.left_out += 1;
            return;
        }
        self.known.insert(id);
        self.found.addresses.push(address);
    }

    fn strange(&mut self, text: &str) {
        if self.found.strange.len() < 10 {
            self.found.strange.push(text.chars().take(100).collect());
        }
    }
}

impl Default for Template {
    fn default() -> Self {
        Self {
            scheme: String::from("http"),
            port: 8761,
            path: String::from(DEFAULT_PATH),
        }
    }
}

fn words(texts: &[String]) -> impl Iterator<Item = &str> {
    texts.iter().flat_map(|text| text.split_ascii_whitespace())
}

/// A name DNS can be asked for, without the dot at its end.
fn name(text: &str) -> Result<String, SourceError> {
    match checked_host(text.trim_end_matches('.')) {
        Ok(name) if !name.starts_with('[') => Ok(name),
        Ok(_) | Err(AddressError::Host) | Err(_) => Err(SourceError::Name),
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Form => "an entry of peers.dns is name:port, srv:name or txt:name",
            Self::Name => "an entry of peers.dns has a name that DNS can be asked for",
            Self::Port => "an entry name:port of peers.dns has a port from 1 to 65535",
        })
    }
}

impl std::error::Error for SourceError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Answer {
        Answer::Texts(texts.iter().map(|text| String::from(*text)).collect())
    }

    fn ids(resolution: Resolution) -> Vec<String> {
        let found = resolution.finish();
        found
            .addresses
            .iter()
            .map(|address| String::from(&*address.id().0))
            .collect()
    }

    fn resolution(sources: &[&str]) -> Resolution {
        let sources = sources
            .iter()
            .map(|text| DnsSource::parse(text).expect("an entry"))
            .collect();
        let urls = vec![PeerAddress::parse("http://z:1/eureka").expect("a URL")];
        Resolution::new(Template::default(), urls, sources)
    }

    #[test]
    fn entries() {
        let addresses = DnsSource::Addresses {
            name: String::from("eureka.svc"),
            port: 8761,
        };
        assert_eq!(DnsSource::parse("Eureka.svc.:8761"), Ok(addresses));
        let services = DnsSource::Services {
            name: String::from("_eureka._tcp.a"),
        };
        assert_eq!(DnsSource::parse("srv:_eureka._tcp.a"), Ok(services));
        for (text, error) in [
            ("eureka", SourceError::Form),
            ("eureka:", SourceError::Port),
            ("eureka:x", SourceError::Port),
            ("eureka:0", SourceError::Port),
            ("srv:", SourceError::Name),
            ("txt:a b", SourceError::Name),
            (":80", SourceError::Name),
        ] {
            assert_eq!(DnsSource::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn addresses_of_a_headless_service() {
        let mut resolution = resolution(&["eureka:8761"]);
        assert_eq!(
            resolution.poll_question(),
            Some(Question::Addresses(String::from("eureka")))
        );
        let address = |text: &str| text.parse().expect("an address");
        let both = vec![
            address("10.0.0.2"),
            address("fd00::1"),
            address("10.0.0.1"),
            address("10.0.0.2"),
        ];
        resolution.answer(Answer::Addresses(both));
        assert_eq!(resolution.poll_question(), None);
        let expected = [
            "http://z:1/eureka",
            "http://10.0.0.1:8761/eureka",
            "http://10.0.0.2:8761/eureka",
        ];
        assert_eq!(ids(resolution), expected, "sorted, each once, one family");
    }

    #[test]
    fn addresses_of_ipv6_alone() {
        let mut resolution = resolution(&["eureka:8761"]);
        assert!(resolution.poll_question().is_some());
        resolution.answer(Answer::Addresses(vec!["fd00::1".parse().expect("an address")]));
        assert_eq!(ids(resolution)[1], "http://[fd00::1]:8761/eureka");
    }

    #[test]
    fn targets_with_their_ports() {
        let mut resolution = resolution(&["srv:_eureka._tcp.a"]);
        assert_eq!(
            resolution.poll_question(),
            Some(Question::Services(String::from("_eureka._tcp.a")))
        );
        let services = [("b.a.", 2), ("a.a.", 1), ("c.a", 0)];
        resolution.answer(Answer::Services(
            services
                .map(|(target, port)| (String::from(target), port))
                .to_vec(),
        ));
        assert_eq!(resolution.found.strange, ["c.a"], "port 0 is none");
        assert_eq!(
            ids(resolution)[1..],
            ["http://a.a:1/eureka", "http://b.a:2/eureka"]
        );
    }

    #[test]
    fn zones_and_their_hosts_in_the_place_of_the_entry() {
        let mut resolution = resolution(&["txt:txt.north.example", "later:1"]);
        assert_eq!(
            resolution.poll_question(),
            Some(Question::Texts(String::from("txt.north.example")))
        );
        resolution.answer(texts(&["b.example a.example", "!"]));
        assert_eq!(
            resolution.poll_question(),
            Some(Question::Texts(String::from("txt.a.example")))
        );
        resolution.answer(texts(&["http://user:secret@two:7001/v2/ one", "one one:9"]));
        assert_eq!(
            resolution.poll_question(),
            Some(Question::Texts(String::from("txt.b.example")))
        );
        resolution.answer(Answer::Addresses(Vec::new()));
        assert_eq!(
            resolution.poll_question(),
            Some(Question::Addresses(String::from("later")))
        );
        assert_eq!(resolution.found.strange, ["!"]);
        let credentials = resolution.found.addresses[1].credentials.clone();
        assert_eq!(credentials, Some((String::from("user"), String::from("secret"))));
        let expected = [
            "http://two:7001/v2",
            "http://one:8761/eureka",
            "http://one:9/eureka",
        ];
        assert_eq!(ids(resolution)[1..], expected);
    }

    #[test]
    fn what_names_no_peer_is_kept_without_passwords_and_bounded() {
        let mut resolution = resolution(&["txt:txt.north.example"]);
        assert!(resolution.poll_question().is_some());
        resolution.answer(texts(&["zone"]));
        assert!(resolution.poll_question().is_some());
        resolution.answer(texts(&[
            "ftp://user:secret@a",
            "0: 1: 2: 3: 4: 5: 6: 7: 8: 9: a:",
        ]));
        let strange = resolution.finish().strange;
        assert_eq!(strange.len(), 10);
        assert!(!strange.concat().contains("secret"), "{strange:?}");
    }

    #[test]
    fn no_more_than_a_thousand() {
        let mut resolution = resolution(&["eureka:1"]);
        assert!(resolution.poll_question().is_some());
        let addresses = (0..1_005_u32).map(|n| IpAddr::V4(n.into())).collect();
        resolution.answer(Answer::Addresses(addresses));
        let found = resolution.finish();
        assert_eq!((found.addresses.len(), found.left_out), (PEERS_MAX, 6));
    }
}
