//! What the node says about itself: log lines on standard error, metrics for Prometheus.

mod durations;
mod log;
mod meters;
mod process;

pub use self::log::{LogLevel, LogWriter, install as install_log};
pub(crate) use self::meters::Closed;
pub use self::meters::{Meters, Recorder};
pub(crate) use self::process::{memory, raise_file_limit};
