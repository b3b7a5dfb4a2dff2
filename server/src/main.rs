//! The binary `eureka`.

use std::process::ExitCode;

fn main() -> ExitCode {
    eureka_server::cli::run(std::env::args_os())
}
