//! The writing end of the journal: frames one after the other, a new segment when one is full.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::disk::{Disk, DiskFile, is_full};
use super::frame::Builder;
use super::group::CellChange;
use super::index::Change;
use super::segment::{FORMAT, FRAMES, HEADERS, Header, JOURNAL, NEXT, PAGE};
use super::state::{Position, State};
use super::survey::End;
use super::totals::Totals;

/// Sizes of segments, and the room to leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) first: u64,
    pub(crate) largest: u64,
    pub(crate) min_free: u64,
}

/// Why nothing was appended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalError {
    /// There is no room for a new segment. Nothing was begun, and it may work later.
    #[error("there is no room for a segment of the journal")]
    NoRoom,
    /// A write or a sync failed: what the disk holds now is not known, nothing may be written any more.
    #[error("cannot {doing}: {source}")]
    Failed { doing: &'static str, source: io::Error },
}

/// The end of the journal, open for writing.
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    sizes: Sizes,
    header: Header,
    file: Box<dyn DiskFile>,
    at: u64,
    /// The next segment may be there already: no frame goes into this one any more.
    is_over: bool,
    last: Last,
    builder: Builder,
    prepared: Option<JoinHandle<io::Result<Prepared>>>,
}

/// The last frame of a journal; sequence 0 stands for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Last {
    pub(crate) position: Position,
    pub(crate) totals: Totals,
    pub(crate) is_seal: bool,
    /// Bytes it takes.
    pub(crate) length: usize,
}

struct Prepared {
    file: Box<dyn DiskFile>,
    size: u64,
}

impl Journal {
    /// Makes the first segment of a new store.
    pub(crate) fn create(
        disk: Arc<dyn Disk>,
        sizes: Sizes,
        state: &mut State,
    ) -> Result<Journal, JournalError> {
        disk.create_folder(JOURNAL).map_err(rotating)?;
        disk.sync_folder("").map_err(rotating)?;
        let prepared = prepare(&*disk, sizes.first).map_err(rotating)?;
        let header =
            Header { format: FORMAT, instance: state.instance, ordinal: 1, first: 1, size: prepared.size };
        install(&*disk, &*prepared.file, &header, state).map_err(rotating)?;
        Ok(Journal::resume(disk, sizes, header, prepared.file, FRAMES, Last::default()))
    }

    /// Goes on where a journal ends.
    pub(crate) fn resume(
        disk: Arc<dyn Disk>,
        sizes: Sizes,
        header: Header,
        file: Box<dyn DiskFile>,
        at: u64,
        last: Last,
    ) -> Journal {
        Journal {
            disk,
            sizes,
            header,
            file,
            at,
            is_over: false,
            last,
            builder: Builder::default(),
            prepared: None,
        }
    }

    /// Where it ends.
    pub(crate) fn end(&self) -> End {
        End { header: self.header, at: self.at, last: self.last, torn: None }
    }

    pub(crate) fn last(&self) -> Last {
        self.last
    }

    /// The sequence of the next frame.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.last.position.sequence + 1
    }

    /// Writes a group as one frame and returns once it is durable.
    pub(crate) fn append(
        &mut self,
        state: &mut State,
        changes: &[CellChange],
        totals: Totals,
    ) -> Result<(), JournalError> {
        self.builder.begin();
        for change in changes {
            self.builder.push(Change { key: &change.key, cell: change.cell.as_deref() });
        }
        self.write(state, totals, self.at, false)
    }

    /// Writes an empty frame, on a page of its own.
    pub(crate) fn seal(&mut self, state: &mut State, totals: Totals) -> Result<(), JournalError> {
        self.builder.begin();
        self.write(state, totals, self.at.next_multiple_of(PAGE as u64), true)
    }

    fn write(
        &mut self,
        state: &mut State,
        totals: Totals,
        mut at: u64,
        is_seal: bool,
    ) -> Result<(), JournalError> {
        let length = self.builder.length();
        if self.is_over || at + length > self.header.size {
            self.rotate(state, length)?;
            at = FRAMES;
        }
        let sequence = self.next_sequence();
        let bytes = self.builder.finish(self.header.seed(), sequence, totals);
        let failed = |doing| move |source| JournalError::Failed { doing, source };
        self.file.write_at(bytes, at).map_err(failed("write to the journal"))?;
        self.file.sync().map_err(failed("sync the journal"))?;
        let position = Position { ordinal: self.header.ordinal, offset: at, sequence };
        self.last = Last { position, totals, is_seal, length: bytes.len() };
        self.at = at + length;
        Ok(())
    }

    /// Goes on in a new segment; one that has no frame yet is replaced by a larger one.
    fn rotate(&mut self, state: &mut State, frame: u64) -> Result<(), JournalError> {
        let next = self.next_sequence();
        let ordinal = if self.header.first == next { self.header.ordinal } else { self.header.ordinal + 1 };
        let needed = (FRAMES + frame).next_multiple_of(PAGE as u64);
        let prepared = match self.take_prepared()? {
            Some(prepared) if prepared.size >= needed => prepared,
            Some(_) | None => self.prepare_now(needed)?,
        };
        let header = Header { format: FORMAT, ordinal, first: next, size: prepared.size, ..self.header };
        self.is_over = true;
        install(&*self.disk, &*prepared.file, &header, state).map_err(rotating)?;
        (self.header, self.file, self.at, self.is_over) = (header, prepared.file, FRAMES, false);
        Ok(())
    }

    fn prepare_now(&self, needed: u64) -> Result<Prepared, JournalError> {
        let size = self.next_size().max(needed);
        let free = self.disk.free_space().map_err(rotating)?;
        let size = if free < self.sizes.min_free + size { self.sizes.first.max(needed) } else { size };
        prepare(&*self.disk, size).map_err(rotating)
    }

    fn next_size(&self) -> u64 {
        (self.header.size * 4).min(self.sizes.largest)
    }

    /// Lets a side thread make the next segment, if there is room for it and none is being made.
    pub(crate) fn prepare_ahead(&mut self) {
        let size = self.next_size();
        let has_room = self.disk.free_space().is_ok_and(|free| free >= self.sizes.min_free + size);
        if self.prepared.is_none() && has_room {
            let disk = Arc::clone(&self.disk);
            let made = thread::Builder::new().name("next segment".to_owned());
            self.prepared = made.spawn(move || prepare(&*disk, size)).ok();
        }
    }

    /// Whether it is time to prepare a segment: the current one is half full.
    pub(crate) fn is_half_full(&self) -> bool {
        self.at > self.header.size / 2
    }

    fn take_prepared(&mut self) -> Result<Option<Prepared>, JournalError> {
        let Some(thread) = self.prepared.take() else { return Ok(None) };
        let made = thread.join().unwrap_or_else(|_panic| Err(io::Error::other("the side thread panicked")));
        match made {
            Ok(prepared) => Ok(Some(prepared)),
            Err(error) if is_full(&error) || super::writeback::is_out_of_files(&error) => Ok(None),
            Err(source) => Err(JournalError::Failed { doing: "prepare a segment of the journal", source }),
        }
    }

    /// Ends the side thread, and removes what it made.
    pub(crate) fn stop(&mut self) -> Result<(), JournalError> {
        if self.take_prepared()?.is_some() {
            self.disk.remove(NEXT).map_err(rotating)?;
        }
        Ok(())
    }
}

/// Makes a segment of zeros: overwriting them is faster than appending, and lack of room shows now.
fn prepare(disk: &dyn Disk, size: u64) -> io::Result<Prepared> {
    const CHUNK: u64 = 1 << 20;
    let file = disk.create(NEXT)?;
    let zeros = vec![0; usize::try_from(size.min(CHUNK)).map_err(io::Error::other)?];
    let mut at = 0;
    while at < size {
        let chunk = zeros.len().min(usize::try_from(size - at).unwrap_or(usize::MAX));
        file.write_at(&zeros[..chunk], at)?;
        at += chunk as u64;
        // In small steps, so that syncs of the journal do not wait behind all of it.
        file.sync()?;
    }
    Ok(Prepared { file, size })
}

/// Turns a prepared file into the newest segment.
fn install(disk: &dyn Disk, file: &dyn DiskFile, header: &Header, state: &mut State) -> io::Result<()> {
    for at in HEADERS {
        file.write_at(&header.encode(), at)?;
    }
    file.sync()?;
    disk.rename(NEXT, &header.path())?;
    disk.sync_folder(JOURNAL)?;
    if state.ordinal != header.ordinal {
        // Known here only once it is written: a retry after a full disk must write it too.
        let next = State { ordinal: header.ordinal, ..state.clone() };
        next.write(disk)?;
        *state = next;
    }
    Ok(())
}

fn rotating(source: io::Error) -> JournalError {
    // Both end by themselves, and the rotation is tried again with the next write.
    if is_full(&source) || super::writeback::is_out_of_files(&source) {
        return JournalError::NoRoom;
    }
    JournalError::Failed { doing: "begin a segment of the journal", source }
}
