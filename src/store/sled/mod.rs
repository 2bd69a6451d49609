//! The embedded store: a synced journal, and sled as its index.
//!
//! The modules below, in reading order, are the engine: durable rows under byte keys. A change goes one way, from
//! an operation to the journal to the index to the answer; the index can be thrown away at any time.

pub mod engine;
pub mod options;
pub mod tx;

pub mod operation;
pub mod writer;

pub mod disk;
pub mod index;
pub mod reader;
pub mod state;

mod applied;
mod cell;
pub mod fatal;
mod frame;
mod group;
pub mod job;
mod journal;
mod lock;
mod mend;
mod open;
mod prove;
mod queue;
mod rebuild;
mod replay;
mod segment;
mod status;
mod survey;
mod totals;
mod watchdog;
mod worker;
mod writeback;
