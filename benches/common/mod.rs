//! What the benchmarks share, and the tests of the real process too: servers as processes, a client that takes as
//! little of the machine as it can, load, and a table.
#![allow(dead_code, reason = "every benchmark uses a part of it")]

pub(crate) mod fill; // a form, and many submissions in it
pub(crate) mod load; // the same request from many connections
pub(crate) mod samples; // percentiles and medians
pub(crate) mod server; // a server as a process
pub(crate) mod settings; // how long to measure, and where
pub(crate) mod table; // figures beside their targets
pub(crate) mod wire; // one keep-alive connection
