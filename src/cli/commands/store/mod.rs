//! `forms store`: commands on the store as a whole, one file each.

mod backup;
pub(in crate::cli::commands) mod compact;
mod copy;
mod restore;
mod salvage;
mod verify;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::api::StoreView;
use crate::backup::{ArchiveError, Manifest};
use crate::cli::commands::keys::replace_all_operator_keys;
use crate::cli::commands::{CliError, Session, subcommands};
use crate::cli::connection::target::{self, Source, Sourced, Target};
use crate::cli::output::humanize::{bytes, count_noun};
use crate::cli::output::io_error::reason;
use crate::client::{Client, ReceivedBody};

use backup::Backup;
use compact::Compact;
use copy::Copy;
use restore::{Restore, move_files};
use salvage::Salvage;
use verify::Verify;

/// Pause between looks at the store.
const PAUSE: Duration = Duration::from_millis(50);

subcommands! {
    /// Back up, restore, compact, verify, salvage and copy the store
    #[command(after_long_help = "\
A backup is a tar archive of the data directory at one point: journal, master
key and exports, without the index, which is rebuilt. It is made while the
server runs, and needs a key with the scope operator.

Examples:
  forms store backup --to forms.tar
  forms store restore forms.tar --data ./store
  forms store compact
  forms store verify
  forms store salvage --data ./store --to ./salvaged
  forms store copy --from ./store --to postgres://forms@db.example.com/forms")]
    pub enum Store {
        Backup(Backup),
        Restore(Restore),
        Compact(Compact),
        Verify(Verify),
        Salvage(Salvage),
        Copy(Copy),
    }
}

/// Begins a work on the store, and returns the store as it is once that is done.
async fn act_and_wait(
    client: &Client,
    work: &str,
    is_running: fn(&StoreView) -> bool,
) -> Result<ReceivedBody<StoreView>, CliError> {
    let mut now = client.act(&["store", work]).await?;
    while is_running(&now) {
        tokio::time::sleep(PAUSE).await;
        now = client.get(&["store"]).await?;
    }
    Ok(now)
}

/// Completes the store in the folder `data`, whose files are in `unfinished` in it, with a new operator key.
async fn complete(session: &Session, unfinished: &Path, data: &Path) -> Result<(), CliError> {
    session.use_target(Target::Data(Sourced { value: unfinished.to_owned(), source: Source::Flag }));
    replace_all_operator_keys(session, unfinished).await?;
    session.close().await?;
    let unwritable = |error| CliError::io(format!("cannot write {}", data.display()), error);
    move_files(unfinished, data).map_err(unwritable)
}

/// Returns the data directory that `--data` or `FORMS_DATA` names; `help` says which it is.
fn data_directory(session: &Session, help: &str) -> Result<PathBuf, CliError> {
    let data = target::data(&session.global, &session.environment)?.map(|data| data.value);
    data.ok_or_else(|| CliError::usage_with_help("--data is required", help))
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
