//! The write-ahead journal: frames are appended to a segment, and a new segment is started when one is full.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::base::Base;
use super::digest::IndexDigest;
use super::discover::JournalEnd;
use super::disk::{Disk, DiskFile, is_full};
use super::frame::FrameBuilder;
use super::group::CellChange;
use super::options::{EngineOptions, OpenError};
use super::segment::{FIRST_FRAME, FORMAT, HEADER_OFFSETS, JOURNAL, NEXT_SEGMENT, PAGE, SegmentHeader};
use super::state::{Position, StateFile};

/// The journal, open for appending.
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    options: EngineOptions,
    end: JournalEnd,
    /// Sizes of the segments before the newest in bytes, since the last compaction.
    closed_bytes: u64,
    file: Box<dyn DiskFile>,
    /// The next segment may exist already: no frame is appended to this one.
    must_rotate: bool,
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

impl LastFrame {
    /// The last frame before a base. It is not on the disk any more, and needs no seal.
    pub(crate) fn before(base: &Base) -> Self {
        let position = Position { ordinal: base.ordinal, offset: FIRST_FRAME, sequence: base.sequence };
        Self { position, digest: base.digest, is_seal: true, length: 0 }
    }
}

struct PreallocatedSegment {
    file: Box<dyn DiskFile>,
    size: u64,
}

impl Journal {
    /// Creates the first segment of a new store, which begins with the write `first`.
    pub(crate) fn create(
        disk: &dyn Disk,
        options: &EngineOptions,
        state: &mut StateFile,
        first: u64,
    ) -> Result<(), OpenError> {
        disk.create_folder(JOURNAL).map_err(rotation_error)?;
        disk.sync_folder("").map_err(rotation_error)?;
        let PreallocatedSegment { file, size } =
            preallocate_segment(disk, options.first_segment).map_err(rotation_error)?;
        let header = SegmentHeader { format: FORMAT, instance: state.instance, ordinal: 1, first, size };
        install(disk, &*file, &header, state).map_err(rotation_error)
    }

    /// Continues a journal at its end, in the file of its newest segment; those before it have `closed_bytes`.
    pub(crate) fn resume(
        disk: Arc<dyn Disk>,
        options: EngineOptions,
        end: JournalEnd,
        closed_bytes: u64,
        file: Box<dyn DiskFile>,
    ) -> Journal {
        let builder = FrameBuilder::default();
        Journal { disk, options, end, closed_bytes, file, must_rotate: false, builder, preallocated: None }
    }

    pub(crate) fn end(&self) -> JournalEnd {
        self.end
    }

    pub(crate) fn closed_bytes(&self) -> u64 {
        self.closed_bytes
    }

    /// Counts the closed segments from now on.
    pub(crate) fn reset_closed_bytes(&mut self) {
        self.closed_bytes = 0;
    }

    /// The segments before this base are about to be removed, with the last frame if none has followed.
    pub(crate) fn compacted(&mut self, base: &Base) {
        self.closed_bytes = 0;
        if self.end.last.position.sequence == base.sequence {
            self.end.last = LastFrame::before(base);
        }
    }

    pub(crate) fn last(&self) -> LastFrame {
        self.end.last
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.end.last.position.sequence + 1
    }

    /// Writes a group as one frame and returns once it is durable.
    ///
    /// # Errors
    /// [`OpenError::NoSpace`] if there is none for a new segment: nothing was started, a later append may succeed. After any
    /// other error the content of the disk is unknown, and nothing may be written any more.
    pub(crate) fn append(
        &mut self,
        state: &mut StateFile,
        changes: &[CellChange],
        digest: IndexDigest,
    ) -> Result<(), OpenError> {
        self.builder.begin();
        for change in changes {
            self.builder.push(change.as_change());
        }
        self.write(state, digest, self.end.at, false)
    }

    /// Writes an empty frame, on a page of its own.
    pub(crate) fn seal(&mut self, state: &mut StateFile, digest: IndexDigest) -> Result<(), OpenError> {
        self.builder.begin();
        self.write(state, digest, self.end.at.next_multiple_of(PAGE as u64), true)
    }

    fn write(
        &mut self,
        state: &mut StateFile,
        digest: IndexDigest,
        mut at: u64,
        is_seal: bool,
    ) -> Result<(), OpenError> {
        let length = self.builder.length();
        if self.must_rotate || at + length > self.end.header.size {
            self.rotate(state, length)?;
            at = FIRST_FRAME;
        }
        let sequence = self.next_sequence();
        let bytes = self.builder.finish(self.end.header.seed(), sequence, digest);
        self.file.write_at(bytes, at).map_err(failed("write to the journal"))?;
        let begun = Instant::now();
        self.file.sync().map_err(failed("sync the journal"))?;
        (self.options.on_sync)(begun.elapsed());
        let position = Position { ordinal: self.end.header.ordinal, offset: at, sequence };
        self.end.last = LastFrame { position, digest, is_seal, length: bytes.len() };
        self.end.at = at + length;
        Ok(())
    }

    /// Ends the newest segment, unless it has no frame yet.
    ///
    /// # Errors
    /// The same as those of [`Journal::append`].
    pub(crate) fn end_segment(&mut self, state: &mut StateFile) -> Result<(), OpenError> {
        if self.end.header.first == self.next_sequence() { Ok(()) } else { self.rotate(state, 0) }
    }

    /// Starts a new segment; a segment without frames is replaced by a larger one.
    fn rotate(&mut self, state: &mut StateFile, frame: u64) -> Result<(), OpenError> {
        let next = self.next_sequence();
        let ordinal =
            if self.end.header.first == next { self.end.header.ordinal } else { self.end.header.ordinal + 1 };
        let needed = (FIRST_FRAME + frame).next_multiple_of(PAGE as u64);
        let preallocated = match self.take_preallocated()? {
            Some(preallocated) if preallocated.size >= needed => preallocated,
            Some(_) | None => self.preallocate_now(needed)?,
        };
        let header = SegmentHeader {
            format: FORMAT,
            ordinal,
            first: next,
            size: preallocated.size,
            ..self.end.header
        };
        self.must_rotate = true;
        install(&*self.disk, &*preallocated.file, &header, state).map_err(rotation_error)?;
        if header.ordinal > self.end.header.ordinal {
            self.closed_bytes += self.end.header.size;
        }
        self.end = JournalEnd { header, at: FIRST_FRAME, ..self.end };
        (self.file, self.must_rotate) = (preallocated.file, false);
        Ok(())
    }

    fn preallocate_now(&self, needed: u64) -> Result<PreallocatedSegment, OpenError> {
        let size = self.next_size().max(needed);
        let free = self.disk.free_space().map_err(rotation_error)?;
        let size =
            if free < self.options.min_free + size { self.options.first_segment.max(needed) } else { size };
        preallocate_segment(&*self.disk, size).map_err(rotation_error)
    }

    fn next_size(&self) -> u64 {
        (self.end.header.size * 4).min(self.options.largest_segment)
    }

    /// Starts to preallocate the next segment on a background thread once this one is half full, if there is space.
    pub(crate) fn preallocate(&mut self) {
        let is_due = self.options.preallocate && self.end.at > self.end.header.size / 2;
        if !is_due || self.preallocated.is_some() {
            return;
        }
        let size = self.next_size();
        let has_space = self.disk.free_space().is_ok_and(|free| free >= self.options.min_free + size);
        if has_space {
            let disk = Arc::clone(&self.disk);
            let made = thread::Builder::new().name("next segment".to_owned());
            self.preallocated = made.spawn(move || preallocate_segment(&*disk, size)).ok();
        }
    }

    fn take_preallocated(&mut self) -> Result<Option<PreallocatedSegment>, OpenError> {
        let Some(thread) = self.preallocated.take() else { return Ok(None) };
        let made = thread.join().unwrap_or_else(|_panic| Err(io::Error::other("the preallocation panicked")));
        match made {
            Ok(preallocated) => Ok(Some(preallocated)),
            Err(error) if is_full(&error) || super::writeback::is_out_of_files(&error) => Ok(None),
            Err(error) => Err(failed("prepare a segment of the journal")(error)),
        }
    }

    /// Stops the background thread, and removes the preallocated segment.
    pub(crate) fn stop(&mut self) -> Result<(), OpenError> {
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

fn rotation_error(error: io::Error) -> OpenError {
    // Both conditions are temporary, and the next write retries the rotation.
    if is_full(&error) || super::writeback::is_out_of_files(&error) {
        return OpenError::NoSpace;
    }
    failed("begin a segment of the journal")(error)
}

/// Adds the failed action to an I/O error. A full disk is no exception: the write has been started.
fn failed(doing: &str) -> impl Fn(io::Error) -> OpenError + '_ {
    move |source| OpenError::Io { doing: doing.to_owned(), source }
}
