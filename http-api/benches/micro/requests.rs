//! One request, and its answer read to the end.

use std::hint::black_box;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use eureka_http_api::{Api, Config};
use eureka_registry_core::wire::Format;
use http::{Request, StatusCode};
use http_body::Body as _;

use crate::fleet::{self, BATCH, CHANGING, DIRTY};
use crate::operation::{FLEETS, Operation, Run};

pub(crate) const OPERATIONS: &[Operation] = &[
    operation("PUT renewal", 1, renewal),
    operation("POST registration, changed", 1, registration),
    operation("POST batch of heartbeats", BATCH, heartbeats),
    operation("GET all, gzip", 1, |instances| unchanged(instances, "", true)),
    operation("GET delta, gzip", 1, |instances| {
        unchanged(instances, "/delta", true)
    }),
    operation("GET application", 1, |instances| {
        unchanged(instances, "/APP-0", false)
    }),
    operation("POST registration and GET all", 1, |instances| {
        changed(instances, false)
    }),
    operation("POST registration and GET all, gzip", 1, |instances| {
        changed(instances, true)
    }),
];

const fn operation(name: &'static str, items: u64, prepare: fn(usize) -> Run) -> Operation {
    Operation {
        name,
        items,
        instances: FLEETS,
        prepare,
    }
}

fn renewal(instances: usize) -> Run {
    let api = api(instances);
    let request = |number: usize| {
        let key = fleet::instance(number).key();
        let (app, id) = (key.app(), key.id());
        let target = format!("/eureka/apps/{app}/{id}?status=UP&lastDirtyTimestamp={DIRTY}");
        Request::put(target).body(Bytes::new()).expect("a request")
    };
    let mut turns = (0..instances)
        .map(request)
        .collect::<Vec<_>>()
        .into_iter()
        .cycle();
    Box::new(move || {
        let request = turns.next().expect("they go round");
        read(&api, request, StatusCode::OK);
    })
}

fn registration(instances: usize) -> Run {
    let api = api(instances);
    let mut changes = Changes::new(instances);
    Box::new(move || changes.register(&api))
}

fn heartbeats(instances: usize) -> Run {
    let api = api(instances);
    let request = Request::post("/eureka/peerreplication/batch/")
        .header("content-type", "application/json")
        .header("accept", "application/json")
        .header("discoveryidentity-name", "DefaultServer")
        .header("discoveryidentity-id", "10.0.0.2")
        .body(Bytes::from(fleet::heartbeats(instances)))
        .expect("a request");
    Box::new(move || read(&api, request.clone(), StatusCode::OK))
}

/// Everything is encoded; a hundred instances are in the delta.
fn unchanged(instances: usize, target: &str, gzip: bool) -> Run {
    let api = api(instances);
    let mut changes = Changes::new(instances);
    (0..CHANGING).for_each(|_| changes.register(&api));
    let request = fetch(target, gzip);
    read(&api, request.clone(), StatusCode::OK);
    Box::new(move || read(&api, request.clone(), StatusCode::OK))
}

/// Each time one instance has changed before.
fn changed(instances: usize, gzip: bool) -> Run {
    let api = api(instances);
    let mut changes = Changes::new(instances);
    let request = fetch("", gzip);
    read(&api, request.clone(), StatusCode::OK);
    Box::new(move || {
        changes.register(&api);
        read(&api, request.clone(), StatusCode::OK);
    })
}

/// Registrations of instances that have changed, one after the other.
struct Changes {
    /// Each with the places of the dirty timestamp in its body: its text stands in the metadata, too.
    requests: Vec<(Request<Vec<u8>>, Vec<usize>)>,
    turn: usize,
}

impl Changes {
    fn new(instances: usize) -> Self {
        let request = |number: usize| {
            let body = fleet::registration(Format::Json, number);
            let text = str::from_utf8(&body).expect("JSON is text");
            let places = text
                .match_indices(&DIRTY.to_string())
                .map(|(place, _)| place)
                .collect();
            let target = format!("/eureka/apps/{}", fleet::instance(number).app);
            let request = Request::post(target).header("content-type", "application/json");
            (request.body(body).expect("a request"), places)
        };
        Self {
            requests: fleet::changing(instances).map(request).collect(),
            turn: 0,
        }
    }

    fn register(&mut self, api: &Api) {
        let (round, place) = (self.turn / CHANGING, self.turn % CHANGING);
        self.turn += 1;
        let dirty = (DIRTY + 1 + round as i64).to_string();
        let (request, places) = &mut self.requests[place];
        for &place in &*places {
            request.body_mut()[place..][..dirty.len()].copy_from_slice(dirty.as_bytes());
        }
        read(api, request.clone().map(Bytes::from), StatusCode::NO_CONTENT);
    }
}

fn api(instances: usize) -> Api {
    Api::new(fleet::registry(instances), Config::new("boot"))
}

fn fetch(target: &str, gzip: bool) -> Request<Bytes> {
    let encoding = if gzip { "gzip" } else { "identity" };
    Request::get(format!("/eureka/apps{target}"))
        .header("accept", "application/json")
        .header("accept-encoding", encoding)
        .body(Bytes::new())
        .expect("a request")
}

fn read(api: &Api, request: Request<Bytes>, status: StatusCode) {
    let answer = api.respond(request);
    assert_eq!(answer.status(), status);
    let mut body = answer.into_body();
    let mut context = Context::from_waker(Waker::noop());
    loop {
        match Pin::new(&mut body).poll_frame(&mut context) {
            Poll::Ready(Some(frame)) => drop(black_box(frame.expect("bodies of ours do not fail"))),
            Poll::Ready(None) => break,
            // Others get their turn between pages that are not encoded yet.
            Poll::Pending => {}
        }
    }
}
