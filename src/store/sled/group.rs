//! The changes of the operations that share one frame, and the order in which the index gets them.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::cell::{self, Cell, Head, PIECE};
use super::index::Index;
use super::totals::row_hash;
use super::tx::Staged;
use crate::store::StoreError;

/// Operations that were staged and are not yet durable.
#[derive(Default)]
pub(crate) struct Group {
    entries: BTreeMap<Vec<u8>, Entry>,
    operations: usize,
    bytes: usize,
}

struct Entry {
    body: Option<Vec<u8>>,
    last: bool,
    /// The operations that changed it first and latest.
    span: (usize, usize),
    old: Old,
}

/// What the index holds of a row before the group.
#[derive(Default)]
struct Old {
    hash: Option<u128>,
    /// Keys and hashes of its pieces.
    pieces: Vec<(Vec<u8>, u128)>,
}

/// A change of one cell, with the hashes of what goes and of what comes.
pub(crate) struct CellChange {
    pub(crate) key: Vec<u8>,
    pub(crate) cell: Option<Vec<u8>>,
    pub(crate) old: Option<u128>,
    pub(crate) new: Option<u128>,
}

/// Changes of the index, each list to be applied at once.
pub(crate) type Batches = Vec<Vec<CellChange>>;

/// A batch is closed at this many changes: while one is applied, readers wait.
const BATCH: usize = 64;

impl Group {
    /// Takes the changes of an operation in, all of them or none.
    pub(crate) fn join(
        &mut self,
        own: BTreeMap<Vec<u8>, Staged>,
        index: &dyn Index,
    ) -> Result<(), StoreError> {
        let mut olds = Vec::with_capacity(own.len());
        for key in own.keys() {
            let known = self.entries.contains_key(key);
            olds.push(if known { None } else { Some(Old::read(index, key)?) });
        }
        let operation = self.operations;
        self.operations += 1;
        for ((key, staged), old) in own.into_iter().zip(olds) {
            self.bytes += key.len() + staged.body.as_ref().map_or(0, Vec::len);
            let Staged { body, last } = staged;
            match (self.entries.get_mut(&key), old) {
                (Some(entry), _) => {
                    (entry.body, entry.last, entry.span.1) = (body, last && entry.last, operation);
                }
                (None, old) => {
                    let old = old.unwrap_or_default();
                    self.entries.insert(key, Entry { body, last, span: (operation, operation), old });
                }
            }
        }
        Ok(())
    }

    /// Returns the body a key has after the group so far; `None` if the group has not touched it.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        self.entries.get(key).map(|entry| entry.body.as_deref())
    }

    /// Returns what the group has touched within bounds.
    pub(crate) fn range(
        &self,
        bounds: &(Bound<Vec<u8>>, Bound<Vec<u8>>),
    ) -> impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)> {
        let entries = self.entries.range::<Vec<u8>, _>((bounds.0.as_ref(), bounds.1.as_ref()));
        entries.map(|(key, entry)| (key.clone(), entry.body.clone()))
    }

    /// Rows touched so far.
    pub(crate) fn rows(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of keys and bodies so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Turns the group into changes of cells, in the order the index gets them: pieces that heads will need, then
    /// the operations in their order, the counters with the last of them, then pieces no head names any more.
    ///
    /// Operations that touch the same row share a batch, so that a reader sees each operation wholly or not at all.
    pub(crate) fn into_batches(self, revision: u64) -> Batches {
        let batch_of = self.batch_of_operation();
        let last_batch = batch_of.last().copied().unwrap_or(0);
        let (mut early, mut late) = (Vec::new(), Vec::new());
        let mut middle = Batches::new();
        middle.resize_with(last_batch + 1, Vec::new);
        for (key, entry) in self.entries {
            late.extend(entry.old.pieces.into_iter().map(|(key, hash)| CellChange::gone(key, hash)));
            let cell = entry.body.map(|body| cell_of(&key, body, revision, &mut early));
            if cell.is_some() || entry.old.hash.is_some() {
                let batch = if entry.last { last_batch } else { batch_of[entry.span.0] };
                middle[batch].push(CellChange::new(key, cell, entry.old.hash));
            }
        }
        let mut batches = in_batches(early);
        batches.extend(middle.into_iter().filter(|batch| !batch.is_empty()));
        batches.extend(in_batches(late));
        batches
    }

    /// Numbers the batches: a batch may end after an operation if no row is changed on both sides of that end.
    fn batch_of_operation(&self) -> Vec<usize> {
        let mut reach: Vec<usize> = (0..self.operations).collect();
        let mut rows = vec![0; self.operations];
        for entry in self.entries.values().filter(|entry| !entry.last) {
            let (first, latest) = entry.span;
            reach[first] = reach[first].max(latest);
            rows[first] += 1;
        }
        let (mut batch, mut filled, mut open_until) = (0, 0, 0);
        let mut batches = Vec::with_capacity(self.operations);
        for operation in 0..self.operations {
            batches.push(batch);
            open_until = open_until.max(reach[operation]);
            filled += rows[operation];
            if open_until == operation && filled >= BATCH {
                (batch, filled) = (batch + 1, 0);
            }
        }
        batches
    }
}

fn in_batches(changes: Vec<CellChange>) -> Batches {
    let mut batches = Batches::new();
    for change in changes {
        match batches.last_mut() {
            Some(batch) if batch.len() < BATCH => batch.push(change),
            Some(_) | None => batches.push(vec![change]),
        }
    }
    batches
}

/// Returns the cell of a body, and puts the pieces it may need beside it.
fn cell_of(key: &[u8], body: Vec<u8>, revision: u64, pieces: &mut Vec<CellChange>) -> Vec<u8> {
    if body.len() <= PIECE {
        return cell::whole(key, body);
    }
    let head = Head::of(&body, revision);
    for (piece_key, part) in head.piece_keys(key).zip(body.chunks(PIECE)) {
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

    fn gone(key: Vec<u8>, old: u128) -> CellChange {
        CellChange { key, cell: None, old: Some(old), new: None }
    }
}

impl Old {
    /// Reads what the index holds under a key; what cannot be read cannot be taken out of the totals.
    fn read(index: &dyn Index, key: &[u8]) -> Result<Old, StoreError> {
        let Some(cell) = cell::get(index, key)? else { return Ok(Old::default()) };
        let hash = Some(row_hash(key, &cell));
        let mut pieces = Vec::new();
        match cell::open(key, cell) {
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
        Ok(Old { hash, pieces })
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::{Change, IndexError};
    use super::super::tx::Direction;
    use super::*;

    struct EmptyIndex;

    impl Index for EmptyIndex {
        fn get(&self, _key: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
            Ok(None)
        }

        fn range(
            &self,
            _start: Bound<&[u8]>,
            _end: Bound<&[u8]>,
            _direction: Direction,
            _visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
        ) -> Result<(), IndexError> {
            Ok(())
        }

        fn apply(&self, _changes: &[Change<'_>]) -> Result<(), IndexError> {
            Ok(())
        }

        fn flush(&self) -> Result<(), IndexError> {
            Ok(())
        }
    }

    /// Stages operations given as lists of keys; keys that begin with `c` are counters.
    fn batches_of(operations: impl Iterator<Item = Vec<String>>) -> Vec<Vec<String>> {
        let mut group = Group::default();
        for keys in operations {
            let staged = |key: String| {
                let last = key.starts_with('c');
                (key.into_bytes(), Staged { body: Some(Vec::new()), last })
            };
            group.join(keys.into_iter().map(staged).collect(), &EmptyIndex).unwrap();
        }
        let names = |batch: Vec<CellChange>| {
            batch.into_iter().map(|change| String::from_utf8(change.key).unwrap()).collect()
        };
        group.into_batches(1).into_iter().map(names).collect()
    }

    #[test]
    fn batches_keep_the_order_of_operations_and_end_with_the_counters() {
        // Later operations have smaller keys.
        let operations = (0..100).map(|number| vec![format!("S{:03}", 200 - number), "c".to_owned()]);
        let batches = batches_of(operations);
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [64, 37]);
        assert!(batches[0].iter().min() > batches[1].iter().filter(|key| *key != "c").max());
        assert!(batches[1].contains(&"c".to_owned()));
    }

    #[test]
    fn operations_that_touch_the_same_row_share_a_batch() {
        let operations = (0..100).map(|number| match number {
            10 | 90 => vec![format!("S{number:03}"), "F".to_owned()],
            _ => vec![format!("S{number:03}")],
        });
        let batches = batches_of(operations);
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [92, 9]);
        assert!(["F", "S010", "S090"].iter().all(|key| batches[0].contains(&(*key).to_owned())));
    }

    #[test]
    fn pieces_come_before_their_head() {
        let mut group = Group::default();
        let body = Some(vec![0; 3 * PIECE]);
        let staged = [(b"A".to_vec(), Staged { body, last: false })];
        group.join(staged.into_iter().collect(), &EmptyIndex).unwrap();
        let batches = group.into_batches(7);
        let firsts: Vec<u8> = batches.iter().flatten().map(|change| change.key[0]).collect();
        assert_eq!(firsts, *b"PPPA");
    }
}
