//! Runs an asynchronous command until it ends or a signal ends it.

use std::future::pending;
use std::io;

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::connection::session::Session;
use crate::cli::output::exit::CliError;

/// Runs a command that talks to a server, until it ends or a signal ends it: then it is dropped, and what it holds is
/// restored or kept.
pub(super) fn block_on(
    session: &Session,
    talk: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::io("cannot start", error))?;
    let ended = runtime.block_on(async {
        let ended = tokio::select! {
            // Signals first: they are listened for before anything is sent, and while the terminal is lent it is known
            // whose a Ctrl-C was.
            biased;
            ended = signalled(session) => Err(match ended {
                Ok(()) => CliError::Interrupted,
                Err(error) => CliError::io("cannot listen for signals", error),
            }),
            ended = suggesting(session, talk) => ended,
        };
        let closed = session.close().await;
        ended.and(closed)
    });
    // A question that nobody will answer must not keep the process.
    runtime.shutdown_background();
    ended
}

/// What `talk` comes to, its failure with what may have been meant.
async fn suggesting(
    session: &Session,
    talk: impl Future<Output = Result<(), CliError>>,
) -> Result<(), CliError> {
    match talk.await {
        Err(error) => Err(session.suggest(error).await),
        done => done,
    }
}

/// Waits for a signal that ends the command: a Ctrl-C that is meant for it, SIGTERM or SIGHUP. The latter two are left
/// alone where nobody can be asked: there is nothing to restore or to keep, and `nohup` must work.
async fn signalled(session: &Session) -> io::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let interrupted = async {
        while interrupt.recv().await.is_some() && session.has_lent_terminal() {}
        Ok(())
    };
    let ended = async {
        if !session.may_ask() {
            return pending().await;
        }
        let (mut terminate, mut hangup) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        tokio::select! {
            _ = terminate.recv() => Ok(()),
            _ = hangup.recv() => Ok(()),
        }
    };
    tokio::select! {
        ended = interrupted => ended,
        ended = ended => ended,
    }
}
