//! Servers found through DNS, asked of a server of DNS that says what a test wants.

use eureka_client::{DnsError, ServerSource, Servers};

use super::*;
use crate::dns::Names;

fn shown(servers: &[Arc<Server>]) -> Vec<String> {
    servers.iter().map(|server| format!("{server:?}")).collect()
}

fn scheme(secure: bool) -> ServerSource {
    ServerSource::Txt {
        region: "north".into(),
        domain: "example.com".into(),
        port: 8761,
        path: "/eureka/".into(),
        secure,
    }
}

const ZONES: &str = "txt.north.example.com TXT z-1.example.com+ z-2.example.com
txt.z-1.example.com TXT host-1.example.com+host-2.example.com:7001
txt.z-2.example.com TXT http://name:secret@host-3:80/v2/+[fd00::1]";

#[tokio::test]
async fn zones_and_hosts_by_the_scheme_of_eureka() {
    let names = Names::start(ZONES).await;
    let (servers, failures) = scheme(false).resolve(&names.resolver()).await;
    assert_eq!(failures, []);
    let expected = [
        "Server(http://host-1.example.com:8761/eureka/ in z-1)",
        "Server(http://host-2.example.com:7001/eureka/ in z-1)",
        "Server(http://[fd00::1]:8761/eureka/ in z-2)",
        "Server(http://host-3:80/v2/ in z-2)",
    ];
    assert_eq!(shown(&servers), expected);
    assert_eq!(servers[3].credentials(), Some("name:secret"));
    let (servers, _) = scheme(true).resolve(&names.resolver()).await;
    assert_eq!(servers[0].to_string(), "https://host-1.example.com:8761/eureka/");
}

#[tokio::test]
async fn every_address_of_a_name_is_a_server() {
    let zone = "eureka.svc A 10.0.0.2\neureka.svc A 10.0.0.1\neureka.svc AAAA fd00::1\nsix.svc AAAA fd00::1";
    let names = Names::start(zone).await;
    let name = |url: &str| ServerSource::Name(Server::parse(url).unwrap().in_zone("x"));
    let (servers, failures) = name("http://a:b@eureka.svc:8761/eureka/")
        .resolve(&names.resolver())
        .await;
    assert_eq!(failures, []);
    let expected = [
        "Server(http://10.0.0.1:8761/eureka/ in x)",
        "Server(http://10.0.0.2:8761/eureka/ in x)",
    ];
    assert_eq!(shown(&servers), expected, "sorted, one family");
    assert_eq!(servers[0].credentials(), Some("a:b"));
    let (servers, _) = name("http://six.svc/").resolve(&names.resolver()).await;
    assert_eq!(shown(&servers), ["Server(http://[fd00::1]:80/ in x)"]);
    for kept in [
        "https://eureka.svc:8761/eureka/",
        "http://10.0.0.9:80/",
        "http://[fd00::9]:80/",
    ] {
        let (servers, failures) = name(kept).resolve(&names.resolver()).await;
        assert_eq!(
            (servers[0].to_string().as_str(), servers.len(), failures.len()),
            (kept, 1, 0)
        );
    }
    let (servers, failures) = name("http://nobody.svc/").resolve(&names.resolver()).await;
    let nothing = DnsError::Nothing {
        name: "nobody.svc".into(),
    };
    assert_eq!((servers.len(), failures), (0, vec![nothing]));
}

#[tokio::test]
async fn what_cannot_be_asked_is_kept_as_it_was() {
    let names = Names::start(ZONES).await;
    let own = Server::parse("http://own:1/").unwrap();
    let sources = vec![ServerSource::Url(own), scheme(false)];
    let mut servers = Servers::new(names.resolver(), sources);
    let first = servers.resolve().await;
    assert_eq!((first.servers.len(), first.failures.len()), (5, 0));
    assert_eq!(first.servers[0].host(), "own");

    names.set("txt.north.example.com SERVFAIL");
    let broken = servers.resolve().await;
    assert_eq!(broken.servers, first.servers);
    assert!(
        matches!(&broken.failures[..], [DnsError::Failed { .. }]),
        "{:?}",
        broken.failures
    );

    names.set("");
    assert_eq!(
        servers.resolve().await.servers,
        first.servers,
        "a name that is gone takes nobody away"
    );

    names.set("txt.north.example.com TXT z-1.example.com+z-2.example.com\ntxt.z-1.example.com TXT host-9");
    let partly = servers.resolve().await;
    assert_eq!(partly.failures.len(), 1);
    assert!(partly.servers.iter().any(|server| server.host() == "host-9"));
    assert!(
        partly.servers.iter().any(|server| server.host() == "host-3"),
        "of the zone that is not told"
    );

    names.set("txt.north.example.com TXT z-1.example.com\ntxt.z-1.example.com TXT host-9");
    let whole = servers.resolve().await;
    let hosts: Vec<_> = whole.servers.iter().map(|server| server.host()).collect();
    assert_eq!(hosts, ["own", "host-9"]);
}

#[tokio::test]
async fn what_names_no_server_is_told_without_secrets() {
    let zone = "txt.north.example.com TXT z.example.com\ntxt.z.example.com TXT http://n:secret@:1/+ok+a:b:c";
    let names = Names::start(zone).await;
    let (servers, failures) = scheme(false).resolve(&names.resolver()).await;
    assert_eq!(shown(&servers), ["Server(http://ok:8761/eureka/ in z)"]);
    assert_eq!(failures.len(), 2);
    assert!(!format!("{failures:?}").contains("secret"));
}
