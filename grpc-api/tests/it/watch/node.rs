//! A node to watch: a registry with a clock that stands, and the frontend over it.

use std::sync::Arc;
use std::time::Duration;

use eureka_grpc_api::proto::registry_client::RegistryClient;
use eureka_grpc_api::{Config, Grpc, GrpcService};
use eureka_registry_core::{
    Clock, Event, EventSink, Instance, InstanceKey, Mono, Now, Origin, Registered, RegistryHandle, Status,
    Wall,
};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

pub(crate) struct Node {
    pub(crate) registry: RegistryHandle,
    pub(crate) grpc: Grpc,
    figures: PrometheusHandle,
}

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Now {
        Now {
            mono: Mono(0),
            wall: Wall(1_795_000_000_000),
        }
    }
}

impl Node {
    /// A node as it is by default.
    pub(crate) fn new() -> Self {
        Self::with(eureka_registry_core::Config::default(), Config::default())
    }

    pub(crate) fn with(core: eureka_registry_core::Config, config: Config) -> Self {
        let node = Self::held(core, config, Arc::new(|_: &Event| {}));
        node.registry.open(0, None);
        node
    }

    /// A node whose reads are held.
    pub(crate) fn held(core: eureka_registry_core::Config, config: Config, sink: Arc<dyn EventSink>) -> Self {
        let registry = RegistryHandle::new(core, Arc::new(Stopped), sink);
        let recorder = PrometheusBuilder::new().build_recorder();
        let figures = recorder.handle();
        let grpc = metrics::with_local_recorder(&recorder, || Grpc::new(registry.clone(), config));
        Self {
            registry,
            grpc,
            figures,
        }
    }

    pub(crate) fn client(&self) -> RegistryClient<GrpcService> {
        RegistryClient::new(self.grpc.service())
    }

    pub(crate) fn register(&self, app: &str, id: &str) {
        self.register_with(Instance::new(app, id, "host", "10.0.0.1"));
    }

    pub(crate) fn register_with(&self, instance: Instance) {
        let registered = self
            .registry
            .register(Origin::Client, Arc::new(instance), Duration::ZERO);
        assert_eq!(registered, Registered::Accepted);
    }

    pub(crate) fn set_status(&self, app: &str, id: &str, status: Status) {
        self.registry
            .set_override(Origin::Client, &InstanceKey::new(app, id), status, None);
    }

    pub(crate) fn cancel(&self, app: &str, id: &str) {
        self.registry.cancel(Origin::Client, &InstanceKey::new(app, id));
    }

    /// The value of a figure, by its name and all its labels: `eureka_watchers{interface="grpc"}`.
    pub(crate) fn figure(&self, name: &str) -> u64 {
        let rendered = self.figures.render();
        let value = rendered
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0, |value| value.parse().unwrap())
    }
}
