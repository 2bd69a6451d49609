//! The embedded store: a synced journal, and sled as its index.

pub mod engine;
pub mod options;
pub mod tx;
