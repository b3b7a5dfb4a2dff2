//! What is read: shapes that clients send, and bytes that nobody honest does.

use eureka_registry_core::wire::{
    BatchItem, DecodeError, Dialect, Format, GivenDataCenter, Heartbeat, Invalid, ItemError, Registration,
    read_applications, read_batch, read_registration,
};
use eureka_registry_core::{DataCenter, LeaseTerms, Port, Status};

const BASE: &str = r#""app":"a","hostName":"h","ipAddr":"1.1.1.1","dataCenterInfo":{"@class":"com.netflix.appinfo.MyDataCenterInfo","name":"MyOwn"}"#;

fn json(fields: &str, dialect: Dialect) -> Result<Registration, DecodeError> {
    let body = format!(r#"{{"instance":{{{BASE}{fields}}}}}"#);
    read_registration(Format::Json, body.as_bytes(), dialect)
}

fn lenient(fields: &str) -> Registration {
    json(fields, Dialect::Lenient).unwrap_or_else(|error| panic!("{fields}: {error}"))
}

fn xml(children: &str) -> Result<Registration, DecodeError> {
    let body = format!("<instance><app>a</app>{children}</instance>");
    read_registration(Format::Xml, body.as_bytes(), Dialect::Lenient)
}

#[test]
fn absent_and_null_fields_have_their_defaults() {
    for fields in [
        "",
        r#","instanceId":null,"port":null,"securePort":null,"status":null,"leaseInfo":null,"metadata":null,"countryId":null,"overriddenStatus":null,"lastDirtyTimestamp":null,"sid":null,"vipAddress":null,"actionType":null"#,
        r#","leaseInfo":{},"metadata":{},"port":{},"sid":"na""#,
    ] {
        let read = lenient(fields);
        let port = |number, enabled| Port { number, enabled };
        assert_eq!(
            (read.port, read.secure_port),
            (port(7001, true), port(7002, false))
        );
        assert_eq!(
            (read.status, read.overridden_status),
            (Status::Up, Status::Unknown)
        );
        assert_eq!((read.lease, read.country_id), (LeaseTerms::default(), 1));
        assert_eq!(
            (read.instance_id, read.last_dirty, read.sid, read.vip_address),
            (None, None, None, None)
        );
        assert!(read.metadata.is_empty());
    }
}

#[test]
fn numbers_and_texts_stand_for_each_other() {
    let read = lenient(
        r#","port":{"$":"8080","@enabled":false},"securePort":{"$":80.9,"@enabled":"true"},"countryId":"7","lastDirtyTimestamp":1700000000000,"leaseInfo":{"durationInSecs":"20","renewalIntervalInSecs":-1},"vipAddress":5"#,
    );
    assert_eq!((read.port.number, read.port.enabled), (8080, false));
    assert_eq!((read.secure_port.number, read.secure_port.enabled), (80, true));
    assert_eq!((read.country_id, read.last_dirty), (7, Some(1_700_000_000_000)));
    assert_eq!(
        (read.lease.duration_secs, read.lease.renewal_interval_secs),
        (20, 30)
    );
    assert_eq!(read.vip_address.as_deref(), Some("5"));
    let read = lenient(r#","port":{"$":"x"},"lastDirtyTimestamp":"","countryId":"99999999999""#);
    assert_eq!(
        (read.port.number, read.last_dirty, read.country_id),
        (0, Some(0), 0)
    );
}

#[test]
fn metadata_keeps_the_digits_it_came_with() {
    let read = lenient(
        r#","metadata":{"@class":"x","version":1.10,"big":10000000000000000000001,"on":true,"none":null,"u":"\u00e9\ud83d\ude00","version":2.0}"#,
    );
    let pairs: Vec<_> = read.metadata.iter().collect();
    let expected = [
        ("version", "2.0"),
        ("big", "10000000000000000000001"),
        ("on", "true"),
        ("none", "null"),
        ("u", "é😀"),
    ];
    assert_eq!(pairs, expected);
    assert!(lenient(r#","metadata":[]"#).metadata.is_empty());
    assert!(json(r#","metadata":{"a":{"b":1}}"#, Dialect::Lenient).is_err());
}

#[test]
fn only_lenient_rules_take_what_java_refuses() {
    for fields in [
        r#","port":8080"#,
        r#","port":"8080""#,
        r#","port":{"$":8080,"x":1}"#,
        r#","unknown":[1,2]"#,
        r#","unknown":{"a":[{"b":{}}]},"vipAddress":"v""#,
        r#","dataCenterInfo":{"name":"MyOwn"}"#,
        r#","dataCenterInfo":{"@class":"com.netflix.appinfo.DataCenterInfo","name":"MyOwn"}"#,
        r#","dataCenterInfo":{"@class":"com.netflix.appinfo.MyDataCenterInfo","name":"MyOwn","metadata":null}"#,
        r#","dataCenterInfo":{"@class":"com.netflix.appinfo.AmazonInfo","name":"Amazon"}"#,
    ] {
        assert!(json(fields, Dialect::Java).is_err(), "{fields}");
        lenient(fields);
    }
    assert_eq!(lenient(r#","port":"8080""#).port.number, 8080);
    let after_unknown = lenient(r#","unknown":{"hostName":"other"},"vipAddress":"v""#);
    assert_eq!(after_unknown.vip_address.as_deref(), Some("v"));
    assert_eq!(after_unknown.host_name.as_deref(), Some("h"));
}

#[test]
fn under_java_s_rules_an_unknown_object_ends_the_instance() {
    let ended = json(r#","unknown":{"vipAddress":"v","n":null}"#, Dialect::Java).expect("nothing follows");
    assert_eq!(ended.vip_address.as_deref(), Some("v"));
    assert!(json(r#","unknown":{"a":1},"vipAddress":"v""#, Dialect::Java).is_err());
    for (fields, taken) in [
        (r#","unknown":[1],"x":2"#, true),
        (r#","unknown":[]"#, false),
        (r#","unknown":[{}]"#, false),
        (r#","unknown":null,"x":true"#, true),
    ] {
        assert_eq!(json(fields, Dialect::Java).is_ok(), taken, "{fields}");
    }
    let body = format!(r#"{{"instance":{{{BASE}}},"x":1}}"#);
    assert!(read_registration(Format::Json, body.as_bytes(), Dialect::Java).is_err());
}

#[test]
fn a_default_data_centre_that_is_called_amazon_is_amazon_s() {
    for dialect in [Dialect::Java, Dialect::Lenient] {
        let fields = r#","instanceId":"i","dataCenterInfo":{"@class":"com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo","name":"Amazon"}"#;
        let instance = json(fields, dialect)
            .expect("Java takes it")
            .validate("A")
            .expect("Java takes it");
        let DataCenter::Amazon(machine) = instance.data_center else {
            panic!("{:?}", instance.data_center);
        };
        assert_eq!(machine.get("instance-id"), Some("i"));
    }
}

#[test]
fn only_an_absent_machine_id_is_filled() {
    let fields = r#","instanceId":"i","dataCenterInfo":{"@class":"com.netflix.appinfo.AmazonInfo","metadata":{"instance-id":""}}"#;
    let instance = lenient(fields).validate("a").expect("it is complete");
    let given = DataCenter::Amazon([("instance-id", "")].into_iter().collect());
    assert_eq!(instance.data_center, given);
}

#[test]
fn both_spellings_of_the_override_are_read() {
    for field in ["overriddenStatus", "overriddenstatus"] {
        let read = lenient(&format!(r#","{field}":"OUT_OF_SERVICE""#));
        assert_eq!(read.overridden_status, Status::OutOfService, "{field}");
        let read = xml(&format!("<{field}>out_of_service</{field}>")).expect("it is an instance");
        assert_eq!(read.overridden_status, Status::OutOfService, "{field}");
    }
}

#[test]
fn the_oldest_spring_clients_have_their_id_in_the_metadata() {
    let id = |fields| lenient(fields).instance_id.as_deref().map(str::to_owned);
    assert_eq!(id(r#","metadata":{"instanceId":"x"}"#).as_deref(), Some("h:x"));
    assert_eq!(id(r#","metadata":{"instanceId":"h:x"}"#).as_deref(), Some("h:x"));
    assert_eq!(
        id(r#","instanceId":"","metadata":{"instanceId":"x"}"#).as_deref(),
        Some("")
    );
}

#[test]
fn what_is_missing_is_named_in_java_s_order() {
    let mut registration = lenient("");
    registration.data_center = GivenDataCenter::Unnamed;
    let expect = |registration: &Registration, text: &str| {
        let refused = registration
            .clone()
            .validate("OTHER")
            .expect_err("something is wrong");
        assert_eq!(refused.to_string(), text);
    };
    expect(&registration, "Mismatched appName, expecting OTHER but was A");
    registration.app = Some("".into());
    expect(&registration, "Missing appName");
    registration.ip_address = None;
    expect(&registration, "Missing ip address");
    registration.host_name = Some("".into());
    expect(&registration, "Missing instanceId");
    registration.instance_id = Some("i".into());
    expect(&registration, "Missing hostname");
    let unnamed = lenient(r#","dataCenterInfo":{}"#).validate("a");
    assert_eq!(unnamed, Err(Invalid::DataCenterName));
}

#[test]
fn every_prefix_of_a_body_is_refused_without_harm() {
    let body =
        format!(r#"{{"instance":{{{BASE},"metadata":{{"a":"\u00e9"}},"unknown":[{{}},1.5e3,null]}}}}"#);
    for end in 0..body.len() {
        if body.is_char_boundary(end) {
            let cut = &body.as_bytes()[..end];
            assert!(
                read_registration(Format::Json, cut, Dialect::Lenient).is_err(),
                "{end}"
            );
        }
    }
    let body = "<instance><app>a</app><metadata><k a='1'>v&amp;<!-- c --></k></metadata></instance>";
    for end in 0..body.len() {
        let cut = &body.as_bytes()[..end];
        assert!(
            read_registration(Format::Xml, cut, Dialect::Lenient).is_err(),
            "{end}"
        );
    }
}

#[test]
fn depth_costs_no_stack_and_size_no_square() {
    let deep = |open: &str, close: &str| open.repeat(1_000_000) + &close.repeat(1_000_000);
    lenient(&format!(r#","unknown":{}"#, deep("[", "]")));
    lenient(&format!(
        r#","unknown":{}0{}"#,
        r#"{"a":"#.repeat(1_000_000),
        "}".repeat(1_000_000)
    ));
    for dialect in [Dialect::Java, Dialect::Lenient] {
        assert!(json(&format!(r#","metadata":{{"a":{}}}"#, deep("[", "]")), dialect).is_err());
        assert!(read_registration(Format::Json, deep("[", "]").as_bytes(), dialect).is_err());
    }
    let flattened = format!(
        r#","unknown":{}0{}"#,
        r#"{"a":"#.repeat(1_000_000),
        "}".repeat(1_000_000)
    );
    assert_eq!(json(&flattened, Dialect::Java), Err(DecodeError::TooComplex));
    assert_eq!(xml(&deep("<a>", "</a>")), Err(DecodeError::TooComplex));
    let pairs: String = (0..20_000).map(|n| format!(r#""k{n}":1,"#)).collect();
    let many = format!(r#","metadata":{{{}"z":1}}"#, pairs);
    assert_eq!(json(&many, Dialect::Lenient), Err(DecodeError::TooComplex));
    let children: String = (0..20_000).map(|n| format!("<k{n}/>")).collect();
    assert_eq!(
        xml(&format!("<metadata>{children}</metadata>")),
        Err(DecodeError::TooComplex)
    );
    let same: String = r#""k":"v","#.repeat(16_000);
    assert_eq!(
        lenient(&format!(r#","metadata":{{{same}"z":1}}"#)).metadata.len(),
        2
    );
}

#[test]
fn xml_has_no_doctype_and_no_entities_beyond_the_five() {
    let body = r#"<!DOCTYPE instance [<!ENTITY e "x">]><instance><app>a</app></instance>"#;
    let refused = read_registration(Format::Xml, body.as_bytes(), Dialect::Lenient).expect_err("it has one");
    assert_eq!(refused.to_string(), "a DOCTYPE is not allowed");
    assert!(xml("<hostName>&e;</hostName>").is_err());
    assert!(xml("<hostName>&#xd800;</hostName>").is_err());
    let read =
        xml("<hostName>&lt;&gt;&amp;&quot;&apos;&#x41;&#66;<![CDATA[<c>]]></hostName>").expect("it is XML");
    assert_eq!(read.host_name.as_deref(), Some("<>&\"'AB<c>"));
}

#[test]
fn xml_in_any_shape_is_read() {
    let read = xml(
        "<!-- c --><?pi?><unknown><hostName>no</hostName></unknown>
         <hostName>  h6 </hostName><status>out_of_service</status><port>80</port><securePort enabled='true'>81</securePort>
         <dataCenterInfo><name>amazon</name><metadata><instance-id>i-1</instance-id></metadata></dataCenterInfo>
         <leaseInfo><durationInSecs>x</durationInSecs><renewalIntervalInSecs> 5 </renewalIntervalInSecs></leaseInfo>
         <metadata><a__b>1</a__b><c_d>\r\n</c_d><e/><a__b>2</a__b></metadata><lastDirtyTimestamp/>",
    )
    .expect("it is an instance");
    assert_eq!(read.host_name.as_deref(), Some("  h6 "));
    assert_eq!(read.status, Status::OutOfService);
    assert_eq!((read.port.number, read.port.enabled), (80, true));
    assert_eq!((read.secure_port.number, read.secure_port.enabled), (81, true));
    assert_eq!(
        (read.lease.duration_secs, read.lease.renewal_interval_secs),
        (90, 5)
    );
    let pairs: Vec<_> = read.metadata.iter().collect();
    assert_eq!(pairs, [("a_b", "2"), ("c_d", "\n"), ("e", "")]);
    assert!(matches!(
        read.data_center,
        GivenDataCenter::Named(DataCenter::Amazon(_))
    ));
    assert_eq!(read.last_dirty, None);
    assert!(xml("<port>eighty</port>").is_err());
}

#[test]
fn one_instance_that_cannot_be_read_leaves_the_others_in_a_list() {
    let body = r#"{"applications":{"application":{"instance":[{"hostName":"h1","metadata":5},{"hostName":"h2"},7],"name":"a"},"apps__hashcode":"UP_1_"}}"#;
    let list = read_applications(Format::Json, body.as_bytes()).expect("it is a list");
    assert_eq!((list.instances.len(), list.left_out), (1, 2));
    assert_eq!(list.instances[0].key().to_string(), "A/h2");
    let body = "<applications><application><instance/><instance><hostName>h2</hostName></instance><name>a</name></application></applications>";
    let list = read_applications(Format::Xml, body.as_bytes()).expect("it is a list");
    assert_eq!((list.instances.len(), list.left_out), (1, 1));
    assert_eq!(list.instances[0].key().to_string(), "A/h2");
    for body in [
        "",
        "null",
        "{}",
        "[]",
        r#"{"instance":{}}"#,
        "<a/>",
        "<applications>",
    ] {
        for format in [Format::Json, Format::Xml] {
            assert!(read_applications(format, body.as_bytes()).is_err(), "{body}");
        }
    }
}

#[test]
fn items_of_a_batch_stand_for_themselves() {
    let body = format!(
        r#"{{"x":[],"replicationList":[
            {{"appName":"a","id":"1","action":"Cancel","x":{{}}}},
            {{"appName":"a","id":"1","action":"Explode"}},
            {{"appName":"a","action":"Cancel"}},
            {{"appName":"a","id":"1","action":"StatusUpdate","status":"up"}},
            {{"appName":"a","id":"1","action":"Register"}},
            {{"appName":"a","id":"1","action":"Register","instanceInfo":{{"port":[]}},"lastDirtyTimestamp":3}},
            {{"appName":"a","action":"Register","instanceInfo":{{"port":[]}}}},
            {{"appName":"a","id":"1","action":"Cancel","instanceInfo":5}},
            {{"appName":"a","id":"1","action":"Register","instanceInfo":{{"instance":{{{BASE}}}}}}},
            {{"appName":"a","id":"1","action":"DeleteStatusOverride"}},
            {{"appName":"a","id":"1","action":"Heartbeat","lastDirtyTimestamp":"x"}},
            {{"appName":"a","id":"1","action":"Heartbeat","lastDirtyTimestamp":"5","overriddenStatus":"nonsense"}},
            null, 5]}}"#
    );
    let items = read_batch(body.as_bytes(), Dialect::Lenient).expect("it is a batch");
    let told: Vec<String> = items
        .iter()
        .map(|item| match item {
            Ok(BatchItem::Cancel { key }) => format!("cancel {key}"),
            Ok(BatchItem::DeleteStatusOverride {
                status, last_dirty, ..
            }) => format!("clear {status:?} {last_dirty:?}"),
            Ok(BatchItem::Heartbeat(Heartbeat {
                last_dirty,
                overridden,
                ..
            })) => format!("renew {last_dirty:?} {overridden:?}"),
            Ok(BatchItem::Register { key, registration }) => {
                format!("register {key} {:?}", registration.host_name)
            }
            Ok(BatchItem::StatusUpdate { status, .. }) => format!("override {status}"),
            Err(ItemError::Registration {
                key,
                last_dirty,
                error,
            }) => {
                format!("{key} {last_dirty:?}: {error}")
            }
            Err(error) => error.to_string(),
        })
        .collect();
    let expected = [
        "cancel A/1",
        "missing or unknown action",
        "missing appName or id",
        "missing or unknown status",
        "missing instanceInfo",
        "A/1 Some(3): `port` must be text",
        "`port` must be text",
        "instanceInfo must be an object",
        "register A/1 Some(\"h\")",
        "clear None None",
        "`lastDirtyTimestamp` must be a whole number",
        "renew Some(5) None",
        "missing or unknown action",
        "an item must be an object",
    ];
    assert_eq!(told, expected);
    assert!(read_batch(body.as_bytes(), Dialect::Java).is_err());
    let single = br#"{"replicationList":{"appName":"a","id":"1","action":"DeleteStatusOverride"}}"#;
    assert_eq!(read_batch(single, Dialect::Lenient).expect("one item").len(), 1);
    let java = br#"{"replicationList":[{"appName":"a","id":"1","action":"DeleteStatusOverride"}]}"#;
    assert_eq!(
        read_batch(java, Dialect::Java),
        Ok(vec![Err(ItemError::LastDirty)])
    );
}

#[test]
fn a_batch_has_a_limit() {
    let body = format!(r#"{{"replicationList":[{}{{}}]}}"#, "{},".repeat(250_000));
    assert_eq!(
        read_batch(body.as_bytes(), Dialect::Lenient),
        Err(DecodeError::TooComplex)
    );
}
