//! Micro-benchmarks of the registry and of Eureka's formats: `cargo bench --workspace --bench micro`.

mod batch;
mod codec;
mod fleet;
mod operation;
mod registry;
mod timing;

fn main() {
    timing::time(&[codec::OPERATIONS, registry::OPERATIONS, batch::OPERATIONS].concat());
}
