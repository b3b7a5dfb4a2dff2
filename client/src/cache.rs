//! What a consumer knows of a registry: an immutable [`View`], replaced as a whole by whoever reads the servers.
//!
//! ```
//! use std::sync::Arc;
//! use eureka_client::cache::View;
//! use eureka_client::Server;
//! use eureka_registry_core::wire::{Format, read_applications};
//! use eureka_registry_core::{Mirror, Now};
//!
//! let list = br#"{"applications":{"application":[{"name":"ORDERS","instance":[{"app":"ORDERS","hostName":"h1",
//!     "ipAddr":"10.0.0.1","status":"UP","vipAddress":"orders","dataCenterInfo":{"name":"MyOwn"}}]}]}}"#;
//! let mut mirror = Mirror::new();
//! for view in read_applications(Format::Json, list)?.instances {
//!     mirror.put(view);
//! }
//! let server = Arc::new(Server::parse("http://localhost:8761/eureka/")?);
//! let view = View::of_server(Now::default(), mirror.snapshot(), server);
//! assert_eq!(view.application("orders").up().count(), 1);
//! assert_eq!(view.vip("ORDERS")[0].instance.host_name.as_ref(), "h1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Application, InstanceKey, LeaseView, Mirror, Now, Snapshot, Status, Wall};

use crate::server::Server;

#[cfg(feature = "http")]
pub mod copy;
#[cfg(feature = "http")]
mod listeners;
#[cfg(feature = "http")]
mod live;
#[cfg(feature = "http")]
mod watch;

#[cfg(feature = "http")]
pub use listeners::ListenerGuard;
#[cfg(feature = "http")]
pub use live::{Cache, Publisher};
#[cfg(feature = "http")]
pub use watch::{Update, Watch};

/// A registry as it was known at one moment, and where that knowledge is from. Never changes; what is newer is another
/// view.
///
/// Look-ups give instances of every status; [`Instances::up`] keeps those that take traffic. Applications are found in any
/// case, as by Java's client; instance ids are case-sensitive.
#[derive(Clone, Debug)]
pub struct View {
    snapshot: Snapshot,
    origin: Origin,
    confirmed: Option<Now>,
}

/// Where a view is from.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Origin {
    /// From nowhere: nothing has been read yet, and the view is empty for that reason alone.
    #[default]
    Nothing,
    /// From the copy on disk: no server has answered since the start.
    Disk {
        /// When a server last confirmed what is in the copy, by the wall clock of then.
        saved: Wall,
    },
    /// From this server.
    Server(Arc<Server>),
}

/// What a look-up found, in the order of the keys; empty if nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Instances(Vec<Arc<LeaseView>>);

impl View {
    /// Before anything was read.
    pub fn nothing() -> Self {
        Self {
            snapshot: Mirror::new().snapshot(),
            origin: Origin::Nothing,
            confirmed: None,
        }
    }

    /// What a copy on disk held.
    pub fn of_disk(saved: Wall, snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            origin: Origin::Disk { saved },
            confirmed: None,
        }
    }

    /// What a server told, `now` being when it did.
    pub fn of_server(now: Now, snapshot: Snapshot, server: Arc<Server>) -> Self {
        Self {
            snapshot,
            origin: Origin::Server(server),
            confirmed: Some(now),
        }
    }

    /// The instances of an application, its name in any case.
    pub fn application(&self, name: &str) -> Instances {
        let found = self.snapshot.application(&upper(name));
        Instances(found.map_or_else(Vec::new, |found| found.instances().cloned().collect()))
    }

    /// The instances of which one element of `vipAddress` is this: as it is written here, all in upper case, or all in
    /// lower case; if there is none, in any case.
    pub fn vip(&self, vip: &str) -> Instances {
        self.addressed(vip, Snapshot::by_vip, |view| view.instance.vip_address.as_deref())
    }

    /// The same for `secureVipAddress`.
    pub fn secure_vip(&self, vip: &str) -> Instances {
        self.addressed(vip, Snapshot::by_secure_vip, |view| {
            view.instance.secure_vip_address.as_deref()
        })
    }

    /// One instance.
    pub fn instance(&self, app: &str, id: &str) -> Option<Arc<LeaseView>> {
        self.snapshot.instance(&InstanceKey::new(app, id)).cloned()
    }

    /// The instances with this id; more than one application may have one.
    pub fn by_id(&self, id: &str) -> Instances {
        Instances(self.snapshot.by_id(id))
    }

    /// The instances whose metadata has exactly this value under exactly this key. Looks at all of them.
    pub fn with_metadata(&self, key: &str, value: &str) -> Instances {
        let all = self.snapshot.instances();
        let found = all.filter(|view| view.instance.metadata.get(key) == Some(value));
        Instances(found.cloned().collect())
    }

    /// The applications, by name; each has at least one instance.
    pub fn applications(&self) -> impl Iterator<Item = Application<'_>> {
        self.snapshot.applications()
    }

    /// Everything, for whatever else somebody wants to look for.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Where it is from.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// When a server last said that it is so; `None` if none did since the start.
    pub fn confirmed(&self) -> Option<Now> {
        self.confirmed
    }

    /// How old it is: the time since a server last said that it is so. For a copy on disk that is by the wall clock, and
    /// zero if that was set back since. `None` if there is nothing.
    pub fn age(&self, now: Now) -> Option<Duration> {
        match (&self.origin, self.confirmed) {
            (Origin::Nothing, _) => None,
            (_, Some(confirmed)) => Some(now.mono.since(confirmed.mono)),
            (Origin::Disk { saved }, None) => Some(Duration::from_millis(now.wall.0.saturating_sub(saved.0))),
            (Origin::Server(_), None) => None,
        }
    }

    fn addressed(
        &self,
        address: &str,
        exact: fn(&Snapshot, &str) -> Vec<Arc<LeaseView>>,
        of: fn(&LeaseView) -> Option<&str>,
    ) -> Instances {
        let mut found = exact(&self.snapshot, address);
        for spelled in [address.to_uppercase(), address.to_lowercase()] {
            if spelled != address {
                found.extend(exact(&self.snapshot, &spelled));
            }
        }
        if found.is_empty() {
            let wanted = address.to_uppercase();
            let all = self.snapshot.instances();
            let same = |view: &Arc<LeaseView>| {
                let mut elements = of(view).into_iter().flat_map(|listed| listed.split(','));
                elements.any(|element| upper(element) == wanted)
            };
            return Instances(all.filter(|view| same(view)).cloned().collect());
        }
        found.sort_by(|one, other| order(one, other));
        found.dedup_by(|one, other| order(one, other).is_eq());
        Instances(found)
    }
}

impl Default for View {
    fn default() -> Self {
        Self::nothing()
    }
}

impl Instances {
    /// Those that take traffic: status UP.
    pub fn up(&self) -> impl Iterator<Item = &Arc<LeaseView>> {
        self.0.iter().filter(|view| view.instance.status == Status::Up)
    }
}

impl Deref for Instances {
    type Target = [Arc<LeaseView>];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl IntoIterator for Instances {
    type Item = Arc<LeaseView>;
    type IntoIter = std::vec::IntoIter<Arc<LeaseView>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Instances {
    type Item = &'a Arc<LeaseView>;
    type IntoIter = std::slice::Iter<'a, Arc<LeaseView>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing has been read yet"),
            Self::Disk { saved } => write!(f, "the copy on disk, saved at {} ms", saved.0),
            Self::Server(server) => write!(f, "{server}"),
        }
    }
}

/// By application, then by id.
fn order(one: &LeaseView, other: &LeaseView) -> std::cmp::Ordering {
    let (one, other) = (&one.instance, &other.instance);
    one.app.cmp(&other.app).then_with(|| one.id().cmp(other.id()))
}

/// Upper case as Java's `toUpperCase(Locale.ROOT)` gives it; nothing is copied if it is that already.
fn upper(text: &str) -> Cow<'_, str> {
    if text
        .bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_lowercase())
    {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.to_uppercase())
    }
}
