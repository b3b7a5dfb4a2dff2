//! Eureka's REST API as one synchronous function and a tower service.
