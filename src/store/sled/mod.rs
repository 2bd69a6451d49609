//! The embedded store: a synced journal, and sled as its index.
