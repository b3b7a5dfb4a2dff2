//! A connection that takes no further requests once the node stops.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::server::graceful::GracefulConnection;
use pin_project_lite::pin_project;
use tokio::sync::watch;

pin_project! {
    /// Serves a connection; when the node stops, to the end of the requests that are under way.
    ///
    /// A connection is polled with every request, so to be asked every time whether the node stops has to cost nothing: that is a
    /// look at a number. What wakes the connection's task for it is registered once, for a task is woken by the same waker for ever.
    pub(super) struct Draining<C> {
        #[pin]
        connection: C,
        stopping: watch::Receiver<bool>,
        // None before the first poll.
        woken: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
        is_told: bool,
    }
}

impl<C> Draining<C> {
    /// Serves `connection` in a task of its own; nobody has seen a change of `stopping` yet.
    pub(super) fn new(connection: C, stopping: watch::Receiver<bool>) -> Self {
        Self {
            connection,
            stopping,
            woken: None,
            is_told: false,
        }
    }
}

impl<C: GracefulConnection> Future for Draining<C> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        let mut this = self.project();
        if this.woken.is_none() {
            let mut stopping = this.stopping.clone();
            let woken = this.woken.insert(Box::pin(async move {
                let _ = stopping.changed().await;
            }));
            // Either it wakes the task later, or the change is seen below.
            let _ = woken.as_mut().poll(cx);
        }
        if !*this.is_told && !matches!(this.stopping.has_changed(), Ok(false)) {
            *this.is_told = true;
            this.connection.as_mut().graceful_shutdown();
        }
        this.connection.poll(cx)
    }
}
