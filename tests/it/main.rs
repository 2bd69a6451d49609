//! The integration tests: one binary, one module a concern.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod api; // the API over HTTP
mod cli; // the command line as a process
mod concurrency; // bounds of work that runs at a time
mod config; // the settings of a server
mod docs; // what the README and docs/ say
mod domain; // the rules, through their public surface
mod engine; // rows that survive
mod golden; // generated files
mod harness; // a server for tests
mod layers; // who may import whom
mod logic; // what is asked, and what is kept besides what was sent
mod process; // the real executable, killed and stopped
mod questions; // every kind of question: answers, settings, schema
mod store; // what every store promises
