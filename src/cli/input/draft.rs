//! A text that a person works on, in a file: it is never lost.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::rc::Rc;

use tempfile::{Builder, NamedTempFile, TempPath};

use crate::cli::connection::session::Session;
use crate::cli::input::document;
use crate::cli::output::Output;
use crate::cli::output::exit::CliError;
use crate::cli::output::shell_quote::quoted;

/// A text in a temporary file that nobody else may read. Dropped, it leaves the file where it is and says so, if the
/// person has changed it.
pub struct Draft {
    /// `None` once the file is kept or gone.
    path: Option<TempPath>,
    /// The command that continues with the file, up to its name.
    command: String,
    /// What the file had first.
    given: String,
    /// The file of the person's own that `given` came from.
    origin: Option<String>,
    output: Rc<Output>,
}

impl Draft {
    /// A new file with `text` in the folder for temporary files, its name beginning with `forms-` and `name`. `command`
    /// and the file's name are the command that continues with a text that was kept.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(session: &Session, name: &str, text: &str, command: &str) -> Result<Self, CliError> {
        let folder = session.environment.get("TMPDIR").unwrap_or("/tmp");
        let path = write_new(Path::new(folder), &format!("forms-{name}-"), text)
            .map_err(|error| CliError::io(format!("cannot write to {folder}"), error))?
            .into_temp_path();
        let output = Rc::clone(&session.output);
        let mut draft =
            Self { path: Some(path), command: String::new(), given: text.to_owned(), origin: None, output };
        draft.continue_with(session, command);
        Ok(draft)
    }

    /// Makes `command` the one that continues with the file.
    pub fn continue_with(&mut self, session: &Session, command: &str) {
        self.command = format!("{} {command}", session.again());
    }

    /// Records the `file` that the text came from, which has it if the person does not change it.
    pub fn set_origin(&mut self, file: &Path) {
        self.origin = Some(file.display().to_string());
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.path.as_deref().unwrap_or(Path::new(""))
    }

    /// The file's name.
    pub fn name(&self) -> String {
        self.path().display().to_string()
    }

    /// The text as it is now.
    ///
    /// # Errors
    /// If the file cannot be read, or is not UTF-8.
    pub fn read(&self) -> Result<String, CliError> {
        let bytes = fs::read(self.path());
        let bytes = bytes.map_err(|error| CliError::io(format!("cannot read {}", self.name()), error))?;
        document::decode(&self.name(), bytes)
    }

    /// Puts `text` into the file, which holds the text before until all of it is written.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, text: &str) -> Result<(), CliError> {
        let folder = self.path().parent().unwrap_or(Path::new("/tmp"));
        let written = write_new(folder, "forms-", text);
        let replaced = written.and_then(|next| next.persist(self.path()).map_err(|error| error.error));
        replaced.map(drop).map_err(|error| CliError::io(format!("cannot write {}", self.name()), error))
    }

    /// The text has served: the file can go.
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
            Ok(text) if text == self.given.as_bytes() => self.origin.take(),
            Err(error) if error.kind() == ErrorKind::NotFound => self.origin.take(),
            _ => path.keep().ok().map(|path| path.display().to_string()),
        };
        if let Some(file) = kept {
            self.output.warn(&format!("your text is kept in {file}"));
            self.output.say(&format!("to continue: {} -f {}", self.command, quoted(&file)));
        }
    }
}
