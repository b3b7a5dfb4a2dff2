//! How the server that is asked at the moment is read.

use std::sync::Arc;

use eureka_registry_core::Mono;

use crate::agent::event::PollingWhy;
use crate::server::Server;

#[derive(Debug)]
pub(super) struct Link {
    pub(super) server: Arc<Server>,
    pub(super) mode: Mode,
    /// While it is polled: when it is asked for its feed (again); `None` for never.
    pub(super) ask_at: Option<Mono>,
    /// No delta before this.
    pub(super) delta_at: Mono,
}

#[derive(Debug)]
pub(super) enum Mode {
    /// Whether it has a feed is to be asked.
    Ask,
    /// It has one; a full list is to be fetched, and then whatever lies behind the cursor.
    Filling { cursor: Arc<str> },
    /// Its changes are followed.
    Following { cursor: Arc<str> },
    /// Its lists and deltas are read.
    Polling(PollingWhy),
}

impl Link {
    pub(super) fn new(server: Arc<Server>, mode: Mode, ask_at: Option<Mono>) -> Self {
        Self {
            server,
            mode,
            ask_at,
            delta_at: Mono(0),
        }
    }

    pub(super) fn cursor(&self) -> Option<Arc<str>> {
        match &self.mode {
            Mode::Following { cursor } | Mode::Filling { cursor } => Some(Arc::clone(cursor)),
            Mode::Ask | Mode::Polling(_) => None,
        }
    }
}
