//! The agent against a small model of servers, in virtual time: what it sends when, and what it makes of the answers.

mod bounds;
mod consuming;
mod following;
mod leaving;
mod providing;
mod renewing;
mod world;
