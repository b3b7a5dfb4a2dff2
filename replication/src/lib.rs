//! The peer mesh of a Eureka registry.
