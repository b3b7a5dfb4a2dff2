//! Asks the servers: who they are, whom they know, what they list, and how leases move while we watch.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::InstanceKey;
use eureka_registry_core::wire::Route;
use eureka_replication::PeerAddress;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::ask::Asker;
use super::meet::{Met, identify, meet};
use super::observation::{Answering, Look, Observations, Server};
use super::{read, sample};

/// Time for all questions, besides the time to watch.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at the instance in question.
const STEP: Duration = Duration::from_secs(1);
/// Questions under way at a time.
const AT_ONCE: usize = 8;
/// Addresses of peers that are asked who answers there.
const ADDRESSES: usize = 50;
const JSON: &str = "application/json";

/// Asks all of them, and watches leases for a while.
pub(super) async fn observe(
    servers: Vec<PeerAddress>,
    subject: Option<InstanceKey>,
    watch: Duration,
) -> Observations {
    let asker = Asker::new(PATIENCE + watch);
    let names: Vec<_> = servers.iter().map(|server| server.id().0.to_string()).collect();
    let hosts: Vec<_> = servers.iter().map(|server| server.host.clone()).collect();
    let mut met = each(servers.into_iter().map(move |server| meet(asker, server))).await;
    let addresses = answering(asker, &met).await;
    let keys = match &subject {
        Some(key) => vec![key.clone()],
        None => {
            read_lists(asker, &mut met).await;
            let lists: Vec<_> = met.iter().flatten().map(|met| &met.answers.list).collect();
            sample::choose(&lists)
        }
    };
    let step = if subject.is_some() { STEP } else { watch };
    look_while(asker, &mut met, &keys, watch, step).await;
    if let Some(key) = &subject {
        look_by_id(asker, &mut met, key).await;
    }
    // After the single looks: what a list does not show then is kept back by a cache.
    read_lists(asker, &mut met).await;
    let servers = met
        .into_iter()
        .zip(names)
        .zip(hosts)
        .map(|((met, name), host)| Server {
            name,
            host,
            answers: met.map(|met| met.answers),
        });
    Observations {
        servers: servers.collect(),
        addresses,
        subject,
        watched: watch,
    }
}

type Meetings = Vec<Result<Met, String>>;

/// Who answers at the addresses of the peers.
async fn answering(asker: Asker, met: &Meetings) -> BTreeMap<String, Answering> {
    let told: BTreeSet<&str> = met
        .iter()
        .flatten()
        .flat_map(|met| met.answers.peers.iter().flatten())
        .map(|peer| peer.address.as_str())
        .collect();
    let questions: Vec<_> = told
        .into_iter()
        .filter_map(|text| PeerAddress::parse(text).ok())
        .take(ADDRESSES)
        .map(|mut address| {
            // Credentials go where their owner named them for, and nowhere else.
            let named = met.iter().flatten().find(|met| {
                let named = &met.address;
                (&named.scheme, &named.host, named.port) == (&address.scheme, &address.host, address.port)
            });
            address.credentials = named.and_then(|named| named.address.credentials.clone());
            async move { (address.id().0.to_string(), identify(asker, &address).await) }
        })
        .collect();
    let answered = each(questions).await;
    let answered = answered.into_iter().map(|(address, identified)| {
        let answering = match identified {
            Ok(who) => Answering {
                identities: who.identities,
                failure: None,
            },
            Err(failure) => Answering {
                identities: Vec::new(),
                failure: Some(failure),
            },
        };
        (address, answering)
    });
    answered.collect()
}

async fn read_lists(asker: Asker, met: &mut Meetings) {
    let questions: Vec<_> = met
        .iter()
        .flatten()
        .map(|met| {
            let server = met.address.clone();
            async move {
                let target = format!("{}/apps", server.path);
                read::list(asker.get(&server, &target, JSON, 0).await)
            }
        })
        .collect();
    let lists = each(questions).await;
    for (met, list) in met.iter_mut().flatten().zip(lists) {
        met.answers.list = list;
    }
}

/// Looks now, at every step, and when the time is over.
async fn look_while(asker: Asker, met: &mut Meetings, keys: &[InstanceKey], watch: Duration, step: Duration) {
    let start = Instant::from_std(crate::clock::instant());
    let mut passed = Duration::ZERO;
    loop {
        look(asker, met, keys).await;
        if passed >= watch || keys.is_empty() {
            return;
        }
        passed = (passed + step).min(watch);
        sleep_until(start + passed).await;
    }
}

async fn look(asker: Asker, met: &mut Meetings, keys: &[InstanceKey]) {
    let mut questions = Vec::new();
    for (index, met) in met.iter().enumerate() {
        let Ok(met) = met else { continue };
        for key in keys {
            let route = Route::Instance {
                app: (&**key.app()).into(),
                id: (&**key.id()).into(),
            };
            let target = target(&met.address, &route);
            let (server, key) = (met.address.clone(), key.clone());
            questions.push(async move {
                let reply = asker.get(&server, &target, JSON, 0).await.ok()?;
                let at = reply.received;
                let seen = read::single(&reply)?;
                Some((index, key, Look { at, seen }))
            });
        }
    }
    for (index, key, look) in each(questions).await.into_iter().flatten() {
        if let Ok(met) = &mut met[index] {
            met.answers.looks.entry(key).or_default().push(look);
        }
    }
}

async fn look_by_id(asker: Asker, met: &mut Meetings, key: &InstanceKey) {
    let route = Route::InstanceById {
        id: (&**key.id()).into(),
    };
    let questions: Vec<_> = met
        .iter()
        .flatten()
        .map(|met| {
            let (server, target) = (met.address.clone(), target(&met.address, &route));
            async move {
                let reply = asker.get(&server, &target, JSON, 0).await.ok()?;
                Some(read::single(&reply)??.key())
            }
        })
        .collect();
    let keys = each(questions).await;
    for (met, key) in met.iter_mut().flatten().zip(keys) {
        met.answers.by_id = key;
    }
}

/// A route below the path of this server's API.
fn target(server: &PeerAddress, route: &Route<'_>) -> String {
    let printed = route.to_string();
    let below = printed.strip_prefix("/eureka").unwrap_or(&printed);
    format!("{}{below}", server.path)
}

/// All answers, in the order of the questions; at most [`AT_ONCE`] are asked at a time.
async fn each<F>(questions: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    let tasks: Vec<_> = questions
        .into_iter()
        .map(|question| {
            let permits = Arc::clone(&permits);
            tokio::spawn(async move {
                let _permit = permits.acquire().await;
                question.await
            })
        })
        .collect();
    let mut answers = Vec::with_capacity(tasks.len());
    for task in tasks {
        answers.push(task.await.expect("no question panics"));
    }
    answers
}
