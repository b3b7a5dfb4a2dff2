//! The provider's side: registers, renews, leaves.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "whatever else a server answers, now or in future, is a failure"
)]

mod leaving;

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    DEFAULT_DURATION_SECS, DEFAULT_RENEWAL_INTERVAL_SECS, Instance, InstanceKey, Mono, Now, Status,
};

use self::leaving::Leaving;
use super::config::{Provide, SHORTEST_INTERVAL};
use super::event::{Event, Phase, Registration, Why};
use super::exchange::{Exchange, Fault};
use super::pace::{Bucket, JITTER, LONGEST_PAUSE, Round};
use super::stats::Reason;
use crate::call::{Answer, Call, RequestId};
use crate::endpoints::Use;
use crate::server::Server;

/// A renewal is due after this share of the interval at the earliest, after all of it at the latest.
const EARLIEST_RENEWAL: f64 = 0.9;
/// Changes of content that are registered at once.
const CHANGES_AT_ONCE: u32 = 4;
/// After those, one each.
const CHANGE_EACH: Duration = Duration::from_secs(5);
/// How long the first registration waits for the answer to the question of health.
const HEALTH_PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Registrar {
    instance: Arc<Instance>,
    key: InstanceKey,
    /// What the owner set last, whatever health checks say.
    own_status: Status,
    phase: Phase,
    /// The dirty time of the content that a server took; `None` while the server asked last does not know the instance.
    registered: Option<i64>,
    /// The dirty time of the newest content for which a token was taken.
    paid: Option<i64>,
    /// Registrations sent.
    sent: u64,
    /// When the last write that was taken had been sent.
    confirmed: Option<Now>,
    server: Option<Arc<Server>>,
    write: Option<Write>,
    /// Who does not know the instance and is to be told at once.
    missing_at: Option<Arc<Server>>,
    register: Round,
    renew: Round,
    renew_at: Mono,
    bucket: Bucket,
    health_interval: Option<Duration>,
    health_at: Mono,
    /// Until when the first registration waits for the health.
    patience: Mono,
    /// Changes of content that found no token.
    delayed: u64,
    leave_within: Duration,
    unregister: bool,
    leaving: Option<Box<Leaving>>,
}

/// A write under way.
#[derive(Debug)]
struct Write {
    id: RequestId,
    server: Arc<Server>,
    what: What,
    sent: Now,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Register { dirty: i64 },
    Renew,
    Cancel,
}

impl Registrar {
    pub(super) fn new(now: Now, provide: Provide) -> Self {
        let mut instance = provide.instance;
        let before = instance.last_dirty;
        instance.last_dirty = Some(next_dirty(now, before));
        let waits = provide.health_interval.is_some();
        Self {
            key: instance.key(),
            own_status: instance.status,
            instance: Arc::new(instance),
            phase: if waits {
                Phase::Starting
            } else {
                Phase::Registering
            },
            registered: None,
            paid: None,
            sent: 0,
            confirmed: None,
            server: None,
            write: None,
            missing_at: None,
            register: Round::default(),
            renew: Round::default(),
            renew_at: Mono(0),
            bucket: Bucket::new(CHANGES_AT_ONCE, CHANGE_EACH),
            health_interval: provide.health_interval.map(|each| each.max(SHORTEST_INTERVAL)),
            health_at: now.mono,
            patience: now.mono.after(HEALTH_PATIENCE),
            delayed: 0,
            leave_within: provide.leave_within,
            unregister: provide.unregister,
            leaving: None,
        }
    }

    pub(super) fn update(&mut self, now: Now, change: impl FnOnce(&mut Instance)) {
        if self.is_on_its_way_out() {
            return;
        }
        let status = self.instance.status;
        self.change(now, change);
        if self.instance.status != status {
            self.own_status = self.instance.status;
        }
    }

    pub(super) fn set_status(&mut self, now: Now, status: Status) {
        if !self.is_on_its_way_out() {
            self.own_status = status;
            self.change(now, |instance| instance.status = status);
        }
    }

    pub(super) fn set_health(&mut self, now: Now, health: Option<Status>) {
        if self.phase == Phase::Starting {
            self.phase = Phase::Registering;
        }
        let is_kept = matches!(self.own_status, Status::Starting | Status::OutOfService);
        if let Some(status) = health
            && !is_kept
            && !self.is_on_its_way_out()
        {
            self.change(now, |instance| instance.status = status);
        }
    }

    pub(super) fn servers_changed(&mut self, now: Now, had_none: bool) {
        self.register.servers_changed(now, had_none);
        self.renew.servers_changed(now, had_none);
    }

    /// Changes of content that had to wait.
    pub(super) fn delayed(&self) -> u64 {
        self.delayed
    }

    pub(super) fn is_finished(&self) -> bool {
        self.phase == Phase::Left
    }

    pub(super) fn registration(&self) -> Registration {
        Registration {
            phase: self.phase,
            server: self.server.clone(),
            confirmed: self.confirmed,
            instance: Arc::clone(&self.instance),
        }
    }

    /// Does whatever is due.
    pub(super) fn step(&mut self, now: Now, exchange: &mut Exchange) {
        if self.is_on_its_way_out() {
            self.step_out(now, exchange);
            return;
        }
        self.check_health(now, exchange);
        if self.write.is_some() || self.phase == Phase::Starting {
            return;
        }
        if self.register_due().is_some_and(|due| due <= now.mono) {
            self.send_registration(now, exchange);
        } else if self.renew_due().is_some_and(|due| due <= now.mono) {
            self.send_renewal(now, exchange);
        }
    }

    /// When there is something to do, unless an answer comes before.
    pub(super) fn due(&self) -> Option<(Mono, Reason)> {
        if self.is_on_its_way_out() {
            return self.out_due().map(|due| (due, Reason::Leave));
        }
        let free = self.write.is_none() && self.phase != Phase::Starting;
        let health = self.health_interval.map(|_| match self.phase == Phase::Starting {
            true => self.health_at.min(self.patience),
            false => self.health_at,
        });
        let register = self.register_due().filter(|_| free);
        let renew = self.renew_due().filter(|_| free);
        [
            register.map(|due| (due, Reason::Register)),
            renew.map(|due| (due, Reason::Renew)),
            health.map(|due| (due, Reason::Health)),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Whether this write is under way.
    pub(super) fn waits_for(&self, id: RequestId) -> bool {
        self.write.as_ref().is_some_and(|write| write.id == id)
    }

    pub(super) fn handle_answer(&mut self, now: Now, exchange: &mut Exchange, answer: Answer) {
        let Some(write) = self.write.take() else {
            return;
        };
        match write.what {
            What::Register { dirty } => match answer {
                Answer::Done => self.registered(now, exchange, write, dirty),
                other => self.registration_failed(now, exchange, &write, Fault::of(other)),
            },
            What::Renew => match answer {
                Answer::Done => self.renewed(now, exchange, write),
                Answer::NotFound => self.missing(now, exchange, write),
                other => self.renewal_failed(now, exchange, write, Fault::of(other)),
            },
            What::Cancel => self.cancel_answered(now, exchange, &write, answer),
        }
    }

    /// Content changes: a new dirty time, registered as soon as the bucket allows.
    fn change(&mut self, now: Now, change: impl FnOnce(&mut Instance)) {
        let mut changed = (*self.instance).clone();
        change(&mut changed);
        changed.app = Arc::clone(&self.instance.app);
        changed.instance_id.clone_from(&self.instance.instance_id);
        changed.last_dirty = self.instance.last_dirty;
        if changed.key() != self.key {
            changed.instance_id = Some(Arc::clone(self.key.id()));
        }
        if changed == *self.instance {
            return;
        }
        changed.last_dirty = Some(next_dirty(now, changed.last_dirty));
        self.instance = Arc::new(changed);
        self.register.at = self.register.at.min(now.mono);
        self.delayed += u64::from(self.paid.is_some() && self.bucket.ready_at() > now.mono);
    }

    fn check_health(&mut self, now: Now, exchange: &mut Exchange) {
        let Some(each) = self.health_interval else {
            return;
        };
        if now.mono >= self.health_at {
            exchange.tell(Event::CheckHealth);
            self.health_at = now.mono.after(each);
        }
        if self.phase == Phase::Starting && now.mono >= self.patience {
            self.phase = Phase::Registering;
        }
    }

    fn dirty(&self) -> i64 {
        self.instance.last_dirty.unwrap_or_default()
    }

    fn register_due(&self) -> Option<Mono> {
        let dirty = self.dirty();
        if self.registered == Some(dirty) {
            return None;
        }
        let must_pay = self.paid.is_some_and(|paid| paid < dirty) && self.missing_at.is_none();
        let token = if must_pay { self.bucket.ready_at() } else { Mono(0) };
        Some(self.register.at.max(token))
    }

    fn renew_due(&self) -> Option<Mono> {
        self.registered?;
        Some(self.renew_at.max(self.renew.at))
    }

    fn send_registration(&mut self, now: Now, exchange: &mut Exchange) {
        let missing_at = self.missing_at.take();
        let server = missing_at.or_else(|| self.register.choose(now, Use::Write, &mut exchange.endpoints));
        let Some(server) = server else {
            exchange.tell_of_no_servers();
            self.register.rest(now, &mut exchange.random, LONGEST_PAUSE);
            return;
        };
        let dirty = self.dirty();
        if self.paid.is_none_or(|paid| paid < dirty) {
            if self.paid.is_some() {
                self.bucket.take(now.mono);
            }
            self.paid = Some(dirty);
        }
        let within = self.write_within(exchange);
        self.write_register(now, exchange, server, within);
    }

    fn write_register(&mut self, now: Now, exchange: &mut Exchange, server: Arc<Server>, within: Duration) {
        self.sent += 1;
        let call = Call::Register(Arc::clone(&self.instance));
        let dirty = self.dirty();
        self.write(now, exchange, server, What::Register { dirty }, call, within);
    }

    fn send_renewal(&mut self, now: Now, exchange: &mut Exchange) {
        let Some(server) = self.renew.choose(now, Use::Write, &mut exchange.endpoints) else {
            exchange.tell_of_no_servers();
            self.renew
                .rest(now, &mut exchange.random, self.longest_renewal_pause());
            return;
        };
        let call = Call::Renew {
            key: self.key.clone(),
            status: self.instance.status,
            last_dirty: self.registered.unwrap_or_default(),
        };
        let within = self.write_within(exchange);
        self.write(now, exchange, server, What::Renew, call, within);
    }

    fn write(
        &mut self,
        now: Now,
        exchange: &mut Exchange,
        server: Arc<Server>,
        what: What,
        call: Call,
        within: Duration,
    ) {
        let id = exchange.send(&server, call, within);
        self.write = Some(Write {
            id,
            server,
            what,
            sent: now,
        });
    }

    fn registered(&mut self, now: Now, exchange: &mut Exchange, write: Write, dirty: i64) {
        exchange.stats.registrations += 1;
        self.registered = Some(dirty);
        self.register.succeeded();
        if self.leaving.is_none() {
            self.phase = Phase::Registered;
        }
        exchange.tell(Event::Registered {
            server: Arc::clone(&write.server),
        });
        self.taken(now, exchange, write);
    }

    fn renewed(&mut self, now: Now, exchange: &mut Exchange, write: Write) {
        exchange.stats.renewals += 1;
        exchange.tell(Event::Renewed {
            server: Arc::clone(&write.server),
        });
        self.taken(now, exchange, write);
    }

    /// The lease lasts anew, from when the write was sent: nobody can have heard it before.
    fn taken(&mut self, now: Now, exchange: &mut Exchange, write: Write) {
        exchange.endpoints.succeeded(now, Use::Write, &write.server);
        self.renew.succeeded();
        let share = exchange.share(EARLIEST_RENEWAL);
        self.renew_at = write.sent.mono.after(self.interval().mul_f64(share));
        self.confirmed = Some(write.sent);
        self.server = Some(write.server);
    }

    fn missing(&mut self, now: Now, exchange: &mut Exchange, write: Write) {
        exchange.stats.renewals_missing += 1;
        exchange.endpoints.succeeded(now, Use::Write, &write.server);
        exchange.tell(Event::Missing {
            server: Arc::clone(&write.server),
        });
        self.renew.succeeded();
        self.registered = None;
        self.register.at = now.mono;
        self.missing_at = Some(write.server);
        if self.leaving.is_none() {
            self.phase = Phase::Registering;
        }
    }

    fn registration_failed(&mut self, now: Now, exchange: &mut Exchange, write: &Write, fault: Fault) {
        exchange.stats.registrations_failed += 1;
        if is_wrong(&fault.why) {
            // No other server would take it either, and none of them is to blame.
            self.register.rest(now, &mut exchange.random, LONGEST_PAUSE);
        } else {
            exchange.failed(now, Use::Write, &write.server, &fault);
            let servers = exchange.endpoints.len();
            self.register
                .failed(now, &write.server, servers, &mut exchange.random, LONGEST_PAUSE);
        }
        self.out_failed(&write.server);
        exchange.tell(Event::RegistrationFailed {
            server: Arc::clone(&write.server),
            why: fault.why,
        });
    }

    fn renewal_failed(&mut self, now: Now, exchange: &mut Exchange, write: Write, fault: Fault) {
        exchange.stats.renewals_failed += 1;
        exchange.failed(now, Use::Write, &write.server, &fault);
        let (servers, longest) = (exchange.endpoints.len(), self.longest_renewal_pause());
        self.renew
            .failed(now, &write.server, servers, &mut exchange.random, longest);
        self.out_failed(&write.server);
        exchange.tell(Event::RenewalFailed {
            server: write.server,
            why: fault.why,
            lease_left: self.lease_left(now),
        });
    }

    /// How long a write may take: a third of the lease at most, so that one server that hangs does not cost all of it.
    fn write_within(&self, exchange: &Exchange) -> Duration {
        exchange.request_timeout.min(self.duration() / 3)
    }

    fn lease_left(&self, now: Now) -> Duration {
        let since = self.confirmed.map(|confirmed| now.mono.since(confirmed.mono));
        since.map_or(Duration::ZERO, |since| self.duration().saturating_sub(since))
    }

    /// A third of the lease at most, and less than the interval: with jitter, too.
    fn longest_renewal_pause(&self) -> Duration {
        (self.duration() / 3).min(self.interval()).div_f64(1.0 + JITTER)
    }

    fn interval(&self) -> Duration {
        seconds(
            self.instance.lease.renewal_interval_secs,
            DEFAULT_RENEWAL_INTERVAL_SECS,
        )
    }

    fn duration(&self) -> Duration {
        seconds(self.instance.lease.duration_secs, DEFAULT_DURATION_SECS)
    }

    fn is_on_its_way_out(&self) -> bool {
        matches!(self.phase, Phase::Leaving | Phase::Left)
    }
}

/// Later than the one before, whatever the clock says.
fn next_dirty(now: Now, before: Option<i64>) -> i64 {
    let wall = i64::try_from(now.wall.0).unwrap_or(i64::MAX);
    before.map_or(wall, |before| wall.max(before.saturating_add(1)))
}

fn seconds(asked: u32, default: u32) -> Duration {
    Duration::from_secs(u64::from(if asked == 0 { default } else { asked }))
}

/// Whether the request was wrong and not the server: most of 4xx. Not what says that this server does not let us in, does
/// not have the path, or is busy.
fn is_wrong(why: &Why) -> bool {
    matches!(why, Why::Refused(status @ 400..500) if !matches!(status, 401 | 403 | 404 | 408 | 429))
}
