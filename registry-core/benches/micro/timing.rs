//! How long operations take, by criterion.

use std::env;

use criterion::{BenchmarkId, Criterion, Throughput};

use crate::operation::{FLEETS, Operation, Run};

/// Instances in the registry where one run is all there is to be done.
const SMALL: &[usize] = &[1_000];

/// Takes the times that criterion's command line asks for. Without `--bench` each operation runs once.
pub(crate) fn time(operations: &[Operation]) {
    let once = !env::args().any(|argument| argument == "--bench");
    let mut criterion = Criterion::default().configure_from_args();
    for operation in operations {
        let mut group = criterion.benchmark_group(operation.name);
        group.throughput(Throughput::Elements(operation.items));
        let small = once && operation.instances == FLEETS;
        for &instances in if small { SMALL } else { operation.instances } {
            let mut prepared = None;
            group.bench_function(BenchmarkId::from_parameter(instances), |bencher| {
                let run: &mut Run = prepared.get_or_insert_with(|| (operation.prepare)(instances));
                bencher.iter(run);
            });
        }
    }
    criterion.final_summary();
}
