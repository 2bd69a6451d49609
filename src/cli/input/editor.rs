//! Runs the user's editor on a [`Draft`].

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::Signal;

use crate::cli::connection::session::Session;
use crate::cli::input::draft::Draft;
use crate::cli::input::prompt::TerminalRestore;
use crate::cli::output::exit::CliError;

/// Opens `draft` in the editor and returns the edited text. The editor uses the terminal even if stdout is redirected.
pub async fn edit(session: &Session, draft: &Draft) -> Result<String, CliError> {
    let environment = &session.environment;
    let editor = environment.get("VISUAL").or_else(|| environment.get("EDITOR")).unwrap_or("vi").to_owned();
    let terminal = io::stderr().as_fd().try_clone_to_owned();
    let terminal = terminal.map_err(|error| CliError::io("cannot use the terminal", error))?;
    let mut command = Command::new("/bin/sh");
    // The shell splits the arguments, as in `code --wait`, and is replaced: it would die of an editor's Ctrl-C.
    command
        .args(["-c", &format!("exec {editor} \"$@\""), &editor])
        .arg(draft.path())
        .stdout(Stdio::from(terminal));
    let _restore = TerminalRestore::on_drop();
    let status = session.lend_terminal(tokio::task::spawn_blocking(move || command.status())).await;
    match status {
        Ok(Ok(status)) => judge(&editor, status)?,
        Ok(Err(error)) => return Err(CliError::io("cannot start the editor", error)),
        Err(_) => return Err(CliError::Interrupted),
    }
    draft.read()
}

fn judge(editor: &str, status: ExitStatus) -> Result<(), CliError> {
    let interrupt = Signal::INT.as_raw();
    let how = match (status.code(), status.signal()) {
        (Some(0), _) => return Ok(()),
        (_, Some(signal)) if signal == interrupt => return Err(CliError::Interrupted),
        // A shell's exit code for an interrupted child.
        (Some(code), _) if code == 128 + interrupt => return Err(CliError::Interrupted),
        (Some(code), _) => format!("with exit code {code}"),
        (None, _) => "by a signal".to_owned(),
    };
    let message = format!("the editor `{editor}` ended {how}; nothing was changed");
    Err(CliError::Failed { message, causes: vec!["VISUAL and EDITOR name the editor".to_owned()] })
}
