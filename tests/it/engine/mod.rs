//! The storage engine: rows survive crashes of the process and the machine, and damage to the index.
//!
//! `cargo test --test it engine` runs 500 random crash sequences on a model of a disk that loses unsynced writes;
//! `FORMS_SEQUENCES=100000 cargo test --release --test it engine` runs the long form, `FORMS_SEED=n` one sequence.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on has failed"
)]

pub(crate) mod random;
pub(crate) mod real_files;

mod fault_injector;
mod model_disk;
mod model_index;

mod machine;
mod real_store;

mod compaction;
mod crashes;
mod delivery_cost;
mod delivery_crashes;
mod delivery_races;
mod index_faults;
mod purge;
mod races;
mod recount;
mod recovery;
mod salvage;
mod trash_sweep;
