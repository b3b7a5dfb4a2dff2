//! The frontend from outside: the generated client speaks to the service in the same process.

mod fixture;
mod unary;
