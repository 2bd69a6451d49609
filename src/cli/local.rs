//! The server's side of the command line: what can go wrong when this process opens a store itself.
#![deny(clippy::wildcard_enum_match_arm)]

use std::error::Error;
use std::io;
use std::path::Path;

use crate::cli::exit::CliError;
use crate::server::ServerError;
use crate::store::sled::engine::options::OpenError;

/// Why the store in `data` cannot be served, as the command line tells it.
pub fn failed(data: &Path, error: ServerError) -> CliError {
    match error {
        ServerError::Exposed(exposed) => CliError::usage(exposed.to_string()),
        ServerError::Listen { address, source } if source.kind() == io::ErrorKind::AddrInUse => {
            CliError::AddressInUse { address: address.to_string() }
        }
        ServerError::Open(OpenError::Locked { holder, .. }) => {
            let holder = holder.map(|holder| (holder.pid, holder.address));
            CliError::InUse { data: data.to_owned(), holder }
        }
        ServerError::Listen { .. }
        | ServerError::Open(_)
        | ServerError::Store(_)
        | ServerError::KeyFile { .. } => {
            let mut causes = Vec::new();
            let mut cause = error.source();
            while let Some(next) = cause {
                causes.push(format!("cause: {next}"));
                cause = next.source();
            }
            CliError::Failed { what: error.to_string(), causes }
        }
    }
}
