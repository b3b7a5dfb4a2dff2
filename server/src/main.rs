//! The binary `eureka`.

use std::process::ExitCode;

/// The C library's allocator tidies up all that was freed in one go, for milliseconds, and with the registry locked if it
/// happens there. This one does a little each time, and is quicker besides.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    eureka_server::cli::run(std::env::args_os())
}
