//! Check of a journal: every header, block and write, and what is missing between them. It only reads, goes on after damage,
//! and works beside a server that writes and compacts.

use std::io;
use std::path::Path;

use super::base::{self, Base};
use super::digest::IndexDigest;
use super::discover::{self, io_error};
use super::disk::{Disk, DiskFile, RealDisk, read_all};
use super::frame::FrameChanges;
use super::options::OpenError;
use super::segment::{self, FIRST_FRAME, FORMAT, FrameIter, JOURNAL, PAGE, SegmentHeader, Tail};
use super::state::{self, StateFile, Trust};

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct JournalCheck {
    pub files: u64,
    /// Intact writes, and rows that compactions have left of those before.
    pub writes: u64,
    pub rows: u64,
    pub damage: Vec<Damage>,
}

/// Damage of a file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Damage {
    /// Relative to the data directory.
    pub file: String,
    /// Place in bytes.
    pub offset: u64,
    /// Bytes that cannot be read there; 0 if their number is not known.
    pub bytes: u64,
    pub what: String,
}

/// Checks that may be disturbed by a compaction, which replaces files, or by a write, of which a part may be read.
const TRIES: usize = 4;

/// Checks the journal of the store in a folder.
///
/// # Errors
/// If it has another format, or its files cannot be read.
pub fn check_journal(folder: &Path) -> Result<JournalCheck, OpenError> {
    check(&RealDisk::new(folder).map_err(io_error("open the data directory"))?)
}

/// Checks the journal on a disk, as [`check_journal`] does.
pub fn check(disk: &dyn Disk) -> Result<JournalCheck, OpenError> {
    let (mut tries, mut earlier) = (0, Vec::new());
    loop {
        tries += 1;
        let (before, checked) = (newest_base(disk)?, walk(disk, &mut |_| Ok(())));
        let is_settled = before == newest_base(disk)?
            && checked.as_ref().map_or(true, |walked| walked.check.damage == earlier);
        if is_settled || tries == TRIES {
            return checked.map(|walked| walked.check);
        }
        earlier = checked.map(|walked| walked.check.damage).unwrap_or_default();
    }
}

fn newest_base(disk: &dyn Disk) -> Result<Option<u64>, OpenError> {
    let names = disk.list(JOURNAL).map_err(io_error("list `journal`"))?;
    Ok(names.iter().filter_map(|name| base::ordinal(name)).max())
}

/// An intact part of a journal: a write, or a block of a base.
pub(crate) struct Part<'a> {
    /// Of the write, or of the last one before the base.
    pub(crate) sequence: u64,
    /// The digest after the write.
    pub(crate) digest: Option<IndexDigest>,
    pub(crate) changes: FrameChanges<'a>,
}

/// The result of a walk, with what is known of the end of the journal.
#[derive(Default)]
pub(crate) struct Walked {
    pub(crate) check: JournalCheck,
    /// The last intact write and the digest after it.
    pub(crate) last: u64,
    pub(crate) digest: IndexDigest,
    /// The highest write that is known to be missing; `u64::MAX` if any number may be missing at the end.
    pub(crate) missing: u64,
}

/// Reads everything of a journal that is intact, in the order it was written.
///
/// # Errors
/// Those of `visit`; damage is a part of the result.
pub(crate) fn walk(
    disk: &dyn Disk,
    visit: &mut dyn FnMut(Part<'_>) -> Result<(), OpenError>,
) -> Result<Walked, OpenError> {
    let state = StateFile::read(disk)?;
    let names = disk.list(JOURNAL).map_err(io_error("list `journal`"))?;
    let mut ordinals: Vec<u64> = names.iter().filter_map(|name| segment::ordinal(name)).collect();
    ordinals.sort_unstable();
    let header = |ordinal: &u64| discover::header(disk, *ordinal, &mut Vec::new()).ok();
    let headers = || ordinals.iter().filter_map(header);
    let instance =
        state.as_ref().map(|state| state.instance).or_else(|| headers().next().map(|one| one.instance));
    let instance = instance.unwrap_or_default();
    let place = (JOURNAL.to_owned(), 0);
    let mut walk = Walk { disk, visit, instance, walked: Walked::default(), expected: Some(1), place };
    if state.is_none() {
        walk.add(state::PATH, 0, 0, "the file is missing or damaged");
    }
    let base = newest_base(disk)?;
    if let Some(ordinal) = base {
        walk.base(ordinal)?;
    }
    let first = base.or(ordinals.first().copied()).unwrap_or(1);
    if base.is_none() && first > 1 {
        walk.add(&base::path(first), 0, 0, "the beginning of the journal is missing");
    }
    let newest = ordinals.last().copied().max(state.as_ref().map(|state| state.ordinal)).unwrap_or_default();
    for ordinal in first..=newest {
        walk.segment(ordinal)?;
    }
    if let Some(state) = state {
        walk.end(&state);
    }
    Ok(walk.walked)
}

/// A walk in progress.
struct Walk<'a> {
    disk: &'a dyn Disk,
    visit: &'a mut dyn FnMut(Part<'_>) -> Result<(), OpenError>,
    instance: [u8; 16],
    walked: Walked,
    /// The next write, unless that is not known after damage, and the file and the offset where it is looked for.
    expected: Option<u64>,
    place: (String, u64),
}

impl Walk<'_> {
    fn add(&mut self, file: &str, offset: u64, bytes: u64, what: &str) {
        self.walked.check.damage.push(Damage { file: file.to_owned(), offset, bytes, what: what.to_owned() });
    }

    /// Adds damage that an error describes; returns any other error.
    fn add_damage(&mut self, error: OpenError) -> Result<(), OpenError> {
        let OpenError::Damaged(damage) = error else { return Err(error) };
        self.add(&damage.file, damage.position, 0, &damage.what);
        Ok(())
    }

    /// Adds that the writes from the expected one up to `last` are missing at a place.
    fn add_missing(&mut self, file: &str, offset: u64, bytes: u64, last: u64) {
        let Some(first) = self.expected.filter(|first| *first <= last) else { return };
        self.walked.missing = last;
        let what = match first {
            first if first == last => format!("write {first} is damaged or missing"),
            first => format!("writes {first} to {last} are damaged or missing"),
        };
        self.add(file, offset, bytes, &what);
    }

    fn base(&mut self, ordinal: u64) -> Result<(), OpenError> {
        self.walked.check.files += 1;
        let path = base::path(ordinal);
        let file = discover::open(self.disk, &path)?;
        let base = match Base::read(self.disk, ordinal) {
            Ok(base) => {
                (self.walked.last, self.walked.digest) = (base.sequence, base.digest);
                self.expected = Some(base.sequence + 1);
                base
            }
            Err(error) => {
                self.add_damage(error)?;
                self.expected = None;
                let size = file.size().map_err(io_error("read the journal"))?;
                Base::assumed(self.instance, ordinal, size)
            }
        };
        let mut at = Base::FIRST_BLOCK;
        while at < base.size {
            let Some((from, changes, length)) = base.next_block(&*file, at) else {
                self.add(&path, at, base.size - at, "blocks of rows are damaged");
                break;
            };
            if from > at {
                self.add(&path, at, from - at, "blocks of rows are damaged");
            }
            self.walked.check.rows += FrameChanges::new(&changes).count() as u64;
            let changes = FrameChanges::new(&changes);
            (self.visit)(Part { sequence: base.sequence, digest: None, changes })?;
            at = from + length;
        }
        self.place = (path, base.size);
        Ok(())
    }

    fn segment(&mut self, ordinal: u64) -> Result<(), OpenError> {
        let path = segment::path(ordinal);
        let file = match self.disk.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.walked.missing = u64::MAX;
                self.add(&path, 0, 0, "the file is missing");
                return Ok(());
            }
            Err(error) => return Err(io_error("open the journal")(error)),
        };
        self.walked.check.files += 1;
        let bytes = read_pages(&*file).map_err(io_error("read the journal"))?;
        let mut damaged = Vec::new();
        let (header, error) = match discover::header(self.disk, ordinal, &mut damaged) {
            Ok(header) => (header, None),
            Err(error @ OpenError::Format { .. }) => return Err(error),
            Err(error) => (self.assumed_header(ordinal, bytes.len()), Some(error)),
        };
        damaged.iter().for_each(|(_, at)| self.add(&path, *at, 512, "one of the two headers is damaged"));
        if header.first > 0 {
            let (file, at) = self.place.clone();
            self.add_missing(&file, at, 0, header.first - 1);
            self.expected = Some(header.first);
        }
        self.writes(&bytes, &header)?;
        match error {
            Some(error @ OpenError::Damaged(_)) => {
                self.walked.missing = u64::MAX;
                self.add_damage(error)
            }
            Some(error) => {
                self.add(&path, 0, 0, &error.with_cause());
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Returns a header in place of a damaged one; its first write is unknown.
    fn assumed_header(&self, ordinal: u64, length: usize) -> SegmentHeader {
        SegmentHeader { format: FORMAT, instance: self.instance, ordinal, first: 0, size: length as u64 }
    }

    /// Reads the writes of a segment. Invalid bytes after the last write are not reported: they belong to a write that is in
    /// progress, or was never acknowledged.
    fn writes(&mut self, bytes: &[u8], header: &SegmentHeader) -> Result<(), OpenError> {
        let path = header.path();
        let mut at = FIRST_FRAME;
        loop {
            let mut frames = FrameIter::new(bytes, header.seed(), at, self.expected.unwrap_or(0));
            for (_, frame) in frames.by_ref() {
                self.walked.check.writes += u64::from(!frame.is_seal());
                (self.walked.last, self.walked.digest, self.walked.missing) =
                    (frame.sequence, frame.digest, 0);
                let (sequence, digest) = (frame.sequence, Some(frame.digest));
                (self.visit)(Part { sequence, digest, changes: frame.changes() })?;
            }
            self.expected = self.expected.map(|_| frames.expected());
            self.place = (path.clone(), frames.at() as u64);
            let Tail::Damage { next, sequence } = frames.tail() else { return Ok(()) };
            if self.expected.is_some_and(|expected| sequence < expected) {
                // An old frame that a failed write has left.
                return Ok(());
            }
            let bytes = (next - frames.at()) as u64;
            if self.expected == Some(sequence) && bytes > 0 {
                self.add(
                    &path,
                    frames.at() as u64,
                    bytes,
                    &format!("bytes before write {sequence} are damaged"),
                );
            }
            self.add_missing(&path, frames.at() as u64, bytes, sequence - 1);
            (at, self.expected) = (next as u64, Some(sequence));
        }
    }

    /// Compares the end of the journal with the one recorded.
    fn end(&mut self, state: &StateFile) {
        let (file, at) = self.place.clone();
        self.add_missing(&file, at, 0, state.floor.sequence);
        if matches!(state.trust, Trust::Clean { end, .. } if end.sequence <= self.walked.last) {
            self.walked.missing = 0;
        }
    }
}

/// Reads a file; its pages that cannot be read are zeros.
fn read_pages(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    if let Ok(bytes) = read_all(file) {
        return Ok(bytes);
    }
    let mut bytes = vec![0; usize::try_from(file.size()?).map_err(io::Error::other)?];
    for (number, page) in bytes.chunks_mut(PAGE).enumerate() {
        if file.read_at(page, (number * PAGE) as u64).is_err() {
            page.fill(0);
        }
    }
    Ok(bytes)
}
