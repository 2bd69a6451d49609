//! Group commit: the changes of the operations that share a frame, and the order in which they are applied to the
//! index.

use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;

use super::cell::{self, Cell, Head, PIECE_BYTES};
use super::digest::row_hash;
use super::index::{Change, Index};
use super::tx::StagedRow;
use crate::store::Result;

/// Changes that are staged and not yet durable.
#[derive(Default)]
pub(crate) struct Group {
    /// The last change of each row, and the row before the group.
    entries: BTreeMap<Vec<u8>, (StagedRow, StoredRow)>,
    /// Bytes of keys and bodies.
    pub(crate) bytes: usize,
}

/// The row in the index before the group.
#[derive(Default)]
struct StoredRow {
    hash: Option<u128>,
    /// Keys and hashes of its pieces.
    pieces: Vec<(Vec<u8>, u128)>,
}

/// A change of one cell, with the hashes of the old and the new cell.
pub(crate) struct CellChange {
    pub(crate) key: Vec<u8>,
    pub(crate) cell: Option<Vec<u8>>,
    pub(crate) old: Option<u128>,
    pub(crate) new: Option<u128>,
}

impl Group {
    /// Adds the changes of an operation, all or none.
    pub(crate) fn join(&mut self, own: BTreeMap<Vec<u8>, StagedRow>, index: &dyn Index) -> Result<()> {
        let mut olds = Vec::with_capacity(own.len());
        for (key, staged) in &own {
            let is_known = staged.new || self.entries.contains_key(key);
            olds.push(if is_known { StoredRow::default() } else { StoredRow::read(index, key)? });
        }
        for ((key, staged), old) in own.into_iter().zip(olds) {
            self.bytes += key.len() + staged.body.as_ref().map_or(0, Vec::len);
            match self.entries.entry(key) {
                btree_map::Entry::Occupied(entry) => {
                    let (earlier, _) = entry.into_mut();
                    *earlier = StagedRow { last: staged.last && earlier.last, ..staged };
                }
                btree_map::Entry::Vacant(entry) => drop(entry.insert((staged, old))),
            }
        }
        Ok(())
    }

    /// Returns the body of a key after the group so far; `None` if the group has not changed the key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.entries.get(key).map(|(row, _)| row.body.as_deref())
    }

    /// Returns the rows of a range that the group has changed; the range must not be empty.
    pub(crate) fn range(
        &self,
        range: (Bound<&Vec<u8>>, Bound<&Vec<u8>>),
    ) -> impl Iterator<Item = (&Vec<u8>, Option<&Vec<u8>>)> {
        self.entries.range::<Vec<u8>, _>(range).map(|(key, (row, _))| (key, row.body.as_ref()))
    }

    pub(crate) fn rows(&self) -> usize {
        self.entries.len()
    }

    /// Converts the group into changes of cells, in the order in which they become visible to readers: new pieces,
    /// rows by key, rows that must be visible last, then deletions of old pieces.
    pub(crate) fn into_changes(self, revision: u64) -> Vec<CellChange> {
        let mut changes = Vec::with_capacity(self.entries.len());
        let (mut rows, mut last, mut gone) = (Vec::with_capacity(self.entries.len()), Vec::new(), Vec::new());
        for (key, (row, old)) in self.entries {
            gone.extend(old.pieces.into_iter().map(|(key, hash)| CellChange::new(key, None, Some(hash))));
            let cell = row.body.map(|body| cell_of(&key, body, revision, &mut changes));
            if cell.is_some() || old.hash.is_some() {
                let rows = if row.last { &mut last } else { &mut rows };
                rows.push(CellChange::new(key, cell, old.hash));
            }
        }
        changes.extend(rows.into_iter().chain(last).chain(gone));
        changes
    }
}

/// Returns the cell of a body, and adds its pieces, if it needs any.
fn cell_of(key: &[u8], body: Vec<u8>, revision: u64, pieces: &mut Vec<CellChange>) -> Vec<u8> {
    if body.len() <= PIECE_BYTES {
        return cell::whole(key, body);
    }
    let head = Head::of(&body, revision);
    for (piece_key, part) in head.piece_keys(key).zip(body.chunks(PIECE_BYTES)) {
        let cell = cell::piece(&piece_key, part);
        pieces.push(CellChange::new(piece_key, Some(cell), None));
    }
    head.encode(key)
}

impl CellChange {
    fn new(key: Vec<u8>, cell: Option<Vec<u8>>, old: Option<u128>) -> CellChange {
        let new = cell.as_ref().map(|cell| row_hash(&key, cell));
        CellChange { key, cell, old, new }
    }

    pub(crate) fn as_change(&self) -> Change<'_> {
        Change { key: &self.key, cell: self.cell.as_deref() }
    }
}

impl StoredRow {
    /// Reads the row from the index. A row that cannot be read cannot be removed from the digest, so this fails.
    fn read(index: &dyn Index, key: &[u8]) -> Result<StoredRow> {
        let Some(cell) = cell::get(index, key)? else { return Ok(StoredRow::default()) };
        let hash = Some(row_hash(key, &cell));
        let mut pieces = Vec::new();
        match cell::decode(key, cell) {
            Some(Cell::Whole(_)) => {}
            Some(Cell::Head(head)) => {
                for piece_key in head.piece_keys(key) {
                    let cell = cell::get(index, &piece_key)?.ok_or_else(|| cell::damaged(key))?;
                    let hash = row_hash(&piece_key, &cell);
                    pieces.push((piece_key, hash));
                }
            }
            Some(Cell::Piece(_)) | None => return Err(cell::damaged(key)),
        }
        Ok(StoredRow { hash, pieces })
    }
}
