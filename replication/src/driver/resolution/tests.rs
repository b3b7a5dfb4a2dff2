//! Rounds of questions to a DNS server that says what a test wants.

use std::sync::Arc;

use eureka_registry_core::{Clock, Event, Mono, Now, RegistryHandle, Wall};

use super::super::{Ended, Handle, Replicator, Settings};
use super::*;
use crate::config::Config;

#[path = "../../../tests/it/driver/names.rs"]
mod names;

use names::Names;

fn sources(urls: &[&str], dns: &[&str]) -> Sources {
    let urls = urls.iter().map(|url| PeerAddress::parse(url).expect("a URL"));
    let dns = dns.iter().map(|text| DnsSource::parse(text).expect("an entry"));
    let own = Own {
        hosts: vec![String::from("10.0.0.1"), String::from("me.test")],
        port: 8761,
        host_only: false,
    };
    Sources::new(urls.collect(), dns.collect(), Template::default(), own).expect("no TLS")
}

fn ids(round: &Round) -> Option<Vec<String>> {
    let peers = round.peers.as_ref()?;
    Some(peers.iter().map(|peer| peer.id().0.to_string()).collect())
}

async fn next(round: Round, sources: &Sources, names: &Names) -> Round {
    round.next(sources, Resolver::at(names.address)).await
}

#[tokio::test]
async fn everything_dns_can_say() {
    let names = Names::start(
        "eureka.test A 10.0.0.1
         eureka.test A 10.0.0.2
         eureka.test AAAA fd00::1
         six.test AAAA fd00::1
         _eureka._tcp.test SRV 7001 b.test.
         _eureka._tcp.test SRV 7002 a.test.
         _eureka._tcp.test SRV 1 .
         txt.north.test TXT zone.te st
         txt.zone.test TXT one.test_two. test:9_http://th ree.test/v2_https://four.test",
    )
    .await;
    let dns = [
        "eureka.test:8761",
        "six.test:1",
        "srv:_eureka._tcp.test",
        "txt:txt.north.test",
    ];
    let round = next(
        Round::default(),
        &sources(&["http://me.test:8761/eureka"], &dns),
        &names,
    )
    .await;
    let expected = [
        "http://10.0.0.2:8761/eureka",
        "http://[fd00::1]:1/eureka",
        "http://a.test:7002/eureka",
        "http://b.test:7001/eureka",
        "http://three.test:80/v2",
        "http://one.test:8761/eureka",
        "http://two.test:9/eureka",
    ]
    .map(String::from);
    assert_eq!(
        ids(&round),
        Some(expected.to_vec()),
        "without this node, and without TLS"
    );
    let error = round.error.expect("one peer is left out");
    assert!(error.contains("https"), "{error}");
}

#[tokio::test]
async fn what_fails_is_as_it_was_before() {
    let sources = sources(&["http://listed:1"], &["eureka.test:1"]);
    let names = Names::start("eureka.test SERVFAIL").await;
    let listed = || vec![String::from("http://listed:1/eureka")];
    let round = next(Round::default(), &sources, &names).await;
    assert_eq!(ids(&round), Some(listed()), "better some than none");
    assert!(
        round
            .error
            .as_deref()
            .is_some_and(|error| error.contains("eureka.test"))
    );

    names.set("eureka.test A 10.0.0.2");
    let round = next(round, &sources, &names).await;
    let both = [listed(), vec![String::from("http://10.0.0.2:1/eureka")]].concat();
    assert_eq!((ids(&round), &round.error), (Some(both.clone()), &None));

    names.set("eureka.test SERVFAIL");
    let round = next(round, &sources, &names).await;
    assert_eq!(ids(&round), Some(both.clone()));
    assert!(round.error.is_some());
    let round = next(round, &sources, &names).await;
    assert_eq!(ids(&round), Some(both), "remembered for as long as it takes");

    names.set("");
    let round = next(round, &sources, &names).await;
    assert_eq!((ids(&round), &round.error), (Some(listed()), &None), "it is gone");
}

#[tokio::test]
async fn nothing_at_all_is_an_error_and_only_this_node_is_not() {
    let sources = sources(&[], &["eureka.test:8761"]);
    let names = Names::start("").await;
    let round = next(Round::default(), &sources, &names).await;
    assert_eq!(ids(&round), None);
    assert!(round.error.is_some());

    names.set("eureka.test A 10.0.0.1");
    let round = next(round, &sources, &names).await;
    assert_eq!((ids(&round), &round.error), (Some(Vec::new()), &None));

    let nothing = Round::default()
        .next(&Sources::default(), Resolver::system())
        .await;
    assert_eq!((ids(&nothing), &nothing.error), (Some(Vec::new()), &None));
}

#[test]
fn peers_with_tls_are_refused() {
    let urls = vec![PeerAddress::parse("https://user:secret@peer").expect("a URL")];
    let refused = Sources::new(urls, Vec::new(), Template::default(), Own::default());
    let error = refused.expect_err("no TLS").to_string();
    assert!(error.starts_with("https://peer:443/eureka: "), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test]
async fn hosts_have_addresses() {
    assert_eq!(
        locate("[::1]", 1).await,
        ["::1".parse::<IpAddr>().expect("an address")]
    );
    assert_eq!(
        locate("127.0.0.1", 1).await,
        ["127.0.0.1".parse::<IpAddr>().expect("an address")]
    );
    assert!(locate("no host", 1).await.is_empty());
}

/// It is always the beginning.
struct Beginning;

impl Clock for Beginning {
    fn now(&self) -> Now {
        Now {
            mono: Mono(1),
            wall: Wall(1),
        }
    }
}

#[tokio::test]
async fn a_round_that_was_overtaken_does_not_bring_back_its_peers() {
    let handle = Handle::new(Config::default(), Sources::default(), Arc::new(Beginning));
    let registry = RegistryHandle::new(
        eureka_registry_core::Config::default(),
        Arc::new(Beginning),
        Arc::new(|_: &Event| {}),
    );
    let (resolver, settings) = (Resolver::system(), Settings::default());
    let mut replicator = Replicator::new(handle.clone(), registry, resolver, settings, Box::new(|_, _| {}));
    let round = |url: &str| Round {
        peers: Some(vec![PeerAddress::parse(url).expect("a URL")]),
        ..Round::default()
    };
    let peers = |handle: &Handle| -> Vec<_> {
        let facts = handle.facts().peers.into_iter();
        facts.map(|peer| peer.peer.0.to_string()).collect()
    };
    // Two are under way: names are slow, and somebody has configured other peers meanwhile.
    replicator.rounds = 2;
    for (number, url) in [(2, "http://10.0.0.2:1"), (1, "http://10.0.0.1:1")] {
        let id = tokio::spawn(async {}).id();
        replicator.ended(Ok((id, Ended::Resolved(number, round(url)))));
    }
    assert_eq!(peers(&handle), ["http://10.0.0.2:1/eureka"]);
}
