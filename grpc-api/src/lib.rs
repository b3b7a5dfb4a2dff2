//! A gRPC frontend for a Eureka registry.
