//! HTTP: the listeners, the stack around REST and gRPC, and the routes that only the server has.

mod body;
mod connection;
mod draining;
mod health;
mod intake;
mod interfaces;
mod listener;
mod messages;
mod meter;
mod pressure;
mod refusal;
mod routes;
mod sender;
mod shed;
mod socket;
mod stack;
mod trace;
mod work;

pub use self::body::{Body, Broken};
pub(crate) use self::health::Health;
pub use self::intake::{ReceiveError, Received};
pub(crate) use self::interfaces::Interfaces;
pub use self::listener::Listener;
pub use self::pressure::Pressure;
pub(crate) use self::routes::Own;
pub use self::stack::{Front, Stack};
pub use self::work::Speaks;
