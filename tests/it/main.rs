//! The integration tests: one binary, one module a concern.

mod engine;
