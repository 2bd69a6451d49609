//! The write-ahead journal: frames are appended to a segment, and a new segment is started when one is full.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::digest::IndexDigest;
use super::discover::JournalEnd;
use super::disk::{Disk, DiskFile, is_full};
use super::frame::FrameBuilder;
use super::group::CellChange;
use super::index::Change;
use super::segment::{FIRST_FRAME, FORMAT, HEADER_OFFSETS, JOURNAL, NEXT_SEGMENT, PAGE, SegmentHeader};
use super::state::{Position, StateFile};

/// Sizes of segments, and the disk space to keep free.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentSizes {
    pub(crate) first: u64,
    pub(crate) largest: u64,
    pub(crate) min_free: u64,
}

/// Failure of an append.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// There is no space for a new segment. Nothing was started; a later append may succeed.
    #[error("no space left on the disk for a segment of the journal")]
    NoSpace,
    /// A write or a sync failed: the content of the disk is unknown, and nothing may be written any more.
    #[error("cannot {doing}: {source}")]
    Failed { doing: &'static str, source: io::Error },
}

/// The journal, open for appending.
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    sizes: SegmentSizes,
    header: SegmentHeader,
    file: Box<dyn DiskFile>,
    at: u64,
    /// The next segment may exist already: no frame is appended to this one.
    must_rotate: bool,
    last: LastFrame,
    builder: FrameBuilder,
    preallocated: Option<JoinHandle<io::Result<PreallocatedSegment>>>,
}

/// The last frame of a journal; sequence 0 if there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LastFrame {
    pub(crate) position: Position,
    pub(crate) digest: IndexDigest,
    pub(crate) is_seal: bool,
    /// Size on disk in bytes.
    pub(crate) length: usize,
}

struct PreallocatedSegment {
    file: Box<dyn DiskFile>,
    size: u64,
}

impl Journal {
    /// Creates the first segment of a new store.
    pub(crate) fn create(
        disk: Arc<dyn Disk>,
        sizes: SegmentSizes,
        state: &mut StateFile,
    ) -> Result<Journal, JournalError> {
        disk.create_folder(JOURNAL).map_err(rotation_error)?;
        disk.sync_folder("").map_err(rotation_error)?;
        let preallocated = preallocate_segment(&*disk, sizes.first).map_err(rotation_error)?;
        let header = SegmentHeader {
            format: FORMAT,
            instance: state.instance,
            ordinal: 1,
            first: 1,
            size: preallocated.size,
        };
        install(&*disk, &*preallocated.file, &header, state).map_err(rotation_error)?;
        Ok(Journal::resume(disk, sizes, header, preallocated.file, FIRST_FRAME, LastFrame::default()))
    }

    /// Continues a journal at its end.
    pub(crate) fn resume(
        disk: Arc<dyn Disk>,
        sizes: SegmentSizes,
        header: SegmentHeader,
        file: Box<dyn DiskFile>,
        at: u64,
        last: LastFrame,
    ) -> Journal {
        Journal {
            disk,
            sizes,
            header,
            file,
            at,
            must_rotate: false,
            last,
            builder: FrameBuilder::default(),
            preallocated: None,
        }
    }

    /// Returns the end of the journal.
    pub(crate) fn end(&self) -> JournalEnd {
        JournalEnd { header: self.header, at: self.at, last: self.last, torn: None }
    }

    pub(crate) fn last(&self) -> LastFrame {
        self.last
    }

    /// Returns the sequence of the next frame.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.last.position.sequence + 1
    }

    /// Writes a group as one frame and returns once it is durable.
    pub(crate) fn append(
        &mut self,
        state: &mut StateFile,
        changes: &[CellChange],
        digest: IndexDigest,
    ) -> Result<(), JournalError> {
        self.builder.begin();
        for change in changes {
            self.builder.push(Change { key: &change.key, cell: change.cell.as_deref() });
        }
        self.write(state, digest, self.at, false)
    }

    /// Writes an empty frame, on a page of its own.
    pub(crate) fn seal(&mut self, state: &mut StateFile, digest: IndexDigest) -> Result<(), JournalError> {
        self.builder.begin();
        self.write(state, digest, self.at.next_multiple_of(PAGE as u64), true)
    }

    fn write(
        &mut self,
        state: &mut StateFile,
        digest: IndexDigest,
        mut at: u64,
        is_seal: bool,
    ) -> Result<(), JournalError> {
        let length = self.builder.length();
        if self.must_rotate || at + length > self.header.size {
            self.rotate(state, length)?;
            at = FIRST_FRAME;
        }
        let sequence = self.next_sequence();
        let bytes = self.builder.finish(self.header.seed(), sequence, digest);
        let failed = |doing| move |source| JournalError::Failed { doing, source };
        self.file.write_at(bytes, at).map_err(failed("write to the journal"))?;
        self.file.sync().map_err(failed("sync the journal"))?;
        let position = Position { ordinal: self.header.ordinal, offset: at, sequence };
        self.last = LastFrame { position, digest, is_seal, length: bytes.len() };
        self.at = at + length;
        Ok(())
    }

    /// Starts a new segment; a segment without frames is replaced by a larger one.
    fn rotate(&mut self, state: &mut StateFile, frame: u64) -> Result<(), JournalError> {
        let next = self.next_sequence();
        let ordinal = if self.header.first == next { self.header.ordinal } else { self.header.ordinal + 1 };
        let needed = (FIRST_FRAME + frame).next_multiple_of(PAGE as u64);
        let preallocated = match self.take_preallocated()? {
            Some(preallocated) if preallocated.size >= needed => preallocated,
            Some(_) | None => self.preallocate_now(needed)?,
        };
        let header =
            SegmentHeader { format: FORMAT, ordinal, first: next, size: preallocated.size, ..self.header };
        self.must_rotate = true;
        install(&*self.disk, &*preallocated.file, &header, state).map_err(rotation_error)?;
        (self.header, self.file, self.at, self.must_rotate) = (header, preallocated.file, FIRST_FRAME, false);
        Ok(())
    }

    fn preallocate_now(&self, needed: u64) -> Result<PreallocatedSegment, JournalError> {
        let size = self.next_size().max(needed);
        let free = self.disk.free_space().map_err(rotation_error)?;
        let size = if free < self.sizes.min_free + size { self.sizes.first.max(needed) } else { size };
        preallocate_segment(&*self.disk, size).map_err(rotation_error)
    }

    fn next_size(&self) -> u64 {
        (self.header.size * 4).min(self.sizes.largest)
    }

    /// Starts to preallocate the next segment on a background thread, if there is space and none is being made.
    pub(crate) fn preallocate(&mut self) {
        let size = self.next_size();
        let has_space = self.disk.free_space().is_ok_and(|free| free >= self.sizes.min_free + size);
        if self.preallocated.is_none() && has_space {
            let disk = Arc::clone(&self.disk);
            let made = thread::Builder::new().name("next segment".to_owned());
            self.preallocated = made.spawn(move || preallocate_segment(&*disk, size)).ok();
        }
    }

    /// Whether the segment is half full, so that the next one should be preallocated.
    pub(crate) fn is_half_full(&self) -> bool {
        self.at > self.header.size / 2
    }

    fn take_preallocated(&mut self) -> Result<Option<PreallocatedSegment>, JournalError> {
        let Some(thread) = self.preallocated.take() else { return Ok(None) };
        let made = thread.join().unwrap_or_else(|_panic| Err(io::Error::other("the preallocation panicked")));
        match made {
            Ok(preallocated) => Ok(Some(preallocated)),
            Err(error) if is_full(&error) || super::writeback::is_out_of_files(&error) => Ok(None),
            Err(source) => Err(JournalError::Failed { doing: "prepare a segment of the journal", source }),
        }
    }

    /// Stops the background thread, and removes the preallocated segment.
    pub(crate) fn stop(&mut self) -> Result<(), JournalError> {
        if self.take_preallocated()?.is_some() {
            self.disk.remove(NEXT_SEGMENT).map_err(rotation_error)?;
        }
        Ok(())
    }
}

/// Creates a segment of zeros: overwriting is faster than appending, and a full disk is detected now.
fn preallocate_segment(disk: &dyn Disk, size: u64) -> io::Result<PreallocatedSegment> {
    const CHUNK: u64 = 1 << 20;
    let file = disk.create(NEXT_SEGMENT)?;
    let zeros = vec![0; usize::try_from(size.min(CHUNK)).map_err(io::Error::other)?];
    let mut at = 0;
    while at < size {
        let chunk = zeros.len().min(usize::try_from(size - at).unwrap_or(usize::MAX));
        file.write_at(&zeros[..chunk], at)?;
        at += chunk as u64;
        // Syncs in small steps, so that syncs of the journal do not wait for the whole segment.
        file.sync()?;
    }
    Ok(PreallocatedSegment { file, size })
}

/// Installs a preallocated file as the newest segment.
fn install(
    disk: &dyn Disk,
    file: &dyn DiskFile,
    header: &SegmentHeader,
    state: &mut StateFile,
) -> io::Result<()> {
    for at in HEADER_OFFSETS {
        file.write_at(&header.encode(), at)?;
    }
    file.sync()?;
    disk.rename(NEXT_SEGMENT, &header.path())?;
    disk.sync_folder(JOURNAL)?;
    if state.ordinal != header.ordinal {
        // Updated in memory only after the write: a retry after a full disk must write it again.
        let next = StateFile { ordinal: header.ordinal, ..state.clone() };
        next.write(disk)?;
        *state = next;
    }
    Ok(())
}

fn rotation_error(source: io::Error) -> JournalError {
    // Both conditions are temporary, and the next write retries the rotation.
    if is_full(&source) || super::writeback::is_out_of_files(&source) {
        return JournalError::NoSpace;
    }
    JournalError::Failed { doing: "begin a segment of the journal", source }
}
