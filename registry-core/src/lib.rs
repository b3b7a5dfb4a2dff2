//! A Eureka registry as a deterministic state machine without clock, thread or socket.
