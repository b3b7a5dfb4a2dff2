//! The consumer's side: which server is read, how, and when.
#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "whatever else a server answers, now or in future, is a failure"
)]

mod held;
mod link;

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::wire::Applications;
use eureka_registry_core::{LeaseView, Mono, Now};

use self::held::{Held, Taken};
use self::link::{Link, Mode};
use super::config::{Consume, Regions, SHORTEST_INTERVAL};
use super::event::{Event, FetchKind, Fetched, PollingWhy, Why};
use super::exchange::{Exchange, Fault};
use super::pace::{Bucket, LONGEST_PAUSE, Round};
use crate::call::{Answer, Call, Change, RequestId, Scope};
use crate::endpoints::Use;
use crate::server::Server;

/// How long a server waits with its answer if there is no change. Shorter than what proxies usually bear.
pub(super) const FEED_WAIT: Duration = Duration::from_secs(25);
/// Long polls one right after the other.
const FEED_AT_ONCE: u32 = 100;
/// After those, one each: where changes never cease, a thousand readers are 20,000 requests a second, with all that happened
/// in 50 ms in each answer.
const FEED_EACH: Duration = Duration::from_millis(50);
/// After an answer in less than half the time that was empty, or that leaves the cursor where it was, not before this: a
/// proxy, or a server on its way out, does not wait as it was asked to.
pub(super) const FEED_REST: Duration = Duration::from_secs(1);
/// A feed that was no use is asked for again after this.
const FEED_AGAIN: Duration = Duration::from_secs(5 * 60);
/// Failures of feeds in a row after which lists are read instead, if those do not fail.
const FEED_FAILURES: u32 = 2;
/// A poll is due after this share of the interval at the earliest, after all of it at the latest.
const EARLIEST_POLL: f64 = 0.85;
/// Between two polls that the owner asks for.
const REFRESH_EACH: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Fetcher {
    consume: Consume,
    regions: Arc<[Arc<str>]>,
    filter: Option<Arc<str>>,
    held: Held,
    link: Option<Link>,
    read: Option<Read>,
    round: Round,
    /// When to poll next.
    poll_at: Mono,
    /// When a full list is due in any case.
    full_at: Mono,
    /// Whether a full list is wanted whatever else is possible.
    wants_full: bool,
    /// When the last full list was fetched because of a hash.
    mismatch_at: Option<Mono>,
    /// Since when full lists are empty.
    empty_since: Option<Mono>,
    feed: Feed,
    /// What the owner was told last of the way of reading.
    told: Option<(Arc<Server>, Option<PollingWhy>)>,
    is_over: bool,
}

/// How feeds fare, whichever server's.
#[derive(Debug)]
struct Feed {
    bucket: Bucket,
    /// No long poll before this.
    rest_until: Mono,
    /// No feed before this.
    again_at: Mono,
    /// Failures without a success between.
    failures: u32,
    /// Whether a full list was read since the last failure.
    lists_work: bool,
    /// When a cursor was gone, last.
    gone_at: Option<Mono>,
}

/// A read under way.
#[derive(Debug)]
struct Read {
    id: RequestId,
    server: Arc<Server>,
    what: What,
    sent: Mono,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum What {
    /// Whether there is a feed, and its cursor.
    Ask,
    Full,
    Delta,
    Changes,
}

impl Fetcher {
    pub(super) fn new(now: Now, consume: Consume) -> Self {
        Self {
            regions: consume.regions.query(),
            filter: filter(&consume.scope),
            held: Held::new(consume.scope.clone()),
            consume: Consume {
                interval: consume.interval.max(SHORTEST_INTERVAL),
                full_interval: consume.full_interval.max(SHORTEST_INTERVAL),
                ..consume
            },
            link: None,
            read: None,
            round: Round::default(),
            poll_at: now.mono,
            full_at: now.mono,
            wants_full: false,
            mismatch_at: None,
            empty_since: None,
            feed: Feed {
                bucket: Bucket::new(FEED_AT_ONCE, FEED_EACH),
                rest_until: Mono(0),
                again_at: Mono(0),
                failures: 0,
                lists_work: true,
                gone_at: None,
            },
            told: None,
            is_over: false,
        }
    }

    pub(super) fn begin_with(&mut self, views: Vec<LeaseView>) {
        self.held.begin_with(views);
    }

    pub(super) fn refresh(&mut self, now: Now) {
        let last = self.held.base().map_or(Mono(0), |base| base.asked);
        let soon = last.after(REFRESH_EACH).max(now.mono);
        self.poll_at = self.poll_at.min(soon);
    }

    /// Stops for good.
    pub(super) fn stop(&mut self, exchange: &mut Exchange) {
        self.is_over = true;
        if let Some(read) = self.read.take() {
            exchange.withdraw(read.id);
        }
    }

    pub(super) fn servers_changed(&mut self, now: Now, had_none: bool) {
        self.round.servers_changed(now, had_none);
    }

    /// Whether this read is under way.
    pub(super) fn waits_for(&self, id: RequestId) -> bool {
        self.read.as_ref().is_some_and(|read| read.id == id)
    }

    /// When to read, unless an answer comes before.
    pub(super) fn due(&self) -> Option<Mono> {
        if self.is_over || self.read.is_some() {
            return None;
        }
        let due = match self.link.as_ref().map(|link| &link.mode) {
            None | Some(Mode::Ask | Mode::Filling { .. }) => Mono(0),
            Some(Mode::Following { .. }) if self.wants_full => Mono(0),
            Some(Mode::Following { .. }) => self.feed.bucket.ready_at().max(self.feed.rest_until),
            Some(Mode::Polling(_)) => self.poll_at,
        };
        Some(due.max(self.round.at))
    }

    /// Does whatever is due.
    pub(super) fn step(&mut self, now: Now, exchange: &mut Exchange) {
        if self.due().is_none_or(|due| due > now.mono) {
            return;
        }
        let Some(server) = self.round.choose(now, Use::Read, &mut exchange.endpoints) else {
            exchange.tell_of_no_servers();
            self.round.rest(now, &mut exchange.random, LONGEST_PAUSE);
            return;
        };
        if self.link.as_ref().is_none_or(|link| link.server != server) {
            let mode = self.first_mode(now);
            let ask_at = self.ask_at(now, &mode);
            self.link = Some(Link::new(Arc::clone(&server), mode, ask_at));
        }
        self.send(now, exchange, &server);
    }

    pub(super) fn handle_answer(&mut self, now: Now, exchange: &mut Exchange, answer: Answer) {
        let Some(read) = self.read.take() else {
            return;
        };
        match read.what {
            What::Ask => self.asked(now, exchange, &read, answer),
            What::Full => self.full(now, exchange, read, answer),
            What::Delta => self.delta(now, exchange, read, answer),
            What::Changes => self.changes(now, exchange, read, answer),
        }
    }

    /// How a server is read that was not read before.
    fn first_mode(&self, now: Now) -> Mode {
        match self.consume.regions {
            _ if !self.consume.feed => Mode::Polling(PollingWhy::Configured),
            Regions::Named(_) => Mode::Polling(PollingWhy::NamedRegions),
            Regions::Local | Regions::Own if now.mono < self.feed.again_at => {
                Mode::Polling(PollingWhy::FeedFailed)
            }
            Regions::Local | Regions::Own => Mode::Ask,
        }
    }

    /// When a server that is read in this way is asked for its feed (again).
    fn ask_at(&self, now: Now, mode: &Mode) -> Option<Mono> {
        match mode {
            Mode::Polling(PollingWhy::NoFeed) => Some(now.mono.after(self.consume.full_interval)),
            Mode::Polling(PollingWhy::FeedFailed) => Some(self.feed.again_at),
            Mode::Polling(_) | Mode::Ask | Mode::Filling { .. } | Mode::Following { .. } => None,
        }
    }

    fn send(&mut self, now: Now, exchange: &mut Exchange, server: &Arc<Server>) {
        let what = self.what(now);
        let mut within = exchange.request_timeout;
        let call = match what {
            What::Ask => Call::Changes {
                since: None,
                filter: self.filter.clone(),
                wait: Duration::ZERO,
            },
            What::Full => Call::Fetch {
                what: self.consume.scope.clone(),
                regions: Arc::clone(&self.regions),
                held: self.held.tag(server),
            },
            What::Delta => Call::Delta {
                regions: Arc::clone(&self.regions),
            },
            What::Changes => {
                self.feed.bucket.take(now.mono);
                within += FEED_WAIT;
                Call::Changes {
                    since: self.link.as_ref().and_then(Link::cursor),
                    filter: self.filter.clone(),
                    wait: FEED_WAIT,
                }
            }
        };
        let id = exchange.send(server, call, within);
        self.read = Some(Read {
            id,
            server: Arc::clone(server),
            what,
            sent: now.mono,
        });
    }

    /// What to ask of the server that was chosen.
    fn what(&mut self, now: Now) -> What {
        let feed_fails = self.feed.failures >= FEED_FAILURES && !self.feed.lists_work;
        let is_full_due = self.wants_full || now.mono >= self.full_at;
        let can_delta = self.consume.delta && self.consume.scope == Scope::All && !is_full_due;
        let retention = self.consume.delta_retention;
        let Some(link) = &mut self.link else {
            return What::Full;
        };
        let base = self.held.base().filter(|base| base.server == link.server);
        if link.ask_at.is_some_and(|at| at <= now.mono) {
            link.ask_at = None;
            link.mode = Mode::Ask;
        }
        match link.mode {
            Mode::Ask if feed_fails => What::Full,
            Mode::Ask => What::Ask,
            Mode::Filling { .. } => What::Full,
            Mode::Following { .. } if feed_fails || is_full_due || base.is_none() => What::Full,
            Mode::Following { .. } => What::Changes,
            Mode::Polling(_) => {
                let is_recent = base.is_some_and(|base| now.mono.since(base.asked) <= retention);
                match can_delta && is_recent && now.mono >= link.delta_at {
                    true => What::Delta,
                    false => What::Full,
                }
            }
        }
    }

    fn asked(&mut self, now: Now, exchange: &mut Exchange, read: &Read, answer: Answer) {
        let mode = match answer {
            Answer::Changes { remote: true, .. } if self.consume.regions == Regions::Local => {
                Mode::Polling(PollingWhy::OtherRegions)
            }
            Answer::Changes { cursor, .. } => Mode::Filling { cursor },
            Answer::TimedOut
            | Answer::Unreachable(_)
            | Answer::Refused {
                status: 429 | 502..=504,
                ..
            } => {
                self.feed_failed(now);
                self.failed(now, exchange, &read.server, Fault::of(answer));
                return;
            }
            // Whatever else it says: not a server with a feed, or one behind somebody who does not let it through. If it
            // serves lists, it is read by them.
            Answer::NotFound
            | Answer::Gone
            | Answer::Refused { .. }
            | Answer::Garbage(_)
            | Answer::Done
            | Answer::List { .. }
            | Answer::Unchanged => Mode::Polling(PollingWhy::NoFeed),
        };
        self.go_on(now, mode);
    }

    fn full(&mut self, now: Now, exchange: &mut Exchange, read: Read, answer: Answer) {
        match answer {
            Answer::List { applications, tag } => self.full_list(now, exchange, read, applications, tag),
            Answer::Unchanged if self.held.tag(&read.server).is_some() => {
                exchange.stats.unchanged += 1;
                self.held.confirm(read.sent);
                self.full_done(now, exchange);
                self.fetched(now, exchange, read, FetchKind::Unchanged);
            }
            other => self.failed(now, exchange, &read.server, Fault::of(other)),
        }
    }

    fn full_list(
        &mut self,
        now: Now,
        exchange: &mut Exchange,
        read: Read,
        applications: Applications,
        tag: Option<Arc<str>>,
    ) {
        if applications.instances.is_empty() && !self.held.is_empty() {
            let since = *self.empty_since.get_or_insert(now.mono);
            if now.mono.since(since) < self.consume.hold_empty {
                exchange.stats.held_empty += 1;
                self.failed(now, exchange, &read.server, Fault::why(Why::Empty));
                return;
            }
        }
        self.held.replace(&read.server, read.sent, applications, tag);
        exchange.stats.full += 1;
        self.full_done(now, exchange);
        self.fetched(now, exchange, read, FetchKind::Full);
    }

    fn full_done(&mut self, now: Now, exchange: &mut Exchange) {
        self.wants_full = false;
        self.feed.lists_work = true;
        let share = exchange.share(EARLIEST_POLL);
        self.full_at = now.mono.after(self.consume.full_interval.mul_f64(share));
        if let Some(link) = &mut self.link
            && let Mode::Filling { cursor } = &link.mode
        {
            link.mode = Mode::Following {
                cursor: Arc::clone(cursor),
            };
        }
    }

    fn delta(&mut self, now: Now, exchange: &mut Exchange, read: Read, answer: Answer) {
        match answer {
            Answer::List { applications, .. } => {
                let has_hash = applications.hash.is_some();
                match self.held.apply_delta(read.sent, applications) {
                    Taken::Matching => {}
                    Taken::Unchecked => exchange.stats.hash_skipped += u64::from(has_hash),
                    Taken::Differing => {
                        exchange.stats.hash_mismatches += 1;
                        self.wants_full = true;
                        let least = self.consume.interval.mul_f64(EARLIEST_POLL / 2.0);
                        if self.mismatch_at.is_none_or(|at| now.mono.since(at) >= least) {
                            self.mismatch_at = Some(now.mono);
                            self.held.roll_back();
                            self.poll_at = now.mono;
                            return;
                        }
                    }
                }
                exchange.stats.delta += 1;
                self.fetched(now, exchange, read, FetchKind::Delta);
            }
            Answer::NotFound | Answer::Refused { status: 403, .. } => {
                // Deltas are switched off there.
                if let Some(link) = &mut self.link {
                    link.delta_at = now.mono.after(self.consume.full_interval);
                }
                self.poll_at = now.mono;
            }
            other => self.failed(now, exchange, &read.server, Fault::of(other)),
        }
    }

    fn changes(&mut self, now: Now, exchange: &mut Exchange, read: Read, answer: Answer) {
        match answer {
            Answer::Changes { remote: true, .. } if self.consume.regions == Regions::Local => {
                self.go_on(now, Mode::Polling(PollingWhy::OtherRegions));
            }
            Answer::Changes { cursor, changes, .. } => {
                self.follow(now, exchange, read, cursor, changes);
            }
            Answer::Gone => {
                exchange.stats.feed_gone += 1;
                let before = self.feed.gone_at.replace(now.mono);
                let is_often = before.is_some_and(|at| now.mono.since(at) < self.consume.interval);
                if is_often {
                    self.feed.again_at = now.mono.after(FEED_AGAIN);
                }
                self.go_on(now, self.first_mode(now));
            }
            Answer::NotFound => self.go_on(now, Mode::Polling(PollingWhy::NoFeed)),
            other => {
                self.feed_failed(now);
                self.failed(now, exchange, &read.server, Fault::of(other));
            }
        }
    }

    fn follow(
        &mut self,
        now: Now,
        exchange: &mut Exchange,
        read: Read,
        cursor: Arc<str>,
        changes: Vec<Change>,
    ) {
        let is_news =
            !changes.is_empty() && self.link.as_ref().and_then(Link::cursor) != Some(Arc::clone(&cursor));
        if !is_news && now.mono.since(read.sent) < FEED_WAIT / 2 {
            self.feed.rest_until = read.sent.after(FEED_REST);
        }
        self.feed.failures = 0;
        if let Some(link) = &mut self.link {
            link.mode = Mode::Following { cursor };
        }
        self.held.apply_changes(now.mono, changes);
        exchange.stats.feed += 1;
        self.fetched(now, exchange, read, FetchKind::Feed);
    }

    /// From now on this server is read in another way, beginning with a full list at once.
    fn go_on(&mut self, now: Now, mode: Mode) {
        self.wants_full = true;
        self.poll_at = now.mono;
        let ask_at = self.ask_at(now, &mode);
        if let Some(link) = &mut self.link {
            link.mode = mode;
            link.ask_at = ask_at;
        }
    }

    fn feed_failed(&mut self, now: Now) {
        self.feed.failures = self.feed.failures.saturating_add(1);
        let is_to_blame = self.feed.failures >= FEED_FAILURES && self.feed.lists_work;
        self.feed.lists_work = false;
        if is_to_blame {
            self.feed.failures = 0;
            self.feed.again_at = now.mono.after(FEED_AGAIN);
            self.go_on(now, Mode::Polling(PollingWhy::FeedFailed));
        }
    }

    fn failed(&mut self, now: Now, exchange: &mut Exchange, server: &Arc<Server>, fault: Fault) {
        exchange.stats.fetches_failed += 1;
        exchange.failed(now, Use::Read, server, &fault);
        let longest = self.consume.interval.min(LONGEST_PAUSE);
        let servers = exchange.endpoints.len();
        self.round
            .failed(now, server, servers, &mut exchange.random, longest);
        exchange.tell(Event::FetchFailed {
            server: Some(Arc::clone(server)),
            why: fault.why,
        });
    }

    fn fetched(&mut self, now: Now, exchange: &mut Exchange, read: Read, kind: FetchKind) {
        exchange.endpoints.succeeded(now, Use::Read, &read.server);
        self.round.succeeded();
        let share = exchange.share(EARLIEST_POLL);
        self.poll_at = read.sent.after(self.consume.interval.mul_f64(share));
        self.tell_the_way(exchange);
        let snapshot = self.held.snapshot();
        if !snapshot.is_empty() {
            // Whoever has somebody to tell of, in whichever way, refutes the empty lists before.
            self.empty_since = None;
        }
        exchange.tell(Event::Fetched(Fetched {
            snapshot,
            server: read.server,
            kind,
        }));
    }

    /// Tells how the server is read from now on, if that is news.
    fn tell_the_way(&mut self, exchange: &mut Exchange) {
        let Some(link) = &self.link else {
            return;
        };
        let why = match link.mode {
            Mode::Following { .. } => None,
            Mode::Polling(why) => Some(why),
            Mode::Ask | Mode::Filling { .. } => return,
        };
        let way = (Arc::clone(&link.server), why);
        if self.told.as_ref() != Some(&way) {
            let server = Arc::clone(&link.server);
            exchange.tell(match why {
                None => Event::Following { server },
                Some(why) => Event::Polling { server, why },
            });
            self.told = Some(way);
        }
    }
}

/// What selects the scope in the language of filters.
fn filter(scope: &Scope) -> Option<Arc<str>> {
    let (field, address) = match scope {
        Scope::All => return None,
        Scope::Vip(address) => ("vip", address),
        Scope::SecureVip(address) => ("secure-vip", address),
    };
    let escaped = address.replace('\\', "\\\\").replace('"', "\\\"");
    Some(format!("{field} == \"{escaped}\"").into())
}
