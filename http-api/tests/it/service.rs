//! The service: bodies in pieces, bodies that are too long, that break, or that nobody wants.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use eureka_http_api::{ApiService, Config};
use http::Request;
use http::request::Builder;
use http_body::{Body, Frame, SizeHint};
use tower::Service as _;

use crate::fixture::{Fixture, Read, instance, read};

/// A body in pieces, pending before each.
struct Pieces {
    pieces: VecDeque<Result<Bytes, String>>,
    pending: bool,
    announced: Option<u64>,
}

impl Pieces {
    fn new<const N: usize>(pieces: [&str; N]) -> Self {
        Self {
            pieces: pieces
                .iter()
                .map(|piece| Ok(Bytes::copy_from_slice(piece.as_bytes())))
                .collect(),
            pending: true,
            announced: None,
        }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        self.pending = !self.pending;
        if !self.pending {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.pieces.pop_front().map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        self.announced
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// Sends through the service.
fn send(fixture: &Fixture, method: &str, target: &str, body: Pieces) -> Read {
    serve(
        fixture,
        Request::builder().method(method).uri(format!("/eureka/{target}")),
        body,
    )
}

fn serve(fixture: &Fixture, request: Builder, body: Pieces) -> Read {
    let request = request
        .header("content-type", "application/json")
        .body(body)
        .unwrap();
    let mut answering = pin!(ApiService::new(fixture.api.clone()).call(request));
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(answer) = answering.as_mut().poll(&mut cx) {
            let answer: Result<_, Infallible> = answer;
            return read(answer.unwrap());
        }
    }
}

#[test]
fn bodies_come_in_pieces() {
    let fixture = Fixture::new();
    let text = instance("A", "i").to_string();
    let (start, rest) = text.split_at(40);
    let (middle, end) = rest.split_at(1);
    send(&fixture, "POST", "apps/A", Pieces::new([start, middle, "", end])).is_empty_with(204);
    assert_eq!(fixture.view("A", "i")["hostName"], "host-i");
    let whole = instance("A", "j").to_string();
    send(&fixture, "POST", "apps/A", Pieces::new([&whole])).is_empty_with(204);
}

#[test]
fn no_body_no_waiting() {
    let fixture = Fixture::new();
    fixture.register("A", "i");
    send(&fixture, "PUT", "apps/A/i", Pieces::new([])).is_empty_with(200);
}

#[test]
fn long_bodies_are_refused_as_soon_as_they_are() {
    let mut config = Config::new("boot");
    config.limits.body = 100;
    let fixture = Fixture::with(config);
    let piece = "x".repeat(60);
    let read = send(&fixture, "POST", "apps/A", Pieces::new([&piece, &piece, &piece]));
    assert_eq!(read.status, 413);
    assert_eq!(read.headers["connection"], "close");
    // What is announced as too long is not read at all.
    let mut announced = Pieces::new(["x"]);
    announced.announced = Some(101);
    assert_eq!(send(&fixture, "POST", "apps/A", announced).status, 413);
}

#[test]
fn peers_are_told_who_finds_their_bodies_too_long() {
    let mut config = Config::new("boot");
    config.repair = true;
    config.limits.batch = 100;
    let fixture = Fixture::with(config);
    for path in ["/api/v1/repair/exchange", "/eureka/peerreplication/batch"] {
        let request = Request::post(path).header("x-eureka-node", "another");
        let read = serve(&fixture, request, Pieces::new([&"x".repeat(101)]));
        assert_eq!(read.status, 413);
        assert_eq!(read.headers["x-eureka-node"], "boot");
    }
}

#[test]
fn bodies_nobody_reads_are_bounded_too() {
    let mut config = Config::new("boot");
    config.limits.body = 1000;
    let fixture = Fixture::with(config);
    fixture.register("A", "i");
    let piece = "x".repeat(600);
    send(&fixture, "PUT", "apps/A/i", Pieces::new([&piece])).is_empty_with(200);
    assert_eq!(
        send(&fixture, "PUT", "apps/A/i", Pieces::new([&piece, &piece])).status,
        413
    );
    assert_eq!(
        send(&fixture, "DELETE", "apps/A/i", Pieces::new([&piece, &piece])).status,
        413
    );
    assert_eq!(fixture.view("A", "i")["status"], "UP");
}

#[test]
fn bodies_that_break_off_change_nothing() {
    let fixture = Fixture::new();
    let mut body = Pieces::new([&instance("A", "i").to_string()]);
    body.pieces.push_back(Err("connection reset".into()));
    let read = send(&fixture, "POST", "apps/A", body);
    assert_eq!(read.status, 400);
    assert_eq!(read.text(), "body: connection reset");
    fixture.get("apps/A/i").is_empty_with(404);
}

#[test]
fn bodies_on_their_way_in_are_bounded_together() {
    let text = instance("A", "i").to_string();
    let mut config = Config::new("boot");
    config.limits.buffered = text.len() * 3 / 2;
    let fixture = Fixture::with(config);
    let start = |body: Pieces| {
        let request = Request::post("/eureka/apps/A").header("content-type", "application/json");
        Box::pin(ApiService::new(fixture.api.clone()).call(request.body(body).unwrap()))
    };
    let mut cx = Context::from_waker(Waker::noop());
    // The first keeps most of its body and never ends.
    let mut slow = start(Pieces::new([&text, "", "", "", "", ""]));
    for _ in 0..2 {
        assert!(slow.as_mut().poll(&mut cx).is_pending());
    }
    let busy = send(&fixture, "POST", "apps/A", Pieces::new([&text]));
    assert_eq!(busy.status, 503);
    // It is gone, and so is what it kept.
    drop(slow);
    send(&fixture, "POST", "apps/A", Pieces::new([&text])).is_empty_with(204);
    send(&fixture, "POST", "apps/A", Pieces::new([&text])).is_empty_with(204);
}
