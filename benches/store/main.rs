//! A large store: reads, starts, purges, filters and memory.
//!
//! `cargo bench --bench store` measures everything, `cargo bench --bench store -- NAME` one of it.

#[path = "../common/mod.rs"]
mod common;
mod filters; // speed of filters, and latencies of others meanwhile
mod memory; // of an idle server
mod purge; // latencies of others during a purge and a verification
mod reads; // latencies of reading
mod starts; // time until ready

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    common::select::run(&[
        ("reads", reads::run),
        ("starts", starts::run),
        ("purge", purge::run),
        ("filters", filters::run),
        ("memory", memory::run),
    ])
}
