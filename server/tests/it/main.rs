//! The server from outside: the binary is started on a free port and spoken to over sockets.

mod alike;
mod call;
mod cluster;
mod config;
mod doctor;
mod grpc;
mod http2;
mod layers;
mod lifecycle;
mod node;
mod pages;
mod peers;
mod reads;
mod regions;
mod reload;
mod shedding;
mod sockets;
mod watchers;
