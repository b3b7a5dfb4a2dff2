//! What a host names, and the balancers of the names that are called.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use http::uri::Authority;
use parking_lot::Mutex;

use crate::balance::{BalanceConfig, Balancer, Target};
use crate::cache::{Cache, View};

/// Whether a host is looked up in the registry unless another rule is set: it has no dot, no port, and is neither
/// `localhost` nor an address in brackets. Names with dots or ports, as virtual addresses may be, need a rule of their own.
pub fn is_name(authority: &Authority) -> bool {
    let host = authority.host();
    authority.port().is_none()
        && !host.contains(['.', ':', '['])
        && !host.is_empty()
        && !host.eq_ignore_ascii_case("localhost")
}

/// So many balancers are kept, each with what was reported on its instances; then the one used longest ago goes. And what
/// so many names are is remembered until there is a newer view.
const MOST: usize = 1_024;

pub(super) struct Names {
    cache: Cache,
    config: BalanceConfig,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// What names are in this view, as far as somebody asked.
    view: Weak<View>,
    known: BTreeMap<(String, bool), Option<Target>>,
    balancers: BTreeMap<(Target, bool), Used>,
    uses: u64,
}

struct Used {
    balancer: Balancer,
    last: u64,
}

impl Names {
    pub(super) fn new(cache: Cache, config: BalanceConfig) -> Self {
        Self {
            cache,
            config,
            held: Mutex::default(),
        }
    }

    /// The balancer of a name; `None` if the registry knows it neither as application nor as virtual address.
    pub(super) fn balancer(&self, name: &str, secure: bool) -> Option<Balancer> {
        let view = self.cache.view();
        let mut held = self.held.lock();
        let key = (held.target(&view, name, secure)?, secure);
        held.uses += 1;
        let last = held.uses;
        if let Some(used) = held.balancers.get_mut(&key) {
            used.last = last;
            return Some(used.balancer.clone());
        }
        held.make_room();
        let mut config = self.config.clone();
        config.addressing.secure |= secure;
        let balancer = Balancer::new(self.cache.clone(), key.0.clone(), config);
        let used = Used {
            balancer: balancer.clone(),
            last,
        };
        held.balancers.insert(key, used);
        Some(balancer)
    }
}

impl Held {
    /// What a name is, looked up once for each view.
    fn target(&mut self, view: &Arc<View>, name: &str, secure: bool) -> Option<Target> {
        let same = std::ptr::eq(self.view.as_ptr(), Arc::as_ptr(view));
        if !same || self.known.len() >= MOST {
            self.known.clear();
            self.view = Arc::downgrade(view);
        }
        // One spelling, or one name would have several balancers.
        let key = (name.to_lowercase(), secure);
        let known = self.known.entry(key);
        let find = |(name, secure): &(String, bool)| {
            let virtual_address = if *secure { Target::secure_vip } else { Target::vip };
            [Target::app(name), virtual_address(name)]
                .into_iter()
                .find(|target| !target.find(view).is_empty())
        };
        known.or_insert_with_key(find).clone()
    }

    fn make_room(&mut self) {
        if self.balancers.len() < MOST {
            return;
        }
        let oldest = self.balancers.iter().min_by_key(|(_, used)| used.last);
        if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
            self.balancers.remove(&oldest);
        }
    }
}
