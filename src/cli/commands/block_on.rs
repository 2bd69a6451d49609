//! Runs a command until it ends or a signal arrives.

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::commands::{CliError, Command, Run, Session};
use crate::process::ignores_hangup;

/// Runs `command` until it ends or a signal arrives. On a signal it is dropped; guards then restore the terminal and keep
/// drafts. A server has threads and handles signals itself.
pub(in crate::cli) fn block_on(session: &Session, command: Command) -> Result<(), CliError> {
    let is_server = matches!(command, Command::Serve(_) | Command::Listen(_) | Command::Dev(_));
    let mut builder = if is_server { Builder::new_multi_thread() } else { Builder::new_current_thread() };
    let runtime = builder.enable_all().build().map_err(|error| CliError::io("cannot start", error))?;
    let command = async {
        match command.run(session).await {
            Err(error) => Err(session.suggest(error).await),
            Ok(()) => Ok(()),
        }
    };
    let ended = runtime.block_on(async {
        let ended = tokio::select! {
            // Signals first: handlers are installed before anything is sent, and while another program has the terminal,
            // its Ctrl-C must not end the command.
            biased;
            ended = wait_for_signal(session), if !is_server => ended,
            ended = command => ended,
        };
        let closed = session.close().await;
        ended.and(closed)
    });
    // Neither a prompt that nobody will answer nor tasks of a stopped server keep the process alive.
    runtime.shutdown_background();
    ended
}

/// Runs `read` on another thread, so that Ctrl-C ends the command while it waits for input.
pub(super) async fn read_input<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    match tokio::task::spawn_blocking(read).await {
        Ok(read) => read,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_canceled) => Err(CliError::Interrupted),
    }
}

/// Signals that end a command: Ctrl-C, SIGTERM and SIGHUP. Under `nohup`, SIGHUP has no effect.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Not listened for if it has no effect, so that programs which the command starts ignore it too.
    hangup: Option<Signal>,
}

impl Signals {
    /// Begins to listen; for SIGHUP, if it ends the command.
    pub(super) fn new(ends_at_hangup: bool) -> Result<Self, CliError> {
        let listen = |kind| signal(kind).map_err(|error| CliError::io("cannot listen for signals", error));
        let (interrupt, terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        let hangup = (ends_at_hangup && !ignores_hangup()).then(|| listen(SignalKind::hangup()));
        Ok(Self { interrupt, terminate, hangup: hangup.transpose()? })
    }

    /// Waits for the next one; returns whether it is Ctrl-C.
    pub(super) async fn next(&mut self) -> bool {
        tokio::select! {
            _ = self.interrupt.recv() => true,
            _ = self.terminate.recv() => false,
            Some(()) = async { self.hangup.as_mut()?.recv().await } => false,
        }
    }
}

/// Waits for a signal that ends the command: not for a Ctrl-C that another program gets too.
async fn wait_for_signal(session: &Session) -> Result<(), CliError> {
    let mut signals = Signals::new(true)?;
    while signals.next().await && session.has_lent_terminal() {}
    Err(CliError::Interrupted)
}
