//! Submissions per second, with idempotency keys, with deliveries, and during upkeep.
//!
//! `cargo bench --bench submissions` measures everything, `cargo bench --bench submissions -- NAME` one of it.

mod batches; // many in one request
#[path = "../common/mod.rs"]
mod common;
mod deliveries; // what deliveries cost, and how fast they are
mod idempotency; // while old idempotency keys expire
mod limit; // a server that only makes bytes durable
mod rate; // compared to the maximum of this machine
mod upkeep; // while the store is backed up and compacted

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    if limit::serve_if_requested()? || idempotency::serve_if_requested()? {
        return Ok(());
    }
    common::select::run(&[
        ("rate", rate::run),
        ("batches", batches::run),
        ("idempotency", idempotency::run),
        ("deliveries", deliveries::run),
        ("upkeep", upkeep::run),
    ])
}
