//! Micro-benchmarks of the API as one function, without sockets: `cargo bench --workspace --bench micro`.

// The fleet and what runs the benchmarks are registry-core's.
#[path = "../../../registry-core/benches/micro/fleet.rs"]
mod fleet;
#[path = "../../../registry-core/benches/micro/operation.rs"]
mod operation;
mod requests;
#[path = "../../../registry-core/benches/micro/timing.rs"]
mod timing;

fn main() {
    timing::time(requests::OPERATIONS);
}
