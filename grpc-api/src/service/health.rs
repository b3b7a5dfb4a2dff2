//! `grpc.health.v1`: whether the node serves, told from what it is at that moment. Nobody has to report it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use eureka_registry_core::Reads;
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse, health_server};

use crate::node::Node;

/// How often a watch looks: opening reads is no change of the registry that would wake it.
const LOOK: Duration = Duration::from_secs(1);

/// The service.
#[derive(Debug)]
pub(super) struct Health(pub(super) Arc<Node>);

/// What may be asked for.
#[derive(Clone, Copy, Debug)]
enum Subject {
    /// The server, or its service: renewals and registrations are served at once.
    Node,
    /// Lists and watches.
    Reads,
}

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let subject = Subject::named(&request.get_ref().service);
        let subject = subject.ok_or_else(|| Status::not_found("no such service"))?;
        Ok(Response::new(response(subject.status(&self.0))))
    }

    type WatchStream = Changes;

    /// As the protocol has it, a service that is unknown is told as such, not refused.
    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Changes>, Status> {
        let mut looks = interval(LOOK);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Response::new(Changes {
            node: Arc::clone(&self.0),
            subject: Subject::named(&request.get_ref().service),
            told: None,
            looks,
        }))
    }
}

impl Subject {
    fn named(service: &str) -> Option<Self> {
        match service {
            "" | "eureka.v1.Registry" => Some(Self::Node),
            "eureka.v1.Registry/reads" => Some(Self::Reads),
            _ => None,
        }
    }

    fn status(self, node: &Node) -> ServingStatus {
        let serves = match self {
            Self::Node => true,
            Self::Reads => node.registry.snapshot().reads() == Reads::Open,
        };
        if serves && !node.is_closed() {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        }
    }
}

/// The status now, and whenever it is another one. When the node stops, the frame around the stream ends it.
#[derive(Debug)]
pub(super) struct Changes {
    node: Arc<Node>,
    subject: Option<Subject>,
    told: Option<ServingStatus>,
    looks: Interval,
}

impl Stream for Changes {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let status = match self.subject {
                Some(subject) => subject.status(&self.node),
                None => ServingStatus::ServiceUnknown,
            };
            if self.told != Some(status) {
                self.told = Some(status);
                return Poll::Ready(Some(Ok(response(status))));
            }
            if self.looks.poll_tick(context).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status.into(),
    }
}
