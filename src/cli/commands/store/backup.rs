//! `forms store backup`.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use serde_json::json;

use crate::backup::read_archive;
use crate::cli::commands::store::{describe, unreadable};
use crate::cli::commands::{CliError, Columns, Run, Session, read_input};
use crate::cli::output::destination::OutputFile;

/// Bytes that are synced at once: on the disk of the server, its own syncs would wait for more.
const SYNC_AFTER: usize = 1 << 20;

/// Back up the store into a file
#[derive(Debug, Args)]
#[command(after_long_help = "\
The server goes on meanwhile. The file gets its name once all its checksums have
been checked, so a file of that name is always whole. It contains secrets: only
you can read it. If the server reads its master key from a file elsewhere
(--master-key-file), that is not in it: keep a copy of that, too.

Prints the name of the file.

Examples:
  forms store backup --to forms.tar
  forms store backup --to \"backup/$(date +%F).tar\"
  forms store backup --data ./store --to forms.tar")]
pub struct Backup {
    /// Archive to write; an older one is replaced
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    to: PathBuf,
}

impl Run for Backup {
    const COLUMNS: Columns = Columns::Fixed(&["file", "created_at", "files", "version"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let name = self.to.display().to_string();
        let unwritable = |error| CliError::io(format!("cannot write {name}"), error);
        let mut file = OutputFile::create_private(&self.to)?;
        let client = session.client().await?;
        let mut download = client.download(&["store", "backup"]).await?;
        let progress = session.output.progress();
        let mut unsynced = 0;
        while let Some(piece) = download.piece().await? {
            file.write_all(&piece).map_err(unwritable)?;
            progress.inc(piece.len() as u64);
            unsynced += piece.len();
            if unsynced >= SYNC_AFTER {
                file.sync().map_err(unwritable)?;
                unsynced = 0;
            }
        }
        progress.finish_and_clear();
        let written = file.reopen().map_err(unwritable)?;
        let manifest = read_input(move || Ok(read_archive(written, |_, _| Ok(())))).await?;
        let manifest = manifest.map_err(|error| unreadable("the backup", error))?;
        file.save().map_err(unwritable)?;
        let saved = json!({
            "file": name,
            "created_at": manifest.created_at,
            "files": manifest.files,
            "version": manifest.version,
        });
        session.output.object(&saved, || format!("{name}\n"))?;
        session.output.success(&format!("backed up: {}", describe(&manifest)));
        Ok(())
    }
}
