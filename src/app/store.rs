//! The store as a whole: its size, its compaction, its verification, and backups.

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};

use super::{ApiError, App, Result, Session};
use crate::api::{Code, DamageView, StoreView, VerificationView};
use crate::backup::write_archive;
use crate::clock::Timestamp;
use crate::domain::workspace::Scope;
use crate::store::{Damage, JournalCheck};

/// Bytes that are sent at once.
const PIECE: usize = 256 << 10;

/// Pause after each piece: at most 32 MiB a second are read, so that the disk has time for submissions.
const PAUSE: Duration = Duration::from_millis(8);

/// Pieces that wait for the client.
const QUEUED: usize = 4;

/// The verification in progress, and the result of the last one.
#[derive(Debug, Default)]
pub(super) struct Verification {
    /// The task of the last one that was begun.
    task: Option<JoinHandle<()>>,
    last: Option<(Timestamp, VerificationView)>,
}

impl Verification {
    /// Whether one is in progress; one that panicked is not.
    fn is_running(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_finished())
    }
}

impl App {
    fn verification(&self) -> MutexGuard<'_, Verification> {
        self.verification.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the store was last verified, since this server has started.
    pub(super) fn verified_at(&self) -> Option<Timestamp> {
        self.verification().last.as_ref().map(|(at, _)| *at)
    }

    /// Verifies the store, and keeps the result.
    async fn run_verification(&self) {
        let found = self.store.verify().await;
        match found {
            Ok(found) => self.verification().last = Some((self.now(), found.into())),
            Err(error) => tracing::warn!(%error, "the store could not be verified"),
        }
    }
}

impl From<JournalCheck> for VerificationView {
    fn from(JournalCheck { files, writes, rows, damage }: JournalCheck) -> Self {
        let view = |Damage { file, offset, bytes, what }| DamageView { file, offset, bytes, what };
        Self { files, writes, rows, damage: damage.into_iter().map(view).collect() }
    }
}

impl Session {
    pub async fn store_view(&self) -> Result<StoreView> {
        self.require_unlimited_scope(Scope::Operator)?;
        let (usage, now) = (self.store.usage().await?, self.now().millis());
        let submissions = self.store.count_all_submissions().await?;
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let (is_verifying, last) = {
            let verification = self.verification();
            (verification.is_running(), verification.last.clone())
        };
        Ok(StoreView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            opened_at: self.opened_at,
            submissions,
            compacted_at: usage.compacted_ago.map(|ago| Timestamp::from_millis(now - millis(ago))),
            erasure_due_at: usage.erasure_due_in.map(|time| Timestamp::from_millis(now + millis(time))),
            verifying: is_verifying,
            verified_at: self.verified_at(),
            verification: last.map(|(_, found)| found),
            journal_bytes: usage.journal_bytes,
            index_bytes: usage.index_bytes,
            free_bytes: usage.free_bytes,
            compacting: usage.is_compacting,
        })
    }

    /// Requests a compaction of the store; one that is in progress goes on.
    pub async fn compact(&self) -> Result<StoreView> {
        self.require_unlimited_scope(Scope::Operator)?;
        self.store.compact();
        self.store_view().await
    }

    /// Begins a verification of the store; one that is in progress goes on.
    pub async fn verify(&self) -> Result<StoreView> {
        self.require_unlimited_scope(Scope::Operator)?;
        let app = Arc::clone(&self.app);
        {
            let mut verification = self.verification();
            if !verification.is_running() {
                verification.task = Some(tokio::spawn(async move { app.run_verification().await }));
            }
        }
        self.store_view().await
    }

    /// Begins a backup of the store as it is now, and returns the pieces of its archive; the last is an error if it cannot be
    /// completed. A server makes one at a time.
    pub async fn backup(&self) -> Result<mpsc::Receiver<io::Result<Bytes>>> {
        self.require_unlimited_scope(Scope::Operator)?;
        let permit = self.backups.clone().try_acquire_owned();
        let refused = |_taken| ApiError::with_detail(Code::BackupInProgress, "wait until it is complete");
        let permit = permit.map_err(refused)?;
        let (files, now) = (self.store.snapshot().await?, self.now());
        let (sender, pieces) = mpsc::channel(QUEUED);
        spawn_blocking(move || {
            let _one_at_a_time = permit;
            if let Err(error) =
                write_archive(files, now, BufWriter::with_capacity(PIECE, Pieces(sender.clone())))
            {
                // If the client has gone, nobody needs to know.
                let _gone = sender.blocking_send(Err(error));
            }
        });
        Ok(pieces)
    }
}

/// Sends each write as a piece.
struct Pieces(mpsc::Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        std::thread::sleep(PAUSE);
        sent.map(|()| bytes.len()).map_err(|_gone| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
