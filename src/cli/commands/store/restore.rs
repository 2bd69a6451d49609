//! `forms store restore`.

use std::fs::{self, DirBuilder, DirEntry, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use serde_json::json;

use crate::backup::{ArchiveError, Manifest, read_archive};
use crate::cli::commands::store::{complete, data_directory, describe, unreadable};
use crate::cli::commands::{CliError, Columns, Run, Session, read_input};

/// Folder in the data directory where it is restored.
pub(super) const UNFINISHED: &str = ".restoring";

/// Restore a backup into a new data directory
#[derive(Debug, Args)]
#[command(after_long_help = "\
--data names the data directory, which must be empty or missing. All checksums
are checked before anything is written. If it is interrupted, run it again. The
index is rebuilt from the journal.

A new operator key is written into the directory, and the operator key of the
backup ends. All other keys stay valid. Prints the data directory.

Examples:
  forms store restore forms.tar --data ./store && forms serve --data ./store")]
pub struct Restore {
    /// Archive that `forms store backup` has written
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

impl Run for Restore {
    const COLUMNS: Columns = Columns::Fixed(&["data", "created_at", "version"]);

    async fn run(self, session: &Session) -> Result<(), CliError> {
        let data = data_directory(session, "add --data DIR, a new folder")?;
        expect_empty(&data)?;
        let unfinished = data.join(UNFINISHED);
        let (file, folder) = (self.file.clone(), unfinished.clone());
        let manifest = read_input(move || extract(&file, &folder)).await?;
        complete(session, &unfinished, &data).await?;
        let restored = json!({"data": data, "created_at": manifest.created_at, "version": manifest.version});
        session.output.object(&restored, || format!("{}\n", data.display()))?;
        session.output.success(&format!("restored: {}", describe(&manifest)));
        session.output.status(&format!("a new operator key is in {}", data.join("operator-key").display()));
        Ok(())
    }
}

/// Fails if there is anything in the folder `data`, except what an interrupted command has left.
pub(super) fn expect_empty(data: &Path) -> Result<(), CliError> {
    let is_other = |entry: io::Result<DirEntry>| entry.is_ok_and(|entry| entry.file_name() != UNFINISHED);
    match fs::read_dir(data).map(|mut entries| entries.any(is_other)) {
        Ok(false) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Ok(true) => {
            let message = format!("{} is not empty", data.display());
            Err(CliError::usage_with_help(message, "name a new folder, or move this one away"))
        }
        Err(error) => Err(CliError::io(format!("cannot use {}", data.display()), error)),
    }
}

/// Removes what an interrupted command has left in the folder `into`.
pub(super) fn clear(into: &Path) -> Result<(), CliError> {
    match fs::remove_dir_all(into) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(CliError::io(format!("cannot remove {}", into.display()), error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Checks the archive `file`, then writes its files into the folder `into`, in place of what an interrupted restore has left.
fn extract(file: &Path, into: &Path) -> Result<Manifest, CliError> {
    let name = file.display().to_string();
    let failed = |error| unreadable(&name, error);
    let mut archive = File::open(file).map_err(|error| failed(error.into()))?;
    read_archive(&archive, |_, _| Ok(())).map_err(failed)?;
    archive.seek(SeekFrom::Start(0)).map_err(|error| failed(error.into()))?;
    clear(into)?;
    read_archive(&archive, |path, content| write(&into.join(path), content)).map_err(|error| match error {
        ArchiveError::Io(error) => CliError::io(format!("cannot write {}", into.display()), error),
        error => unreadable(&name, error),
    })
}

/// Writes a file that only the user can read, durably, with the folders that it is in.
pub(super) fn write(path: &Path, content: &mut dyn Read) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(parent(path))?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    io::copy(content, &mut file)?;
    file.sync_all()?;
    File::open(parent(path))?.sync_all()
}

/// Moves everything from the folder `from` into `data`, which contains it and may be a mounted volume. What is moved so far is no
/// store that opens with less: the journal comes last but for `state`, which can be missing.
pub(super) fn move_files(from: &Path, data: &Path) -> io::Result<()> {
    let mut names: Vec<_> =
        fs::read_dir(from)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
    names.sort_by_key(|name| (name == "state", name == "journal"));
    names.iter().try_for_each(|name| fs::rename(from.join(name), data.join(name)))?;
    fs::remove_dir(from)?;
    File::open(data)?.sync_all()?;
    File::open(parent(data))?.sync_all()
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
