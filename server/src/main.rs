//! The binary `eureka`.

fn main() {}
