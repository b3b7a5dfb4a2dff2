//! A server that starts empty beside a filled one, and copies from it.

use std::time::Duration;

use anyhow::{Result, ensure};

use super::figures::Bootstrap;
use super::fleet::Form;
use super::node::{self, Node};
use crate::connection::Connection;
use crate::stopwatch::Stopwatch;

const BUFFER: usize = 64 * 1024;
const LONGEST: Duration = Duration::from_secs(180);

/// Starts one and waits until it serves lists.
pub(super) fn measure(node: &Node<'_>) -> Result<Bootstrap> {
    let peer_cpu = node.server.cpu_seconds()?;
    let stopwatch = Stopwatch::start();
    let peers = format!("peers.urls=http://{}/eureka", node.server.address);
    let second = node::start(&[peers])?;
    node.runtime.block_on(async {
        let mut connection = Connection::open(second.address, BUFFER).await?;
        let request = Form::PLAIN.request("/health/ready?reads");
        while connection.exchange(&request, None).await?.status != 200 {
            ensure!(stopwatch.elapsed() < LONGEST, "reads are held for {LONGEST:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let seconds = stopwatch.elapsed().as_secs_f64();
        let instances = node::instances(&mut connection).await?;
        let all = node.crowd.size.instances;
        ensure!(
            instances == all,
            "lists are served with {instances} of {all} instances"
        );
        Ok(Bootstrap {
            seconds,
            own_cpu_seconds: second.cpu_seconds()?,
            peer_cpu_seconds: node.server.cpu_seconds()? - peer_cpu,
            resident: second.resident_bytes()?,
            peak: second.resident_peak_bytes()?,
            instances,
        })
    })
}
