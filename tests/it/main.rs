//! The integration tests: one binary, one module a concern.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod domain; // the rules, through their public surface
mod engine; // rows that survive
mod layers; // who may import whom
mod store; // what every store promises
