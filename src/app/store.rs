//! The store as a whole: its size, its compaction, and backups.

use std::io::{self, Write};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use super::{ApiError, Result, Session};
use crate::api::{Code, StoreView};
use crate::backup::write_archive;
use crate::domain::workspace::Scope;

/// Bytes that are sent at once.
const PIECE: usize = 256 << 10;

/// Pause after each piece: at most 32 MiB a second are read, so that the disk has time for submissions.
const PAUSE: Duration = Duration::from_millis(8);

/// Pieces that wait for the client.
const QUEUED: usize = 4;

impl Session {
    pub async fn store_view(&self) -> Result<StoreView> {
        self.require_unlimited_scope(Scope::Operator)?;
        let usage = self.store.usage().await?;
        Ok(StoreView {
            version: env!("CARGO_PKG_VERSION").to_owned(),
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
            if let Err(error) = write_archive(files, now, PieceWriter::new(sender.clone())) {
                // If the client has gone, nobody needs to know.
                let _gone = sender.blocking_send(Err(error));
            }
        });
        Ok(pieces)
    }
}

/// Sends what is written in pieces.
struct PieceWriter {
    piece: Vec<u8>,
    sender: mpsc::Sender<io::Result<Bytes>>,
}

impl PieceWriter {
    fn new(sender: mpsc::Sender<io::Result<Bytes>>) -> Self {
        Self { piece: Vec::with_capacity(PIECE), sender }
    }
}

impl Write for PieceWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..count]);
        if self.piece.len() == PIECE {
            self.flush()?;
            std::thread::sleep(PAUSE);
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.sender.blocking_send(Ok(piece.into())).map_err(|_gone| io::ErrorKind::BrokenPipe.into())
    }
}
