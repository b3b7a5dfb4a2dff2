//! Calls to `http://PAYMENTS/path`: the host names an application or a virtual address, and one of its instances is called.

mod budget;
mod error;
mod names;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use eureka_registry_core::Instance;
use http::header::HOST;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use parking_lot::Mutex;
use tower_service::Service;

use self::budget::Budget;
use self::names::Names;
use crate::balance::{BalanceConfig, Balancer, Endpoint, Feedback, Pick};
use crate::cache::Cache;

pub use self::error::CallError;
pub use self::names::is_name;

/// Wraps a client, any [`Service`] of [`http::Request`], so that hosts may be names of the registry.
///
/// **Which hosts.** By default those without a dot and without a port, except `localhost`: [`is_name`]; [`Self::looked_up`] sets another
/// rule. All other requests go through as they are. A name is an application if there is one of that name, in any case; else
/// a virtual address (for `https`: a secure one). A name that is neither is [`CallError::Unknown`], never a look-up in DNS.
///
/// **What is changed.** Scheme, host and port of the URI become the instance's, and so does a `Host` header if there is one.
/// `http://` takes the plain port, else the secure one with `https`; `https://` takes the secure port only.
///
/// **Tries.** Another instance is tried if there was no connection, as the function given to [`Self::new`] tells; and if
/// the method is idempotent, if there was any other error, no answer within [`Self::try_within`], or 502, 503 or 504.
/// At most [`Self::tries`] in all, each at another instance. Over all calls, tries beyond the first are at most a fifth of
/// the calls, and 10 besides: when everybody fails, nobody gets three times the load. What came of the last try is the answer.
///
/// **Feedback.** Errors, time-outs, 502, 503 and 504 count as failures of the instance, any other answer as success.
/// A call that is given up from outside, by a time-out around this, says nothing: use [`Self::try_within`].
///
/// The body is cloned for each try: `Full<Bytes>` or the like. Answers have a [`Served`] among their extensions.
pub struct Caller<S, E> {
    inner: S,
    settings: Settings<E>,
    shared: Arc<Shared>,
}

struct Settings<E> {
    tries: usize,
    within: Option<Duration>,
    is_name: Arc<dyn Fn(&Authority) -> bool + Send + Sync>,
    no_connection: Arc<dyn Fn(&E) -> bool + Send + Sync>,
}

struct Shared {
    cache: Cache,
    names: Names,
    budget: Mutex<Budget>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    passed: AtomicU64,
    nobody: AtomicU64,
    retries: AtomicU64,
    refused: AtomicU64,
}

/// Who answered; an extension of each answer to a call by name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Served {
    /// The instance.
    pub instance: Arc<Instance>,
    /// Where it was called.
    pub endpoint: Endpoint,
    /// How many were tried, this one included.
    pub tries: usize,
}

/// What a caller and its clones did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct CallerFigures {
    /// Calls by name.
    pub calls: u64,
    /// Requests that were passed through, for their hosts are no names.
    pub passed_through: u64,
    /// Calls by name for which nobody could be picked.
    pub nobody: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Tries that there would have been, if not for the limit over all calls.
    pub retries_refused: u64,
}

/// How many instances are tried unless it is set otherwise.
const TRIES: usize = 3;

impl<S, E> Caller<S, E> {
    /// Calls instances that `cache` knows through `inner`. `no_connection` says which of its errors mean that the request
    /// was certainly not sent: hyper-util's and reqwest's have `is_connect`.
    pub fn new(
        cache: Cache,
        config: BalanceConfig,
        inner: S,
        no_connection: impl Fn(&E) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self {
            inner,
            settings: Settings {
                tries: TRIES,
                within: None,
                is_name: Arc::new(is_name),
                no_connection: Arc::new(no_connection),
            },
            shared: Arc::new(Shared {
                names: Names::new(cache.clone(), config),
                cache,
                budget: Mutex::new(Budget::full()),
                counts: Counts::default(),
            }),
        }
    }

    /// At most so many instances are tried for one call; 3 unless it is set, and at least 1.
    #[must_use]
    pub fn tries(mut self, tries: usize) -> Self {
        self.settings.tries = tries.max(1);
        self
    }

    /// No answer (its head; the body may take longer) within this time is a failure. Without it nobody is given up.
    #[must_use]
    pub fn try_within(mut self, time: Duration) -> Self {
        self.settings.within = Some(time);
        self
    }

    /// Which hosts are names, instead of [`is_name`].
    #[must_use]
    pub fn looked_up(mut self, rule: impl Fn(&Authority) -> bool + Send + Sync + 'static) -> Self {
        self.settings.is_name = Arc::new(rule);
        self
    }

    /// What it and its clones did.
    pub fn figures(&self) -> CallerFigures {
        let counts = &self.shared.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CallerFigures {
            calls: read(&counts.calls),
            passed_through: read(&counts.passed),
            nobody: read(&counts.nobody),
            retries: read(&counts.retries),
            retries_refused: read(&counts.refused),
        }
    }

    /// The balancer of a name, as calls use it (`secure` for `https`); `None` if it is unknown.
    pub fn balancer(&self, name: &str, secure: bool) -> Option<Balancer> {
        self.shared.names.balancer(name, secure)
    }
}

impl<S, E, B, R> Service<Request<B>> for Caller<S, E>
where
    S: Service<Request<B>, Response = Response<R>, Error = E> + Clone + Send + 'static,
    S::Future: Send,
    E: Send + 'static,
    B: Clone + Send + 'static,
    R: Send + 'static,
{
    type Response = Response<R>;
    type Error = CallError<E>;
    type Future = Pin<Box<dyn Future<Output = Result<Response<R>, CallError<E>>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(CallError::passed)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The clone may not be ready; the one that is goes with the call.
        let clone = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, clone);
        let authority = request.uri().authority();
        let Some(name) = authority
            .filter(|authority| (self.settings.is_name)(authority))
            .map(|authority| authority.host().to_owned())
        else {
            self.shared.counts.passed.fetch_add(1, Ordering::Relaxed);
            let answer = ready.call(request);
            return Box::pin(async move { answer.await.map_err(CallError::passed) });
        };
        let call = Call {
            inner: ready,
            settings: self.settings.clone(),
            shared: Arc::clone(&self.shared),
            request,
        };
        Box::pin(call.run(name))
    }
}

/// One call by name.
struct Call<S, E, B> {
    inner: S,
    settings: Settings<E>,
    shared: Arc<Shared>,
    request: Request<B>,
}

/// What came of one try.
enum Tried<R, E> {
    Answered(Response<R>),
    Failed(E),
    TimedOut,
}

impl<S, E, B, R> Call<S, E, B>
where
    S: Service<Request<B>, Response = Response<R>, Error = E>,
    B: Clone,
{
    async fn run(mut self, name: String) -> Result<Response<R>, CallError<E>> {
        self.shared.counts.calls.fetch_add(1, Ordering::Relaxed);
        self.shared.budget.lock().earn();
        let (balancer, mut pick) = self.begin(&name)?;
        let mut tried = Vec::new();
        loop {
            let (instance, endpoint) = (Arc::clone(pick.instance()), pick.endpoint().clone());
            tried.push(pick.key().clone());
            let outcome = self.send(&endpoint, tried.len() == 1).await;
            pick.feedback(outcome.feedback());
            if self.is_worth_another(&outcome)
                && tried.len() < self.settings.tries
                && let Ok(next) = balancer.pick_besides(&tried)
                && self.may_retry()
            {
                pick = next;
                continue;
            }
            let tries = tried.len();
            return match outcome {
                Tried::Answered(mut response) => {
                    response.extensions_mut().insert(Served {
                        instance,
                        endpoint,
                        tries,
                    });
                    Ok(response)
                }
                Tried::Failed(error) => Err(CallError::Failed {
                    error,
                    endpoint: Some(endpoint),
                    tries,
                }),
                Tried::TimedOut => Err(CallError::TimedOut { endpoint, tries }),
            };
        }
    }

    fn begin(&self, name: &str) -> Result<(Balancer, Pick), CallError<E>> {
        let secure = self.request.uri().scheme() == Some(&Scheme::HTTPS);
        let nobody = || self.shared.counts.nobody.fetch_add(1, Ordering::Relaxed);
        let Some(balancer) = self.shared.names.balancer(name, secure) else {
            nobody();
            return Err(CallError::Unknown {
                name: name.to_owned(),
                age: self.shared.cache.age(),
            });
        };
        match balancer.pick() {
            Ok(pick) => Ok((balancer, pick)),
            Err(none) => {
                nobody();
                Err(CallError::Nobody(none))
            }
        }
    }

    /// Sends it there. The service is ready for the first try only.
    async fn send(&mut self, endpoint: &Endpoint, ready: bool) -> Tried<R, E> {
        let request = addressed(self.request.clone(), endpoint);
        let (within, inner) = (self.settings.within, &mut self.inner);
        let answer = async move {
            if !ready {
                poll_fn(|context| inner.poll_ready(context)).await?;
            }
            inner.call(request).await
        };
        let answer = match within {
            Some(within) => tokio::time::timeout(within, answer).await,
            None => Ok(answer.await),
        };
        match answer {
            Ok(Ok(response)) => Tried::Answered(response),
            Ok(Err(error)) => Tried::Failed(error),
            Err(_) => Tried::TimedOut,
        }
    }

    fn is_worth_another(&self, outcome: &Tried<R, E>) -> bool {
        let idempotent = self.request.method().is_idempotent();
        match outcome {
            Tried::Answered(response) => idempotent && cannot_serve(response.status()),
            Tried::Failed(error) => idempotent || (self.settings.no_connection)(error),
            Tried::TimedOut => idempotent,
        }
    }

    fn may_retry(&self) -> bool {
        let may = self.shared.budget.lock().spend();
        let counts = &self.shared.counts;
        let count = if may { &counts.retries } else { &counts.refused };
        count.fetch_add(1, Ordering::Relaxed);
        may
    }
}

impl<R, E> Tried<R, E> {
    fn feedback(&self) -> Feedback {
        match self {
            Self::Answered(response) if !cannot_serve(response.status()) => Feedback::Ok,
            Self::Answered(_) | Self::Failed(_) | Self::TimedOut => Feedback::Failed,
        }
    }
}

/// Whether an answer says that the instance, or something before it, cannot serve now.
fn cannot_serve(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}

/// The same request to that endpoint. One whose host makes no URI (registrants may claim anything) stays as it is, and then
/// fails for its host, which is a name that nobody resolves.
fn addressed<B>(mut request: Request<B>, endpoint: &Endpoint) -> Request<B> {
    let authority = endpoint.authority();
    let (Ok(host), Ok(parsed)) = (HeaderValue::try_from(&authority), Authority::try_from(authority)) else {
        return request;
    };
    let scheme = if endpoint.is_secure() {
        Scheme::HTTPS
    } else {
        Scheme::HTTP
    };
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(scheme);
    parts.authority = Some(parsed);
    parts
        .path_and_query
        .get_or_insert_with(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from_parts(parts).expect("scheme, authority and path make a URI");
    if let Some(header) = request.headers_mut().get_mut(HOST) {
        *header = host;
    }
    request
}

impl<E> Clone for Settings<E> {
    fn clone(&self) -> Self {
        Self {
            tries: self.tries,
            within: self.within,
            is_name: Arc::clone(&self.is_name),
            no_connection: Arc::clone(&self.no_connection),
        }
    }
}

/// Clones share balancers, the limit on tries, and figures.
impl<S: Clone, E> Clone for Caller<S, E> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            settings: self.settings.clone(),
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<S, E> fmt::Debug for Caller<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("cache", &self.shared.cache)
            .field("tries", &self.settings.tries)
            .finish_non_exhaustive()
    }
}
