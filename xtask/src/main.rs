//! Tasks of the eureka workspace.

fn main() {}
