//! The calls of `eureka.v1.Registry`: decode, ask the registry once, answer.

use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{
    Application, Changed, Filter, Instance, LeaseView, Origin, Reads, Registered, Renewed, Snapshot,
};
use prost::Message as _;
use tonic::{Request, Response, Status, Streaming};

use super::deadline::Deadline;
use crate::keep_alive::{self, KeepingAlive};
use crate::node::Node;
use crate::proto::registry_server::Registry;
use crate::proto::{
    CancelRequest, CancelResponse, ClearStatusRequest, ClearStatusResponse, GetApplicationRequest,
    GetApplicationResponse, GetInstanceRequest, GetInstanceResponse, KeepAliveRequest,
    ListApplicationsRequest, ListApplicationsResponse, RegisterRequest, RegisterResponse, RenewRequest,
    RenewResponse, SetStatusRequest, SetStatusResponse, UpdateMetadataRequest, UpdateMetadataResponse,
    WatchRequest,
};
use crate::refusal::Refusal;
use crate::watch::{self, Watching};
use crate::{convert, page_token, proto};

/// Instances on a page, unless the request says how many.
const DEFAULT_PAGE: usize = 100;
/// Instances on a page at most.
const MAX_PAGE: usize = 1_000;
/// Bytes of instances on a page, about: clients take 4 MiB a message if nobody told them otherwise.
const PAGE_BYTES: usize = 1 << 20;
/// Instances looked at for one page at most: a filter that selects few must not keep the node busy.
const MAX_LOOKED_AT: usize = 20_000;

/// The service. Every call but the streams is answered at once.
#[derive(Clone, Debug)]
pub(super) struct Calls(pub(super) Arc<Node>);

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Registry for Calls {
    async fn register(&self, request: Request<RegisterRequest>) -> Answer<RegisterResponse> {
        answer(self.register_now(request.into_inner()))
    }

    async fn renew(&self, request: Request<RenewRequest>) -> Answer<RenewResponse> {
        answer(self.renew_now(request.into_inner()))
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Answer<CancelResponse> {
        answer(self.cancel_now(&request.into_inner()))
    }

    async fn set_status(&self, request: Request<SetStatusRequest>) -> Answer<SetStatusResponse> {
        answer(self.set_status_now(&request.into_inner()))
    }

    async fn clear_status(&self, request: Request<ClearStatusRequest>) -> Answer<ClearStatusResponse> {
        answer(self.clear_status_now(&request.into_inner()))
    }

    async fn update_metadata(
        &self,
        request: Request<UpdateMetadataRequest>,
    ) -> Answer<UpdateMetadataResponse> {
        answer(self.update_metadata_now(&request.into_inner()))
    }

    async fn get_instance(&self, request: Request<GetInstanceRequest>) -> Answer<GetInstanceResponse> {
        answer(self.get_instance_now(&request.into_inner()))
    }

    async fn get_application(
        &self,
        request: Request<GetApplicationRequest>,
    ) -> Answer<GetApplicationResponse> {
        answer(self.get_application_now(&request.into_inner()))
    }

    async fn list_applications(
        &self,
        request: Request<ListApplicationsRequest>,
    ) -> Answer<ListApplicationsResponse> {
        answer(self.list_applications_now(&request.into_inner()))
    }

    type WatchStream = Watching;

    async fn watch(&self, request: Request<WatchRequest>) -> Answer<Watching> {
        let deadline = Deadline::in_extensions(request.extensions());
        watch::start(&self.0, request.into_inner(), deadline).map(Response::new)
    }

    type KeepAliveStream = KeepingAlive;

    async fn keep_alive(&self, request: Request<Streaming<KeepAliveRequest>>) -> Answer<KeepingAlive> {
        let deadline = Deadline::in_extensions(request.extensions());
        let stream = keep_alive::start(&self.0, request.into_inner(), deadline);
        Ok(Response::new(stream))
    }
}

impl Calls {
    fn register_now(&self, request: RegisterRequest) -> Result<RegisterResponse, Refusal> {
        let instance = convert::registration(request.instance, self.0.config.limits)?;
        let registered = self
            .0
            .registry
            .register(Origin::Client, Arc::new(instance), Duration::ZERO);
        let kept_newer = match registered {
            Registered::Accepted => false,
            // Only peers are refused; whoever is, something newer is there.
            Registered::KeptNewer | Registered::Refused => true,
        };
        Ok(RegisterResponse { kept_newer })
    }

    fn renew_now(&self, request: RenewRequest) -> Result<RenewResponse, Refusal> {
        let Some(renewal) = request.renewal else {
            return Err(Refusal::field("renewal", "required"));
        };
        let key = convert::key("renewal.", &renewal.app, &renewal.instance_id)?;
        let renewed = self
            .0
            .registry
            .renew(Origin::Client, &key, renewal.last_dirty_unix_ms, None);
        let content_outdated = match renewed {
            // Only a peer is told that its copy is older.
            Renewed::Ok | Renewed::Behind(_) => false,
            Renewed::Ahead => true,
            Renewed::Missing => return Err(Refusal::NotRegistered),
        };
        Ok(RenewResponse { content_outdated })
    }

    fn cancel_now(&self, request: &CancelRequest) -> Result<CancelResponse, Refusal> {
        let key = convert::key("", &request.app, &request.instance_id)?;
        done(self.0.registry.cancel(Origin::Client, &key))?;
        Ok(CancelResponse {})
    }

    fn set_status_now(&self, request: &SetStatusRequest) -> Result<SetStatusResponse, Refusal> {
        let key = convert::key("", &request.app, &request.instance_id)?;
        let status = convert::required_status("status", request.status)?;
        let registry = &self.0.registry;
        done(registry.set_override(Origin::Client, &key, status, request.last_dirty_unix_ms))?;
        Ok(SetStatusResponse {})
    }

    fn clear_status_now(&self, request: &ClearStatusRequest) -> Result<ClearStatusResponse, Refusal> {
        let key = convert::key("", &request.app, &request.instance_id)?;
        let status = convert::optional_status("status", request.status)?;
        let registry = &self.0.registry;
        done(registry.clear_override(Origin::Client, &key, status, request.last_dirty_unix_ms))?;
        Ok(ClearStatusResponse {})
    }

    fn update_metadata_now(
        &self,
        request: &UpdateMetadataRequest,
    ) -> Result<UpdateMetadataResponse, Refusal> {
        let key = convert::key("", &request.app, &request.instance_id)?;
        if request.metadata.is_empty() {
            return Err(Refusal::field("metadata", "required: at least one pair"));
        }
        let entries: Vec<(Arc<str>, Arc<str>)> = request
            .metadata
            .iter()
            .map(|(key, value)| (Arc::from(&**key), Arc::from(&**value)))
            .collect();
        let view = self.0.registry.find(&key).ok_or(Refusal::NotRegistered)?;
        let mut merged = Instance::clone(&view.instance);
        merged.metadata.extend(entries.iter().cloned());
        let limit = self.0.config.limits.metadata;
        if merged.metadata_bytes() > limit {
            return Err(Refusal::field("metadata", format!("metadata over {limit} bytes")));
        }
        done(self.0.registry.update_metadata(Origin::Client, &key, &entries))?;
        Ok(UpdateMetadataResponse {})
    }

    fn get_instance_now(&self, request: &GetInstanceRequest) -> Result<GetInstanceResponse, Refusal> {
        let registry = &self.0.registry;
        let view = if request.app.is_empty() {
            if request.instance_id.is_empty() {
                return Err(Refusal::field("instance_id", "required"));
            }
            registry.find_by_id(&request.instance_id)
        } else {
            registry.find(&convert::key("", &request.app, &request.instance_id)?)
        };
        let view = view.ok_or(Refusal::NotRegistered)?;
        Ok(GetInstanceResponse {
            instance: Some(convert::view(&view)),
        })
    }

    fn get_application_now(
        &self,
        request: &GetApplicationRequest,
    ) -> Result<GetApplicationResponse, Refusal> {
        if request.app.is_empty() {
            return Err(Refusal::field("app", "required"));
        }
        let snapshot = self.snapshot()?;
        let application = snapshot
            .application(&convert::upper(&request.app))
            .ok_or(Refusal::NoSuchApplication)?;
        Ok(GetApplicationResponse {
            application: Some(whole(application)),
            cursor: self.cursor(&snapshot),
        })
    }

    fn list_applications_now(
        &self,
        request: &ListApplicationsRequest,
    ) -> Result<ListApplicationsResponse, Refusal> {
        let filter = convert::filter("filter", &request.filter)?;
        let size = page_size(request.page_size)?;
        let after = page_token::read(&request.page_token)?;
        let snapshot = self.snapshot()?;
        let mut page = Page::default();
        let mut next = String::new();
        let mut last_seen: Option<&LeaseView> = None;
        for (position, view) in snapshot.instances_after(after.as_ref()).enumerate() {
            if page.is_full(size) || position == MAX_LOOKED_AT {
                next = last_seen
                    .map(|view| page_token::write(&view.key()))
                    .unwrap_or_default();
                break;
            }
            last_seen = Some(view);
            if filter
                .as_ref()
                .is_none_or(|filter: &Filter| filter.matches(&view.instance))
            {
                page.push(convert::view(view));
            }
        }
        Ok(ListApplicationsResponse {
            applications: page.applications,
            next_page_token: next,
            cursor: self.cursor(&snapshot),
        })
    }

    /// What lists are read from.
    fn snapshot(&self) -> Result<Snapshot, Refusal> {
        let snapshot = self.0.registry.snapshot();
        match snapshot.reads() {
            Reads::Open => Ok(snapshot),
            Reads::Held(_) => Err(Refusal::ReadsHeld),
        }
    }

    fn cursor(&self, snapshot: &Snapshot) -> String {
        self.0.registry.cursor(snapshot.version()).to_string()
    }
}

/// A page of a list while it is filled.
#[derive(Default)]
struct Page {
    applications: Vec<proto::Application>,
    instances: usize,
    bytes: usize,
}

impl Page {
    fn is_full(&self, size: usize) -> bool {
        self.instances == size || self.bytes >= PAGE_BYTES
    }

    fn push(&mut self, instance: proto::Instance) {
        self.instances += 1;
        self.bytes += instance.encoded_len();
        match self.applications.last_mut() {
            Some(last) if last.name == instance.app => last.instances.push(instance),
            Some(_) | None => self.applications.push(proto::Application {
                name: instance.app.clone(),
                instances: vec![instance],
            }),
        }
    }
}

fn whole(application: Application<'_>) -> proto::Application {
    proto::Application {
        name: application.name().to_string(),
        instances: application.instances().map(|view| convert::view(view)).collect(),
    }
}

fn page_size(given: u32) -> Result<usize, Refusal> {
    match usize::try_from(given) {
        Ok(0) => Ok(DEFAULT_PAGE),
        Ok(size) if size <= MAX_PAGE => Ok(size),
        Ok(_) | Err(_) => Err(Refusal::field("page_size", format!("over {MAX_PAGE}"))),
    }
}

fn done(changed: Changed) -> Result<(), Refusal> {
    match changed {
        Changed::Ok => Ok(()),
        Changed::Missing => Err(Refusal::NotRegistered),
    }
}

fn answer<T>(outcome: Result<T, Refusal>) -> Answer<T> {
    Ok(Response::new(outcome?))
}
