//! The person's editor, and the file it works on: what was written there is never lost.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::rc::Rc;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::exit::CliError;
use crate::cli::output::Output;
use crate::cli::prompt::Restore;
use crate::cli::session::Session;
use crate::cli::spelling::quoted;
use crate::id::Random;
use crate::secret::SystemRandomness;

/// The text of a form that is being edited, in a file that nobody else may read. Dropped, it leaves the file where it is
/// and says so, if the person has changed it.
pub struct Draft {
    /// The command that edits the form.
    command: String,
    path: PathBuf,
    /// What a text that is kept ends with.
    ending: String,
    /// What the person got first.
    given: String,
    output: Rc<Output>,
}

impl Draft {
    /// A new file with `text`, in the folder for temporary files and with the id `form` in its name.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(session: &Session, form: &str, text: &str) -> Result<Self, CliError> {
        let mut random = [0; 8];
        SystemRandomness::new().fill(&mut random);
        let folder = session.environment.get("TMPDIR").unwrap_or("/tmp");
        let path = Path::new(folder).join(format!("forms-{form}-{:016x}.yaml", u64::from_be_bytes(random)));
        let command = format!("{} edit {form}", session.again());
        let (given, output) = (text.to_owned(), Rc::clone(&session.output));
        let draft = Self { command, path, ending: String::new(), given, output };
        draft.write(text)?;
        Ok(draft)
    }

    /// The file's name.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Puts `text` into the file, which holds the text before until all of it is written.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, text: &str) -> Result<(), CliError> {
        let next = self.path.with_extension("next");
        let write = || {
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
            file.write_all(text.as_bytes())?;
            fs::rename(&next, &self.path)
        };
        write().map_err(|error| CliError::io(format!("cannot write {}", self.name()), error))
    }

    /// Lets the person edit the file, and gives what they made of it.
    ///
    /// # Errors
    /// If the editor cannot be started or ends with a failure, or the file cannot be read.
    pub async fn edit(&self, session: &Session) -> Result<String, CliError> {
        run(session, &self.path).await?;
        let read = fs::read_to_string(&self.path);
        read.map_err(|error| CliError::io(format!("cannot read {}", self.name()), error))
    }

    /// Ends the text with the line `ending`, if it is kept.
    pub fn end_with(&mut self, ending: String) {
        self.ending = ending;
    }

    /// The text has served: the file can go.
    pub fn discard(self) {
        self.remove();
    }

    fn remove(&self) {
        // A file that stays behind is nobody's but the person's.
        let _gone = fs::remove_file(&self.path);
    }

    fn keep(&self, text: &[u8]) {
        let line_end = if text.ends_with(b"\n") { "" } else { "\n" };
        let ending = format!("{line_end}{}", self.ending);
        let file = OpenOptions::new().append(true).open(&self.path);
        let ended = file.and_then(|mut file| file.write_all(ending.as_bytes()));
        let name = self.name();
        let editor = quoted(&format!("cp {}", quoted(&name)));
        // Without its ending it would overwrite what others have changed.
        let offer = ended.map(|()| format!("; to send it: VISUAL={editor} {}", self.command));
        self.output.warn(&format!("your text is kept in {name}{}", offer.unwrap_or_default()));
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        match fs::read(&self.path) {
            Ok(text) if text == self.given.as_bytes() => self.remove(),
            Ok(text) => self.keep(&text),
            // It was discarded.
            Err(_) => {}
        }
    }
}

/// What comes of `work` on a [`Draft`]. Whoever ends the command from outside, or closes its terminal, ends the work: the
/// draft is dropped, and says what it began with.
///
/// # Errors
/// Those of `work`, and [`CliError::Interrupted`].
pub async fn until_ended(work: impl Future<Output = Result<(), CliError>>) -> Result<(), CliError> {
    let listen = |kind| signal(kind).map_err(|error| CliError::io("cannot listen for signals", error));
    let mut hangup = listen(SignalKind::hangup())?;
    let mut terminate = listen(SignalKind::terminate())?;
    tokio::select! {
        biased;
        _ = hangup.recv() => Err(CliError::Interrupted),
        _ = terminate.recv() => Err(CliError::Interrupted),
        ended = work => ended,
    }
}

/// Runs the editor on the file at `path`, until it ends. It has the terminal meanwhile: also where standard output is
/// none.
async fn run(session: &Session, path: &Path) -> Result<(), CliError> {
    let environment = &session.environment;
    let editor = environment.get("VISUAL").or_else(|| environment.get("EDITOR")).unwrap_or("vi").to_owned();
    let terminal = io::stderr().as_fd().try_clone_to_owned();
    let terminal = terminal.map_err(|error| CliError::io("cannot use the terminal", error))?;
    let mut command = Command::new("/bin/sh");
    // The shell takes the arguments apart, as in `code --wait`, and is gone: it would die of an editor's Ctrl-C.
    command.args(["-c", &format!("exec {editor} \"$@\""), &editor]).arg(path).stdout(Stdio::from(terminal));
    let _restore = Restore::at_the_end();
    let ended = session.lend_terminal(tokio::task::spawn_blocking(move || command.status())).await;
    match ended {
        Ok(Ok(status)) => judge(&editor, status),
        Ok(Err(error)) => Err(CliError::io("cannot start the editor", error)),
        Err(_) => Err(CliError::Interrupted),
    }
}

fn judge(editor: &str, status: ExitStatus) -> Result<(), CliError> {
    let interrupt = Signal::INT.as_raw();
    let how = match (status.code(), status.signal()) {
        (Some(0), _) => return Ok(()),
        (_, Some(signal)) if signal == interrupt => return Err(CliError::Interrupted),
        // How a shell tells the same of what it has run.
        (Some(code), _) if code == 128 + interrupt => return Err(CliError::Interrupted),
        (Some(code), _) => format!("with exit code {code}"),
        (None, _) => "by a signal".to_owned(),
    };
    let what = format!("the editor `{editor}` ended {how}; nothing was changed");
    Err(CliError::Failed { what, causes: vec!["VISUAL and EDITOR name the editor".to_owned()] })
}
