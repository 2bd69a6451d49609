//! Where a command works: the server and key, or the data directory, and the client for it.

pub mod credentials;
pub mod global_flags;
pub mod hints;
pub mod local_store;
pub mod running_servers;
pub mod session;
mod suggestion;
pub mod target;
