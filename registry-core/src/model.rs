//! What is registered: instances and what they are made of, in plain types without any wire format.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use core::fmt;

pub use crate::metadata::Metadata;

/// Seconds between renewals when an instance names none (or none above zero), as in Java.
pub const DEFAULT_RENEWAL_INTERVAL_SECS: u32 = 30;
/// Seconds a lease lasts when an instance names none (or none above zero), as in Java.
pub const DEFAULT_DURATION_SECS: u32 = 90;

/// The five states of an instance. Ordered by name, as the reconcile hash needs them.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Status {
    /// Not able to take traffic.
    Down,
    /// Taken out of traffic on purpose.
    OutOfService,
    /// Not yet able to take traffic.
    Starting,
    /// No usable status is known.
    Unknown,
    /// Able to take traffic.
    Up,
}

impl Status {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 5] = [
        Self::Down,
        Self::OutOfService,
        Self::Starting,
        Self::Unknown,
        Self::Up,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Down => "DOWN",
            Self::OutOfService => "OUT_OF_SERVICE",
            Self::Starting => "STARTING",
            Self::Unknown => "UNKNOWN",
            Self::Up => "UP",
        }
    }

    /// The status with exactly this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What last happened to an instance, as deltas tell it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// Registered, also again.
    Added,
    /// Cancelled or evicted.
    Deleted,
    /// Its status was changed by an override or a rule.
    Modified,
}

impl Action {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Deleted => "DELETED",
            Self::Modified => "MODIFIED",
        }
    }
}

/// The identity of an instance: application name (upper case) and effective id (case-sensitive). Ordered by both.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct InstanceKey {
    app: Arc<str>,
    id: Arc<str>,
}

impl InstanceKey {
    /// A key; `app` is turned to upper case.
    pub fn new(app: &str, id: &str) -> Self {
        Self {
            app: upper(app),
            id: Arc::from(id),
        }
    }

    /// The application name, upper case.
    pub fn app(&self) -> &Arc<str> {
        &self.app
    }

    /// The effective instance id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The same key with the same application name in the memory of another.
    pub(crate) fn sharing(&self, app: &Arc<str>) -> Self {
        Self {
            app: Arc::clone(app),
            id: Arc::clone(&self.id),
        }
    }
}

/// A key in the words of a request, without memory of its own: a renewal needs no more to find its lease.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyRef<'a> {
    app: Cow<'a, str>,
    id: &'a str,
}

impl<'a> KeyRef<'a> {
    /// A key; `app` is turned to upper case.
    pub fn new(app: &'a str, id: &'a str) -> Self {
        let app = if is_upper(app) {
            Cow::Borrowed(app)
        } else {
            Cow::Owned(app.to_uppercase())
        };
        Self { app, id }
    }

    /// The application name, upper case.
    pub fn app(&self) -> &str {
        &self.app
    }

    /// The effective instance id.
    pub fn id(&self) -> &'a str {
        self.id
    }

    /// The same key, to be kept.
    pub fn to_key(&self) -> InstanceKey {
        InstanceKey {
            app: Arc::from(&*self.app),
            id: Arc::from(self.id),
        }
    }
}

impl<'a> From<&'a InstanceKey> for KeyRef<'a> {
    fn from(key: &'a InstanceKey) -> Self {
        Self {
            app: Cow::Borrowed(&key.app),
            id: &key.id,
        }
    }
}

impl<'a> From<&'a KeyRef<'_>> for KeyRef<'a> {
    fn from(key: &'a KeyRef<'_>) -> Self {
        Self {
            app: Cow::Borrowed(&key.app),
            id: key.id,
        }
    }
}

impl fmt::Display for InstanceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.app, self.id)
    }
}

/// Upper case as Java's `toUpperCase(Locale.ROOT)` gives it.
pub(crate) fn upper(text: &str) -> Arc<str> {
    if is_upper(text) {
        Arc::from(text)
    } else {
        Arc::from(text.to_uppercase())
    }
}

/// Whether a text is in upper case for sure: nobody has to look into Unicode's tables.
fn is_upper(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii() && !byte.is_ascii_lowercase())
}

/// A port and whether it is in use.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Port {
    /// The number as reported; Java does not check its range.
    pub number: i32,
    /// Whether it is enabled.
    pub enabled: bool,
}

/// This port, enabled.
impl From<u16> for Port {
    fn from(number: u16) -> Self {
        Self {
            number: number.into(),
            enabled: true,
        }
    }
}

/// Where an instance runs.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum DataCenter {
    /// Amazon, with the metadata of the machine (`instance-id`, `availability-zone`, ...), carried as it came.
    Amazon(Metadata),
    /// The usual one.
    MyOwn,
    /// Netflix's own.
    Netflix,
}

impl DataCenter {
    /// The name on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Amazon(_) => "Amazon",
            Self::MyOwn => "MyOwn",
            Self::Netflix => "Netflix",
        }
    }
}

/// What an instance asks of its lease, in seconds, defaults filled in.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct LeaseTerms {
    /// How often it means to renew.
    pub renewal_interval_secs: u32,
    /// How long it lives without renewal.
    pub duration_secs: u32,
}

impl Default for LeaseTerms {
    fn default() -> Self {
        Self {
            renewal_interval_secs: DEFAULT_RENEWAL_INTERVAL_SECS,
            duration_secs: DEFAULT_DURATION_SECS,
        }
    }
}

/// An instance as it was reported, with the status that readers see.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Instance {
    /// The `instanceId` as sent: answers leave out an absent one and repeat an empty one, which names nothing.
    pub instance_id: Option<Arc<str>>,
    /// Application name, upper case.
    pub app: Arc<str>,
    /// Application group.
    pub app_group: Option<Arc<str>>,
    /// Host name; never blank in the registry.
    pub host_name: Arc<str>,
    /// IP address; never blank in the registry.
    pub ip_address: Arc<str>,
    /// Deprecated, but carried; `na` and `unknown` are `None`.
    pub sid: Option<Arc<str>>,
    /// The plain port.
    pub port: Port,
    /// The TLS port.
    pub secure_port: Port,
    /// Home page.
    pub home_page_url: Option<Arc<str>>,
    /// Status page.
    pub status_page_url: Option<Arc<str>>,
    /// Health check.
    pub health_check_url: Option<Arc<str>>,
    /// Health check over TLS.
    pub secure_health_check_url: Option<Arc<str>>,
    /// Virtual addresses, separated by commas.
    pub vip_address: Option<Arc<str>>,
    /// Virtual addresses over TLS, separated by commas.
    pub secure_vip_address: Option<Arc<str>>,
    /// Deprecated, but carried; 1 by default.
    pub country_id: i32,
    /// Where it runs.
    pub data_center: DataCenter,
    /// The status: as reported when decoded, the effective one once registered.
    pub status: Status,
    /// The override that applies, `Unknown` for none.
    pub overridden_status: Status,
    /// What it asks of its lease.
    pub lease: LeaseTerms,
    /// Free text pairs.
    pub metadata: Metadata,
    /// Version of the content by the *client's* clock, Unix milliseconds; compared only with others of its kind.
    /// `None` only before registration.
    pub last_dirty: Option<i64>,
    /// Auto-scaling group.
    pub asg_name: Option<Arc<str>>,
}

/// What names, quotes and numbers of an instance take in JSON, in bytes, about.
const ENCODED_BYTES: usize = 1_024;
/// What counters and allocator add to a shared text.
const ALLOCATED: usize = 24;
/// What quotes, colon and comma of a pair of metadata take.
const PAIR_BYTES: usize = 6;

impl Instance {
    /// An instance that is UP, called at port 7001 (7002 with TLS, which is not enabled), with everything optional absent:
    /// what a registration means that says no more. Who listens elsewhere sets [`port`](Self::port).
    pub fn new(app: &str, id: &str, host_name: &str, ip_address: &str) -> Self {
        Self {
            instance_id: (!id.is_empty()).then(|| Arc::from(id)),
            app: upper(app),
            app_group: None,
            host_name: Arc::from(host_name),
            ip_address: Arc::from(ip_address),
            sid: None,
            port: Port {
                number: 7001,
                enabled: true,
            },
            secure_port: Port {
                number: 7002,
                enabled: false,
            },
            home_page_url: None,
            status_page_url: None,
            health_check_url: None,
            secure_health_check_url: None,
            vip_address: None,
            secure_vip_address: None,
            country_id: 1,
            data_center: DataCenter::MyOwn,
            status: Status::Up,
            overridden_status: Status::Unknown,
            lease: LeaseTerms::default(),
            metadata: Metadata::default(),
            last_dirty: None,
            asg_name: None,
        }
    }

    /// Names, addresses and URLs: every text of it but metadata.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.named_texts().map(|(_, text)| text)
    }

    /// The same, each with the name of its field.
    pub(crate) fn named_texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let required = [
            ("app", &self.app),
            ("host_name", &self.host_name),
            ("ip_address", &self.ip_address),
        ];
        let optional = [
            ("instance_id", &self.instance_id),
            ("app_group", &self.app_group),
            ("sid", &self.sid),
            ("home_page_url", &self.home_page_url),
            ("status_page_url", &self.status_page_url),
            ("health_check_url", &self.health_check_url),
            ("secure_health_check_url", &self.secure_health_check_url),
            ("vip_address", &self.vip_address),
            ("secure_vip_address", &self.secure_vip_address),
            ("asg_name", &self.asg_name),
        ];
        let required = required.into_iter().map(|(name, text)| (name, &**text));
        let optional = optional
            .into_iter()
            .filter_map(|(name, text)| Some((name, text.as_deref()?)));
        required.chain(optional)
    }

    /// Bytes of all keys and values of its metadata and of its machine's: what the limit on metadata counts.
    pub fn metadata_bytes(&self) -> usize {
        self.all_metadata().map(Metadata::bytes).sum()
    }

    /// About how many bytes it takes in JSON at most; a character may have to be escaped.
    pub fn encoded_bytes(&self) -> usize {
        let pairs: usize = self.all_metadata().map(Metadata::len).sum();
        let texts: usize = self.texts().map(str::len).sum();
        ENCODED_BYTES + 2 * (texts + self.metadata_bytes() + PAIR_BYTES * pairs)
    }

    /// About how many bytes of memory it takes if it shares none of its texts.
    pub(crate) fn held_bytes(&self) -> usize {
        let texts: usize = self.texts().map(|text| ALLOCATED + text.len()).sum();
        let metadata = self.all_metadata();
        let metadata: usize = metadata.map(|pairs| ALLOCATED + pairs.held_bytes()).sum();
        size_of::<Self>() + texts + metadata
    }

    fn all_metadata(&self) -> impl Iterator<Item = &Metadata> {
        let machine = match &self.data_center {
            DataCenter::Amazon(machine) => Some(machine),
            DataCenter::MyOwn | DataCenter::Netflix => None,
        };
        [&self.metadata].into_iter().chain(machine)
    }

    /// Whether another reports the same, leaving aside what follows from elsewhere: status, override and dirty timestamp.
    pub(crate) fn reports_like(&self, other: &Self) -> bool {
        let Self {
            instance_id,
            app,
            app_group,
            host_name,
            ip_address,
            sid,
            port,
            secure_port,
            home_page_url,
            status_page_url,
            health_check_url,
            secure_health_check_url,
            vip_address,
            secure_vip_address,
            country_id,
            data_center,
            status: _,
            overridden_status: _,
            lease,
            metadata,
            last_dirty: _,
            asg_name,
        } = self;
        (port, secure_port, country_id, lease)
            == (&other.port, &other.secure_port, &other.country_id, &other.lease)
            && (app, host_name, ip_address) == (&other.app, &other.host_name, &other.ip_address)
            && *instance_id == other.instance_id
            && *app_group == other.app_group
            && *sid == other.sid
            && *home_page_url == other.home_page_url
            && *status_page_url == other.status_page_url
            && *health_check_url == other.health_check_url
            && *secure_health_check_url == other.secure_health_check_url
            && *vip_address == other.vip_address
            && *secure_vip_address == other.secure_vip_address
            && *asg_name == other.asg_name
            && *metadata == other.metadata
            && *data_center == other.data_center
    }

    /// Keeps the secure addresses in the memory of the plain ones if they are the same, as Spring's are.
    pub(crate) fn share_addresses(&mut self) {
        if self.secure_vip_address == self.vip_address {
            self.secure_vip_address.clone_from(&self.vip_address);
        }
    }

    /// Gives up the memory of every text that another instance has, too, for the other's. What was registered before and
    /// neighbours in the application are alike in most of them, and the change log keeps what was before.
    pub(crate) fn share_texts(&mut self, other: &Self) {
        let required = [
            (&mut self.app, &other.app),
            (&mut self.host_name, &other.host_name),
            (&mut self.ip_address, &other.ip_address),
        ];
        for (own, other) in required {
            if own == other {
                own.clone_from(other);
            }
        }
        let optional = [
            (&mut self.instance_id, &other.instance_id),
            (&mut self.app_group, &other.app_group),
            (&mut self.sid, &other.sid),
            (&mut self.home_page_url, &other.home_page_url),
            (&mut self.status_page_url, &other.status_page_url),
            (&mut self.health_check_url, &other.health_check_url),
            (&mut self.secure_health_check_url, &other.secure_health_check_url),
            (&mut self.vip_address, &other.vip_address),
            (&mut self.secure_vip_address, &other.secure_vip_address),
            (&mut self.asg_name, &other.asg_name),
        ];
        for (own, other) in optional {
            if own == other {
                own.clone_from(other);
            }
        }
        self.metadata.share(&other.metadata);
        if let (DataCenter::Amazon(own), DataCenter::Amazon(other)) =
            (&mut self.data_center, &other.data_center)
        {
            own.share(other);
        }
    }

    /// The effective id: `instanceId` unless it is empty, else Amazon's `instance-id`, else the host name.
    pub fn id(&self) -> &str {
        if let Some(id) = &self.instance_id
            && !id.is_empty()
        {
            return id;
        }
        match &self.data_center {
            DataCenter::Amazon(machine) => match machine.get("instance-id") {
                Some(id) if !id.is_empty() => id,
                Some(_) | None => &self.host_name,
            },
            DataCenter::MyOwn | DataCenter::Netflix => &self.host_name,
        }
    }

    /// The key under which it is registered.
    pub fn key(&self) -> InstanceKey {
        let id = match &self.instance_id {
            Some(id) if !id.is_empty() => Arc::clone(id),
            Some(_) | None => Arc::from(self.id()),
        };
        InstanceKey {
            app: Arc::clone(&self.app),
            id,
        }
    }

    /// The zone: Amazon's `availability-zone`, else the metadata key `zone`.
    pub fn zone(&self) -> Option<&str> {
        if let DataCenter::Amazon(machine) = &self.data_center
            && let Some(zone) = machine.get("availability-zone")
        {
            return Some(zone);
        }
        self.metadata.get("zone")
    }
}
