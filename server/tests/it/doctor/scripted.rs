//! Servers that say what they are told to say, in the words of Java's or of ours.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// What a server says.
#[derive(Clone, Debug)]
pub(super) struct Script {
    who: Who,
    peers: Vec<Value>,
    alarms: Vec<Value>,
    instances: Vec<Fake>,
    /// What the list shows where it is not the same.
    listed: Option<Vec<Fake>>,
    held: bool,
    /// Lists are answered 503.
    sheds: bool,
    preserving: bool,
    /// Its clock minus the true one.
    skew: i64,
    /// `user:password` in base64.
    credentials: Option<&'static str>,
    list: Option<&'static str>,
}

#[derive(Clone, Debug)]
enum Who {
    Java { host: String, port: u16 },
    Ours { id: String },
}

/// One instance at one server.
#[derive(Clone, Debug)]
pub(super) struct Fake {
    app: &'static str,
    id: &'static str,
    fields: Value,
    /// How long ago it was last heard of; never renewed if that is longer ago than `registered`.
    heard: i64,
    registered: i64,
    interval: i64,
}

impl Fake {
    /// UP, renewed a second ago.
    pub(super) fn new(app: &'static str, id: &'static str) -> Self {
        Self {
            app,
            id,
            fields: json!({"status": "UP", "overriddenStatus": "UNKNOWN", "hostName": "h1", "ipAddr": "10.0.0.1", "lastDirtyTimestamp": "1000"}),
            heard: 1_000,
            registered: 600_000,
            interval: 30,
        }
    }

    /// Last heard of this many seconds ago.
    pub(super) fn heard(mut self, seconds: i64) -> Self {
        self.heard = seconds * 1000;
        self
    }

    /// The same in milliseconds.
    pub(super) fn heard_ms(mut self, milliseconds: i64) -> Self {
        self.heard = milliseconds;
        self
    }

    /// With another value of a field.
    pub(super) fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.fields[field] = value.into();
        self
    }

    /// Registered just now.
    pub(super) fn new_now(mut self) -> Self {
        self.registered = 500;
        self.heard = 500;
        self
    }

    fn json(&self, script: &Script) -> Value {
        let now = script.now();
        let duration = self.interval * 3;
        let renewed = match script.who {
            Who::Java { .. } if self.heard < self.registered => now - self.heard + duration * 1000,
            Who::Java { .. } | Who::Ours { .. } => now - self.heard,
        };
        let mut instance = json!({
            "instanceId": self.id,
            "app": self.app,
            "port": {"$": 80, "@enabled": "true"},
            "securePort": {"$": 443, "@enabled": "false"},
            "countryId": 1,
            "dataCenterInfo": {"@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "MyOwn"},
            "leaseInfo": {
                "renewalIntervalInSecs": self.interval,
                "durationInSecs": duration,
                "registrationTimestamp": now - self.registered,
                "lastRenewalTimestamp": renewed,
                "evictionTimestamp": 0,
                "serviceUpTimestamp": now - self.registered,
            },
            "metadata": {"@class": "java.util.Collections$EmptyMap"},
            "isCoordinatingDiscoveryServer": "false",
            "lastUpdatedTimestamp": (now - self.registered).to_string(),
            "actionType": "ADDED",
        });
        let fields = self.fields.as_object().expect("it was made as one");
        for (name, value) in fields {
            instance[name] = value.clone();
        }
        instance
    }
}

/// A place that is listened at already, so that others can be told of it before it says anything.
pub(super) struct Place {
    listener: TcpListener,
    /// The base URL of Eureka's API there.
    pub(super) url: String,
}

/// So many places.
pub(super) fn places<const N: usize>() -> [Place; N] {
    std::array::from_fn(|_| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        Place {
            listener,
            url: format!("http://{address}/eureka"),
        }
    })
}

impl Place {
    fn port(&self) -> u16 {
        self.listener.local_addr().expect("it is bound").port()
    }

    /// A Java server of this host name, whose peers are these URLs.
    pub(super) fn java(&self, host: &str, peers: &[&str]) -> Script {
        let who = Who::Java {
            host: host.to_owned(),
            port: self.port(),
        };
        Script::new(who, peers.iter().map(|url| json!(format!("{url}/"))).collect())
    }

    /// A node of ours whose way to these peers is fine.
    pub(super) fn ours(&self, peers: &[&str]) -> Script {
        let id = format!("{:032x}", self.port());
        let peers = peers
            .iter()
            .map(|url| json!({"url": url, "kind": "unknown", "nodeId": null, "state": "up", "reachesUs": true, "error": null}));
        Script::new(Who::Ours { id }, peers.collect())
    }

    /// Answers as this script says, from now on.
    pub(super) fn serve(self, script: Script) -> String {
        self.balance(vec![script])
    }

    /// Answers each connection as the next of these servers.
    pub(super) fn balance(self, scripts: Vec<Script>) -> String {
        let scripts = Arc::new(scripts);
        let listener = self.listener;
        std::thread::spawn(move || {
            for (turn, stream) in listener.incoming().enumerate() {
                let (Ok(stream), scripts) = (stream, Arc::clone(&scripts)) else {
                    return;
                };
                std::thread::spawn(move || {
                    // The client may have gone.
                    drop(scripts[turn % scripts.len()].answer(stream));
                });
            }
        });
        self.url
    }
}

impl Script {
    fn new(who: Who, peers: Vec<Value>) -> Self {
        Self {
            who,
            peers,
            alarms: Vec::new(),
            instances: Vec::new(),
            listed: None,
            held: false,
            sheds: false,
            preserving: false,
            skew: 0,
            credentials: None,
            list: None,
        }
    }

    pub(super) fn has(mut self, instance: Fake) -> Self {
        self.instances.push(instance);
        self
    }

    /// The list shows only these.
    pub(super) fn lists(mut self, instances: Vec<Fake>) -> Self {
        self.listed = Some(instances);
        self
    }

    /// The list is this text.
    pub(super) fn lists_text(mut self, text: &'static str) -> Self {
        self.list = Some(text);
        self
    }

    pub(super) fn held(mut self) -> Self {
        self.held = true;
        self
    }

    pub(super) fn sheds(mut self) -> Self {
        self.sheds = true;
        self
    }

    pub(super) fn preserving(mut self) -> Self {
        self.preserving = true;
        self
    }

    pub(super) fn skewed(mut self, seconds: i64) -> Self {
        self.skew = seconds * 1000;
        self
    }

    pub(super) fn asks_for(mut self, credentials: &'static str) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// A node of ours says this of its first peer.
    pub(super) fn says(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.peers[0][field] = value.into();
        self
    }

    /// A node of ours has this alarm about its first peer.
    pub(super) fn alarm(mut self, name: &str) -> Self {
        let url = self.peers[0]["url"].clone();
        self.alarms
            .push(json!({"name": name, "url": url, "since": 1, "text": format!("{name}, it says")}));
        self
    }

    #[allow(clippy::disallowed_methods)] // A scripted server has a clock, as every server.
    fn now(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
        i64::try_from(now.as_millis()).expect("before the year 292 million") + self.skew
    }

    fn answer(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let path = lines
            .first()
            .and_then(|line| line.split(' ').nth(1))
            .unwrap_or_default();
        let allowed = self.credentials.is_none_or(|credentials| {
            let expected = format!("authorization: basic {credentials}");
            lines.iter().any(|line| line.eq_ignore_ascii_case(&expected))
        });
        let (status, body) = if allowed {
            self.respond(path)
        } else {
            (401, String::new())
        };
        let date = UNIX_EPOCH + Duration::from_millis(self.now().unsigned_abs());
        write!(
            reader.get_mut(),
            "HTTP/1.1 {status} \r\ndate: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            httpdate::fmt_http_date(date),
            body.len()
        )
    }

    fn respond(&self, path: &str) -> (u16, String) {
        let ours = matches!(self.who, Who::Ours { .. });
        match path {
            "/eureka/apps" if self.held => (403, String::new()),
            "/eureka/apps" if self.sheds => (503, String::new()),
            "/eureka/apps" => (200, self.apps()),
            "/eureka/status" => (200, self.status_page()),
            "/" if !ours => (
                200,
                format!("<td>Lease expiration enabled</td>\n<td>{}</td>", !self.preserving),
            ),
            "/api/v1/node" if ours => (200, self.node()),
            "/api/v1/peers" if ours => (
                200,
                json!({"peers": self.peers, "alarms": self.alarms}).to_string(),
            ),
            "/api/v1/preservation" if ours => (200, json!({"active": self.preserving}).to_string()),
            other => {
                let found = self.instances.iter().find(|fake| {
                    other == format!("/eureka/apps/{}/{}", fake.app, fake.id)
                        || other == format!("/eureka/instances/{}", fake.id)
                });
                match found {
                    Some(fake) => (200, json!({"instance": fake.json(self)}).to_string()),
                    None => (404, String::new()),
                }
            }
        }
    }

    fn apps(&self) -> String {
        if let Some(text) = self.list {
            return text.to_owned();
        }
        let listed = self.listed.as_ref().unwrap_or(&self.instances);
        // One application each: a reader must not mind.
        let applications: Vec<_> = listed
            .iter()
            .map(|fake| json!({"name": fake.app, "instance": [fake.json(self)]}))
            .collect();
        json!({"applications": {"versions__delta": "1", "apps__hashcode": "", "application": applications}})
            .to_string()
    }

    fn node(&self) -> String {
        let Who::Ours { id } = &self.who else {
            return String::new();
        };
        let reads = if self.held { "held" } else { "open" };
        json!({"nodeId": id, "time": self.now(), "reads": reads, "config": {}}).to_string()
    }

    fn status_page(&self) -> String {
        let (host, port) = match &self.who {
            Who::Java { host, port } => (host.as_str(), *port),
            Who::Ours { .. } => ("ours", 0),
        };
        let peers: Vec<_> = self.peers.iter().filter_map(Value::as_str).collect();
        let peers = peers.join(", ");
        format!(
            "<com.netflix.eureka.util.StatusInfo><applicationStats>\n<registered-replicas>{peers}</registered-replicas>\n\
             <available-replicas></available-replicas></applicationStats>\n<instanceInfo>\n<instanceId>{host}:eureka:{port}</instanceId>\n\
             <hostName>{host}</hostName>\n<ipAddr>10.0.0.9</ipAddr>\n<port enabled=\"true\">{port}</port></instanceInfo>\n\
             </com.netflix.eureka.util.StatusInfo>"
        )
    }
}
