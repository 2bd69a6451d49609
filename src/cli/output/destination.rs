//! Where a command writes its result: to stdout, or to a file that appears only once it is complete.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile, TempPath};

use crate::cli::output::Format;
use crate::cli::output::exit::CliError;
use crate::cli::output::io_error::reason;

/// Where a command can write its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination<'a> {
    /// Only to stdout.
    Stdout,
    /// To the file of `--to`, if there is one.
    Export(Option<&'a Path>),
}

impl<'a> Destination<'a> {
    /// Returns the file to write in `format`; `None` for stdout.
    ///
    /// # Errors
    /// If the format needs a file, or is not for files.
    pub fn file(self, format: Format) -> Result<Option<&'a Path>, CliError> {
        match (self, format) {
            (Self::Stdout, Format::Xlsx) => {
                let help = "forms responses FORM -o xlsx --to FILE exports answers";
                Err(CliError::usage_with_help("-o xlsx cannot be used with this command", help))
            }
            (Self::Export(None), Format::Xlsx) => {
                Err(CliError::usage_with_help("-o xlsx needs a file", "add --to FILE.xlsx"))
            }
            (Self::Export(Some(path)), _) if path == Path::new("-") => {
                let message = "--to needs the name of a file, not -";
                let help = match format {
                    Format::Xlsx => "name the file, such as --to answers.xlsx",
                    _ => "without --to, the result goes to standard output",
                };
                Err(CliError::usage_with_help(message, help))
            }
            (Self::Export(Some(_)), Format::Table) => {
                let help = "add -o with one of: xlsx, csv, json, jsonl, yaml";
                Err(CliError::usage_with_help("--to needs an output format", help))
            }
            (Self::Export(file), _) => Ok(file),
            (Self::Stdout, _) => Ok(None),
        }
    }
}

/// A file that replaces the one at its path when it is saved. If it is dropped before, nothing has changed.
#[derive(Debug)]
pub struct OutputFile {
    file: BufWriter<File>,
    temporary: TempPath,
    path: PathBuf,
}

impl OutputFile {
    /// Begins the file at `path`, beside it: as `.NAME.…`, with the permissions of the file that it will replace. If
    /// `path` is a link, the file it leads to is replaced.
    ///
    /// # Errors
    /// If `path` exists but is not a file, or if no file can be created in its folder.
    pub fn create(path: &Path) -> Result<Self, CliError> {
        let unusable = |reason: &str| CliError::usage(format!("cannot write {}: {reason}", path.display()));
        let (path, permissions) = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return Err(unusable("is a directory")),
            Ok(metadata) if !metadata.is_file() => return Err(unusable("is not a regular file")),
            Ok(metadata) => (fs::canonicalize(path), Some(metadata.permissions())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Ok(path.to_owned()), None),
            Err(error) => return Err(unusable(&reason(&error))),
        };
        let path = path.map_err(|error| unusable(&reason(&error)))?;
        let create = || -> io::Result<NamedTempFile> {
            let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_string_lossy();
            let file = Builder::new()
                .prefix(&format!(".{name}."))
                // Like a file that the shell creates: the umask applies.
                .permissions(Permissions::from_mode(0o666))
                .tempfile_in(folder(&path))?;
            if let Some(permissions) = permissions {
                file.as_file().set_permissions(permissions)?;
            }
            Ok(file)
        };
        match create() {
            Ok(file) => {
                let (file, temporary) = file.into_parts();
                Ok(Self { file: BufWriter::new(file), temporary, path })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(unusable("there is no such folder")),
            Err(error) => Err(unusable(&reason(&error))),
        }
    }

    /// Begins the file as [`create`](Self::create) does, so that only the user can read it.
    pub fn create_private(path: &Path) -> Result<Self, CliError> {
        let begun = Self::create(path)?;
        let private = begun.file.get_ref().set_permissions(Permissions::from_mode(0o600));
        private.map_err(|error| CliError::io(format!("cannot write {}", path.display()), error))?;
        Ok(begun)
    }

    /// Writes what came so far to the disk.
    pub fn sync(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_data()
    }

    /// Opens what was written so far, to be read.
    pub fn reopen(&mut self) -> io::Result<File> {
        self.file.flush()?;
        File::open(&self.temporary)
    }

    /// Returns the folder that the file is in.
    pub fn folder(&self) -> &Path {
        folder(&self.path)
    }

    /// Writes the file to disk and moves it to its path.
    pub fn save(self) -> io::Result<()> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        self.temporary.persist(&self.path).map_err(|error| error.error)
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
