//! Drafts: texts in temporary files, which are never lost.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::rc::Rc;

use tempfile::{Builder, NamedTempFile, TempPath};

use crate::cli::connection::session::Session;
use crate::cli::input::document;
use crate::cli::output::Output;
use crate::cli::output::exit::CliError;
use crate::cli::output::shell_quote::shell_quote;

/// A text in a temporary file that only the user can read. If it was changed, dropping it keeps the file and prints its
/// name.
pub struct Draft {
    /// `None` once the file is kept or removed.
    path: Option<TempPath>,
    /// The command that resumes with the file, up to the file's name.
    command: String,
    initial: String,
    /// The user's own file that `initial` came from.
    origin: Option<String>,
    output: Rc<Output>,
}

impl Draft {
    /// Creates a file with `text` in the temporary folder, named `forms-NAME-…`. `command` followed by the file resumes
    /// with a kept text.
    pub fn create(session: &Session, name: &str, text: &str, command: &str) -> Result<Self, CliError> {
        let folder = session.environment.get("TMPDIR").unwrap_or("/tmp");
        let path = write_new(Path::new(folder), &format!("forms-{name}-"), text)
            .map_err(|error| CliError::io(format!("cannot write to {folder}"), error))?
            .into_temp_path();
        let output = Rc::clone(&session.output);
        let mut draft =
            Self { path: Some(path), command: String::new(), initial: text.to_owned(), origin: None, output };
        draft.set_resume_command(session, command);
        Ok(draft)
    }

    /// Sets the command that resumes with the file.
    pub fn set_resume_command(&mut self, session: &Session, command: &str) {
        self.command = format!("{} {command}", session.command_prefix());
    }

    /// Sets the user's `file` that the text came from, to be named instead if nothing was changed.
    pub fn set_origin(&mut self, file: &Path) {
        self.origin = Some(file.display().to_string());
    }

    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    pub fn name(&self) -> String {
        self.path().display().to_string()
    }

    pub fn read(&self) -> Result<String, CliError> {
        let bytes = fs::read(self.path());
        let bytes = bytes.map_err(|error| CliError::io(format!("cannot read {}", self.name()), error))?;
        document::decode(&self.name(), bytes)
    }

    /// Replaces the text atomically.
    pub fn write(&self, text: &str) -> Result<(), CliError> {
        let folder = self.path().parent().unwrap_or(Path::new("/tmp"));
        let written = write_new(folder, "forms-", text);
        let replaced = written.and_then(|next| next.persist(self.path()).map_err(|error| error.error));
        replaced.map(drop).map_err(|error| CliError::io(format!("cannot write {}", self.name()), error))
    }

    /// Removes the file: the text is no longer needed.
    pub fn discard(mut self) {
        self.path = None;
    }
}

fn write_new(folder: &Path, prefix: &str, text: &str) -> std::io::Result<NamedTempFile> {
    let mut file = Builder::new().prefix(prefix).suffix(".yaml").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

impl Drop for Draft {
    fn drop(&mut self) {
        let Some(path) = self.path.take() else { return };
        let kept = match fs::read(&path) {
            Ok(text) if text == self.initial.as_bytes() => self.origin.take(),
            Err(error) if error.kind() == ErrorKind::NotFound => self.origin.take(),
            _ => path.keep().ok().map(|path| path.display().to_string()),
        };
        if let Some(file) = kept {
            self.output.warn(&format!("your text is kept in {file}"));
            self.output.status(&format!("to continue: {} -f {}", self.command, shell_quote(&file)));
        }
    }
}
