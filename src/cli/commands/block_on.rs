//! Runs a command until it ends or a signal arrives.

use std::future::pending;
use std::io;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::commands::Run;
use crate::cli::connection::session::Session;
use crate::cli::output::exit::CliError;
use crate::process::ignores_hangup;

/// Runs `command` until it ends or a signal arrives. On a signal it is dropped; guards then restore the terminal and keep
/// drafts. A server has threads and handles signals itself.
pub(in crate::cli) fn block_on(session: &Session, command: impl Run) -> Result<(), CliError> {
    let is_server = command.is_server();
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
            ended = wait_for_signal(session), if !is_server => Err(match ended {
                Ok(()) => CliError::Interrupted,
                Err(error) => CliError::io("cannot listen for signals", error),
            }),
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
    tokio::task::spawn_blocking(read).await.unwrap_or(Err(CliError::Interrupted))
}

/// Waits for a signal that ends the command: Ctrl-C, SIGTERM or SIGHUP. Under `nohup`, SIGHUP has no effect.
async fn wait_for_signal(session: &Session) -> io::Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
    let interrupted = async { while interrupt.recv().await.is_some() && session.has_lent_terminal() {} };
    tokio::select! {
        () = interrupted => {}
        _ = terminate.recv() => {}
        () = receive(&mut hangup) => {}
    }
    Ok(())
}

/// Waits for a signal; forever if there is none to listen for.
pub(super) async fn receive(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => pending().await,
    }
}
