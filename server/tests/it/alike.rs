//! A registration over gRPC is one like any other: Java's clients and servers see the same bytes as of one over REST.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use eureka_grpc_api::proto;

use crate::call::Calls;
use crate::node::{BOUND, Node};

/// The same registration as a Java client sends it, and as its fields are called in gRPC. A map has no order there: it is
/// taken by its keys.
fn registrations() -> [(&'static str, proto::Instance); 3] {
    let least = r#"{"instance":{"app":"orders","hostName":"o-1.example","ipAddr":"10.0.0.1","lastDirtyTimestamp":"1000",
        "dataCenterInfo":{"@class":"com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo","name":"MyOwn"}}}"#;
    let full = r#"{"instance":{
        "instanceId":"o-2","app":"ORDERS","appGroupName":"SHOP","hostName":"o-2.example","ipAddr":"10.0.0.2",
        "status":"STARTING","overriddenstatus":"UNKNOWN","port":{"$":8080,"@enabled":"true"},"securePort":{"$":8443,"@enabled":"true"},
        "vipAddress":"orders,orders-eu","secureVipAddress":"orders-tls","sid":"na","countryId":49,
        "homePageUrl":"http://o-2.example:8080/","statusPageUrl":"http://o-2.example:8080/info","healthCheckUrl":"http://o-2.example:8080/health",
        "secureHealthCheckUrl":"https://o-2.example:8443/health","asgName":"orders-asg",
        "metadata":{"management.port":"8081","odd <&> key":"ümlaut \"quoted\"","zone":"eu-1"},
        "leaseInfo":{"renewalIntervalInSecs":5,"durationInSecs":15},
        "dataCenterInfo":{"@class":"com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo","name":"MyOwn"},
        "lastDirtyTimestamp":"2000"}}"#;
    let amazon = r#"{"instance":{
        "instanceId":"i-0abc","app":"ORDERS","hostName":"ec2-1.example","ipAddr":"10.0.0.3","status":"UP",
        "port":{"$":7001,"@enabled":"true"},"securePort":{"$":7002,"@enabled":"false"},"vipAddress":"orders","countryId":1,
        "dataCenterInfo":{"@class":"com.netflix.appinfo.AmazonInfo","name":"Amazon","metadata":{
            "ami-id":"ami-1","availability-zone":"eu-1a","instance-id":"i-0abc","local-ipv4":"10.0.0.3"}},
        "lastDirtyTimestamp":"3000"}}"#;
    [
        (least, least_fields()),
        (full, full_fields()),
        (amazon, amazon_fields()),
    ]
}

fn least_fields() -> proto::Instance {
    proto::Instance {
        app: "orders".to_owned(),
        host_name: "o-1.example".to_owned(),
        ip_address: "10.0.0.1".to_owned(),
        last_dirty_unix_ms: Some(1000),
        ..proto::Instance::default()
    }
}

fn full_fields() -> proto::Instance {
    proto::Instance {
        app: "ORDERS".to_owned(),
        instance_id: "o-2".to_owned(),
        host_name: "o-2.example".to_owned(),
        ip_address: "10.0.0.2".to_owned(),
        status: proto::Status::Starting.into(),
        port: Some(proto::Port {
            number: 8080,
            enabled: true,
        }),
        secure_port: Some(proto::Port {
            number: 8443,
            enabled: true,
        }),
        vip_address: "orders,orders-eu".to_owned(),
        secure_vip_address: "orders-tls".to_owned(),
        metadata: pairs([
            ("management.port", "8081"),
            ("zone", "eu-1"),
            ("odd <&> key", "ümlaut \"quoted\""),
        ]),
        lease_terms: Some(proto::LeaseTerms {
            renewal_interval_secs: 5,
            duration_secs: 15,
        }),
        app_group: "SHOP".to_owned(),
        home_page_url: "http://o-2.example:8080/".to_owned(),
        status_page_url: "http://o-2.example:8080/info".to_owned(),
        health_check_url: "http://o-2.example:8080/health".to_owned(),
        secure_health_check_url: "https://o-2.example:8443/health".to_owned(),
        asg_name: "orders-asg".to_owned(),
        country_id: Some(49),
        sid: "na".to_owned(),
        last_dirty_unix_ms: Some(2000),
        ..proto::Instance::default()
    }
}

fn amazon_fields() -> proto::Instance {
    proto::Instance {
        app: "ORDERS".to_owned(),
        instance_id: "i-0abc".to_owned(),
        host_name: "ec2-1.example".to_owned(),
        ip_address: "10.0.0.3".to_owned(),
        vip_address: "orders".to_owned(),
        data_center: Some(proto::DataCenter {
            name: "Amazon".to_owned(),
            amazon: pairs([
                ("ami-id", "ami-1"),
                ("availability-zone", "eu-1a"),
                ("instance-id", "i-0abc"),
                ("local-ipv4", "10.0.0.3"),
            ]),
        }),
        last_dirty_unix_ms: Some(3000),
        ..proto::Instance::default()
    }
}

fn pairs<const N: usize, T: FromIterator<(String, String)>>(pairs: [(&str, &str); N]) -> T {
    pairs
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// A server that is Java's for all that can be seen: it knows nothing of ours, has no instances, and takes batches.
fn java() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (batches, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut stream = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).is_ok_and(|read| read > 0) {}
            let length = head
                .to_ascii_lowercase()
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            let mut body = vec![0; length.unwrap_or_default()];
            if stream.read_exact(&mut body).is_err() {
                continue;
            }
            let body = String::from_utf8_lossy(&body).into_owned();
            let (status, answer) = if head.starts_with("POST /eureka/peerreplication/batch/ ") {
                let results = vec!["{\"statusCode\":200}"; body.matches("\"action\":").count()];
                // The test may be over.
                drop(batches.send(body));
                ("200 OK", format!("{{\"responseList\":[{}]}}", results.join(",")))
            } else if head.starts_with("GET /eureka/apps") {
                let empty =
                    r#"{"applications":{"versions__delta":"1","apps__hashcode":"","application":[]}}"#;
                ("200 OK", empty.to_owned())
            } else {
                ("404 Not Found", String::new())
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
                answer.len()
            );
            drop(stream.get_mut().write_all(answer.as_bytes()));
        }
    });
    (format!("http://{address}/eureka"), received)
}

/// What is different each time: the milliseconds of now. Those that a client chose are short here.
fn without_times(text: &str) -> String {
    let mut out = String::new();
    let mut digits = String::new();
    for character in text.chars().chain([' ']) {
        if character.is_ascii_digit() {
            digits.push(character);
            continue;
        }
        out.push_str(if digits.len() == 13 { "<now>" } else { &digits });
        digits.clear();
        out.push(character);
    }
    out
}

/// Everything that clients and a Java server are given of what `register` registers at a new node.
async fn seen(register: impl AsyncFnOnce(&Node)) -> BTreeMap<String, String> {
    let (url, batches) = java();
    let node = Node::serve(&[
        "--listen",
        "127.0.0.1:0",
        "--peer",
        &url,
        "--set",
        "bootstrap.settle=0s",
        "--set",
        "bootstrap.retry-interval=100ms",
    ]);
    crate::cluster::opens(&node);
    register(&node).await;
    let mut seen = BTreeMap::new();
    for accept in ["application/json", "application/xml"] {
        for path in [
            "apps",
            "apps/delta",
            "apps/ORDERS",
            "vips/orders",
            "instances/o-2",
            "apps/ORDERS/i-0abc",
            "apps/ORDERS/o-1.example",
        ] {
            let answer = node.send(
                "GET",
                &format!("/eureka/{path}"),
                &format!("accept: {accept}\r\n"),
                "",
            );
            assert_eq!(answer.status, 200, "{path}: {answer:?}");
            seen.insert(format!("{path} as {accept}"), without_times(&answer.body));
        }
    }
    let mut told = String::new();
    while !["o-1.example", "o-2", "i-0abc"]
        .iter()
        .all(|id| told.contains(&format!("\"id\":\"{id}\"")))
    {
        told += &batches
            .recv_timeout(BOUND)
            .unwrap_or_else(|error| panic!("{error} after {told}"));
    }
    // How they are divided into batches is a matter of moments.
    let told = without_times(&told).replace("]}{\"replicationList\":[", ",");
    seen.insert("batches".to_owned(), told);
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_over_grpc_is_the_same_as_one_over_rest() {
    let over_rest = seen(async |node: &Node| {
        for (body, _) in registrations() {
            let answer = node.send(
                "POST",
                "/eureka/apps/ORDERS",
                "content-type: application/json\r\n",
                body,
            );
            assert_eq!(answer.status, 204, "{answer:?}");
        }
    })
    .await;
    let over_grpc = seen(async |node: &Node| {
        let mut calls = Calls::to(node).await;
        for (_, instance) in registrations() {
            let instance = Some(instance);
            let answer: proto::RegisterResponse = calls
                .unary("Register", proto::RegisterRequest { instance })
                .await
                .expect("it is taken");
            assert!(!answer.kept_newer);
        }
    })
    .await;
    assert!(over_rest["batches"].contains("odd <&> key"), "{over_rest:#?}");
    for (what, bytes) in &over_rest {
        assert_eq!(over_grpc[what], *bytes, "{what}");
    }
}
