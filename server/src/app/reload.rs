//! SIGHUP: the configuration is read again, and what can change while the node runs is changed.

use tracing::{error, info, warn};

use crate::config::{Config, Settings, Sources};
use crate::telemetry::LogLevel;

/// Keys whose new values are taken over.
const TAKEN: [&str; 4] = ["log.level", "peers.dns", "peers.refresh-interval", "peers.urls"];

/// What is needed to read the configuration again.
#[derive(Debug)]
pub(crate) struct Reload {
    /// What the node was started with.
    running: Config,
    /// What was read last.
    last: Config,
    sources: Sources,
    level: LogLevel,
}

impl Reload {
    /// A node that runs with `running`, which came from `sources`.
    pub(crate) fn new(running: Config, sources: Sources, level: LogLevel) -> Self {
        Self {
            last: running.clone(),
            running,
            sources,
            level,
        }
    }

    /// Reads the configuration again. If anything is wrong with it nothing changes. Gives the new settings if those of the
    /// peers differ.
    pub(super) fn read(&mut self) -> Option<&Settings> {
        let new = match Config::load(&self.sources) {
            Ok(new) => new,
            Err(mistakes) => {
                for mistake in &mistakes {
                    error!(%mistake, "SIGHUP: a mistake in the configuration");
                }
                let count = mistakes.len();
                error!(
                    count,
                    "SIGHUP: the configuration is wrong, so nothing was changed"
                );
                return None;
            }
        };
        let changed = self.last.differences(&new);
        let taken: Vec<_> = changed.iter().filter(|key| TAKEN.contains(key)).collect();
        let restart = self.running.differences(&new);
        let restart: Vec<_> = restart.iter().filter(|key| !TAKEN.contains(key)).collect();
        let peers_changed = self.last.settings.peers != new.settings.peers;
        self.last = new;
        self.level.set(self.last.settings.log.level);
        info!(applied = ?taken, "SIGHUP: the configuration was read again");
        if !restart.is_empty() {
            warn!(keys = ?restart, "SIGHUP: these keys have other values than the node runs with, and need a restart");
        }
        peers_changed.then_some(&self.last.settings)
    }
}
