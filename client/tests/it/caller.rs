//! Calls by name: which requests are changed and how, when another instance is tried, and what is said of failures.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use eureka_client::balance::{Absence, BalanceConfig};
use eureka_client::caller::{CallError, Caller, Served};
use http::{Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use tower::{Service, ServiceExt, service_fn};

use crate::listed::{Listed, instance};

/// How a host behaves.
#[derive(Clone, Copy)]
enum Host {
    Answers(u16),
    Refuses,
    Breaks,
    Hangs,
}

#[derive(Debug, PartialEq)]
enum Trouble {
    NoConnection,
    Broken,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for Trouble {}

/// Hosts that are called, and by which requests they were.
#[derive(Clone, Default)]
struct Network {
    hosts: Arc<BTreeMap<String, Host>>,
    seen: Arc<Mutex<Vec<Request<&'static str>>>>,
}

/// The HTTP client of the calls.
#[derive(Clone)]
struct Wire(Network);

impl Service<Request<&'static str>> for Wire {
    type Response = Response<()>;
    type Error = Trouble;
    type Future = Pin<Box<dyn Future<Output = Result<Response<()>, Trouble>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Trouble>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<&'static str>) -> Self::Future {
        Box::pin(self.0.clone().answer(request))
    }
}

impl Network {
    /// Other hosts answer 200.
    fn of<const N: usize>(hosts: [(&str, Host); N]) -> Self {
        Self {
            hosts: Arc::new(hosts.map(|(name, host)| (name.to_owned(), host)).into()),
            seen: Arc::default(),
        }
    }

    fn caller(&self, listed: &Listed) -> Caller<Wire, Trouble> {
        let mut config = BalanceConfig::default();
        config.seed = Some(1);
        let no_connection = |trouble: &Trouble| *trouble == Trouble::NoConnection;
        Caller::new(listed.cache(), config, Wire(self.clone()), no_connection)
    }

    async fn answer(self, request: Request<&'static str>) -> Result<Response<()>, Trouble> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        self.seen.lock().push(request);
        match self.hosts.get(&host).copied().unwrap_or(Host::Answers(200)) {
            Host::Answers(status) => {
                let mut response = Response::new(());
                *response.status_mut() = StatusCode::from_u16(status).expect("a status");
                Ok(response)
            }
            Host::Refuses => Err(Trouble::NoConnection),
            Host::Breaks => Err(Trouble::Broken),
            Host::Hangs => std::future::pending().await,
        }
    }

    /// The URIs that were called since the last time.
    fn called(&self) -> Vec<String> {
        let seen = std::mem::take(&mut *self.seen.lock());
        seen.iter().map(|request| request.uri().to_string()).collect()
    }
}

fn request(method: Method, uri: &str) -> Request<&'static str> {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header("host", "before");
    request.body("body").expect("a request")
}

async fn call(
    caller: &mut Caller<Wire, Trouble>,
    method: Method,
    uri: &str,
) -> Result<Response<()>, CallError<Trouble>> {
    let ready = caller.ready().await?;
    ready.call(request(method, uri)).await
}

fn three(app: &str) -> Listed {
    Listed::of(["a", "b", "c"].map(|id| instance(app, id)))
}

/// All three behave the same.
fn all(host: Host) -> Network {
    Network::of([("a", host), ("b", host), ("c", host)])
}

#[tokio::test]
async fn a_name_becomes_an_instance_and_nothing_else_changes() {
    let network = Network::default();
    let listed = Listed::of([instance("payments", "a")]);
    let mut caller = network.caller(&listed);
    let response = call(&mut caller, Method::POST, "http://PAYMENTS/v1/pay?n=1").await;
    let response = response.expect("it answers");
    let served = response
        .extensions()
        .get::<Served>()
        .expect("who answered is said");
    assert_eq!((served.instance.id(), served.tries), ("a", 1));
    let seen = network.seen.lock();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].uri(), "http://a:80/v1/pay?n=1");
    assert_eq!((seen[0].method(), *seen[0].body()), (&Method::POST, "body"));
    assert_eq!(seen[0].headers()["host"], "a:80");
}

#[tokio::test]
async fn names_are_applications_first_then_virtual_addresses() {
    let network = Network::default();
    let mut other = instance("orders", "b");
    other.vip_address = Some("payments,Billing".into());
    other.secure_vip_address = Some("billing-tls".into());
    (other.secure_port.number, other.secure_port.enabled) = (443, true);
    let mut listed = Listed::of([instance("payments", "a"), other]);
    let mut caller = network.caller(&listed);
    let names = [
        ("http://payments/", "http://a:80/"),
        ("http://Payments/", "http://a:80/"),
        ("http://billing/", "http://b:80/"),
        ("https://billing-tls/", "https://b:443/"),
        ("https://orders", "https://b:443/"),
    ];
    for (name, endpoint) in names {
        call(&mut caller, Method::GET, name).await.expect("it answers");
        assert_eq!(network.called(), [endpoint], "{name}");
    }
    for name in ["http://billing-tls/", "https://billing/"] {
        let error = call(&mut caller, Method::GET, name)
            .await
            .expect_err("another kind");
        assert!(matches!(error, CallError::Unknown { .. }), "{name}: {error}");
    }
    let error = call(&mut caller, Method::GET, "https://payments/").await;
    let Err(CallError::Nobody(none)) = error else {
        panic!("no secure port: {error:?}");
    };
    assert_eq!(none.absence, Absence::NoneCallable { up: 1 });
    listed.remove("payments", "a");
    listed.show();
    call(&mut caller, Method::GET, "http://payments/")
        .await
        .expect("it answers");
    assert_eq!(network.called(), ["http://b:80/"], "now it is an address alone");
}

#[tokio::test]
async fn unknown_names_are_errors_and_other_hosts_go_through() {
    let network = Network::of([("elsewhere.example", Host::Breaks)]);
    let mut listed = Listed::new();
    let mut caller = network.caller(&listed);
    let error = call(&mut caller, Method::GET, "http://nobody/")
        .await
        .expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "nobody is not known: nothing has been read from a server yet"
    );
    listed.put(instance("orders", "a"));
    listed.show();
    listed.advance(7);
    let error = call(&mut caller, Method::GET, "http://nobody/")
        .await
        .expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "nobody is neither an application nor a virtual address of the registry, as it was 7 s ago"
    );
    assert!(network.called().is_empty(), "nothing was sent");
    let others = [
        "http://orders:80/",
        "http://orders.example/",
        "http://localhost/",
        "http://[::1]/",
    ];
    for uri in others {
        call(&mut caller, Method::GET, uri).await.expect("it answers");
        assert_eq!(network.called(), [uri]);
    }
    let error = call(&mut caller, Method::GET, "http://elsewhere.example/").await;
    let Err(CallError::Failed {
        error,
        endpoint,
        tries,
    }) = error
    else {
        panic!("{error:?}");
    };
    assert_eq!((error, endpoint, tries), (Trouble::Broken, None, 1));
    assert_eq!(network.called(), ["http://elsewhere.example/"]);
    let figures = caller.figures();
    assert_eq!((figures.calls, figures.nobody, figures.passed_through), (2, 2, 5));
    let mut caller = caller.looked_up(|authority| authority.host() == "orders");
    call(&mut caller, Method::GET, "http://orders:9/")
        .await
        .expect("it answers");
    assert_eq!(network.called(), ["http://a:80/"]);
}

/// What is called, and what comes of it, when all behave the same.
#[tokio::test]
async fn what_is_tried_again() {
    let cases = [
        (Host::Refuses, Method::GET, 3),
        (Host::Refuses, Method::POST, 3),
        (Host::Breaks, Method::GET, 3),
        (Host::Breaks, Method::POST, 1),
        (Host::Hangs, Method::DELETE, 3),
        (Host::Hangs, Method::PATCH, 1),
        (Host::Answers(502), Method::GET, 3),
        (Host::Answers(503), Method::PUT, 3),
        (Host::Answers(504), Method::HEAD, 3),
        (Host::Answers(503), Method::POST, 1),
        (Host::Answers(500), Method::GET, 1),
        (Host::Answers(404), Method::GET, 1),
    ];
    for (host, method, tries) in cases {
        let (network, listed) = (all(host), three("payments"));
        tokio::time::pause();
        let mut caller = network.caller(&listed).try_within(Duration::from_secs(1));
        let outcome = call(&mut caller, method.clone(), "http://payments/x").await;
        tokio::time::resume();
        let mut called = network.called();
        assert_eq!(called.len(), tries, "{method}");
        called.sort();
        called.dedup();
        assert_eq!(called.len(), tries, "each try is of another instance");
        assert_eq!(caller.figures().retries, tries as u64 - 1);
        let told = match (host, outcome) {
            (Host::Answers(status), Ok(response)) => {
                assert_eq!(response.status(), status);
                response.extensions().get::<Served>().map(|served| served.tries)
            }
            (Host::Hangs, Err(CallError::TimedOut { tries, .. }))
            | (Host::Refuses | Host::Breaks, Err(CallError::Failed { tries, .. })) => Some(tries),
            (_, outcome) => panic!("{method}: {outcome:?}"),
        };
        assert_eq!(told, Some(tries));
    }
}

#[tokio::test]
async fn the_next_instance_answers() {
    let network = Network::of([("a", Host::Refuses), ("b", Host::Answers(503))]);
    let listed = three("payments");
    let mut caller = network.caller(&listed);
    for _ in 0..7 {
        let response = call(&mut caller, Method::GET, "http://payments/").await;
        assert_eq!(response.expect("c answers").status(), 200);
    }
    let figures = caller
        .balancer("payments", false)
        .expect("it was called")
        .figures();
    assert_eq!((figures.ejected, figures.succeeded), (1, 7), "{figures:?}");
    assert!(figures.failed >= 5 && figures.failed == caller.figures().retries);
    let mut two = caller.clone().tries(1);
    let mut failed = 0;
    for _ in 0..4 {
        match call(&mut two, Method::GET, "http://payments/").await {
            Ok(response) if response.status() == 200 => {}
            Ok(_) | Err(_) => failed += 1,
        }
    }
    assert_eq!(
        failed, 2,
        "one of the two that are not left out, without another try"
    );
}

#[tokio::test]
async fn no_instance_is_tried_twice_for_one_call() {
    let network = Network::of([("a", Host::Refuses)]);
    let listed = Listed::of([instance("payments", "a")]);
    let mut caller = network.caller(&listed);
    let error = call(&mut caller, Method::GET, "http://payments/").await;
    let error = error.expect_err("it refuses");
    assert_eq!(error.to_string(), "http://a:80, of 1 tried: NoConnection");
    assert_eq!(network.called().len(), 1);
}

/// What the service itself makes of a request is no sign that the instance is ill.
#[tokio::test]
async fn answers_of_an_application_are_no_failures() {
    for (status, ejected) in [(500, 0), (404, 0), (429, 0), (502, 1), (503, 1), (504, 1)] {
        let (network, listed) = (all(Host::Answers(status)), three("payments"));
        let mut caller = network.caller(&listed);
        for _ in 0..18 {
            call(&mut caller, Method::POST, "http://payments/")
                .await
                .expect("an answer");
        }
        let figures = caller
            .balancer("payments", false)
            .expect("it was called")
            .figures();
        assert_eq!(figures.ejected, ejected, "{status}");
    }
}

#[tokio::test]
async fn when_everybody_fails_calls_are_not_multiplied() {
    let (network, listed) = (all(Host::Refuses), three("payments"));
    let mut caller = network.caller(&listed);
    for _ in 0..1_000 {
        let error = call(&mut caller, Method::GET, "http://payments/").await;
        assert!(matches!(error, Err(CallError::Failed { .. })));
    }
    let figures = caller.figures();
    assert!((200..=210).contains(&figures.retries), "{figures:?}");
    assert!(figures.retries_refused > 700, "{figures:?}");
    assert_eq!(network.called().len() as u64, 1_000 + figures.retries);
}

/// More names than balancers are kept for: all are called.
#[tokio::test]
async fn any_number_of_names() {
    let network = Network::default();
    let apps = (0..1_100).map(|number| instance(&format!("app-{number}"), &format!("i-{number}")));
    let listed = Listed::of(apps);
    let mut caller = network.caller(&listed);
    for number in 0..1_100 {
        let uri = format!("http://app-{number}/");
        call(&mut caller, Method::GET, &uri).await.expect("it answers");
        assert_eq!(network.called(), [format!("http://i-{number}:80/")]);
    }
    let first = caller.balancer("app-0", false).expect("it is listed");
    assert_eq!(first.figures().picks, 0, "it was forgotten");
    let last = caller.balancer("app-1099", false).expect("it is listed");
    assert_eq!(last.figures().picks, 1);
}

/// A service that is ready once: the one that was polled is the one that must be called.
#[tokio::test]
async fn the_service_that_is_ready_is_the_one_that_is_called() {
    let listed = Listed::of([instance("payments", "a")]);
    let once = tower::limit::ConcurrencyLimit::new(
        service_fn(|_: Request<&'static str>| std::future::ready(Ok::<_, Infallible>(Response::new(())))),
        1,
    );
    let config = BalanceConfig::default();
    let mut caller = Caller::new(listed.cache(), config, once, |_: &Infallible| false);
    for _ in 0..3 {
        let ready = caller.ready().await.expect("it is ready");
        let answer = ready.call(request(Method::GET, "http://payments/")).await;
        assert_eq!(answer.expect("it answers").status(), 200);
    }
}
