//! Tests of the client from outside: one module for each part.

mod balance;
