//! The node's own instance (`server.register`): registered and renewed like any other.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use eureka_registry_core::{Instance, InstanceKey, LeaseTerms, Origin, Port, RegistryHandle, Renewed};
use tokio::sync::oneshot;

use crate::config::Settings;

/// Lease durations are so many renewals long, as everybody's are by default.
const RENEWALS_PER_LEASE: u32 = 3;

/// By then a new node knows its peers.
const FIRST_RENEWAL: Duration = Duration::from_secs(2);

/// The instance that stands for this node in its own registry. Java servers call a peer available only while they see
/// one under their own application name whose host is that of the peer's URL.
#[derive(Debug)]
pub(super) struct OwnInstance {
    instance: Instance,
    registry: RegistryHandle,
}

/// The key of the node's own instance, with the port that was really bound.
pub(super) fn key(settings: &Settings, address: SocketAddr) -> InstanceKey {
    InstanceKey::new(&settings.server.app_name, &id(settings, address))
}

fn id(settings: &Settings, address: SocketAddr) -> String {
    let server = &settings.server;
    if server.instance_id.is_empty() {
        format!("{}:{}:{}", server.hostname, server.app_name, address.port())
    } else {
        server.instance_id.clone()
    }
}

impl OwnInstance {
    pub(super) fn new(settings: &Settings, address: SocketAddr, registry: RegistryHandle) -> Self {
        let server = &settings.server;
        let host = &server.hostname;
        let base = format!("http://{host}:{}", address.port());
        let interval = u32::try_from(settings.registry.renewal_interval.as_secs()).unwrap_or(u32::MAX);
        let interval = interval.clamp(1, u32::MAX / RENEWALS_PER_LEASE);
        let instance = Instance {
            port: Port {
                number: address.port().into(),
                enabled: true,
            },
            home_page_url: Some(format!("{base}/").into()),
            status_page_url: Some(format!("{base}/").into()),
            health_check_url: Some(format!("{base}/health/ready").into()),
            vip_address: Some(Arc::from(&*server.app_name)),
            lease: LeaseTerms {
                renewal_interval_secs: interval,
                duration_secs: interval * RENEWALS_PER_LEASE,
            },
            last_dirty: i64::try_from(registry.now().wall.0).ok(),
            ..Instance::new(
                &server.app_name,
                &id(settings, address),
                host,
                &ip(address).to_string(),
            )
        };
        Self { instance, registry }
    }

    /// Keeps the lease until `leave` is sent or dropped, and takes leave then. One task does both, so that no renewal can come
    /// after the cancel and register again.
    pub(super) async fn live(self, leave: oneshot::Receiver<()>) {
        tokio::select! {
            biased;
            _ = leave => {}
            () = self.keep_registered() => {}
        }
        // Somebody may have cancelled it before; gone is gone.
        let _ = self.registry.cancel(Origin::Own, &self.key());
    }

    /// Registers, or registers again.
    pub(super) fn register(&self) {
        // Whatever is kept of it, its lease begins anew.
        let _ = self
            .registry
            .register(Origin::Own, Arc::new(self.instance.clone()), Duration::ZERO);
    }

    /// Renews for ever, and registers again should it be forgotten.
    async fn keep_registered(&self) {
        let key = self.key();
        let interval = Duration::from_secs(self.instance.lease.renewal_interval_secs.into());
        // The peers were not known yet when it registered: its first renewal tells them.
        let mut pause = interval.min(FIRST_RENEWAL);
        loop {
            tokio::time::sleep(pause).await;
            pause = interval;
            let renewed = self
                .registry
                .renew(Origin::Own, &key, self.instance.last_dirty, None);
            if matches!(renewed, Renewed::Missing | Renewed::Ahead) {
                self.register();
            }
        }
    }

    fn key(&self) -> InstanceKey {
        self.instance.key()
    }
}

/// The address others reach the node by: the one it listens on, or for all addresses the one this machine sends from.
pub(super) fn ip(address: SocketAddr) -> IpAddr {
    if !address.ip().is_unspecified() {
        return address.ip();
    }
    // Connecting a UDP socket sends nothing; it only asks the kernel for a route, here to an address of no machine.
    UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        .and_then(|socket| {
            socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
            socket.local_addr()
        })
        .map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |local| local.ip())
}
