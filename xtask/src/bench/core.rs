//! The longest single call of the registry: nobody waits longer than that for its lock.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use eureka_registry_core::{
    Config, Instance, InstanceKey, Mono, Now, Origin, PeerId, Registry, Renewed, RepairAnswer, RepairRequest,
    Stats, Status, Step, Wall,
};
use rustix::time::{ClockId, clock_gettime};

use crate::stopwatch::Stopwatch;

/// No call may take longer, whatever the number of leases.
const CALL_MAX: Duration = Duration::from_millis(2);
/// Clients renew this often, as Eureka's do by default.
const RENEWAL_MILLIS: u64 = 30_000;
/// What changed counts in the digest after so long.
const SETTLED_MILLIS: u64 = 2_000;
/// Calls that change something between two readers.
const CALLS_PER_SNAPSHOT: usize = 1_000;

/// Times every call with that many leases, in applications of a hundred and in a single one.
pub(super) fn measure(leases: usize) -> Result<String> {
    let mut text = format!("{}. {leases} leases.\n", super::report::machine());
    for applications in [leases / 100, 1] {
        println!("{leases} leases in {applications} applications");
        let mut bench = Bench::new(leases, applications.max(1));
        bench.run()?;
        write!(
            text,
            "\n{} applications:\n\n{}",
            applications.max(1),
            bench.table()
        )?;
    }
    Ok(text)
}

struct Bench {
    registry: Registry,
    millis: u64,
    /// When `handle_timeout` was called last.
    called: u64,
    applications: usize,
    keys: Vec<InstanceKey>,
    calls: BTreeMap<&'static str, Calls>,
}

/// How long the calls of one kind took.
#[derive(Default)]
struct Calls {
    count: u64,
    total: Duration,
    /// The longest by the clock on the wall, which other processes on the machine can lengthen.
    longest: Duration,
    /// The longest by the CPU time of the thread.
    longest_cpu: Duration,
    over: u64,
}

impl Bench {
    fn new(leases: usize, applications: usize) -> Self {
        let config = Config {
            seed: [1, 2],
            ..Config::default()
        };
        let mut bench = Self {
            registry: Registry::new(now(0), config),
            millis: 0,
            called: 0,
            applications,
            keys: Vec::new(),
            calls: BTreeMap::new(),
        };
        bench.keys = (0..leases)
            .map(|number| bench.instance(number, 0).key())
            .collect();
        bench
    }

    fn run(&mut self) -> Result<()> {
        self.time("open", |now, registry| registry.open(now, 0, None));
        self.register_all();
        for _ in 0..3 {
            self.renew(0)?;
        }
        self.change();
        self.repair()?;
        let tenth = self.keys.len() / 10;
        self.lose(tenth, "a tenth of the leases lost")?;
        let evicted = self.stats().evictions;
        ensure!(evicted > 0, "a tenth of the leases ran out and none was evicted");
        self.lose(self.keys.len() / 2, "half of the leases lost")?;
        self.cancel();
        Ok(())
    }

    /// Everybody registers within one renewal interval; nobody reads meanwhile, then somebody does.
    fn register_all(&mut self) {
        let leases = self.keys.len();
        for number in 0..leases {
            self.advance_to(RENEWAL_MILLIS * number as u64 / leases as u64);
            let instance = Arc::new(self.instance(number, 0));
            self.time("register, new", |now, registry| {
                registry.register(now, Origin::Client, instance, Duration::ZERO)
            });
        }
        self.time("snapshot, first of all", |now, registry| registry.snapshot(now));
    }

    /// Everybody but the first `silent` renews once in the next interval, with readers now and then.
    fn renew(&mut self, silent: usize) -> Result<()> {
        let start = self.millis;
        let leases = self.keys.len();
        let mut missing = 0;
        for number in silent..leases {
            self.advance_to(start + RENEWAL_MILLIS * number as u64 / leases as u64);
            let key = self.keys[number].clone();
            let renewed = self.time("renew", |now, registry| {
                registry.renew(now, Origin::Client, &key, Some(DIRTY), None)
            });
            missing += usize::from(matches!(renewed, Renewed::Missing));
            if number % CALLS_PER_SNAPSHOT == 0 {
                self.time("snapshot", |now, registry| registry.snapshot(now));
            }
        }
        self.advance_to(start + RENEWAL_MILLIS);
        ensure!(missing == 0, "{missing} renewals found no lease");
        Ok(())
    }

    /// Single changes all over the registry, each read at once.
    fn change(&mut self) {
        for step in 0..10_000 {
            let number = step * 7_919 % self.keys.len();
            let instance = Arc::new(self.instance(number, 1 + step as i64));
            self.time("register, changed", |now, registry| {
                registry.register(now, Origin::Client, instance, Duration::ZERO)
            });
            self.time("snapshot", |now, registry| registry.snapshot(now));
            let key = self.keys[number].clone();
            self.time("override", |now, registry| {
                registry.set_override(now, Origin::Client, &key, Status::OutOfService, None)
            });
            self.time("clear override", |now, registry| {
                registry.clear_override(now, Origin::Client, &key, Some(Status::Up), None)
            });
            let snapshot = self.time("snapshot", |now, registry| registry.snapshot(now));
            drop(snapshot);
            self.advance_to(self.millis + 1);
        }
    }

    /// What a peer that has just started asks, and one that has been away; everything counts in the digest.
    fn repair(&mut self) -> Result<()> {
        self.advance_to(self.millis + 2 * SETTLED_MILLIS);
        let peer = || Origin::Peer(PeerId(Arc::from("peer")));
        let mut step = Step::Copy { after: None };
        loop {
            let request = self.time("repair, ask", |now, registry| registry.repair_request(now, &step));
            let answer = self.time("repair, copy a page", |now, registry| {
                registry.repair_answer(now, peer(), request)
            });
            let RepairAnswer::Copy { offers, more, .. } = answer else {
                anyhow::bail!("another answer than asked for");
            };
            match offers.last() {
                Some(last) if more => {
                    step = Step::Copy {
                        after: Some(last.key()),
                    }
                }
                _ => break,
            }
        }
        let late: Vec<_> = self.keys.iter().take(1_000).cloned().collect();
        let compare = RepairRequest::Compare { root: 0, late };
        self.time("repair, compare", |now, registry| {
            registry.repair_answer(now, peer(), compare)
        });
        for bucket in 0..100 {
            let list = RepairRequest::List {
                buckets: (bucket..1_024).collect(),
            };
            self.time("repair, list", |now, registry| {
                registry.repair_answer(now, peer(), list)
            });
            let step = Step::List {
                buckets: (bucket..1_024).collect(),
            };
            let nothing = RepairAnswer::List { entries: Vec::new() };
            self.time("repair, plan", |now, registry| {
                registry.learn(now, peer(), now.mono, &step, nothing)
            });
        }
        for keys in self
            .keys
            .chunks(1_000)
            .take(100)
            .map(<[InstanceKey]>::to_vec)
            .collect::<Vec<_>>()
        {
            let exchange = RepairRequest::Exchange {
                pull: keys,
                push: Vec::new(),
            };
            self.time("repair, exchange", |now, registry| {
                registry.repair_answer(now, peer(), exchange)
            });
        }
        Ok(())
    }

    /// The first `silent` stop renewing; the others go on for five intervals, and preservation is looked at.
    fn lose(&mut self, silent: usize, what: &str) -> Result<()> {
        println!("{what}");
        for _ in 0..5 {
            self.renew(silent)?;
            self.time("explain", |now, registry| registry.explain(now));
        }
        let stats = self.stats();
        println!("held {}, evicted {}", stats.instances, stats.evictions);
        Ok(())
    }

    fn cancel(&mut self) {
        let leases = self.keys.len();
        for key in self.keys.split_off(leases - leases / 10) {
            self.time("cancel", |now, registry| {
                registry.cancel(now, Origin::Client, &key)
            });
        }
        self.time("snapshot", |now, registry| registry.snapshot(now));
    }

    fn stats(&mut self) -> Stats {
        self.time("stats", |_, registry| registry.stats())
    }

    /// Lets time pass and calls the registry whenever it asked for it, and every second: longer is a pause to it.
    fn advance_to(&mut self, end: u64) {
        loop {
            let second = self.called + 1_000;
            let due = self
                .registry
                .poll_timeout()
                .map_or(second, |(due, _)| due.0.min(second));
            if due > end {
                break;
            }
            self.millis = self.millis.max(due);
            self.called = self.millis;
            self.time("handle_timeout", |now, registry| registry.handle_timeout(now));
        }
        self.millis = self.millis.max(end);
    }

    /// Times one call, then drains what it caused, as the owner of a registry does.
    fn time<T>(&mut self, kind: &'static str, call: impl FnOnce(Now, &mut Registry) -> T) -> T {
        let now = now(self.millis);
        let (cpu, stopwatch) = (thread_cpu(), Stopwatch::start());
        let result = call(now, &mut self.registry);
        let (took, cpu) = (stopwatch.elapsed(), thread_cpu().saturating_sub(cpu));
        let calls = self.calls.entry(kind).or_default();
        calls.count += 1;
        calls.total += took;
        calls.longest = calls.longest.max(took);
        calls.longest_cpu = calls.longest_cpu.max(cpu);
        calls.over += u64::from(cpu > CALL_MAX);
        while self.registry.poll_event().is_some() {}
        result
    }

    fn instance(&self, number: usize, generation: i64) -> Instance {
        let application = number % self.applications;
        let host = format!("host-{number}.example.internal");
        let id = format!("host-{number}:app-{application}:8080");
        let mut instance = Instance::new(&format!("APP-{application}"), &id, &host, "10.0.0.1");
        instance.vip_address = Some(Arc::from(format!("app-{application}")));
        instance.metadata.insert("zone", ["a", "b", "c"][number % 3]);
        instance.metadata.insert("version", &generation.to_string());
        instance.last_dirty = Some(DIRTY + generation);
        instance
    }

    fn table(&self) -> String {
        let mut text = String::from(
            "| call | calls | mean us | longest us, CPU | longest us, wall | over 2 ms CPU |\n|---|--:|--:|--:|--:|--:|\n",
        );
        for (kind, calls) in &self.calls {
            let mean = calls.total.as_secs_f64() * 1e6 / calls.count as f64;
            let (cpu, wall) = (calls.longest_cpu.as_micros(), calls.longest.as_micros());
            writeln!(
                text,
                "| {kind} | {} | {mean:.2} | {cpu} | {wall} | {} |",
                calls.count, calls.over
            )
            .expect("a String takes all");
        }
        text
    }
}

const DIRTY: i64 = 1_700_000_000_000;

fn now(millis: u64) -> Now {
    Now {
        mono: Mono(millis),
        wall: Wall(1_700_000_000_000 + millis),
    }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
