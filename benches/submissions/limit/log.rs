//! A log file with one writing thread, which syncs all waiting bodies together.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use axum::body::Bytes;
use tokio::sync::oneshot;

/// Size of the file, which consists of zeros at first.
const FILE_BYTES: u64 = 256 << 20;

/// Maximum of waiting bodies; more than there are connections, so that sending never blocks.
const MAX_WAITING: usize = 4096;

/// Bytes after which a write group is complete, as in the store.
const GROUP_BYTES: usize = 1 << 20;

/// A body, and the channel that receives its position.
type Entry = (Bytes, oneshot::Sender<u64>);

/// The file and its thread, which ends with the last handle or with the first error.
pub(super) struct Log {
    entries: SyncSender<Entry>,
}

impl Log {
    /// Creates the file with durable zeros and starts the thread.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let file = File::options().create_new(true).write(true).open(path)?;
        let zeros = vec![0; GROUP_BYTES];
        for position in (0..FILE_BYTES).step_by(GROUP_BYTES) {
            file.write_all_at(&zeros, position)?;
        }
        file.sync_all()?;
        let (entries, waiting) = sync_channel(MAX_WAITING);
        thread::Builder::new().spawn(move || write_groups(&file, &waiting))?;
        Ok(Self { entries })
    }

    /// Returns the position of the body once it is durable; `None` if writing failed.
    pub(super) async fn append(&self, body: Bytes) -> Option<u64> {
        let (reply, position) = oneshot::channel();
        self.entries.try_send((body, reply)).ok()?;
        position.await.ok()
    }
}

fn write_groups(file: &File, waiting: &Receiver<Entry>) -> io::Result<()> {
    let (mut group, mut replies, mut position) = (Vec::with_capacity(2 * GROUP_BYTES), Vec::new(), 0);
    while let Ok(first) = waiting.recv() {
        let mut next = Some(first);
        while let Some((body, reply)) = next {
            group.extend_from_slice(&body);
            replies.push(reply);
            next = if group.len() < GROUP_BYTES { waiting.try_recv().ok() } else { None };
        }
        if position + group.len() as u64 > FILE_BYTES {
            position = 0;
        }
        file.write_all_at(&group, position)?;
        file.sync_data()?;
        for reply in replies.drain(..) {
            // The caller may have been dropped; the body is durable anyway.
            let _dropped = reply.send(position);
        }
        position += group.len() as u64;
        group.clear();
    }
    Ok(())
}
