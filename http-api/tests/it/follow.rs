//! Followers of the feed as tests drive them: long polls and streams polled by hand, and what is counted meanwhile.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use eureka_http_api::{Answer, Answering, ApiService, Body};
use http::Request;
use http_body::Body as _;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::Mutex;
use serde_json::Value;
use tower::Service as _;

use crate::fixture::{Fixture, Read, read};

/// A request that may have to wait.
pub(crate) struct Asked(Pin<Box<Answering<Body>>>);

/// Whether a task was woken.
#[derive(Default)]
pub(crate) struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Woken {
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Fixture {
    /// Sends a GET through the service.
    pub(crate) fn ask(&self, target: &str, headers: &[(&str, &str)]) -> Asked {
        let mut request = Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        Asked(Box::pin(ApiService::new(self.api.clone()).call(request)))
    }

    /// Begins a stream of events.
    pub(crate) fn stream(&self, query: &str, last: Option<&str>) -> Stream {
        let mut headers = vec![("accept", "text/event-stream")];
        headers.extend(last.map(|last| ("last-event-id", last)));
        let answer = self.ask(&format!("/api/v1/changes?{query}"), &headers).answer();
        Stream::new(answer)
    }

    /// The place behind all changes.
    pub(crate) fn cursor(&self) -> String {
        self.registry.cursor(self.registry.version()).to_string()
    }
}

impl Asked {
    /// Polls until it is answered or waits for something other than its turn.
    pub(crate) fn poll(&mut self) -> Option<Answer> {
        turns(|context| self.0.as_mut().poll(context)).map(|answer: Result<_, Infallible>| answer.unwrap())
    }

    /// The answer, which must be there.
    #[track_caller]
    pub(crate) fn answer(mut self) -> Answer {
        self.poll().expect("it is answered at once")
    }

    /// The same with its body.
    #[track_caller]
    pub(crate) fn read(self) -> Read {
        read(self.answer())
    }

    /// As a task would.
    pub(crate) async fn wait(self) -> Read {
        read(self.0.await.unwrap())
    }
}

fn turns<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    loop {
        match poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return Some(value),
            Poll::Pending if woken.take() => {}
            Poll::Pending => return None,
        }
    }
}

/// A stream of events.
pub(crate) struct Stream {
    pub(crate) answer: http::response::Parts,
    pub(crate) body: Body,
    /// What a browser would send as `Last-Event-ID`.
    pub(crate) last: String,
}

/// One event, as a browser gives it to a page.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

impl Stream {
    fn new(answer: Answer) -> Self {
        let (answer, body) = answer.into_parts();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["content-type"], "text/event-stream");
        Self {
            answer,
            body,
            last: String::new(),
        }
    }

    /// The next bytes, if there are any now.
    pub(crate) fn frame(&mut self) -> Option<Bytes> {
        let body = &mut self.body;
        let frame = turns(|context| Pin::new(&mut *body).poll_frame(context))??;
        Some(frame.unwrap().into_data().unwrap())
    }

    /// Everything that is there now.
    pub(crate) fn text(&mut self) -> String {
        let mut bytes = Vec::new();
        while let Some(frame) = self.frame() {
            bytes.extend_from_slice(&frame);
        }
        String::from_utf8(bytes).unwrap()
    }

    /// The events in it, read as the standard says.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        let text = self.text();
        self.parse(&text)
    }

    pub(crate) fn parse(&mut self, text: &str) -> Vec<Event> {
        let mut events = Vec::new();
        let (mut name, mut data) = (String::new(), None::<String>);
        for line in text.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "" if line.is_empty() => {
                    if let Some(data) = data.take() {
                        events.push(Event {
                            name: std::mem::take(&mut name),
                            id: self.last.clone(),
                            data: serde_json::from_str(&data).unwrap(),
                        });
                    }
                    name.clear();
                }
                "" => {}
                "event" => value.clone_into(&mut name),
                "data" => {
                    let data = data.get_or_insert_default();
                    assert!(data.is_empty(), "on one line: {text}");
                    data.push_str(value);
                }
                "id" => value.clone_into(&mut self.last),
                "retry" => assert_eq!(value, "1000"),
                field => panic!("{field}: {text}"),
            }
        }
        assert!(name.is_empty() && data.is_none(), "ends in mid-event: {text}");
        events
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&mut self) -> bool {
        let body = &mut self.body;
        let over =
            turns(|context| Pin::new(&mut *body).poll_frame(context)).is_some_and(|frame| frame.is_none());
        over && self.body.is_end_stream()
    }
}

/// What is counted, by name and labels.
#[derive(Default)]
pub(crate) struct Counted(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Counted {
    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.0.lock()[name].load(Ordering::Relaxed)
    }

    pub(crate) fn gauge(&self, name: &str) -> f64 {
        f64::from_bits(self.counter(name))
    }

    fn of(&self, key: &Key) -> Arc<AtomicU64> {
        let mut name = key.name().to_owned();
        for label in key.labels() {
            name.push_str(&format!(" {}={}", label.key(), label.value()));
        }
        Arc::clone(self.0.lock().entry(name).or_default())
    }
}

impl Recorder for Counted {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.of(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.of(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
