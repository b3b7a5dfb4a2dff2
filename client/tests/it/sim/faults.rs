//! What befalls servers, clients and what lies between them, and what the owners of clients do.

use eureka_registry_core::Status;

use super::scenario::{ClientFault, Fault, HOUR, LinkFault, MINUTE, SECOND, ServerFault};
use super::server::State;
use super::world::{Happening, World};

impl World {
    pub(super) fn strike(&mut self, fault: Fault) -> Result<(), String> {
        let server = self.rng.usize(0..self.servers.len());
        let client = self.rng.usize(0..self.clients.len());
        self.say(|| format!("{fault:?}: server {server}, or client {client}"));
        match fault {
            Fault::Server(fault) => self.strike_server(fault, server),
            Fault::Link(fault) => self.strike_link(fault, client, server),
            Fault::Client(fault) => return self.strike_client(fault, client),
        }
        Ok(())
    }

    fn strike_server(&mut self, fault: ServerFault, server: usize) {
        let up = self.servers[server].state() == State::Up;
        match fault {
            ServerFault::Crash if up => {
                for token in self.servers[server].crash(self.t) {
                    self.broke(token);
                }
                let delay = self.rng.u64(SECOND..10 * MINUTE);
                self.after(delay, Happening::ServerStart { server });
            }
            ServerFault::Pause if up => {
                self.servers[server].turn(State::Paused);
                let delay = self.rng.u64(SECOND..3 * MINUTE);
                self.after(delay, Happening::ServerResume { server });
            }
            ServerFault::Busy if up => {
                self.servers[server].turn(State::Busy);
                let delay = self.rng.u64(10 * SECOND..5 * MINUTE);
                self.after(delay, Happening::ServerIdle { server });
            }
            ServerFault::Clock => self.servers[server].offset = self.step_of_clock(),
            ServerFault::Cut => {
                let other = self.rng.usize(0..self.servers.len());
                self.peers[server][other].cut[0] = self.t + self.rng.u64(5 * SECOND..10 * MINUTE);
            }
            // It does not run as it is.
            ServerFault::Crash | ServerFault::Pause | ServerFault::Busy => {}
        }
    }

    fn strike_link(&mut self, fault: LinkFault, client: usize, server: usize) {
        let t = self.t;
        match fault {
            LinkFault::Cut => {
                let until = t + self.rng.u64(5 * SECOND..20 * MINUTE);
                let ways = self.rng.u32(1..4);
                let link = &mut self.links[client][server];
                for way in 0..2 {
                    if ways & (1 << way) != 0 {
                        link.cut[way] = until;
                    }
                }
            }
            LinkFault::Alone => {
                let until = t + self.rng.u64(10 * SECOND..10 * MINUTE);
                for link in &mut self.links[client] {
                    link.cut = [until; 2];
                }
            }
            LinkFault::Loss => {
                let (share, until) = (self.rng.u64(50..600), t + self.rng.u64(MINUTE..10 * MINUTE));
                let links = self.links.iter_mut().chain(&mut self.peers).flatten();
                links.for_each(|link| link.loss = (share, until));
            }
            LinkFault::Slow => {
                // Also longer than clients wait.
                let (most, until) = (
                    self.rng.u64(100..12 * SECOND),
                    t + self.rng.u64(10 * SECOND..10 * MINUTE),
                );
                for links in &mut self.links {
                    links[server].slow = (most, until);
                }
            }
        }
    }

    fn strike_client(&mut self, fault: ClientFault, client: usize) -> Result<(), String> {
        let t = self.t;
        let machine = &mut self.clients[client];
        match fault {
            ClientFault::Clock => {
                let step = self.step_of_clock();
                self.clients[client].offset = step;
            }
            _ if machine.agent.is_none() => {}
            ClientFault::Pause => {
                machine.touch();
                machine.paused = t + self.rng.u64(SECOND..5 * MINUTE);
            }
            // Whoever is paused does nothing.
            _ if t < machine.paused => {}
            ClientFault::List => {
                // One of them may not be there at all.
                let mut list: Vec<_> = (0..self.servers.len() + 1).collect();
                self.rng.shuffle(&mut list);
                list.truncate(self.rng.usize(1..=list.len()));
                return self.list(client, list);
            }
            ClientFault::Crash => self.end_client(client),
            ClientFault::Leave if machine.leaving.is_none() => {
                machine.leaving = Some(t);
                self.with_agent(client, |agent, now| agent.leave(now));
                return self.pump(client);
            }
            ClientFault::Act if machine.leaving.is_none() => return self.act(client),
            // It is on its way out.
            ClientFault::Leave | ClientFault::Act => {}
        }
        Ok(())
    }

    /// Something that the owner of a client does.
    fn act(&mut self, client: usize) -> Result<(), String> {
        // Not OUT_OF_SERVICE: by the rules of Eureka's servers a lease that is UP does not become that by a registration.
        let status = [Status::Up, Status::Up, Status::Down, Status::Starting][self.rng.usize(0..4)];
        let provides = self.clients[client].plan.provide.is_some();
        let value = self.rng.u32(0..1_000).to_string();
        match self.rng.u32(0..6) {
            0 | 1 if provides => self.with_agent(client, |agent, now| agent.set_status(now, status)),
            2 if provides => self.with_agent(client, |agent, now| agent.set_metadata(now, "color", &value)),
            3 if provides => {
                self.with_agent(client, |agent, now| {
                    agent.update(now, |instance| {
                        instance.home_page_url = Some(value.as_str().into())
                    });
                });
            }
            // Many changes at once: what is over the rate comes later.
            4 if provides => {
                for number in 0..12 {
                    let value = format!("{value}-{number}");
                    self.with_agent(client, |agent, now| agent.set_metadata(now, "burst", &value));
                }
            }
            5 => self.clients[client].health = status,
            _ => self.with_agent(client, eureka_client::agent::Agent::refresh),
        }
        self.pump(client)
    }

    /// By how much a clock is wrong from now on.
    fn step_of_clock(&mut self) -> i64 {
        let most = [200, 5 * SECOND, 10 * MINUTE, 48 * HOUR][self.rng.usize(0..4)];
        let most = i64::try_from(most).expect("small");
        self.rng.i64(-most..=most)
    }
}
