//! Whose turn it is: so many requests at once to each server.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::server::Server;

/// Servers that are remembered although nobody asks them at the moment.
const IDLE_MAX: usize = 64;

/// Host and port.
type Address = (Arc<str>, u16);

pub(super) struct Turns {
    each: usize,
    /// By address: the same one with another name, password or zone is the same server.
    servers: Mutex<HashMap<Address, Arc<Semaphore>>>,
}

impl Turns {
    /// So many at once for each; at least one.
    pub(super) fn new(each: usize) -> Self {
        Self {
            each: each.clamp(1, Semaphore::MAX_PERMITS),
            servers: Mutex::default(),
        }
    }

    /// The turns of a server.
    pub(super) fn of(&self, server: &Server) -> Arc<Semaphore> {
        let mut servers = self.servers.lock();
        let address = server.host_and_port();
        if let Some(turns) = servers.get(&address) {
            return Arc::clone(turns);
        }
        if servers.len() >= IDLE_MAX {
            // Addresses of names come and go. Whoever has a turn, or waits for one, holds on to its server's.
            servers.retain(|_, turns| Arc::strong_count(turns) > 1);
        }
        let turns = Arc::new(Semaphore::new(self.each));
        servers.insert(address, Arc::clone(&turns));
        turns
    }
}

#[cfg(test)]
mod tests {
    use super::{IDLE_MAX, Turns};
    use crate::server::Server;

    fn server(number: usize) -> Server {
        Server::parse(&format!("http://host-{number}/eureka/")).expect("a URL")
    }

    #[test]
    fn servers_that_nobody_asks_are_forgotten_and_others_are_not() {
        let turns = Turns::new(2);
        let held = turns.of(&server(0)).try_acquire_owned().expect("a turn");
        for number in 1..=10 * IDLE_MAX {
            turns.of(&server(number));
        }
        assert!(turns.servers.lock().len() <= IDLE_MAX);
        assert_eq!(turns.of(&server(0)).available_permits(), 1);
        drop(held);
        assert_eq!(turns.of(&server(0)).available_permits(), 2);
    }
    #[test]
    fn a_server_has_its_turns_whatever_it_is_called() {
        let turns = Turns::new(2);
        let _held = turns.of(&server(0)).try_acquire_owned().expect("a turn");
        let other = Server::parse("http://name:password@host-0/other/").expect("a URL");
        assert_eq!(turns.of(&other.in_zone("a")).available_permits(), 1);
    }
}
