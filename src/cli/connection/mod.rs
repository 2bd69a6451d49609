//! Where a command works: which server, with which key, or which data directory, and the client for it.

pub mod global_flags;
pub mod local_store;
pub mod running_servers;
pub mod session;
pub mod target;
