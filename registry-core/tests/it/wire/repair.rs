//! Messages of repair: what is written is read back exactly, and whatever is wrong with one has its own answer.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::wire::{
    DecodeError, Format, RepairKind, read_instance, read_registration, read_repair_answer,
    read_repair_request, write_instance, write_repair_answer, write_repair_request,
};
use eureka_registry_core::{
    BUCKETS, DataCenter, EXCHANGE_MAX, Entry, EntryState, Instance, InstanceKey, LATE_MAX, Metadata, Offer,
    Port, RepairAnswer, RepairRequest, Stamp, Stamped, Status, Wall,
};

use super::{full, view};

/// Pseudo-random numbers (`SplitMix64`).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn coin(&mut self) -> bool {
        self.below(2) == 0
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.coin().then(|| make(self))
    }

    fn many<T>(&mut self, limit: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(limit)).map(|_| make(self)).collect()
    }

    /// Texts that have been misread before, besides plain ones.
    fn text(&mut self) -> String {
        const ODD: [&str; 12] = [
            "",
            "@class",
            "instanceId",
            "na",
            "null",
            "a\"b\\c",
            "\0\u{1f}\u{7f}",
            "é😀\u{fffd}\u{feff}",
            "</x>&amp;",
            "ß",
            "group",
            "java.util.Collections$EmptyMap",
        ];
        let odd = usize::try_from(self.below(20)).expect("it is small");
        ODD.get(odd)
            .map_or_else(|| format!("t{}", self.below(1_000)), |text| (*text).into())
    }

    fn name(&mut self) -> String {
        format!("x{}", self.text())
    }

    fn millis(&mut self) -> Duration {
        Duration::from_millis(self.next() >> self.below(64))
    }

    fn number(&mut self) -> i64 {
        self.next().cast_signed() >> self.below(64)
    }

    fn status(&mut self) -> Status {
        Status::ALL[usize::try_from(self.below(5)).expect("it is small")]
    }

    fn stamp(&mut self) -> Stamp {
        Stamp {
            at: Wall(self.next()),
            node: self.next() >> self.below(64),
        }
    }

    fn key(&mut self) -> InstanceKey {
        InstanceKey::new(&self.name(), &self.name())
    }

    fn distinct_keys(&mut self) -> Vec<InstanceKey> {
        let mut keys = self.many(6, Self::key);
        keys.sort();
        keys.dedup();
        keys
    }

    fn port(&mut self) -> Port {
        Port {
            number: self.next() as i32,
            enabled: self.coin(),
        }
    }

    fn metadata(&mut self) -> Metadata {
        let pairs = self.many(4, |rng| (rng.text(), rng.text()));
        pairs.iter().map(|(key, value)| (&**key, &**value)).collect()
    }

    fn instance(&mut self) -> Instance {
        let mut instance = Instance::new(&self.name(), &self.name(), &self.name(), &self.name());
        let optional = |rng: &mut Self| rng.maybe(|rng| Arc::from(rng.text()));
        instance.instance_id = optional(self);
        instance.app_group = optional(self);
        instance.sid = optional(self).filter(|sid| &**sid != "na");
        instance.home_page_url = optional(self);
        instance.status_page_url = optional(self);
        instance.health_check_url = optional(self);
        instance.secure_health_check_url = optional(self);
        instance.vip_address = optional(self);
        instance.secure_vip_address = optional(self);
        instance.asg_name = optional(self);
        instance.port = self.port();
        instance.secure_port = self.port();
        instance.country_id = self.next() as i32;
        instance.status = self.status();
        instance.lease.duration_secs = 1 + (self.next() as u32 >> 2);
        instance.lease.renewal_interval_secs = 1 + (self.next() as u32 >> 2);
        instance.metadata = self.metadata();
        instance.last_dirty = Some(self.number());
        instance.data_center = match self.below(3) {
            0 => DataCenter::MyOwn,
            1 => DataCenter::Netflix,
            _ => {
                let mut machine = self.metadata();
                machine.insert("instance-id", &self.text());
                DataCenter::Amazon(machine)
            }
        };
        instance
    }

    fn offer(&mut self) -> Offer {
        if self.coin() {
            return Offer::Gone {
                key: self.key(),
                dirty: self.number(),
                ago: self.millis(),
            };
        }
        Offer::Copy {
            instance: Arc::new(self.instance()),
            age: self.millis(),
            overridden: self.maybe(|rng| Stamped {
                status: rng.maybe(Self::status),
                stamp: rng.stamp(),
            }),
        }
    }

    fn entry(&mut self) -> Entry {
        Entry {
            key: self.key(),
            dirty: self.number(),
            state: match self.below(3) {
                0 => EntryState::Moving,
                1 => EntryState::Gone { ago: self.millis() },
                _ => EntryState::Held {
                    content: self.next() >> self.below(64),
                    overridden: self.maybe(Self::status),
                    stamp: self.maybe(Self::stamp),
                    age: self.millis(),
                },
            },
        }
    }

    fn request(&mut self) -> RepairRequest {
        match self.below(4) {
            0 => RepairRequest::Compare {
                root: self.next(),
                late: self.distinct_keys(),
            },
            1 => {
                let from = self.below(1_000) as u16;
                RepairRequest::List {
                    buckets: (from..from + self.below(24) as u16).collect(),
                }
            }
            2 => RepairRequest::Exchange {
                pull: self.distinct_keys(),
                push: self.many(6, Self::offer),
            },
            _ => RepairRequest::Copy {
                after: self.maybe(Self::key),
            },
        }
    }

    fn answer(&mut self) -> (RepairKind, RepairAnswer) {
        match self.below(4) {
            0 => {
                let sums = if self.coin() { BUCKETS } else { 0 };
                let answer = RepairAnswer::Compare {
                    root: self.next(),
                    sums: (0..sums).map(|_| self.next()).collect(),
                    ages: self.many(6, |rng| (rng.key(), rng.millis())),
                    gone: self.many(6, |rng| (rng.key(), rng.next() as i64, rng.millis())),
                };
                (RepairKind::Compare, answer)
            }
            1 => {
                let entries = self.many(6, Self::entry);
                (RepairKind::List, RepairAnswer::List { entries })
            }
            2 => {
                let offers = self.many(6, Self::offer);
                (RepairKind::Exchange, RepairAnswer::Exchange { offers })
            }
            _ => {
                let answer = RepairAnswer::Copy {
                    offers: self.many(6, Self::offer),
                    more: self.coin(),
                    total: self.next() as usize,
                    held: self.coin(),
                };
                (RepairKind::Copy, answer)
            }
        }
    }
}

fn request(kind: RepairKind, body: &str) -> Result<RepairRequest, DecodeError> {
    read_repair_request(kind, body.as_bytes())
}

fn answer(kind: RepairKind, body: &str) -> Result<RepairAnswer, DecodeError> {
    read_repair_answer(kind, body.as_bytes())
}

/// The text that says what is wrong.
fn wrong<T: std::fmt::Debug>(result: Result<T, DecodeError>) -> String {
    result.expect_err("something is wrong").to_string()
}

#[test]
fn every_message_is_read_as_it_was_written() {
    let mut rng = Rng(1);
    for round in 0..5_000 {
        let sent = rng.request();
        let body = write_repair_request(&sent);
        let read = read_repair_request(RepairKind::from(&sent), &body);
        assert_eq!(
            read.as_ref(),
            Ok(&sent),
            "{round}: {}",
            String::from_utf8_lossy(&body)
        );

        let (kind, sent) = rng.answer();
        let body = write_repair_answer(&sent);
        let read = read_repair_answer(kind, &body);
        assert_eq!(
            read.as_ref(),
            Ok(&sent),
            "{round}: {}",
            String::from_utf8_lossy(&body)
        );
    }
}

fn key() -> InstanceKey {
    InstanceKey::new("a", "i")
}

const STAMP: Stamp = Stamp { at: Wall(5), node: 6 };

fn gone() -> Offer {
    Offer::Gone {
        key: key(),
        dirty: -1,
        ago: Duration::from_millis(2),
    }
}

#[test]
fn the_form_of_every_request_is_fixed() {
    let requests = [
        (
            RepairRequest::Compare {
                root: 10,
                late: vec![key()],
            },
            r#"{"root":"000000000000000a","late":[{"app":"A","id":"i"}]}"#,
        ),
        (
            RepairRequest::List {
                buckets: vec![0, 1023],
            },
            r#"{"buckets":[0,1023]}"#,
        ),
        (
            RepairRequest::Exchange {
                pull: vec![key()],
                push: vec![gone()],
            },
            r#"{"pull":[{"app":"A","id":"i"}],"push":[{"app":"A","id":"i","dirty":-1,"ago":2}]}"#,
        ),
        (RepairRequest::Copy { after: None }, "{}"),
        (
            RepairRequest::Copy { after: Some(key()) },
            r#"{"after":{"app":"A","id":"i"}}"#,
        ),
    ];
    for (request, body) in requests {
        assert_eq!(String::from_utf8_lossy(&write_repair_request(&request)), body);
    }
}

fn entry(state: EntryState) -> Entry {
    Entry {
        key: key(),
        dirty: 7,
        state,
    }
}

#[test]
fn the_form_of_every_answer_is_fixed() {
    let held = EntryState::Held {
        content: u64::MAX,
        overridden: Some(Status::OutOfService),
        stamp: Some(STAMP),
        age: Duration::from_micros(1_001),
    };
    let entries = vec![
        entry(held),
        entry(EntryState::Moving),
        entry(EntryState::Gone { ago: Duration::ZERO }),
    ];
    let copy = Offer::Copy {
        instance: full("a", "i").instance.clone(),
        age: Duration::from_secs(3),
        overridden: Some(Stamped {
            status: None,
            stamp: STAMP,
        }),
    };
    let answers = [
        (
            RepairAnswer::Compare {
                root: 1,
                sums: Vec::new(),
                ages: vec![(key(), Duration::from_secs(1))],
                gone: vec![(key(), -4, Duration::from_secs(2))],
            },
            r#"{"root":"0000000000000001","sums":[],"ages":[{"app":"A","id":"i","age":1000}],"gone":[{"app":"A","id":"i","dirty":-4,"ago":2000}]}"#,
        ),
        (
            RepairAnswer::List { entries },
            concat!(
                r#"{"entries":[{"app":"A","id":"i","dirty":7,"content":"ffffffffffffffff","age":2,"#,
                r#""overridden":"OUT_OF_SERVICE","stamp":{"at":5,"node":"0000000000000006"}},"#,
                r#"{"app":"A","id":"i","dirty":7,"moving":true},{"app":"A","id":"i","dirty":7,"ago":0}]}"#,
            ),
        ),
        (
            RepairAnswer::Copy {
                offers: vec![copy, gone()],
                more: true,
                total: 9,
                held: false,
            },
            concat!(
                r#"{"offers":[{"instance":{"instanceId":"i","hostName":"h1","app":"A","ipAddr":"10.0.0.1","sid":"s","#,
                r#""status":"UP","port":{"$":7001,"@enabled":"true"},"securePort":{"$":7002,"@enabled":"false"},"#,
                r#""countryId":1,"dataCenterInfo":{"@class":"com.netflix.appinfo.AmazonInfo","name":"Amazon","#,
                r#""metadata":{"instance-id":"i-1","mac":"m"}},"#,
                r#""leaseInfo":{"renewalIntervalInSecs":30,"durationInSecs":90},"#,
                r#""metadata":{"zone":"z1","a_b":"x"},"appGroupName":"GROUP","homePageUrl":"http://h1/","#,
                r#""statusPageUrl":"http://h1/info","healthCheckUrl":"http://h1/health","#,
                r#""secureHealthCheckUrl":"https://h1/health","vipAddress":"v1,v2","secureVipAddress":"sv","#,
                r#""lastDirtyTimestamp":"7","asgName":"asg"},"age":3000,"stamp":{"at":5,"node":"0000000000000006"}},"#,
                r#"{"app":"A","id":"i","dirty":-1,"ago":2}],"total":9,"more":true,"held":false}"#,
            ),
        ),
    ];
    for (answer, body) in answers {
        assert_eq!(String::from_utf8_lossy(&write_repair_answer(&answer)), body);
    }
}

#[test]
fn what_came_as_xml_is_the_same_at_the_other_end() {
    // JSON as Java reads it turns the group to upper case, drops the marker, and takes the id from the metadata.
    let body = "<instance><hostName>h</hostName><app>A</app><ipAddr>1</ipAddr><appGroupName>group</appGroupName>\
        <dataCenterInfo><name>MyOwn</name></dataCenterInfo>\
        <metadata><_.0040class>c</_.0040class><instanceId>x</instanceId></metadata>\
        <lastDirtyTimestamp>5</lastDirtyTimestamp></instance>";
    let registration =
        read_registration(Format::Xml, body.as_bytes(), Default::default()).expect("it is a registration");
    let mut instance = registration.validate("A").expect("it is valid");
    instance.metadata.insert("@class", "c");
    assert_eq!(
        (instance.app_group.as_deref(), instance.id()),
        (Some("group"), "h")
    );

    let mut java = Vec::new();
    write_instance(Format::Json, &view(instance.clone()), false, &mut java);
    let java = read_instance(Format::Json, &java).expect("it is an instance");
    assert_ne!(*java.instance, instance);

    let sent = RepairAnswer::Exchange {
        offers: vec![Offer::Copy {
            instance: Arc::new(instance),
            age: Duration::ZERO,
            overridden: None,
        }],
    };
    let read = read_repair_answer(RepairKind::Exchange, &write_repair_answer(&sent));
    assert_eq!(read, Ok(sent));
}

#[test]
fn more_metadata_than_a_registration_may_have_does_not_stop_repair() {
    let mut instance = Instance::new("A", "i", "h", "1");
    let keys: Vec<String> = (0..20_000).map(|number| format!("k{number}")).collect();
    instance.metadata = keys.iter().map(|key| (&**key, "")).collect();
    instance.last_dirty = Some(1);
    let sent = RepairRequest::Exchange {
        pull: Vec::new(),
        push: vec![Offer::Copy {
            instance: Arc::new(instance),
            age: Duration::ZERO,
            overridden: None,
        }],
    };
    assert_eq!(
        read_repair_request(RepairKind::Exchange, &write_repair_request(&sent)),
        Ok(sent)
    );
}

const INSTANCE: &str = r#""app":"a","instanceId":"i","hostName":"h","ipAddr":"1","dataCenterInfo":{"name":"MyOwn"},"lastDirtyTimestamp":"5""#;

fn pushed(offer: &str) -> Result<RepairRequest, DecodeError> {
    request(
        RepairKind::Exchange,
        &format!(r#"{{"pull":[],"push":[{offer}]}}"#),
    )
}

#[test]
fn unknown_members_are_skipped_everywhere() {
    let body = format!(
        r#"{{"x":[{{"deep":{}}}],"pull":[{{"app":"a","id":"i","y":1}}],"push":[{{"instance":{{{INSTANCE},"new":{{"a":[]}}}},"age":1,"z":null}}]}}"#,
        "[".repeat(5_000) + &"]".repeat(5_000)
    );
    let RepairRequest::Exchange { pull, push } =
        request(RepairKind::Exchange, &body).expect("it is readable")
    else {
        panic!("another kind");
    };
    assert_eq!((pull.len(), push.len()), (1, 1));
}

#[test]
fn an_override_within_an_instance_does_not_count() {
    let offer = format!(r#"{{"instance":{{{INSTANCE},"overriddenStatus":"DOWN"}},"age":1}}"#);
    let Ok(RepairRequest::Exchange { push, .. }) = pushed(&offer) else {
        panic!("it is readable");
    };
    let Offer::Copy {
        instance, overridden, ..
    } = &push[0]
    else {
        panic!("it is a copy");
    };
    assert_eq!((instance.overridden_status, *overridden), (Status::Unknown, None));
}

#[test]
fn an_offer_is_checked_as_a_registration_is() {
    let without = |member: &str| {
        let instance: Vec<&str> = INSTANCE
            .split(',')
            .filter(|pair| !pair.contains(member))
            .collect();
        wrong(pushed(&format!(
            r#"{{"instance":{{{}}},"age":1}}"#,
            instance.join(",")
        )))
    };
    assert_eq!(without("hostName"), "an offer: Missing hostname");
    assert_eq!(without("ipAddr"), "an offer: Missing ip address");
    assert_eq!(without("app"), "an offer: Missing appName");
    assert_eq!(without("dataCenterInfo"), "an offer: Missing dataCenterInfo");
    assert_eq!(without("lastDirtyTimestamp"), "missing lastDirtyTimestamp");
    for (offer, text) in [
        (format!(r#"{{"instance":{{{INSTANCE}}}}}"#), "missing age"),
        (
            format!(r#"{{"instance":{{{INSTANCE}}},"age":-1}}"#),
            "`age` must be a whole number in range",
        ),
        (
            format!(r#"{{"instance":{{{INSTANCE}}},"age":1.5}}"#),
            "`age` must be a whole number in range",
        ),
        (
            format!(r#"{{"instance":{{{INSTANCE}}},"age":1,"overridden":"DOWN"}}"#),
            "missing stamp",
        ),
        (
            format!(
                r#"{{"instance":{{{INSTANCE}}},"age":1,"overridden":"down","stamp":{{"at":1,"node":"0000000000000001"}}}}"#
            ),
            "`overridden` must be a status",
        ),
        (
            format!(r#"{{"instance":{{{INSTANCE}}},"age":1,"stamp":{{"at":1}}}}"#),
            "missing node",
        ),
        (
            format!(r#"{{"instance":{{{INSTANCE}}},"age":1,"stamp":5}}"#),
            "`stamp` must be an object",
        ),
        (r#"{"instance":5,"age":1}"#.into(), "instance must be an object"),
        (r#"{"app":"a","id":"i","ago":1}"#.into(), "missing dirty"),
        (
            r#"{"app":"a","id":"i","dirty":"1","ago":1}"#.into(),
            "`dirty` must be a whole number in range",
        ),
        (
            r#"{"app":"a","id":"","dirty":1,"ago":1}"#.into(),
            "`app` and `id` must not be empty",
        ),
        (
            r#"{"app":5,"id":"i","dirty":1,"ago":1}"#.into(),
            "`app` must be text",
        ),
        ("7".into(), "an offer must be an object"),
    ] {
        assert_eq!(wrong(pushed(&offer)), text, "{offer}");
    }
}

#[test]
fn every_list_has_an_end_and_names_nothing_twice() {
    let keys = |count: usize| -> String {
        let keys: Vec<String> = (0..count)
            .map(|id| format!(r#"{{"app":"a","id":"{id}"}}"#))
            .collect();
        keys.join(",")
    };
    let compare = |late: &str| {
        request(
            RepairKind::Compare,
            &format!(r#"{{"root":"{:016}","late":[{late}]}}"#, 0),
        )
    };
    let pull = |pull: &str| request(RepairKind::Exchange, &format!(r#"{{"pull":[{pull}],"push":[]}}"#));
    let buckets = |buckets: &str| request(RepairKind::List, &format!(r#"{{"buckets":[{buckets}]}}"#));
    assert!(compare(&keys(LATE_MAX)).is_ok());
    assert_eq!(wrong(compare(&keys(LATE_MAX + 1))), "more than 1000 `late`");
    assert!(pull(&keys(EXCHANGE_MAX)).is_ok());
    assert_eq!(wrong(pull(&keys(EXCHANGE_MAX + 1))), "more than 1000 `pull`");
    let twice = r#"{"app":"a","id":"i"},{"id":"i","app":"A"}"#;
    assert_eq!(wrong(compare(twice)), "`late` names something twice");
    assert_eq!(wrong(pull(twice)), "`pull` names something twice");

    let all: Vec<String> = (0..BUCKETS).map(|bucket| bucket.to_string()).collect();
    assert!(buckets(&all.join(",")).is_ok());
    assert_eq!(
        wrong(buckets(&format!("{},0", all.join(",")))),
        "more than 1024 `buckets`"
    );
    assert_eq!(wrong(buckets("3,4,3")), "`buckets` names something twice");
    assert_eq!(wrong(buckets("1024")), "there is no bucket 1024");
    for bad in ["-1", "1.0", "\"1\"", "null", "65536", "[1]"] {
        assert_eq!(
            wrong(buckets(bad)),
            "`buckets` must be a whole number in range",
            "{bad}"
        );
    }

    let gone = r#"{"app":"a","id":"i","dirty":1,"ago":1}"#;
    let many = vec![gone; EXCHANGE_MAX + 1].join(",");
    assert_eq!(wrong(pushed(&many)), "more than 1000 `push`");
    let offers = answer(RepairKind::Exchange, &format!(r#"{{"offers":[{many}]}}"#));
    assert_eq!(wrong(offers), "more than 1000 `offers`");
    let ages = vec![r#"{"app":"a","id":"i","age":1}"#; LATE_MAX + 1].join(",");
    let ages = answer(
        RepairKind::Compare,
        &format!(r#"{{"root":"{:016}","sums":[],"ages":[{ages}]}}"#, 0),
    );
    assert_eq!(wrong(ages), "more than 1000 `ages`");
    let entries = vec!["{}"; 500_001].join(",");
    let entries = answer(RepairKind::List, &format!(r#"{{"entries":[{entries}]}}"#));
    assert_eq!(
        wrong(entries),
        "an entry must have one of `content`, `moving` and `ago`"
    );
}

#[test]
fn sums_are_all_or_none() {
    let compare = |count: usize| {
        let sums = vec![format!("\"{:016x}\"", u64::MAX); count].join(",");
        answer(
            RepairKind::Compare,
            &format!(r#"{{"root":"{:016}","sums":[{sums}],"ages":[]}}"#, 0),
        )
    };
    for good in [0, BUCKETS] {
        assert!(compare(good).is_ok(), "{good}");
    }
    for bad in [1, BUCKETS - 1] {
        assert_eq!(wrong(compare(bad)), format!("{bad} `sums`, not 1024 or none"));
    }
    assert_eq!(wrong(compare(BUCKETS + 1)), "more than 1024 `sums`");
}

#[test]
fn hashes_are_sixteen_digits() {
    for bad in [
        "",
        "0",
        "+00000000000000a",
        "00000000000000000",
        "000000000000000g",
        "é00000000000000",
    ] {
        let body = format!(r#"{{"root":"{bad}","late":[]}}"#);
        let text = wrong(request(RepairKind::Compare, &body));
        assert_eq!(text, "`root` must be 16 hexadecimal digits", "{bad}");
    }
    let number = request(RepairKind::Compare, r#"{"root":1234567890123456,"late":[]}"#);
    assert_eq!(wrong(number), "`root` must be text");
}

#[test]
fn an_entry_is_one_thing() {
    let listed = |fields: &str| {
        let body = format!(r#"{{"entries":[{{"app":"a","id":"i","dirty":1{fields}}}]}}"#);
        answer(RepairKind::List, &body)
    };
    let choice = "an entry must have one of `content`, `moving` and `ago`";
    for (fields, text) in [
        ("", choice),
        (r#","moving":false"#, choice),
        (r#","moving":true,"ago":1"#, choice),
        (r#","content":"000000000000000a","age":1,"ago":1"#, choice),
        (r#","content":"000000000000000a""#, "missing age"),
        (r#","moving":1"#, "`moving` must be true or false"),
        (r#","ago":1,"dirty":2"#, "`dirty` twice"),
    ] {
        assert_eq!(wrong(listed(fields)), text, "{fields}");
    }
}

#[test]
fn a_document_is_one_object_of_its_kind() {
    for kind in RepairKind::ALL {
        for body in ["", "[]", "null", "\"x\"", "5", "{", "{}x", "{}{}", "\u{feff}{}"] {
            assert!(request(kind, body).is_err(), "{kind:?} {body}");
            assert!(answer(kind, body).is_err(), "{kind:?} {body}");
        }
        assert_eq!(request(kind, "{}").is_ok(), kind == RepairKind::Copy, "{kind:?}");
        assert!(answer(kind, "{}").is_err(), "{kind:?}");
    }
    assert_eq!(
        wrong(request(RepairKind::Exchange, r#"{"pull":[]}"#)),
        "missing push"
    );
    assert_eq!(
        wrong(request(RepairKind::List, r#"{"buckets":5}"#)),
        "`buckets` must be an array"
    );
    let members: Vec<String> = (0..33).map(|number| format!(r#""m{number}":1"#)).collect();
    let many = format!("{{{}}}", members.join(","));
    assert_eq!(request(RepairKind::Copy, &many), Err(DecodeError::TooComplex));
}

#[test]
fn every_prefix_of_a_message_is_refused() {
    let mut rng = Rng(2);
    for _ in 0..20 {
        let sent = rng.request();
        let kind = RepairKind::from(&sent);
        let body = write_repair_request(&sent);
        for end in 0..body.len() {
            assert!(read_repair_request(kind, &body[..end]).is_err(), "{end}");
        }
        let (kind, sent) = rng.answer();
        let body = write_repair_answer(&sent);
        for end in (0..body.len()).take(4_000) {
            assert!(read_repair_answer(kind, &body[..end]).is_err(), "{end}");
        }
    }
}
