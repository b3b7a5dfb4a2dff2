//! `eureka serve`: the server.

use std::process::ExitCode;

use anyhow::Context as _;
use tokio::runtime::Builder;
use tracing::info;

use super::FAILURE;
use crate::app::{App, Reload};
use crate::config::{Config, Sources};
use crate::telemetry::{self, LogLevel, LogWriter, Recorder};

pub(super) fn run(config: &Config, sources: Sources) -> ExitCode {
    let (log, level) = match telemetry::install_log(&config.settings.log) {
        Ok(log) => log,
        Err(error) => return fail(&error.into()),
    };
    let outcome = serve(config, sources, &log, level);
    log.flush();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn serve(config: &Config, sources: Sources, log: &LogWriter, level: LogLevel) -> anyhow::Result<()> {
    info!(
        version = env!("CARGO_PKG_VERSION"),
        preset = config.settings.compat.preset.name(),
        "eureka"
    );
    for name in &config.ignored_environment {
        info!(
            name,
            "environment variable ignored: only names with a double underscore are configuration"
        );
    }
    let recorder = Recorder::install().context("metrics")?;
    let runtime = Builder::new_multi_thread()
        .thread_name("eureka")
        .enable_all()
        .build()
        .context("no runtime")?;
    let outcome = runtime.block_on(async {
        let app = App::start(config, recorder, log.clone())?;
        app.run(Reload::new(config.clone(), sources, level)).await
    });
    // Connections that did not end in time are cut.
    runtime.shutdown_background();
    outcome
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("eureka: could not start: {error:#}");
    ExitCode::from(FAILURE)
}
