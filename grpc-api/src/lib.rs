//! A gRPC frontend for a Eureka registry. **There is no service yet**: messages and stubs of `eureka.v1.Registry` are here, what
//! answers them is not.

pub mod encoded;
pub mod proto;
