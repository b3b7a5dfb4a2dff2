//! The frontend from outside: the generated client speaks to the service in the same process.

mod fixture;
mod keep_alive;
mod unary;
mod watch;
