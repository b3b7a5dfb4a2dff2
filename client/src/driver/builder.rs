//! What a client is to do, and its start.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Instance, Status};
use tokio::runtime::Handle;
use tracing::Instrument;

use super::client::Client;
use super::clock::Clock;
#[cfg(feature = "dns")]
use super::dns::{Resolver, ServerSource};
#[cfg(feature = "grpc")]
use super::grpc::GrpcFeed;
use super::health::{self, Ask, Health};
use super::http::Pool;
#[cfg(feature = "dns")]
use super::lookups::{Lookups, Plan};
use super::publishing::Publishing;
use super::report::{Report, span};
use super::requests::Requests;
use super::shared::Shared;
use super::task::{End, Task};
use crate::agent::{Agent, AgentConfig, Consume, Provide, Regions};
use crate::cache::Publisher;
use crate::cache::copy::DiskCopy;
use crate::call::Scope;
use crate::server::{Server, ServerError};

/// How often a health hook is asked unless its owner says so, and how long it may take.
const HEALTH_WITHIN: Duration = Duration::from_secs(5);
/// How often sources are asked unless it is said; as Java does.
#[cfg(feature = "dns")]
const SOURCE_INTERVAL: Duration = Duration::from_secs(300);

/// What a client is to do. Everything has a default but the servers, and what to do: [`register`](Self::register),
/// [`discover`](Self::discover), or both.
#[must_use]
pub struct Builder {
    servers: Vec<Arc<Server>>,
    problem: Option<BuildError>,
    zone: Option<Arc<str>>,
    instance: Option<Instance>,
    leave_within: Option<Duration>,
    unregister: bool,
    health: Option<(Duration, Ask)>,
    health_within: Duration,
    consume: Option<Consume>,
    pool: Option<Pool>,
    #[cfg(feature = "grpc")]
    grpc: Option<Arc<GrpcFeed>>,
    request_timeout: Option<Duration>,
    seed: Option<u64>,
    disk_copy: Option<PathBuf>,
    #[cfg(feature = "dns")]
    sources: Vec<ServerSource>,
    #[cfg(feature = "dns")]
    source_interval: Duration,
    #[cfg(feature = "dns")]
    resolver: Resolver,
}

/// Why a client did not start. Nothing was sent.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// The URL of a server makes no sense.
    Server(ServerError),
    /// No server was named, nor a source of servers.
    NoServers,
    /// Neither [`Builder::register`] nor [`Builder::discover`] was called.
    NothingToDo,
    /// There is no tokio runtime around.
    NoRuntime,
    /// The instance has nothing in this field, and no server would take it.
    Instance(&'static str),
    /// A server has an `https` URL, and this crate was built without its feature `tls`.
    NoTls,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            servers: Vec::new(),
            problem: None,
            zone: None,
            instance: None,
            leave_within: None,
            unregister: true,
            health: None,
            health_within: HEALTH_WITHIN,
            consume: None,
            pool: None,
            #[cfg(feature = "grpc")]
            grpc: None,
            request_timeout: None,
            seed: None,
            disk_copy: None,
            #[cfg(feature = "dns")]
            sources: Vec::new(),
            #[cfg(feature = "dns")]
            source_interval: SOURCE_INTERVAL,
            #[cfg(feature = "dns")]
            resolver: Resolver::system(),
        }
    }

    /// One more server: `http[s]://[name:password@]host[:port]/eureka/`. A URL that makes no sense is the error of
    /// [`start`](Self::start).
    pub fn server(self, url: &str) -> Self {
        self.parsed(Server::parse(url))
    }

    /// One more server, said to be in a zone: see [`zone`](Self::zone).
    pub fn server_in_zone(self, url: &str, zone: &str) -> Self {
        self.parsed(Server::parse(url).map(|server| server.in_zone(zone)))
    }

    /// More servers. Ten thousand clients in one process share them like this.
    pub fn servers(mut self, servers: impl IntoIterator<Item = Arc<Server>>) -> Self {
        self.servers.extend(servers);
        self
    }

    /// Servers that are named somewhere else, in DNS; there may be several sources, and servers named by their URLs beside
    /// them. The client starts at once, and knows nobody from its sources before they have been asked the first time.
    /// They are asked again each [`source_interval`](Self::source_interval), and sooner while a source or a server fails: after
    /// a second, then twice as long each time. Servers that DNS does not name any more are left; while DNS does not answer,
    /// or knows nothing, those that it named last stay. Where nobody was found, and why, is a warning in the log and counted
    /// in [`Facts::lookups`](super::Facts::lookups).
    #[cfg(feature = "dns")]
    pub fn source(mut self, source: ServerSource) -> Self {
        self.sources.push(source);
        self
    }

    /// How often sources are asked while all is well, or a little sooner; five minutes unless it is said. Less than a
    /// millisecond is one.
    #[cfg(feature = "dns")]
    pub fn source_interval(mut self, interval: Duration) -> Self {
        self.source_interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Whom to ask about sources; what the system is configured for unless it is said.
    #[cfg(feature = "dns")]
    pub fn resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = resolver;
        self
    }

    /// The zone of this client: servers there are asked first.
    pub fn zone(mut self, zone: &str) -> Self {
        self.zone = Some(zone.into());
        self
    }

    /// Registers this instance, keeps it registered, and cancels it at the end. Its lease says how often it renews.
    pub fn register(mut self, instance: Instance) -> Self {
        self.instance = Some(instance);
        self
    }

    /// How long leaving may take in all; 5 s unless it is said.
    pub fn leave_within(mut self, within: Duration) -> Self {
        self.leave_within = Some(within);
        self
    }

    /// Whether the instance is cancelled at the end; it is unless this says `false`, and then its lease runs out.
    pub fn unregister(mut self, unregister: bool) -> Self {
        self.unregister = unregister;
        self
    }

    /// Asks how the instance is, before it registers and then so often. The answer is its status; `None` leaves it as it
    /// is, and so do STARTING and OUT_OF_SERVICE, which the owner has set. The hook runs as a task of its own, one at a time.
    /// If it panics, or takes longer than [`health_within`](Self::health_within), the instance is DOWN.
    pub fn health<F, A>(mut self, interval: Duration, hook: F) -> Self
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Option<Status>> + Send + 'static,
    {
        self.health = Some((interval, health::ask(hook)));
        self
    }

    /// How long a health hook may take; 5 s unless it is said.
    pub fn health_within(mut self, within: Duration) -> Self {
        self.health_within = within;
        self
    }

    /// Keeps a copy of the registry: see [`Client::cache`].
    pub fn discover(mut self) -> Self {
        self.consume.get_or_insert_default();
        self
    }

    /// Discovers, but a part of the registry only.
    pub fn scope(self, scope: Scope) -> Self {
        self.consuming(|consume| consume.scope = scope)
    }

    /// Discovers, and says of which regions.
    pub fn regions(self, regions: Regions) -> Self {
        self.consuming(|consume| consume.regions = regions)
    }

    /// Discovers, and says how often servers without a change feed are asked; 30 s unless it is said.
    pub fn fetch_interval(self, interval: Duration) -> Self {
        self.consuming(|consume| consume.interval = interval)
    }

    /// Discovers, and says whether changes are followed as they happen where the server can tell them. They are, unless this
    /// says `false`: then every server is polled.
    pub fn feed(self, feed: bool) -> Self {
        self.consuming(|consume| consume.feed = feed)
    }

    /// Discovers, and keeps a copy of what is known in this file, for a start when no server can be reached. A file that is
    /// no copy, or not this client's, is not used; the next copy replaces it.
    pub fn disk_copy(mut self, path: impl Into<PathBuf>) -> Self {
        self.disk_copy = Some(path.into());
        self.discover()
    }

    /// The connections to use. Clients that are given clones of one pool share them; a client that is given none has its
    /// own.
    pub fn pool(mut self, pool: Pool) -> Self {
        self.pool = Some(pool);
        self
    }

    /// Takes changes over gRPC from the servers whose address this knows, and everything else, and everything if gRPC
    /// fails, over REST.
    #[cfg(feature = "grpc")]
    pub fn grpc(mut self, feed: GrpcFeed) -> Self {
        self.grpc = Some(Arc::new(feed));
        self
    }

    /// For a request from its beginning to the last byte of its answer; 5 s unless it is said.
    pub fn request_timeout(mut self, within: Duration) -> Self {
        self.request_timeout = Some(within);
        self
    }

    /// The seed of all randomness: which server is taken, and by how much times differ from each other. Drawn from the
    /// operating system unless it is given.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Starts the client as a task of the runtime around. Nothing has been sent when this returns: see
    /// [`RegistrationHandle::wait_registered`](super::RegistrationHandle::wait_registered) and
    /// [`Cache::ready`](crate::cache::Cache::ready).
    pub fn start(self) -> Result<Client, BuildError> {
        let runtime = Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        self.check()?;
        let span = span(self.instance.as_ref());
        let clock = Clock::start();
        let copy = self
            .disk_copy
            .zip(self.consume.as_ref())
            .map(|(path, consume)| Arc::new(DiskCopy::new(path, &consume.scope, &consume.regions.query())));
        let discovers = self.consume.is_some();

        let seed = self.seed.unwrap_or_else(draw);
        #[cfg(feature = "dns")]
        let plan = Plan {
            given: self.servers.clone(),
            sources: self.sources,
            resolver: self.resolver,
            interval: self.source_interval,
            seed,
        };
        let mut config = AgentConfig::new().seed(seed);
        config.endpoints.zone = self.zone;
        config.request_timeout = self.request_timeout.unwrap_or(config.request_timeout);
        config.consume = self.consume;
        config.provide = self.instance.map(|instance| {
            let mut provide = Provide::new(instance);
            provide.leave_within = self.leave_within.unwrap_or(provide.leave_within);
            provide.unregister = self.unregister;
            provide.health_interval = self.health.as_ref().map(|(interval, _)| *interval);
            provide
        });
        let agent = Agent::new(clock.now(), config, self.servers);
        let shared = Arc::new(Shared::new(clock, agent));
        let (cache, publishing) = if discovers {
            let publisher = Publisher::new(move || clock.now());
            let cache = publisher.cache();
            (
                Some(cache),
                Some(Publishing::start(Arc::clone(&shared), publisher, copy)),
            )
        } else {
            (None, None)
        };
        let task = Task {
            shared: Arc::clone(&shared),
            pool: self.pool.unwrap_or_default(),
            #[cfg(feature = "grpc")]
            grpc: self.grpc,
            requests: Requests::default(),
            report: Report::default(),
            publishing,
            health: self.health.map(|(_, ask)| Health::new(ask, self.health_within)),
            #[cfg(feature = "dns")]
            lookups: (!plan.sources.is_empty())
                .then(|| Lookups::start(Arc::clone(&shared), plan, span.clone())),
            end: End(Arc::clone(&shared)),
        };
        let task = task.run().instrument(span);
        Ok(Client::new(shared, cache, runtime.spawn(task)))
    }

    /// Whether what it was told can work.
    fn check(&self) -> Result<(), BuildError> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        if self.servers.is_empty() && !self.has_sources() {
            return Err(BuildError::NoServers);
        }
        if self.instance.is_none() && self.consume.is_none() {
            return Err(BuildError::NothingToDo);
        }
        if let Some(field) = self.instance.as_ref().and_then(empty_field) {
            return Err(BuildError::Instance(field));
        }
        if cfg!(not(feature = "tls")) && self.servers.iter().any(|server| server.is_secure()) {
            return Err(BuildError::NoTls);
        }
        Ok(())
    }

    #[cfg(feature = "dns")]
    fn has_sources(&self) -> bool {
        !self.sources.is_empty()
    }

    #[cfg(not(feature = "dns"))]
    fn has_sources(&self) -> bool {
        false
    }

    fn parsed(mut self, server: Result<Server, ServerError>) -> Self {
        match server {
            Ok(server) => self.servers.push(Arc::new(server)),
            Err(error) => {
                // The first mistake is the one to be told.
                self.problem.get_or_insert(BuildError::Server(error));
            }
        }
        self
    }

    fn consuming(mut self, change: impl FnOnce(&mut Consume)) -> Self {
        change(self.consume.get_or_insert_default());
        self
    }
}

/// What servers, Java's too, refuse an instance without. (An empty id is none: the host name is its id then.)
fn empty_field(instance: &Instance) -> Option<&'static str> {
    let needed = [
        ("app", &instance.app),
        ("host_name", &instance.host_name),
        ("ip_address", &instance.ip_address),
    ];
    let mut empty = needed.into_iter().filter(|(_, text)| text.is_empty());
    empty.next().map(|(field, _)| field)
}

/// From the operating system, by way of the keys that every map is given.
fn draw() -> u64 {
    RandomState::new().hash_one(())
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("servers", &self.servers)
            .field("registers", &self.instance.as_ref().map(Instance::key))
            .field("discovers", &self.consume)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => error.fmt(f),
            Self::NoServers => f.write_str("the client was told of no server: see Builder::server"),
            Self::NothingToDo => {
                f.write_str("the client has nothing to do: see Builder::register and Builder::discover")
            }
            Self::NoRuntime => {
                f.write_str("a client has to be started inside a tokio runtime, and there is none here")
            }
            Self::Instance(field) => write!(f, "the instance to register has an empty {field}"),
            Self::NoTls => f.write_str("https needs the feature `tls` of eureka-client"),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Server(error) => Some(error),
            Self::NoServers | Self::NothingToDo | Self::NoRuntime | Self::Instance(_) | Self::NoTls => None,
        }
    }
}
