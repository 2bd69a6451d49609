//! The storage engine: rows survive whatever happens to the process, the machine and the index.
//!
//! `cargo test --test it engine` runs a few thousand sequences of deaths on a model of a disk that forgets;
//! `FORMS_SEQUENCES=100000 cargo test --release --test it engine` runs the long form, and `FORMS_SEED=n` one sequence.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

pub(crate) mod random;
pub(crate) mod real;

mod fate;
mod model_disk;
mod model_index;

mod machine;

mod damage;
mod deaths;
mod hole;
mod index_faults;
mod purge;
mod scenes;
mod sweep;
