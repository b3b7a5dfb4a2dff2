//! The server under test, spoken to by hand.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use base64::Engine;
use serde_json::{Value, json};

use super::http::{self, HttpError, Request, Response};

const ANSWER_WITHIN: Duration = Duration::from_secs(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Where a Eureka API is.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// `host:port`.
    pub(crate) address: String,
    /// The path of the API, such as `/eureka` or `/eureka/v2`; no slash at the end.
    pub(crate) prefix: String,
    credentials: Option<String>,
    busy: Arc<AtomicUsize>,
}

/// Whose server it is, as far as its differences matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Flavour {
    /// The server of this project.
    Ours,
    /// Spring Cloud Netflix (Boot's error documents, no enforced gzip).
    Spring,
    /// The classic Netflix server (enforced gzip).
    Netflix,
}

/// An instance that the kit registers by hand.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) app: String,
    pub(crate) id: String,
    pub(crate) status: &'static str,
    pub(crate) dirty: u64,
    pub(crate) lease_seconds: u32,
}

impl Target {
    /// Reads `http://[user:password@]host[:port]/path`.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        let Some(rest) = url.strip_prefix("http://") else {
            bail!("{url}: the kit speaks plain http:// only");
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, host) = match authority.rsplit_once('@') {
            Some((credentials, host)) => (Some(credentials.to_owned()), host),
            None => (None, authority),
        };
        if host.is_empty() {
            bail!("{url} names no host");
        }
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = if has_port {
            host.to_owned()
        } else {
            format!("{host}:80")
        };
        let path = path.trim_matches('/');
        let prefix = if path.is_empty() {
            String::new()
        } else {
            format!("/{path}")
        };
        Ok(Self {
            address,
            prefix,
            credentials,
            busy: Arc::default(),
        })
    }

    /// The same API behind another address (a proxy of ours).
    pub(crate) fn behind(&self, address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            ..self.clone()
        }
    }

    /// A request to a path of the API, such as `/apps`.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        let request = Request::new(method, format!("{}{path}", self.prefix));
        self.authorized(request)
    }

    /// Adds the credentials of the URL, if it has any.
    pub(crate) fn authorized(&self, request: Request) -> Request {
        match &self.credentials {
            Some(credentials) if !request.has_header("authorization") => {
                let encoded = base64::engine::general_purpose::STANDARD.encode(credentials);
                request.header("Authorization", format!("Basic {encoded}"))
            }
            _ => request,
        }
    }

    /// Sends a request; again after a pause while the server asks for one (503 with `Retry-After`).
    pub(crate) fn send(&self, request: &Request) -> Result<Response, HttpError> {
        let start = Instant::now();
        loop {
            let response = http::exchange(&self.address, request, ANSWER_WITHIN)?;
            let pause = response
                .header("retry-after")
                .and_then(|seconds| seconds.parse().ok());
            match pause {
                Some(seconds) if response.status == 503 && start.elapsed() < ANSWER_WITHIN => {
                    self.busy.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_secs(seconds).min(LONGEST_PAUSE));
                }
                Some(_) | None => return Ok(response),
            }
        }
    }

    /// How often the server was too busy to answer.
    pub(crate) fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }

    /// A GET that accepts JSON.
    pub(crate) fn get(&self, path: &str) -> Result<Response, HttpError> {
        self.send(&self.request("GET", path).header("Accept", "application/json"))
    }

    /// A GET whose answer must be 200 and JSON.
    pub(crate) fn get_json(&self, path: &str) -> Result<Value, String> {
        let response = self.get(path).map_err(|error| format!("GET {path}: {error}"))?;
        if response.status != 200 {
            return Err(format!("GET {path}: {}", response.status));
        }
        response.json().map_err(|error| format!("GET {path}: {error}"))
    }

    pub(crate) fn register(&self, instance: &Instance) -> Result<Response, HttpError> {
        let path = format!("/apps/{}", instance.app);
        self.send(&self.request("POST", &path).json(&instance.to_json()))
    }

    pub(crate) fn renew(&self, app: &str, id: &str) -> Result<Response, HttpError> {
        self.send(&self.request("PUT", &instance_path(app, id)))
    }

    pub(crate) fn cancel(&self, app: &str, id: &str) -> Result<Response, HttpError> {
        self.send(&self.request("DELETE", &instance_path(app, id)))
    }

    /// Cancels, as a peer does where Java's containers refuse the path.
    pub(crate) fn remove(&self, app: &str, id: &str) -> Result<Response, HttpError> {
        if !id.contains(['/', '\\', ';']) && !app.contains('/') {
            return self.cancel(app, id);
        }
        let batch = json!({"replicationList": [{"appName": app, "id": id, "action": "Cancel"}]});
        self.send(&self.request("POST", "/peerreplication/batch/").json(&batch))
    }

    /// The instance as `GET apps/APP/ID` shows it; `None` after a 404.
    pub(crate) fn instance(&self, app: &str, id: &str) -> Result<Option<Value>, String> {
        let path = instance_path(app, id);
        let response = self.get(&path).map_err(|error| format!("GET {path}: {error}"))?;
        match response.status {
            200 => {
                let body = response.json().map_err(|error| format!("GET {path}: {error}"))?;
                Ok(Some(body.get("instance").cloned().unwrap_or(body)))
            }
            404 => Ok(None),
            status => Err(format!("GET {path}: {status}")),
        }
    }

    /// Tells whose server it is: ours answers for its node, also when it is told to behave like another; the others are
    /// known by two habits, Boot's error document and gzip that nobody asked for.
    pub(crate) fn flavour(&self) -> Result<Flavour> {
        let address = &self.address;
        let lists = self
            .get("/apps")
            .with_context(|| format!("no answer from {address}"))?;
        if lists.status != 200 {
            bail!(
                "GET {}/apps on {address} answers {}: is this the API's path?",
                self.prefix,
                lists.status
            );
        }
        let node = self.authorized(Request::new("GET", "/api/v1/node"));
        if self.send(&node)?.status == 200 {
            return Ok(Flavour::Ours);
        }
        if lists.header("content-encoding").is_some() {
            return Ok(Flavour::Netflix);
        }
        let missing = self.get("/apps/NO-SUCH-APP/no-such-id")?;
        let document = missing.json().unwrap_or_default();
        Ok(if document.get("timestamp").is_some() {
            Flavour::Spring
        } else {
            Flavour::Ours
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.credentials {
            Some(credentials) => write!(f, "http://{credentials}@{}{}", self.address, self.prefix),
            None => write!(f, "http://{}{}", self.address, self.prefix),
        }
    }
}

impl Instance {
    /// An UP instance with a lease of 90 seconds.
    pub(crate) fn new(app: &str, id: &str) -> Self {
        Self {
            app: app.to_owned(),
            id: id.to_owned(),
            status: "UP",
            dirty: now_millis(),
            lease_seconds: 90,
        }
    }

    /// The registration as the Java clients write it.
    pub(crate) fn to_json(&self) -> Value {
        json!({"instance": {
            "instanceId": self.id,
            "hostName": format!("{}.kit.test", self.app.to_lowercase()),
            "app": self.app,
            "ipAddr": "10.20.30.40",
            "status": self.status,
            "overriddenstatus": "UNKNOWN",
            "port": {"$": 8080, "@enabled": "true"},
            "securePort": {"$": 8443, "@enabled": "false"},
            "countryId": 1,
            "dataCenterInfo": {
                "@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo",
                "name": "MyOwn",
            },
            "leaseInfo": {
                "renewalIntervalInSecs": (self.lease_seconds / 3).max(1),
                "durationInSecs": self.lease_seconds,
            },
            "metadata": {"kit": "conformance"},
            "homePageUrl": "http://10.20.30.40:8080/",
            "statusPageUrl": "http://10.20.30.40:8080/info",
            "healthCheckUrl": "http://10.20.30.40:8080/health",
            "vipAddress": self.app.to_lowercase(),
            "secureVipAddress": self.app.to_lowercase(),
            "lastUpdatedTimestamp": self.dirty.to_string(),
            "lastDirtyTimestamp": self.dirty.to_string(),
        }})
    }
}

/// `/apps/APP/ID`, with what a path cannot hold percent-encoded.
pub(crate) fn instance_path(app: &str, id: &str) -> String {
    format!("/apps/{}/{}", encoded(app), encoded(id))
}

/// Percent-encodes everything but unreserved characters and the colon.
pub(crate) fn encoded(segment: &str) -> String {
    const KEPT: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~')
        .remove(b':');
    percent_encoding::utf8_percent_encode(segment, KEPT).to_string()
}

/// All instances of an `applications` document, whether its lists are arrays or (wrongly) single objects.
pub(crate) fn instances(document: &Value) -> Vec<&Value> {
    let applications = &document["applications"]["application"];
    each(applications)
        .into_iter()
        .flat_map(|application| each(&application["instance"]))
        .collect()
}

/// Finds one instance in an `applications` document.
pub(crate) fn find_instance<'a>(document: &'a Value, app: &str, id: &str) -> Option<&'a Value> {
    instances(document)
        .into_iter()
        .find(|instance| instance["app"] == app && instance["instanceId"] == id)
}

fn each(list: &Value) -> Vec<&Value> {
    match list {
        Value::Array(items) => items.iter().collect(),
        Value::Object(_) => vec![list],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

/// Unix time in milliseconds.
pub(crate) fn now_millis() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufReader, Write};
    use std::net::TcpListener;

    #[test]
    fn a_url_has_its_parts() {
        let target = Target::parse("http://u:p@localhost:8761/eureka/v2/").unwrap();
        assert_eq!(
            (target.address.as_str(), target.prefix.as_str()),
            ("localhost:8761", "/eureka/v2")
        );
        assert_eq!(target.request("GET", "/apps").target, "/eureka/v2/apps");
        let authorization = target.request("GET", "/apps").headers;
        assert_eq!(
            authorization,
            [("Authorization".to_owned(), "Basic dTpw".to_owned())]
        );
        assert_eq!(
            Target::parse("http://example.org").unwrap().address,
            "example.org:80"
        );
        assert!(Target::parse("https://example.org").is_err());
    }

    #[test]
    fn a_busy_server_is_asked_again_and_a_refusing_one_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::parse(&format!("http://{}/eureka", listener.local_addr().unwrap())).unwrap();
        let answers = ["503 -\r\nRetry-After: 0", "200 -", "503 -"];
        let server = thread::spawn(move || {
            for answer in answers {
                let (stream, _) = listener.accept().unwrap();
                http::read_request(&mut BufReader::new(&stream), |_| ()).unwrap();
                let head = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
                (&stream).write_all(head.as_bytes()).unwrap();
            }
        });
        assert_eq!(target.get("/apps").unwrap().status, 200);
        assert_eq!(target.get("/apps").unwrap().status, 503);
        assert_eq!(target.busy(), 1);
        server.join().unwrap();
    }

    #[test]
    fn lists_are_read_as_arrays_and_as_single_objects() {
        let array =
            json!({"applications": {"application": [{"instance": [{"app": "A", "instanceId": "1"}]}]}});
        let object = json!({"applications": {"application": {"instance": {"app": "A", "instanceId": "1"}}}});
        for document in [array, object] {
            assert!(find_instance(&document, "A", "1").is_some());
            assert!(find_instance(&document, "A", "2").is_none());
        }
    }

    #[test]
    fn ids_are_encoded_for_paths() {
        assert_eq!(instance_path("A", "h:a b/c:80"), "/apps/A/h:a%20b%2Fc:80");
    }
}
