//! Salvage: a new store from all that can be read of a damaged one, which is not changed.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use super::applied_frame::AppliedFrame;
use super::cell::{self, Cell};
use super::compaction::{Compaction, CompactionError};
use super::discover::{JournalEnd, io_error};
use super::disk::Disk;
use super::index::{Change, Index, IndexError, IndexProvider};
use super::journal::{Journal, LastFrame};
use super::journal_check::{Damage, Part, Walked, walk};
use super::open::stage_changes;
use super::options::{EngineOptions, OpenError};
use super::rebuild::{INDEX, NEW};
use super::segment::{FIRST_FRAME, FORMAT, JOURNAL, SegmentHeader};
use super::state::{Position, StateFile};
use super::tx::{Direction, Tx};
use super::verify;
use crate::store::Result;

/// Rows written to the base at once.
const ROWS: usize = 250;

/// Writes a new store to the empty disk `to`, with all rows that can be read from the journal on `from`, corrected by `repair`.
///
/// The folder `index.new` among `indexes`, which are those of the new store, may have a copy of the old store's index: if its own
/// digest proves that it is whole, its rows are used, too.
///
/// Returns the damage, and whether all rows are there, as they were after the last write. If not, some are missing or older.
///
/// # Errors
/// If the old store has another format, the new one cannot be written, or `repair` fails.
pub fn salvage(
    from: &dyn Disk,
    (to, indexes): (&dyn Disk, &dyn IndexProvider),
    options: &EngineOptions,
    repair: impl FnOnce(&mut Tx<'_>) -> Result<()>,
) -> Result<(Vec<Damage>, bool), OpenError> {
    let (index, walked, applied) = match open_whole(indexes) {
        Some((index, applied)) => read_into(from, index, applied, indexes)?,
        None => read_alone(from, indexes)?,
    };
    let last = walked.last.max(applied.sequence);
    let digest = if last > walked.last { applied.digest } else { walked.digest };
    let is_complete = walked.missing <= last && verify::sum(&*index)? == digest;
    remove_incomplete(&*index)?;
    // The pieces of what is repaired must not mix with those of an earlier write.
    let sequence = if walked.missing < u64::MAX { last.max(walked.missing) } else { last } + 1;
    let group = stage_changes(&*index, repair).map_err(|error| OpenError::Index(error.to_string()))?;
    let changes = group.into_changes(sequence);
    index.apply(&mut changes.iter().map(|one| Change { key: &one.key, cell: one.cell.as_deref() }))?;
    write(to, &*index, options, sequence)?;
    drop(index);
    indexes.remove(NEW).map_err(io_error("remove a temporary index"))?;
    Ok((walked.check.damage, is_complete))
}

type Read = (Arc<dyn Index>, Walked, AppliedFrame);

/// Opens the copy of an index, if its rows are those that it has recorded itself.
fn open_whole(indexes: &dyn IndexProvider) -> Option<(Arc<dyn Index>, AppliedFrame)> {
    if indexes.size(NEW) == 0 {
        return None;
    }
    let index = indexes.open(NEW).ok()?;
    let applied = AppliedFrame::read(&*index).ok()?;
    (verify::sum(&*index).ok()? == applied.digest).then_some((index, applied))
}

/// Adds all later writes of a journal to an index; reads the journal alone if the index is not its own.
fn read_into(
    from: &dyn Disk,
    index: Arc<dyn Index>,
    applied: AppliedFrame,
    indexes: &dyn IndexProvider,
) -> Result<Read, OpenError> {
    let mut is_of_journal = true;
    let walked = walk(from, &mut |Part { sequence, digest, mut changes }| {
        is_of_journal &= match digest {
            Some(digest) => sequence != applied.sequence || digest == applied.digest,
            // What a later base has left out would stay.
            None => sequence <= applied.sequence,
        };
        if sequence > applied.sequence { Ok(index.apply(&mut changes)?) } else { Ok(()) }
    })?;
    if is_of_journal {
        return Ok((index, walked, applied));
    }
    drop(index);
    read_alone(from, indexes)
}

/// Reads a journal into an empty index.
fn read_alone(from: &dyn Disk, indexes: &dyn IndexProvider) -> Result<Read, OpenError> {
    indexes.remove(NEW).map_err(io_error("remove a temporary index"))?;
    let index = indexes.open(NEW)?;
    let walked = walk(from, &mut |mut part| Ok(index.apply(&mut part.changes)?))?;
    Ok((index, walked, AppliedFrame::default()))
}

/// Removes large rows that lack a piece, and pieces that lack their row.
fn remove_incomplete(index: &dyn Index) -> Result<(), IndexError> {
    let (mut heads, mut pieces) = (Vec::new(), BTreeSet::new());
    index.range(Bound::Unbounded, Bound::Unbounded, Direction::Ascending, &mut |key, row| {
        match cell::decode(key, row.to_vec()) {
            Some(Cell::Head(head)) => heads.push((key.to_vec(), head)),
            Some(Cell::Piece(_)) => _ = pieces.insert(key.to_vec()),
            Some(Cell::Whole(_)) | None => {}
        }
        true
    })?;
    let mut removed = Vec::new();
    for (key, head) in heads {
        match cell::read(index, &key) {
            Ok(Some(_)) => head.piece_keys(&key).for_each(|piece| _ = pieces.remove(&piece)),
            Ok(None) | Err(_) => removed.push(key),
        }
    }
    removed.extend(pieces);
    index.apply(&mut removed.iter().map(|key| Change { key, cell: None }))
}

/// Writes the rows of an index as the base of a new journal, which begins after `sequence`.
fn write(to: &dyn Disk, index: &dyn Index, options: &EngineOptions, sequence: u64) -> Result<(), OpenError> {
    let failed = io_error("write the new journal");
    to.create_folder(JOURNAL).map_err(&failed)?;
    let mut state = StateFile::new(options.instance);
    let (instance, size) = (options.instance, options.first_segment);
    let header = SegmentHeader { format: FORMAT, instance, ordinal: 1, first: sequence + 1, size };
    let position = Position { ordinal: 1, offset: FIRST_FRAME, sequence };
    let last = LastFrame { position, digest: verify::sum(index)?, is_seal: true, length: 0 };
    let end = JournalEnd { header, at: FIRST_FRAME, last, torn: None };
    let mut base = Compaction::of_base(to, index, &end)?;
    while base.slice(index, ROWS)?.is_none() {}
    base.install(to).map_err(&failed)?;
    Journal::create(to, options, &mut state, sequence + 1)
}

impl From<CompactionError> for OpenError {
    fn from(error: CompactionError) -> Self {
        match error {
            CompactionError::Index(error) => error.into(),
            CompactionError::Files(error) => io_error("write the new journal")(error),
        }
    }
}

/// Copies the index of the store in a folder, if it has one.
pub(crate) fn copy_index(data: &Path, to: &Path) -> io::Result<()> {
    let from = data.join(INDEX);
    if from.exists() { copy_folder(&from, to) } else { Ok(()) }
}

/// Copies a folder with everything in it.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let (path, to) = (entry?.path(), to.to_owned());
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_folder(&path, &to)?;
        } else {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}
