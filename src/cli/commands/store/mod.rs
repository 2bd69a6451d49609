//! `forms store`: commands on the store as a whole, one file each.

mod backup;
pub(in crate::cli::commands) mod compact;
mod restore;
mod salvage;
mod verify;

use crate::backup::{ArchiveError, Manifest};
use crate::cli::commands::{CliError, Session, subcommands};
use crate::cli::output::humanize::{bytes, count_noun};
use crate::cli::output::io_error::reason;

use backup::Backup;
use compact::Compact;
use restore::Restore;
use salvage::Salvage;
use verify::Verify;

subcommands! {
    /// Back up, restore, compact, verify and salvage the store
    #[command(after_long_help = "\
A backup is a tar archive of the data directory at one point: journal, master
key and exports, without the index, which is rebuilt. It is made while the
server runs, and needs a key with the scope operator.

Examples:
  forms store backup --to forms.tar
  forms store restore forms.tar --data ./store
  forms store compact
  forms store verify
  forms store salvage --data ./store --to ./salvaged")]
    pub enum Store {
        Backup(Backup),
        Restore(Restore),
        Compact(Compact),
        Verify(Verify),
        Salvage(Salvage),
    }
}

/// Returns what an archive has, as text.
fn describe(manifest: &Manifest) -> String {
    let size = manifest.files.iter().map(|file| file.bytes).sum();
    let files = count_noun(manifest.files.len(), "file");
    format!("{files}, {}, as of {}", bytes(size), manifest.created_at)
}

/// Creates the error about the archive with this name.
fn unreadable(name: &str, error: ArchiveError) -> CliError {
    let why = match error {
        ArchiveError::Io(error) => reason(&error),
        error => error.to_string(),
    };
    CliError::usage(format!("cannot use {name}: {why}"))
}
