//! Requests and answers over real connections: a server on a port of its own says what a test wants.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use eureka_client::call::{Answer, Call, Request, RequestId, Scope};
use eureka_client::{Pool, PoolConfig, Server};
use eureka_registry_core::{Action, DataCenter, Instance, InstanceKey, Status};
use flate2::Compression;
use flate2::write::GzEncoder;

mod answers;
#[cfg(feature = "dns")]
mod names;
mod scripted;
#[cfg(feature = "tls")]
mod tls;
mod trouble;

use scripted::{Reply, Scripted};

const LIST: &str = r#"{"applications":{"versions__delta":"1","apps__hashcode":"UP_1_","application":[{"name":"A","instance":[
    {"app":"A","instanceId":"a-1","hostName":"h","ipAddr":"10.0.0.1","status":"UP","dataCenterInfo":{"name":"MyOwn"}}]}]}}"#;
const XML: &str = "<applications><versions__delta>1</versions__delta><apps__hashcode>UP_1_</apps__hashcode><application>\
    <name>A</name><instance><instanceId>a-1</instanceId><hostName>h</hostName><app>A</app><ipAddr>10.0.0.1</ipAddr>\
    <status>UP</status></instance></application></applications>";

fn request(server: Server, call: Call) -> Request {
    Request {
        id: RequestId(1),
        server: Arc::new(server),
        call,
        within: Duration::from_secs(20),
    }
}

fn renew() -> Call {
    Call::Renew {
        key: InstanceKey::new("a", "a-1"),
        status: Status::OutOfService,
        last_dirty: 17,
    }
}

fn fetch() -> Call {
    Call::Fetch {
        what: Scope::All,
        regions: Arc::new([]),
        held: None,
    }
}

fn changes() -> Call {
    Call::Changes {
        since: Some("b.1".into()),
        filter: None,
        wait: Duration::from_secs(25),
    }
}

fn instance() -> Arc<Instance> {
    let mut instance = Instance::new("shop", "shop/1 %ä", "h", "10.0.0.1");
    instance.last_dirty = Some(17);
    instance.metadata.insert("zone", "x");
    Arc::new(instance)
}

/// An answer with a length.
fn with(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = body.len();
    let mut bytes = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

/// What comes of a call if the server answers this.
async fn answer(call: Call, bytes: Vec<u8>) -> Answer {
    let server = Scripted::start(move |_, _| Reply::Keep(bytes.clone())).await;
    Pool::default()
        .send(&request(server.server("/eureka/"), call))
        .await
}

fn listed(answer: Answer) -> (Vec<Arc<Instance>>, Option<Arc<str>>) {
    let Answer::List { applications, tag } = answer else {
        panic!("{answer:?}")
    };
    let views = applications.instances.into_iter();
    (views.map(|view| view.instance).collect(), tag)
}

/// The request as it arrived, and what came of it.
async fn sent(path: &str, call: Call) -> String {
    let server = Scripted::start(|_, _| Reply::Keep(with("404", "", ""))).await;
    let answer = Pool::default().send(&request(server.server(path), call)).await;
    assert_eq!(answer, Answer::NotFound);
    server.seen().remove(0)
}

#[tokio::test]
async fn requests_as_they_arrive() {
    let first = |text: String| text.lines().next().unwrap().to_owned();
    let key = InstanceKey::new("shop", "shop/1 %ä");
    for (path, call, expected) in [
        (
            "/eureka/",
            renew(),
            "PUT /eureka/apps/A/a-1?status=OUT_OF_SERVICE&lastDirtyTimestamp=17 HTTP/1.1",
        ),
        (
            "/",
            Call::Cancel(key),
            "DELETE /apps/SHOP/shop%2F1%20%25%C3%A4 HTTP/1.1",
        ),
        (
            "/x/v2",
            Call::Register(instance()),
            "POST /x/v2/apps/SHOP HTTP/1.1",
        ),
        ("/eureka/", fetch(), "GET /eureka/apps/ HTTP/1.1"),
        (
            "/eureka/",
            Call::Fetch {
                what: Scope::Vip("a/b".into()),
                regions: Arc::new(["eu".into(), "us,1".into()]),
                held: None,
            },
            "GET /eureka/vips/a%2Fb?regions=eu%2Cus%2C1 HTTP/1.1",
        ),
        (
            "/eureka/",
            Call::Fetch {
                what: Scope::SecureVip("a".into()),
                regions: Arc::new([]),
                held: None,
            },
            "GET /eureka/svips/a HTTP/1.1",
        ),
        (
            "/eureka/",
            Call::Delta {
                regions: Arc::new(["eu".into()]),
            },
            "GET /eureka/apps/delta?regions=eu HTTP/1.1",
        ),
        (
            "/eureka/",
            changes(),
            "GET /api/v1/changes?limit=1000&wait=25000ms&since=b.1 HTTP/1.1",
        ),
        (
            "/x/eureka/v2/",
            changes(),
            "GET /x/api/v1/changes?limit=1000&wait=25000ms&since=b.1 HTTP/1.1",
        ),
        (
            "/x/",
            Call::Changes {
                since: None,
                filter: Some("vip == \"a&b\"".into()),
                wait: Duration::from_secs(900),
            },
            "GET /x/api/v1/changes?limit=1000&wait=60000ms&filter=vip%20%3D%3D%20%22a%26b%22 HTTP/1.1",
        ),
    ] {
        assert_eq!(first(sent(path, call).await), expected);
    }
}

#[tokio::test]
async fn headers_are_these_and_no_others() {
    let names = |text: &str| {
        let head = text.split("\r\n\r\n").next().unwrap();
        let mut names: Vec<String> = head
            .lines()
            .skip(1)
            .map(|line| line.split(':').next().unwrap().to_ascii_lowercase())
            .collect();
        names.sort();
        names.join(" ")
    };
    let text = sent("/eureka/", renew()).await;
    assert_eq!(
        names(&text),
        "accept discoveryidentity-name host user-agent",
        "{text}"
    );
    assert!(
        text.contains("discoveryidentity-name: DefaultClient\r\n"),
        "{text}"
    );
    let text = sent("/eureka/", Call::Register(instance())).await;
    assert_eq!(
        names(&text),
        "accept content-length content-type discoveryidentity-name host user-agent",
        "{text}"
    );
    assert!(text.contains("content-type: application/json\r\n"), "{text}");
    let body = text.split("\r\n\r\n").nth(1).unwrap();
    for part in [
        r#""instanceId":"shop/1 %ä""#,
        r#""zone":"x""#,
        r#""lastDirtyTimestamp":"17""#,
    ] {
        assert!(body.contains(part), "{body}");
    }
    let held = Call::Fetch {
        what: Scope::All,
        regions: Arc::new([]),
        held: Some("W/\"7\"".into()),
    };
    let text = sent("/eureka/", held).await;
    assert_eq!(
        names(&text),
        "accept accept-encoding discoveryidentity-name host if-none-match user-agent"
    );
    assert!(text.contains("if-none-match: W/\"7\"\r\n"), "{text}");
    assert!(text.contains("accept-encoding: gzip\r\n"), "{text}");
}

#[tokio::test]
async fn each_server_gets_its_own_credentials() {
    let server = Scripted::start(|_, _| Reply::Keep(with("200", "", ""))).await;
    let pool = Pool::default();
    let port = server.address().port();
    for credentials in ["na%40me:se%3Acr%25et@", "", "name@", "a:b:c@"] {
        let url = format!("http://{credentials}127.0.0.1:{port}/eureka/");
        let server = Server::parse(&url).unwrap();
        assert_eq!(pool.send(&request(server, renew())).await, Answer::Done);
    }
    let found: Vec<Option<String>> = server
        .seen()
        .iter()
        .map(|text| {
            let line = text
                .lines()
                .find(|line| line.starts_with("authorization: Basic "));
            line.map(|line| line["authorization: Basic ".len()..].to_owned())
        })
        .collect();
    let expected = [
        Some("bmFAbWU6c2U6Y3IlZXQ="),
        None,
        Some("bmFtZTo="),
        Some("YTpiOmM="),
    ];
    assert_eq!(found, expected.map(|text| text.map(str::to_owned)));
}

#[tokio::test]
async fn the_identity_can_be_another() {
    let server = Scripted::start(|_, _| Reply::Keep(with("200", "", ""))).await;
    let mut config = PoolConfig::default();
    config.identity = "DefaultServer".into();
    Pool::new(config)
        .send(&request(server.server("/"), renew()))
        .await;
    assert!(server.seen()[0].contains("discoveryidentity-name: DefaultServer\r\n"));
}

#[tokio::test]
async fn lists_in_every_form() {
    let json = "Content-Type: application/json\r\n";
    let xml = "Content-Type: application/xml\r\n";
    for bytes in [
        with("200", json, LIST),
        with("200", "", LIST),
        with("200", xml, XML),
        with("200", "Content-Type: text/xml;charset=UTF-8\r\n", XML),
        with("200", "", XML),
        with("200", "Content-Type: application/octet-stream\r\n", XML),
        with(
            "200",
            "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
            gzip(LIST.as_bytes()),
        ),
        with(
            "200",
            "Content-Type: application/xml\r\nContent-Encoding: gzip\r\n",
            gzip(XML.as_bytes()),
        ),
    ] {
        let (instances, tag) = listed(answer(fetch(), bytes).await);
        assert_eq!(instances.len(), 1);
        assert_eq!(instances[0].id(), "a-1");
        assert_eq!(tag, None);
    }
    let tagged = with("200", "Content-Type: application/json\r\nETag: W/\"7\"\r\n", LIST);
    assert_eq!(
        listed(answer(fetch(), tagged).await).1.as_deref(),
        Some("W/\"7\"")
    );
    let delta = Call::Delta {
        regions: Arc::new([]),
    };
    assert_eq!(listed(answer(delta, with("200", json, LIST)).await).0.len(), 1);
}

#[tokio::test]
async fn a_long_list_is_read_as_well() {
    let one = r#"{"app":"A","instanceId":"a-NNNNN","hostName":"h","ipAddr":"10.0.0.1","status":"UP","dataCenterInfo":{"name":"MyOwn"}}"#;
    let many: Vec<String> = (0..4_000).map(|n| one.replace("NNNNN", &n.to_string())).collect();
    let text = format!(
        r#"{{"applications":{{"apps__hashcode":"UP_4000_","application":[{{"name":"A","instance":[{}]}}]}}}}"#,
        many.join(",")
    );
    assert!(text.len() > 256 << 10);
    let packed = with("200", "Content-Encoding: gzip\r\n", gzip(text.as_bytes()));
    assert_eq!(listed(answer(fetch(), packed).await).0.len(), 4_000);
    assert_eq!(
        listed(answer(fetch(), with("200", "", text)).await).0.len(),
        4_000
    );
}

#[tokio::test]
async fn changes_of_the_feed() {
    let told = r#"{"cursor":"b.9","remote":true,"new":1,"changes":[
        {"version":8,"at":1700000000000,"action":"MODIFIED","by":"client","why":"overridden","app":"SHOP","id":"i-1","host":"h","ip":"10.0.0.1",
         "status":"OUT_OF_SERVICE","overriddenStatus":"OUT_OF_SERVICE","port":{"number":80,"enabled":true},
         "securePort":{"number":443,"enabled":false},"vip":"shop","secureVip":null,"zone":"x","group":null,"dataCenter":"Amazon",
         "amazon":{"instance-id":"i-1","availability-zone":"x"},"metadata":{"b":"1","a":"2"},"renewalIntervalSecs":10,"durationSecs":20,
         "lastDirty":17,"instanceId":null,"homePage":"http://h/","asg":"g","countryId":2,"sid":"s"},
        {"version":9,"at":1700000000001,"action":"DELETED","by":"eviction","why":"expired","app":"SHOP","id":"","host":"h2","ip":"10.0.0.2",
         "status":"UP","overriddenStatus":"UNKNOWN","port":{"number":80,"enabled":true},"securePort":{"number":443,"enabled":false},
         "vip":null,"secureVip":null,"zone":null,"group":null,"dataCenter":"MyOwn","metadata":{},"renewalIntervalSecs":30,
         "durationSecs":90,"lastDirty":null}]}"#;
    let answer = answer(changes(), with("200", "Content-Type: application/json\r\n", told)).await;
    let Answer::Changes {
        cursor,
        changes,
        remote,
    } = answer
    else {
        panic!("{answer:?}")
    };
    assert_eq!((&*cursor, changes.len(), remote), ("b.9", 2, true));
    let first = &changes[0].view.instance;
    assert_eq!(changes[0].action, Action::Modified);
    assert_eq!(
        (first.id(), &first.instance_id),
        ("i-1", &None),
        "by its machine's id"
    );
    assert_eq!(
        first.metadata.iter().collect::<Vec<_>>(),
        [("b", "1"), ("a", "2")]
    );
    let DataCenter::Amazon(machine) = &first.data_center else {
        panic!("{first:?}")
    };
    assert_eq!(machine.get("availability-zone"), Some("x"));
    assert_eq!(
        (first.status, first.overridden_status),
        (Status::OutOfService, Status::OutOfService)
    );
    assert_eq!(
        (first.port.number, first.secure_port.enabled, first.country_id),
        (80, false, 2)
    );
    assert_eq!(
        (first.lease.renewal_interval_secs, first.lease.duration_secs),
        (10, 20)
    );
    assert_eq!(
        (first.last_dirty, first.asg_name.as_deref(), first.sid.as_deref()),
        (Some(17), Some("g"), Some("s"))
    );
    assert_eq!(
        (first.home_page_url.as_deref(), first.vip_address.as_deref()),
        (Some("http://h/"), Some("shop"))
    );
    assert_eq!(changes[1].action, Action::Deleted);
    assert_eq!(
        (
            changes[1].view.instance.country_id,
            changes[1].view.instance.last_dirty
        ),
        (1, None)
    );
}
