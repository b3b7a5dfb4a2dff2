//! `instructions NAME INSTANCES TIMES`: runs one operation of the micro-benchmarks so many times, for somebody outside who
//! counts its instructions, and says how many of what it is named after each run did.

// A command-line tool talks on stdout.
#![allow(clippy::print_stdout)]

#[path = "../../../registry-core/benches/micro/batch.rs"]
mod batch;
#[path = "../../../registry-core/benches/micro/codec.rs"]
mod codec;
#[path = "../../../registry-core/benches/micro/fleet.rs"]
mod fleet;
#[path = "../../../registry-core/benches/micro/operation.rs"]
mod operation;
#[path = "../../../registry-core/benches/micro/registry.rs"]
mod registry;
#[path = "../../../http-api/benches/micro/requests.rs"]
mod requests;

use std::env;
use std::process::ExitCode;

fn main() -> ExitCode {
    let operations = [
        codec::OPERATIONS,
        registry::OPERATIONS,
        batch::OPERATIONS,
        requests::OPERATIONS,
    ]
    .concat();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let asked = match &arguments[..] {
        [name, instances, times] => operations
            .iter()
            .find(|operation| operation.name == name)
            .and_then(|operation| Some((operation, instances.parse().ok()?, times.parse::<usize>().ok()?))),
        _ => None,
    };
    let Some((operation, instances, times)) = asked else {
        eprintln!("instructions NAME INSTANCES TIMES, where NAME is one of");
        for operation in &operations {
            eprintln!("  {} (as in {:?} instances)", operation.name, operation.instances);
        }
        return ExitCode::FAILURE;
    };
    let mut run = (operation.prepare)(instances);
    (0..times).for_each(|_| run());
    println!("{}", operation.items);
    ExitCode::SUCCESS
}
