//! One file, one thread, one sync for all that waits.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use axum::body::Bytes;
use tokio::sync::oneshot;

/// Size of the file.
const ZEROS: u64 = 256 << 20;

/// Bodies that may wait; more than there are connections, so that nobody blocks.
const WAITING: usize = 4096;

/// Bytes written at once at most, as in the store.
const GROUP: usize = 1 << 20;

/// A body, and whom to tell where it lies.
type Entry = (Bytes, oneshot::Sender<u64>);

/// The file and its thread, which ends with the last handle or with the first error.
pub(super) struct Log {
    entries: SyncSender<Entry>,
}

impl Log {
    /// Makes the file, durable zeros, and starts the thread.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().create_new(true).write(true).open(path)?;
        let zeros = vec![0; GROUP];
        for position in (0..ZEROS).step_by(GROUP) {
            file.write_all_at(&zeros, position)?;
        }
        file.sync_all()?;
        let (entries, waiting) = sync_channel(WAITING);
        thread::Builder::new().spawn(move || write_groups(&file, &waiting))?;
        Ok(Self { entries })
    }

    /// Where the body lies once it is durable; nothing if writing failed.
    pub(super) async fn append(&self, body: Bytes) -> Option<u64> {
        let (told, position) = oneshot::channel();
        self.entries.try_send((body, told)).ok()?;
        position.await.ok()
    }
}

fn write_groups(file: &File, waiting: &Receiver<Entry>) -> io::Result<()> {
    let (mut group, mut tell, mut position) = (Vec::with_capacity(2 * GROUP), Vec::new(), 0);
    while let Ok(first) = waiting.recv() {
        let mut next = Some(first);
        while let Some((body, told)) = next {
            group.extend_from_slice(&body);
            tell.push(told);
            next = if group.len() < GROUP { waiting.try_recv().ok() } else { None };
        }
        if position + group.len() as u64 > ZEROS {
            position = 0;
        }
        file.write_all_at(&group, position)?;
        file.sync_data()?;
        for told in tell.drain(..) {
            // Whoever asked may have gone; the body is durable all the same.
            let _gone = told.send(position);
        }
        position += group.len() as u64;
        group.clear();
    }
    Ok(())
}
