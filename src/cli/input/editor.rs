//! The person's editor, at work on a [`Draft`].

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::Signal;

use crate::cli::connection::session::Session;
use crate::cli::input::draft::Draft;
use crate::cli::input::prompt::Restore;
use crate::cli::output::exit::CliError;

/// Lets the person edit `draft`, and gives what they made of it. The editor has the terminal meanwhile: also where
/// standard output is none.
///
/// # Errors
/// If the editor cannot be started or ends with a failure, or the file cannot be read.
pub async fn edit(session: &Session, draft: &Draft) -> Result<String, CliError> {
    let environment = &session.environment;
    let editor = environment.get("VISUAL").or_else(|| environment.get("EDITOR")).unwrap_or("vi").to_owned();
    let terminal = io::stderr().as_fd().try_clone_to_owned();
    let terminal = terminal.map_err(|error| CliError::io("cannot use the terminal", error))?;
    let mut command = Command::new("/bin/sh");
    // The shell takes the arguments apart, as in `code --wait`, and is gone: it would die of an editor's Ctrl-C.
    command
        .args(["-c", &format!("exec {editor} \"$@\""), &editor])
        .arg(draft.path())
        .stdout(Stdio::from(terminal));
    let _restore = Restore::at_the_end();
    let ended = session.lend_terminal(tokio::task::spawn_blocking(move || command.status())).await;
    match ended {
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
        // How a shell tells the same of what it has run.
        (Some(code), _) if code == 128 + interrupt => return Err(CliError::Interrupted),
        (Some(code), _) => format!("with exit code {code}"),
        (None, _) => "by a signal".to_owned(),
    };
    let what = format!("the editor `{editor}` ended {how}; nothing was changed");
    Err(CliError::Failed { what, causes: vec!["VISUAL and EDITOR name the editor".to_owned()] })
}
