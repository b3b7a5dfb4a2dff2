//! Other regions: what this node knows of their registries, and how readers are shown it beside the node's own.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{InstanceKey, LeaseView, Mono, Now, Snapshot};
use parking_lot::Mutex;

mod merged;
mod region;

use self::region::Region;
use crate::encoder::Encoder;

pub(crate) use self::merged::Merged;

/// Merged lists that are kept up to date at once: one for readers who name no region, the others for the sets of regions
/// that were asked for last.
const MAX_MERGED: usize = 8;

/// The regions beside the node's own. Whoever reads them publishes what they hold; lists show it. Cheap to clone.
///
/// Nothing here is a lease: an instance of another region is shown, and can be neither renewed nor changed, is not told to
/// peers, and is not in the change feed.
///
/// ```
/// use std::time::Duration;
///
/// use eureka_http_api::{RegionRules, RemoteRegion, RemoteRegions};
/// use eureka_registry_core::wire::{Format, read_applications};
/// use eureka_registry_core::{Mirror, Now};
///
/// let regions = RemoteRegions::new([RemoteRegion::new("west")], RegionRules::default())?;
/// let list = br#"{"applications":{"application":[{"name":"ORDERS","instance":[{"app":"ORDERS","hostName":"h1",
///     "ipAddr":"10.0.0.1","status":"UP","dataCenterInfo":{"name":"MyOwn"}}]}]}}"#;
/// let mut west = Mirror::new();
/// for view in read_applications(Format::Json, list)?.instances {
///     west.put(view);
/// }
/// regions.publish(Now::default(), "west", &west.snapshot(), "http://10.1.0.1:8761/eureka/");
/// assert_eq!(regions.facts()[0].instances, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RemoteRegions(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// By name.
    regions: Vec<Region>,
    rules: RegionRules,
    /// The last one was asked for last.
    merged: Mutex<Vec<Arc<Merged>>>,
}

/// A region as it is configured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RemoteRegion {
    /// Its name in `regions=`; case does not matter.
    pub name: Arc<str>,
    /// The applications that are taken from it; all of them for `None`.
    pub applications: Option<BTreeSet<Arc<str>>>,
}

/// How regions are shown.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RegionRules {
    /// Whether readers who name no region are shown all of them: Java's transparent fallback.
    pub fallback: bool,
    /// How long after the start readers who name a region that has not been read yet are refused; afterwards they are
    /// shown the rest. `None`: for ever, as in Java.
    pub wait: Option<Duration>,
    /// Whether naming any region refuses while one of all the configured is not read, as in Java.
    pub wait_for_all: bool,
    /// How long changes stay in the delta.
    pub delta_retention: Duration,
}

/// Why the configuration of regions makes no sense.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum RegionsError {
    /// A name is blank, or has a comma in it.
    Name(Arc<str>),
    /// A name is there twice.
    Twice(Arc<str>),
    /// There are more than can be.
    TooMany {
        /// How many there can be.
        limit: usize,
    },
}

/// What is known of a region.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RegionFacts {
    /// Its name, in lower case.
    pub name: Arc<str>,
    /// When it was read last, with success; `None` if never.
    pub read: Option<Now>,
    /// The server that was read then.
    pub server: Option<Arc<str>>,
    /// Instances that are shown of it, its own list of applications considered.
    pub instances: usize,
    /// Applications of those.
    pub applications: usize,
    /// Attempts to read it that succeeded.
    pub successes: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Why the last attempt failed, if it did.
    pub error: Option<Arc<str>>,
}

/// Some of the regions, as bits in the order of their names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Set(u32);

/// A region that a reader named has not been read yet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NotRead;

impl RemoteRegion {
    /// All applications of a region.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            applications: None,
        }
    }
}

impl Default for RegionRules {
    /// Fallback; a region that cannot be read refuses nobody for more than a minute; changes for three minutes.
    fn default() -> Self {
        Self {
            fallback: true,
            wait: Some(Duration::from_secs(60)),
            wait_for_all: false,
            delta_retention: Duration::from_secs(180),
        }
    }
}

impl RemoteRegions {
    /// Regions that can be configured at most.
    pub const MAX: usize = 16;

    /// These regions, of which nothing is known yet.
    pub fn new(
        regions: impl IntoIterator<Item = RemoteRegion>,
        rules: RegionRules,
    ) -> Result<Self, RegionsError> {
        let mut regions: Vec<RemoteRegion> = regions.into_iter().collect();
        for region in &mut regions {
            if region.name.trim().is_empty() || region.name.contains(',') {
                return Err(RegionsError::Name(Arc::clone(&region.name)));
            }
            region.name = region.name.to_lowercase().into();
        }
        regions.sort_by(|one, other| one.name.cmp(&other.name));
        if let Some(pair) = regions.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(RegionsError::Twice(Arc::clone(&pair[0].name)));
        }
        if regions.len() > Self::MAX {
            return Err(RegionsError::TooMany { limit: Self::MAX });
        }
        Ok(Self(Arc::new(Inner {
            regions: regions.into_iter().map(Region::new).collect(),
            rules,
            merged: Mutex::default(),
        })))
    }

    /// Takes what a region holds now, as `server` said. The cost goes with what changed since it was published before.
    pub fn publish(&self, now: Now, region: &str, snapshot: &Snapshot, server: &str) {
        if let Some(region) = self.region(region) {
            region.publish(now, snapshot, server, self.0.rules.delta_retention);
        }
    }

    /// Notes that a region holds what it held when it was published, as `server` said.
    pub fn confirm(&self, now: Now, region: &str, server: &str) {
        if let Some(region) = self.region(region) {
            region.confirm(now, server);
        }
    }

    /// Notes that a region could not be read. What is known of it stays.
    pub fn failed(&self, region: &str, why: &str) {
        if let Some(region) = self.region(region) {
            region.failed(why);
        }
    }

    /// What is known of each, by name.
    pub fn facts(&self) -> Vec<RegionFacts> {
        self.0.regions.iter().map(Region::facts).collect()
    }

    /// How they are shown.
    pub fn rules(&self) -> &RegionRules {
        &self.0.rules
    }

    /// All of them where readers who name none are shown the others, too, else none.
    pub(crate) fn fallback(&self) -> Set {
        let all = (1 << self.0.regions.len()) - 1;
        Set(if self.0.rules.fallback { all } else { 0 })
    }

    /// Those that `regions=` names, in any order and any case; unknown ones are ignored, as in Java.
    pub(crate) fn named(&self, now: Mono, names: &str) -> Result<Set, NotRead> {
        let names = names.to_lowercase();
        let mut set = Set::NONE;
        for name in names.split(',') {
            let known = self.0.regions.iter().position(|region| region.name() == name);
            set.0 |= known.map_or(0, |position| 1 << position);
        }
        let rules = &self.0.rules;
        let waited = rules
            .wait
            .is_some_and(|wait| u128::from(now.0) >= wait.as_millis());
        let needed = |position: usize| rules.wait_for_all || set.has(position);
        let missing = |(position, region): (usize, &Region)| needed(position) && !region.is_read();
        if !waited && self.0.regions.iter().enumerate().any(missing) {
            return Err(NotRead);
        }
        Ok(set)
    }

    /// The lists of the node and these regions together; `None` for no regions.
    pub(crate) fn merged(&self, set: Set, encoder: &Arc<Encoder>) -> Option<Arc<Merged>> {
        if set == Set::NONE {
            return None;
        }
        let mut kept = self.0.merged.lock();
        let known = kept.iter().position(|merged| merged.set() == set);
        let merged = match known {
            Some(position) => kept.remove(position),
            None => Arc::new(Merged::new(set, encoder)),
        };
        kept.push(Arc::clone(&merged));
        let dropped = (kept.len() > MAX_MERGED).then(|| kept.remove(0));
        drop(kept);
        // Perhaps much: not under the lock.
        drop(dropped);
        Some(merged)
    }

    /// An instance of another region; of several that have it the first by name.
    pub(crate) fn find(&self, key: &InstanceKey) -> Option<Arc<LeaseView>> {
        let mut regions = self.0.regions.iter();
        regions.find_map(|region| region.shown().snapshot.instance(key).cloned())
    }

    /// The same by id alone.
    pub(crate) fn find_by_id(&self, id: &str) -> Option<Arc<LeaseView>> {
        let mut regions = self.0.regions.iter();
        regions.find_map(|region| region.shown().snapshot.by_id(id).into_iter().next())
    }

    fn region(&self, name: &str) -> Option<&Region> {
        let name = name.to_lowercase();
        self.0.regions.iter().find(|region| *region.name() == name)
    }

    fn members(&self, set: Set) -> impl Iterator<Item = &Region> {
        let regions = self.0.regions.iter().enumerate();
        regions
            .filter(move |(position, _)| set.has(*position))
            .map(|(_, region)| region)
    }
}

impl Set {
    /// None of them.
    pub(crate) const NONE: Self = Self(0);

    const fn has(self, position: usize) -> bool {
        self.0 >> position & 1 == 1
    }
}

impl fmt::Display for RegionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "{name:?} is no name of a region"),
            Self::Twice(name) => write!(f, "region {name} is there twice"),
            Self::TooMany { limit } => write!(f, "there are more than {limit} regions"),
        }
    }
}

impl std::error::Error for RegionsError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn few_merged_lists_are_kept() {
        let names: Vec<String> = (0..RemoteRegions::MAX)
            .map(|number| format!("r{number}"))
            .collect();
        let regions = names.iter().map(|name| RemoteRegion::new(name));
        let regions = RemoteRegions::new(regions, RegionRules::default()).expect("they are few enough");
        let encoder = Arc::new(Encoder::new(&Config::new("boot")));
        let fallback = regions.fallback();
        let list = |set| regions.merged(set, &encoder).expect("it is not empty");
        let first = list(fallback);
        for bits in 1..100 {
            list(Set(bits));
            assert!(
                Arc::ptr_eq(&first, &list(fallback)),
                "what is asked for often stays"
            );
            assert!(regions.0.merged.lock().len() <= MAX_MERGED);
        }
        assert!(regions.merged(Set::NONE, &encoder).is_none());
    }

    #[test]
    fn regions_that_make_no_sense_are_refused() {
        let refused = |names: &[&str]| {
            let regions = names.iter().map(|name| RemoteRegion::new(name));
            RemoteRegions::new(regions, RegionRules::default()).err()
        };
        assert_eq!(refused(&["a", "A"]), Some(RegionsError::Twice("a".into())));
        assert_eq!(refused(&["a,b"]), Some(RegionsError::Name("a,b".into())));
        assert_eq!(refused(&[" "]), Some(RegionsError::Name(" ".into())));
        let many: Vec<String> = (0..17).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(|name| &**name).collect();
        assert_eq!(refused(&many), Some(RegionsError::TooMany { limit: 16 }));
        assert_eq!(refused(&many[..16]), None);
    }
}
