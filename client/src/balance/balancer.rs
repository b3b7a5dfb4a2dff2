//! A rotation over what a cache knows, shared by everybody who calls the same target.

use std::fmt;
use std::sync::{Arc, Weak};

use eureka_registry_core::{Instance, InstanceKey};
use parking_lot::Mutex;

use super::rotation::{BalanceConfig, Feedback, Figures, Listed, Picked, Rotation};
use super::target::{Endpoint, Target};
use crate::cache::{Cache, Instances, Origin, View};

/// Picks instances of one target from a [`Cache`], whose changes it follows. Cheap to clone; clones take turns together,
/// and what is reported to one of them counts for all.
///
/// ```
/// # use std::sync::Arc;
/// # use eureka_client::{Server, cache::Publisher};
/// # use eureka_registry_core::wire::{Format, read_applications};
/// # use eureka_registry_core::{Mirror, Now};
/// # let list = br#"{"applications":{"application":[{"name":"PAYMENTS","instance":[{"app":"PAYMENTS","hostName":"h1",
/// #     "ipAddr":"10.0.0.1","status":"UP","port":{"$":8080,"@enabled":"true"},"dataCenterInfo":{"name":"MyOwn"}}]}]}}"#;
/// # let mut mirror = Mirror::new();
/// # for view in read_applications(Format::Json, list)?.instances {
/// #     mirror.put(view);
/// # }
/// # let publisher = Publisher::new(Now::default);
/// # publisher.publish(Now::default(), mirror.snapshot(), Arc::new(Server::parse("http://localhost:8761/eureka/")?));
/// # let cache = publisher.cache(); // a running client's is `client.cache()`
/// use eureka_client::balance::{BalanceConfig, Balancer, Feedback, Target};
///
/// let mut config = BalanceConfig::default();
/// config.zones.own = Some("zone-1".into());
/// let payments = Balancer::new(cache, Target::app("payments"), config);
///
/// let pick = payments.pick()?;
/// assert_eq!(pick.endpoint().to_string(), "http://h1:8080");
/// // Call it, then say how that went.
/// pick.feedback(Feedback::Ok);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Balancer {
    shared: Arc<Shared>,
}

struct Shared {
    cache: Cache,
    target: Target,
    state: Mutex<State>,
}

struct State {
    rotation: Rotation,
    /// The view that the rotation is of. Weak: who never picks again keeps no old registry in memory.
    seen: Weak<View>,
    instances: Vec<Arc<Instance>>,
}

/// An instance to call. Say how it went, or an instance that fails is never left out; a pick that is dropped says nothing.
#[must_use = "say how the call went"]
pub struct Pick {
    picked: Picked,
    shared: Arc<Shared>,
}

/// Why nobody can be picked.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct NoInstance {
    /// Of what.
    pub target: Target,
    /// Why.
    pub absence: Absence,
}

/// What is missing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Absence {
    /// No server has answered yet, and there is no copy on disk: `Cache::ready` waits for that.
    NothingRead,
    /// The registry has no such instances.
    Unknown,
    /// There are some, but none is UP.
    NoneUp {
        /// How many there are.
        listed: usize,
    },
    /// Some are UP, but none has a host and an enabled port of the kind that is wanted.
    NoneCallable {
        /// How many are UP.
        up: usize,
    },
    /// All that can be called have been tried for this call.
    AllTried {
        /// How many that are.
        callable: usize,
    },
}

impl Balancer {
    /// Picks instances of this target.
    pub fn new(cache: Cache, target: Target, mut config: BalanceConfig) -> Self {
        config.addressing.secure |= matches!(target, Target::SecureVip(_));
        Self {
            shared: Arc::new(Shared {
                cache,
                target,
                state: Mutex::new(State {
                    rotation: Rotation::new(config),
                    seen: Weak::new(),
                    instances: Vec::new(),
                }),
            }),
        }
    }

    /// Whom to call now. Never waits.
    pub fn pick(&self) -> Result<Pick, NoInstance> {
        self.pick_besides(&[])
    }

    /// Whom to call now, but none of these: for another try of the same call.
    pub fn pick_besides(&self, tried: &[InstanceKey]) -> Result<Pick, NoInstance> {
        let now = self.shared.cache.now();
        let mut state = self.shared.state.lock();
        let view = self.shared.follow(&mut state);
        let Some(picked) = state.rotation.pick(now, tried) else {
            return Err(NoInstance {
                target: self.shared.target.clone(),
                absence: absence(&view, state.rotation.listed()),
            });
        };
        Ok(Pick {
            picked,
            shared: Arc::clone(&self.shared),
        })
    }

    /// Of what it picks instances.
    pub fn target(&self) -> &Target {
        &self.shared.target
    }

    /// What it did, and how it stands.
    pub fn figures(&self) -> Figures {
        let mut state = self.shared.state.lock();
        self.shared.follow(&mut state);
        state.rotation.figures()
    }
}

impl Target {
    /// The instances that it names, of any status.
    pub(crate) fn find(&self, view: &View) -> Instances {
        match self {
            Self::App(name) => view.application(name),
            Self::Vip(name) => view.vip(name),
            Self::SecureVip(name) => view.secure_vip(name),
        }
    }
}

impl Shared {
    /// Takes over what the newest view has, if it is another one than last time.
    fn follow(&self, state: &mut State) -> Arc<View> {
        let view = self.cache.view();
        if std::ptr::eq(state.seen.as_ptr(), Arc::as_ptr(&view)) {
            return view;
        }
        let found = self.target.find(&view);
        let same = found.len() == state.instances.len()
            && found
                .iter()
                .zip(&state.instances)
                .all(|(found, held)| found.instance == *held);
        if !same {
            state.instances = found.iter().map(|found| Arc::clone(&found.instance)).collect();
            state.rotation.set_instances(self.cache.now(), &state.instances);
        }
        state.seen = Arc::downgrade(&view);
        view
    }
}

impl Pick {
    /// The instance as it was known when it was picked.
    pub fn instance(&self) -> &Arc<Instance> {
        self.picked.instance()
    }

    /// Its key.
    pub fn key(&self) -> &InstanceKey {
        self.picked.key()
    }

    /// Where to call it.
    pub fn endpoint(&self) -> &Endpoint {
        self.picked.endpoint()
    }

    /// Says how the call went.
    pub fn feedback(self, feedback: Feedback) {
        let now = self.shared.cache.now();
        let mut state = self.shared.state.lock();
        state.rotation.feedback(now, &self.picked, feedback);
    }
}

fn absence(view: &View, listed: Listed) -> Absence {
    if *view.origin() == Origin::Nothing {
        Absence::NothingRead
    } else if listed.all == 0 {
        Absence::Unknown
    } else if listed.up == 0 {
        Absence::NoneUp { listed: listed.all }
    } else if listed.callable == 0 {
        Absence::NoneCallable { up: listed.up }
    } else {
        Absence::AllTried {
            callable: listed.callable,
        }
    }
}

impl fmt::Display for NoInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no instance of {}: {}", self.target, self.absence)
    }
}

impl std::error::Error for NoInstance {}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingRead => f.write_str("nothing has been read from a server yet"),
            Self::Unknown => f.write_str("the registry knows none"),
            Self::NoneUp { listed } => write!(f, "none of the {listed} that are listed is UP"),
            Self::NoneCallable { up } => {
                write!(
                    f,
                    "none of the {up} that are UP has an enabled port of the kind that is wanted"
                )
            }
            Self::AllTried { callable } => write!(f, "all {callable} that can be called have been tried"),
        }
    }
}

impl fmt::Debug for Balancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Balancer")
            .field("target", &self.shared.target)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pick").field(&self.picked).finish()
    }
}
