//! The page for people and the metrics for machines.

use crate::node::Node;

const JSON: &str = "content-type: application/json\r\n";

#[test]
fn an_amazon_instance_without_an_image_does_not_break_the_page() {
    let node = Node::start(&[]);
    let body = r#"{"instance":{"instanceId":"a","app":"AMZ","hostName":"h","ipAddr":"10.0.0.1","status":"UP","dataCenterInfo":{"@class":"com.netflix.appinfo.AmazonInfo","name":"Amazon","metadata":{"instance-id":"i-1"}}}}"#;
    assert_eq!(node.send("POST", "/eureka/apps/AMZ", JSON, body).status, 204);
    assert_eq!(node.register("OTHER", "o").status, 204);
    let page = node.ask("GET", "/");
    assert_eq!(page.status, 200);
    assert!(page.head.contains("content-type: text/html"), "{page:?}");
    for part in [
        "<b>AMZ</b></td><td>n/a (1)</td><td>n/a (1)</td>",
        "<b>OTHER</b>",
        "</html>",
    ] {
        assert!(page.body.contains(part), "{part} is not in {}", page.body);
    }
}

#[test]
fn the_page_escapes_what_strangers_chose_and_links_only_the_web() {
    let node = Node::start(&[]);
    for (id, url) in [
        ("<script>alert(1)</script>", "javascript:alert(2)"),
        ("data", "data:text/html,x"),
        ("quote", "http://x/\\\" onmouseover=\\\"alert(3)"),
        ("plain", "https://x/status?a=1&b=2"),
    ] {
        let body = format!(
            r#"{{"instance":{{"instanceId":"{id}","app":"<u>X","hostName":"h","ipAddr":"1.1.1.1","status":"DOWN","statusPageUrl":"{url}","dataCenterInfo":{{"@class":"com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo","name":"MyOwn"}}}}}}"#
        );
        assert_eq!(
            node.send("POST", "/eureka/apps/%3Cu%3EX", JSON, &body).status,
            204
        );
    }
    for path in ["/", "/lastn"] {
        let page = node.ask("GET", path);
        assert!(page.body.contains("&lt;U&gt;X"), "{}", page.body);
        assert!(page.body.contains("&lt;script&gt;alert(1)"), "{}", page.body);
        for bad in [
            "<script",
            "<u>",
            "<U>",
            "href=\"javascript",
            "href=\"data",
            "\" onmouseover",
        ] {
            assert!(!page.body.contains(bad), "{bad} is in {}", page.body);
        }
        assert!(
            page.head.contains("content-security-policy: default-src 'none'"),
            "{}",
            page.head
        );
    }
    let page = node.ask("GET", "/").body;
    assert!(
        page.contains("href=\"https://x/status?a=1&amp;b=2\">plain</a>"),
        "{page}"
    );
    assert!(
        page.contains("href=\"http://x/&quot; onmouseover=&quot;alert(3)\">quote</a>"),
        "{page}"
    );
}

#[test]
fn the_page_and_the_metrics_can_be_switched_off() {
    let node = Node::start(&["console.enabled=false", "metrics.enabled=false"]);
    for path in ["/", "/lastn", "/metrics"] {
        assert_eq!(node.ask("GET", path).status, 404, "{path}");
    }
}

#[test]
fn metrics_tell_what_happened() {
    let node = Node::start(&[]);
    assert_eq!(node.register("A", "i").status, 204);
    assert_eq!(node.ask("PUT", "/eureka/apps/A/i").status, 200);
    assert_eq!(node.ask("PUT", "/eureka/apps/A/other").status, 404);
    assert_eq!(node.metric("eureka_instances{status=\"UP\"}"), 1.0);
    assert_eq!(node.metric("eureka_registrations_total"), 1.0);
    assert_eq!(node.metric("eureka_renewals_total"), 1.0);
    assert_eq!(node.metric("eureka_renewals_missing_total"), 1.0);
    assert_eq!(
        node.metric("eureka_request_seconds_count{class=\"renewal\"}"),
        2.0
    );
    assert!(node.metric("process_resident_memory_bytes") > 1e6);
    let head = node.ask("GET", "/metrics").head;
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
}

#[test]
fn a_request_id_comes_back() {
    let node = Node::start(&[]);
    let answer = node.send("GET", "/health/live", "x-request-id: abc-1\r\n", "");
    assert!(answer.head.contains("x-request-id: abc-1\r\n"), "{answer:?}");
    assert!(!node.ask("GET", "/health/live").head.contains("x-request-id"));
}
