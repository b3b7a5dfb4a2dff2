//! How long a registration at one node takes to be in the list of another.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::pipeline::Pipeline;
use super::servers::{Place, Workshop};
use crate::conformance::report::Report;
use crate::conformance::target::Instance;

const SAMPLES: usize = 500;
const LONGEST: Duration = Duration::from_secs(30);

/// Prints the distribution; nothing is judged, for it is a figure of this machine.
pub(super) fn run(workshop: &Workshop, report: &Report) -> Result<()> {
    let places = [Place::new("near", 1)?, Place::new("far", 1)?];
    let settings = ["bootstrap.settle=1s", "bootstrap.wait-when-empty=5s"];
    let mut servers = [
        workshop.ours(&places[0], &[places[1].url(None)], &settings),
        workshop.ours(&places[1], &[places[0].url(None)], &settings),
    ];
    for server in &mut servers {
        server.spawn()?;
    }
    for server in &mut servers {
        server.ready()?;
    }
    let (mut near, mut far) = (
        Pipeline::open(places[0].address)?,
        Pipeline::open(places[1].address)?,
    );
    let mut times = Vec::with_capacity(SAMPLES);
    for sample in 0..SAMPLES {
        let id = format!("sample-{sample}");
        near.register(&Instance::new("KIT-PROPAGATION", &id));
        let started = Instant::now();
        near.exchange()?;
        loop {
            far.list();
            let listed = far.exchange()?.map(|answer| answer.text()).unwrap_or_default();
            if listed.contains(&format!("\"{id}\"")) {
                break;
            }
            if started.elapsed() > LONGEST {
                bail!("{id} does not arrive");
            }
        }
        times.push(started.elapsed());
        near.cancel("KIT-PROPAGATION", &id);
        near.exchange()?;
    }
    times.sort_unstable();
    let quantile = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    report.line(&format!(
        "propagation, register at one node to visible in GET /apps of another, {SAMPLES} samples: median {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        quantile(0.5),
        quantile(0.99),
        quantile(1.0)
    ));
    report.line("propagation, two Spring servers, as measured: 510 ms to a single GET; to the list median 13200 ms, p99 29900 ms");
    Ok(())
}
