//! A call as a request of HTTP.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use eureka_registry_core::wire::{Format, write_instance};
use eureka_registry_core::{Action, Instance, InstanceKey, LeaseTimes, LeaseView, Wall};
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, IF_NONE_MATCH, USER_AGENT,
};
use http::{Method, Request as Message};
use http_body_util::Full;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::call::{Call, Request, Scope};
use crate::server::Server;

const IDENTITY_NAME: HeaderName = HeaderName::from_static("discoveryidentity-name");
/// Everything but what never means something in a URL.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');
/// Changes asked for at once: as many as our servers give.
const CHANGES: usize = 1_000;
/// As long as our servers wait.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The request, or why there is none.
pub(super) fn of(request: &Request, identity: &str) -> Result<Message<Full<Bytes>>, String> {
    let server = &*request.server;
    let (method, path, body) = parts(server, &request.call);
    let scheme = if server.is_secure() { "https" } else { "http" };
    let uri = format!("{scheme}://{}:{}{path}", server.host(), server.port());
    let mut message = Message::builder()
        .method(method)
        .uri(uri)
        .header(ACCEPT, "application/json")
        .header(USER_AGENT, concat!("eureka-client/", env!("CARGO_PKG_VERSION")))
        .header(IDENTITY_NAME, identity);
    if request.call.is_read() {
        message = message.header(ACCEPT_ENCODING, "gzip");
    }
    if let Call::Fetch { held: Some(tag), .. } = &request.call {
        message = message.header(IF_NONE_MATCH, &**tag);
    }
    if !body.is_empty() {
        message = message.header(CONTENT_TYPE, "application/json");
    }
    if let Some(credentials) = server.credentials() {
        message = message.header(AUTHORIZATION, basic(credentials));
    }
    message
        .body(Full::new(body))
        .map_err(|error| format!("the request cannot be made: {error}"))
}

fn parts(server: &Server, call: &Call) -> (Method, String, Bytes) {
    let mut path = server.path().to_owned();
    let mut body = Bytes::new();
    let method = match call {
        Call::Register(instance) => {
            write!(path, "apps/{}", segment(&instance.app)).expect("writing to a string cannot fail");
            body = registration(instance);
            Method::POST
        }
        Call::Renew {
            key,
            status,
            last_dirty,
        } => {
            instance_path(&mut path, key);
            write!(path, "?status={status}&lastDirtyTimestamp={last_dirty}")
                .expect("writing to a string cannot fail");
            Method::PUT
        }
        Call::Cancel(key) => {
            instance_path(&mut path, key);
            Method::DELETE
        }
        Call::Fetch { what, regions, .. } => {
            match what {
                Scope::All => path.push_str("apps/"),
                Scope::Vip(address) => path.push_str(&format!("vips/{}", segment(address))),
                Scope::SecureVip(address) => path.push_str(&format!("svips/{}", segment(address))),
            }
            with_regions(&mut path, regions);
            Method::GET
        }
        Call::Delta { regions } => {
            path.push_str("apps/delta");
            with_regions(&mut path, regions);
            Method::GET
        }
        Call::Changes { since, filter, wait } => {
            path = changes(server.path(), since.as_deref(), filter.as_deref(), *wait);
            Method::GET
        }
    };
    (method, path, body)
}

fn changes(eureka: &str, since: Option<&str>, filter: Option<&str>, wait: Duration) -> String {
    let root = ["eureka/v2/", "eureka/"]
        .iter()
        .find_map(|end| eureka.strip_suffix(end))
        .unwrap_or(eureka);
    let mut path = format!(
        "{root}api/v1/changes?limit={CHANGES}&wait={}ms",
        wait.min(WAIT_MAX).as_millis()
    );
    for (name, value) in [("since", since), ("filter", filter)] {
        if let Some(value) = value {
            write!(path, "&{name}={}", segment(value)).expect("writing to a string cannot fail");
        }
    }
    path
}

fn instance_path(path: &mut String, key: &InstanceKey) {
    write!(path, "apps/{}/{}", segment(key.app()), segment(key.id()))
        .expect("writing to a string cannot fail");
}

fn with_regions(path: &mut String, regions: &[Arc<str>]) {
    for (place, region) in regions.iter().enumerate() {
        path.push_str(if place == 0 { "?regions=" } else { "%2C" });
        path.push_str(&segment(region));
    }
}

fn segment(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// As Java's client writes it: a lease without times, and no override.
fn registration(instance: &Arc<Instance>) -> Bytes {
    let view = LeaseView {
        instance: Arc::clone(instance),
        action: Action::Added,
        last_updated: Wall(u64::try_from(instance.last_dirty.unwrap_or(0)).unwrap_or(0)),
        lease: LeaseTimes {
            terms: instance.lease,
            registered: Wall(0),
            renewed: Wall(0),
            evicted: Wall(0),
            service_up: Wall(0),
        },
        coordinating: false,
    };
    let mut body = Vec::with_capacity(1024);
    write_instance(Format::Json, &view, false, &mut body);
    body.into()
}

/// `name:password`, percent-encoded, as HTTP wants it.
fn basic(credentials: &str) -> HeaderValue {
    let (name, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let mut text: Vec<u8> = percent_decode_str(name).collect();
    text.push(b':');
    text.extend(percent_decode_str(password));
    let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(text)))
        .expect("base64 has no character that headers forbid");
    value.set_sensitive(true);
    value
}
