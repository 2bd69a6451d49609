//! Shared by the benchmarks and the tests in `tests/it/process`: server processes, a client with little CPU use, load,
//! and a table.
#![allow(dead_code, reason = "each benchmark uses only a part")]

pub(crate) mod endpoint; // where a server listens, over plain HTTP or TLS
pub(crate) mod fill; // a form with many submissions
pub(crate) mod load; // one request repeated over many connections
pub(crate) mod receiver; // a receiver of webhooks
pub(crate) mod samples; // percentiles and medians
pub(crate) mod select; // measurements by name
pub(crate) mod server; // a server process
pub(crate) mod settings; // durations, counts and the folder
pub(crate) mod table; // measurements next to their targets
pub(crate) mod wire; // one keep-alive connection
