//! The integration tests: one binary, one module for each area.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod api; // the API over HTTP
mod browser; // the page of a form in a browser
mod cli; // the command line as a process
mod concurrency; // the pool for long work
mod config; // the settings of a server
mod delivery; // deliveries: requests, files, schedules and fairness
mod docs; // the README and docs/
mod domain; // the rules of forms and submissions
mod engine; // the storage engine under faults
mod golden; // generated files
mod harness; // a server for tests
mod layers; // allowed imports
mod logic; // conditions, pages, hidden questions
mod pages; // the pages where people answer
mod process; // the executable, killed and stopped
mod questions; // every question type: answers, settings, schema
mod store; // the contract of the store
mod vault; // sealing of secrets
