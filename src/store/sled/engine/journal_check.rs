//! Check of a journal: every header, block and write, and what is missing between them. It only reads, goes on after damage,
//! and works beside a server that writes and compacts.

use std::path::Path;

use super::base::{self, Base};
use super::discover::{self, io_error};
use super::disk::{Disk, RealDisk};
use super::options::OpenError;
use super::segment::{self, FIRST_FRAME, FrameIter, JOURNAL, SegmentHeader, Tail};
use super::state::{self, StateFile};

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
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Damage {
    /// Relative to the data directory.
    pub file: String,
    /// Place in bytes.
    pub offset: u64,
    pub what: String,
}

/// Checks that may be disturbed by a compaction, which replaces files.
const TRIES: usize = 3;

/// Checks the journal of the store in a folder.
///
/// # Errors
/// If it has another format, or its files cannot be read.
pub fn check_journal(folder: &Path) -> Result<JournalCheck, OpenError> {
    let disk = RealDisk::new(folder).map_err(io_error("open the data directory"))?;
    let mut tries = 0;
    loop {
        tries += 1;
        let (before, checked) = (newest_base(&disk)?, check(&disk));
        if before == newest_base(&disk)? || tries == TRIES {
            return checked;
        }
    }
}

fn newest_base(disk: &dyn Disk) -> Result<Option<u64>, OpenError> {
    let names = disk.list(JOURNAL).map_err(io_error("list `journal`"))?;
    Ok(names.iter().filter_map(|name| base::ordinal(name)).max())
}

/// Checks the journal on a disk.
pub fn check(disk: &dyn Disk) -> Result<JournalCheck, OpenError> {
    let mut check = JournalCheck::default();
    let state = StateFile::read(disk)?;
    if state.is_none() {
        check.add(state::PATH, 0, "the file is missing or damaged");
    }
    let base = newest_base(disk)?;
    let mut walk = Walk { expected: Some(1), file: JOURNAL.to_owned(), offset: 0 };
    if let Some(ordinal) = base {
        walk.expected = check.base(disk, ordinal)?;
    }
    let names = disk.list(JOURNAL).map_err(io_error("list `journal`"))?;
    let newest = names.iter().filter_map(|name| segment::ordinal(name)).max().unwrap_or_default();
    let newest = newest.max(state.as_ref().map_or(0, |state| state.ordinal));
    for ordinal in base.unwrap_or(1)..=newest {
        check.segment(disk, ordinal, &mut walk)?;
    }
    let (floor, last) = (state.map_or(0, |state| state.floor.sequence), walk.expected.map(|next| next - 1));
    if let Some(last) = last.filter(|last| *last < floor) {
        let what = format!("the journal ends with write {last}, it once had {floor}");
        check.add(&walk.file, walk.offset, &what);
    }
    Ok(check)
}

/// How far a check has come: the next write, unless that is not known after damage, and where it was looked for.
struct Walk {
    expected: Option<u64>,
    file: String,
    offset: u64,
}

impl JournalCheck {
    fn add(&mut self, file: &str, offset: u64, what: &str) {
        self.damage.push(Damage { file: file.to_owned(), offset, what: what.to_owned() });
    }

    /// Adds damage that an error describes; returns any other error.
    fn add_damage(&mut self, error: OpenError) -> Result<(), OpenError> {
        let OpenError::Damaged(damage) = error else { return Err(error) };
        self.add(&damage.file, damage.position, &damage.what);
        Ok(())
    }

    /// Checks a base; returns the sequence of the write after it.
    fn base(&mut self, disk: &dyn Disk, ordinal: u64) -> Result<Option<u64>, OpenError> {
        self.files += 1;
        let base = match Base::read(disk, ordinal) {
            Ok(base) => base,
            Err(error) => return self.add_damage(error).map(|()| None),
        };
        let mut rows = 0;
        let read = base.blocks(disk, |block, _| {
            rows += block.count() as u64;
            Ok(())
        });
        self.rows += rows;
        read.or_else(|error| self.add_damage(error))?;
        Ok(Some(base.sequence + 1))
    }

    fn segment(&mut self, disk: &dyn Disk, ordinal: u64, walk: &mut Walk) -> Result<(), OpenError> {
        let path = segment::path(ordinal);
        if disk.open(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            walk.expected = None;
            self.add(&path, 0, "the file is missing");
            return Ok(());
        }
        self.files += 1;
        let mut damaged = Vec::new();
        let header = match discover::header(disk, ordinal, &mut damaged) {
            Ok(header) => header,
            Err(error) => {
                walk.expected = None;
                return self.add_damage(error);
            }
        };
        damaged.iter().for_each(|(_, at)| self.add(&path, *at, "one of the two headers is damaged"));
        if let Some(expected) = walk.expected.filter(|expected| *expected != header.first) {
            let what = format!("writes {expected} to {} are damaged or missing", header.first - 1);
            self.add(&walk.file, walk.offset, &what);
        }
        self.writes(&discover::read(disk, &header)?, &header, walk);
        Ok(())
    }

    /// Checks the writes of a segment. Invalid bytes after the last write are not reported: they belong to a write that is in
    /// progress, or was never acknowledged.
    fn writes(&mut self, bytes: &[u8], header: &SegmentHeader, walk: &mut Walk) {
        let (mut at, mut sequence) = (FIRST_FRAME, header.first);
        loop {
            let mut frames = FrameIter::new(bytes, header.seed(), at, sequence);
            self.writes += frames.by_ref().filter(|(_, frame)| !frame.is_seal()).count() as u64;
            (walk.expected, walk.file, walk.offset) =
                (Some(frames.expected()), header.path(), frames.at() as u64);
            let Tail::Damage { next, sequence: found } = frames.tail() else { return };
            if found < frames.expected() {
                // An old frame that a failed write has left.
                return;
            }
            let (first, last) = (frames.expected(), found - u64::from(found > frames.expected()));
            self.add(&walk.file, walk.offset, &format!("writes {first} to {last} are damaged"));
            (at, sequence) = (next as u64, found);
        }
    }
}
