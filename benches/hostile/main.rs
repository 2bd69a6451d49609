//! Memory, and latencies of other clients, under hostile clients and under overload.
//!
//! `cargo bench --bench hostile` measures everything, `cargo bench --bench hostile -- NAME` one of it.

mod attacks; // clients that are slow, silent, endless or malicious
#[path = "../common/mod.rs"]
mod common;
mod overload; // large bodies and responses

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    common::select::run(&[("attacks", attacks::run), ("overload", overload::run)])
}
