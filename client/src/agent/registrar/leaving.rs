//! How an instance leaves: DOWN, so that nobody calls it any more, then a cancel, and both in bounded time.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Mono, Now, Status};

use super::{Registrar, What, Write};
use crate::agent::event::{Event, Phase};
use crate::agent::exchange::{Exchange, Fault};
use crate::agent::pace::ROUND_TRIES;
use crate::call::{Answer, Call};
use crate::endpoints::Use;
use crate::server::Server;

#[derive(Debug)]
pub(super) struct Leaving {
    until: Mono,
    /// How long the write under way is waited for.
    patience: Mono,
    /// Whether DOWN was told, or was tried.
    down: bool,
    /// Who failed.
    tried: Vec<Arc<Server>>,
    /// Cancels sent.
    cancels: u32,
}

impl Registrar {
    /// Begins to leave; once.
    pub(in crate::agent) fn leave(&mut self, now: Now, exchange: &mut Exchange) {
        if self.is_on_its_way_out() {
            return;
        }
        if let Some(write) = self.write.take_if(|write| exchange.withdraw(write.id)) {
            self.sent -= u64::from(matches!(write.what, What::Register { .. }));
        }
        if self.sent == 0 || !self.unregister {
            self.finish(exchange, false);
            return;
        }
        self.change(now, |instance| instance.status = Status::Down);
        self.phase = Phase::Leaving;
        self.leaving = Some(Box::new(Leaving {
            until: now.mono.after(self.leave_within),
            patience: now.mono.after(self.leave_within / 2),
            down: false,
            tried: Vec::new(),
            cancels: 0,
        }));
    }

    pub(super) fn step_out(&mut self, now: Now, exchange: &mut Exchange) {
        let Some(leaving) = &mut self.leaving else {
            return;
        };
        let left = Duration::from_millis(leaving.until.0.saturating_sub(now.mono.0));
        if left.is_zero() {
            self.finish(exchange, false);
            return;
        }
        if let Some(write) = &self.write {
            if leaving.down || now.mono < leaving.patience {
                return;
            }
            // As after a time-out: the server may do it or not.
            leaving.tried.push(Arc::clone(&write.server));
            self.write = None;
        }
        let server = match leaving.cancels {
            ROUND_TRIES.. => None,
            _ => exchange.endpoints.choose(now, Use::Write, &leaving.tried),
        };
        // Whoever was too slow to take DOWN is still asked to cancel if there is nobody else.
        let server = server.or_else(|| match leaving.cancels {
            0 => exchange.endpoints.choose(now, Use::Write, &[]),
            _ => None,
        });
        let Some(server) = server else {
            self.finish(exchange, false);
            return;
        };
        // Half of what is left, so that another server can be asked if this one does not answer.
        let within = exchange
            .request_timeout
            .min(left / 2)
            .max(Duration::from_millis(1));
        let tells = !std::mem::replace(&mut leaving.down, true);
        if tells && self.registered.is_some_and(|dirty| dirty < self.dirty()) {
            self.write_register(now, exchange, server, within);
        } else {
            if let Some(leaving) = &mut self.leaving {
                leaving.cancels += 1;
            }
            let call = Call::Cancel(self.key.clone());
            self.write(now, exchange, server, What::Cancel, call, within);
        }
    }

    pub(super) fn out_due(&self) -> Option<Mono> {
        let leaving = self.leaving.as_ref()?;
        let waits = self.write.is_some() && !leaving.down;
        Some(if waits { leaving.patience } else { leaving.until })
    }

    /// A write failed: whatever is sent next while leaving goes elsewhere.
    pub(super) fn out_failed(&mut self, server: &Arc<Server>) {
        if let Some(leaving) = &mut self.leaving {
            leaving.tried.push(Arc::clone(server));
        }
    }

    pub(super) fn cancel_answered(
        &mut self,
        now: Now,
        exchange: &mut Exchange,
        write: &Write,
        answer: Answer,
    ) {
        match answer {
            Answer::Done | Answer::NotFound => {
                exchange.endpoints.succeeded(now, Use::Write, &write.server);
                self.finish(exchange, true);
            }
            other => {
                exchange.stats.cancels_failed += 1;
                exchange.failed(now, Use::Write, &write.server, &Fault::of(other));
                self.out_failed(&write.server);
            }
        }
    }

    fn finish(&mut self, exchange: &mut Exchange, cancelled: bool) {
        if let Some(write) = self.write.take() {
            exchange.withdraw(write.id);
        }
        self.leaving = None;
        self.registered = None;
        self.phase = Phase::Left;
        exchange.tell(Event::Left { cancelled });
    }
}
