//! A client that watches as its users would: when a stream ends it goes on at the other server, with the last cursor.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time;

use super::view::View;
use super::writer::Log;
use crate::watchers::{Channel, Ending, Watch};

/// Servers are heard from every 15 s, if only by a heartbeat.
const SILENCE: Duration = Duration::from_secs(20);
const RETRY: Duration = Duration::from_millis(100);

/// How it watches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Interface {
    Grpc,
    Sse,
}

/// Where a node serves both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) http: SocketAddr,
    pub(super) grpc: SocketAddr,
}

/// The client; dropping it ends it.
pub(super) struct Follower {
    interface: Interface,
    view: Arc<Mutex<View>>,
    stopping: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Follower {
    /// Begins at the first node.
    pub(super) fn start(interface: Interface, nodes: [Node; 2], log: Log) -> Self {
        let (view, stopping) = (Arc::<Mutex<View>>::default(), Arc::<Notify>::default());
        let (shared, stopped) = (Arc::clone(&view), Arc::clone(&stopping));
        let thread = thread::spawn(move || {
            let runtime = runtime().expect("a runtime can be made");
            runtime.block_on(async {
                tokio::select! {
                    () = follow(interface, nodes, &shared, &log) => {}
                    () = stopped.notified() => {}
                }
            });
        });
        Self {
            interface,
            view,
            stopping,
            thread: Some(thread),
        }
    }

    /// Asks its view; what is wrong is told with its name.
    pub(super) fn look<T>(&self, question: impl FnOnce(&View) -> Result<T, String>) -> Result<T, String> {
        question(&self.view.lock()).map_err(|why| format!("{:?}: {why}", self.interface))
    }

    pub(super) fn account(&self) -> Result<String, String> {
        let told = self.look(View::account)?;
        Ok(format!("{:?}: {told}", self.interface))
    }

    pub(super) fn snapshots(&self) -> usize {
        self.view.lock().snapshots()
    }

    /// How its streams have ended.
    pub(super) fn endings(&self) -> String {
        let endings: Vec<String> = self.view.lock().endings.iter().map(Ending::to_string).collect();
        endings.join("; ")
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.stopping.notify_one();
        if let Some(thread) = self.thread.take() {
            // What it saw is in the view.
            let _ = thread.join();
        }
    }
}

/// For one client.
pub(super) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

async fn follow(interface: Interface, nodes: [Node; 2], view: &Mutex<View>, log: &Log) {
    for attempt in 0.. {
        let server = attempt % nodes.len();
        let ending = watch(interface, nodes[server], server, view, log).await;
        view.lock().end(ending);
        time::sleep(RETRY).await;
    }
}

/// Watches one node until that ends.
async fn watch(interface: Interface, node: Node, server: usize, view: &Mutex<View>, log: &Log) -> Ending {
    let cursor = view.lock().cursor.clone();
    let opened = match interface {
        Interface::Sse => Watch::over_sse(node.http, cursor.as_deref()).await,
        Interface::Grpc => match Channel::open(node.grpc, None).await {
            Ok(mut channel) => channel.watch(cursor.as_deref()).await,
            Err(ending) => Err(ending),
        },
    };
    let mut watch = match opened {
        Ok(watch) => watch,
        Err(ending) => return ending,
    };
    loop {
        let message = match time::timeout(SILENCE, watch.next()).await {
            Ok(Ok(message)) => message,
            Ok(Err(ending)) => return ending,
            Err(_) => return Ending::broken(&"nothing was heard"),
        };
        match watch.read(&message) {
            Ok(told) => view.lock().take(server, told, log),
            Err(error) => return Ending::broken(&error),
        }
    }
}
