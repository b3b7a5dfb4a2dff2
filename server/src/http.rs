//! HTTP: the listener, the layers around the API, and the routes that only the server has.

mod body;
mod connection;
mod guard;
mod health;
mod intake;
mod listener;
mod meter;
mod pressure;
mod routes;
mod sender;
mod shed;
mod socket;
mod stack;
mod trace;

pub use self::body::{Body, Broken};
pub(crate) use self::health::Health;
pub use self::intake::{ReceiveError, Received};
pub use self::listener::Listener;
pub use self::pressure::Pressure;
pub(crate) use self::routes::{Own, Routes};
pub use self::stack::{Front, stack};
